/* SPDX-License-Identifier: MIT */
/*
 * See stream.h. One state per chunk, changed in stream_complete() and the two functions that start
 * requests; the chunks are a circular queue in order of offsets: `next_read` is behind `next_write`
 * is behind `oldest`, all counted without wrapping.
 */
#include "copy/stream.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "copy/extents.h"
#include "sys/ring.h"

enum {
	STREAM_CHUNKS = 4,
	STREAM_MOST_WRITES = 2,
	/* O_DIRECT has neither read-ahead nor writeback: the queue is ours to fill. */
	STREAM_DIRECT_CHUNKS = 8,
	STREAM_DIRECT_WRITES = 4,
	STREAM_MOST_CHUNKS = 8,
	STREAM_ALIGN_BYTES = 65536, /* the most that O_DIRECT may ask for, see sys/direct.c */
};

enum stream_state {
	STREAM_FREE,
	STREAM_READING,
	STREAM_FILLED,
	STREAM_WRITING,
	STREAM_WRITTEN
};

struct stream_chunk {
	enum stream_state state;
	char *data;
	uint64_t offset, bytes; /* what it is for */
	uint64_t done_bytes;    /* of reading or of writing */
	uint64_t asked_bytes;   /* the present request begins so far behind `offset` */
	uint64_t number;        /* count of chunks before it */
	bool direct;            /* the present request is for O_DIRECT */
};

struct tt_stream {
	struct tt_ring *ring;
	struct stream_chunk chunks[STREAM_MOST_CHUNKS];
	/* of the present file */
	const struct tt_copy_request *request;
	struct tt_copy_worker *worker;
	struct tt_copy_result *result;
	struct tt_extents extents;
	unsigned chunk_count, most_writes;
	uint64_t chunk_bytes;             /* less than a chunk holds if the budget is small */
	uint64_t held_offset, held_bytes; /* the piece to be read next, 0 bytes: not known yet */
	uint64_t next_read, next_write, oldest; /* counts of chunks */
	unsigned writes;                        /* in flight */
	bool no_more;                           /* nothing left to read */
	bool ended_early;                       /* the source is shorter than was said */
	bool undirect; /* a chunk cannot be written with O_DIRECT: when none is in flight */
	int error;
};

void tt_stream_free(struct tt_stream *stream)
{
	if (!stream)
		return;
	tt_ring_free(stream->ring);
	free(stream);
}

static int stream_new(struct tt_copy_worker *worker)
{
	const struct tt_ring_config config = {.depth = 2 * STREAM_MOST_CHUNKS,
		.workers = STREAM_MOST_CHUNKS,
		.no_uring = worker->no_uring};
	struct tt_stream *stream = calloc(1, sizeof *stream);

	if (!stream)
		return -ENOMEM;
	int r = tt_ring_new(&config, &stream->ring, NULL);

	if (r < 0) {
		free(stream);
		return r;
	}
	worker->stream = stream;
	return 0;
}

static void stream_fail(struct tt_stream *stream, int error, enum tt_copy_side side)
{
	if (stream->error == 0) {
		stream->error = error;
		stream->result->failed = side;
	}
	stream->no_more = true;
}

static struct stream_chunk *stream_chunk(struct tt_stream *stream, uint64_t number)
{
	return &stream->chunks[number % stream->chunk_count];
}

/* Of a read with O_DIRECT the beginning and the end are moved outwards to where they are allowed:
 * a chunk has room for that. */
static uint64_t stream_align_read(struct tt_stream *stream, struct stream_chunk *chunk)
{
	struct tt_neutral_reader *reader = stream->request->reader;
	uint64_t end = chunk->bytes;

	chunk->direct = reader->is_direct;
	if (reader->is_direct) {
		const uint64_t align = reader->direct.offset_bytes;

		chunk->asked_bytes = chunk->done_bytes / align * align;
		end = (chunk->bytes + align - 1) / align * align;
		if (chunk->offset % align != 0) {
			tt_neutral_reader_leave_direct(reader, "a piece of it is not aligned");
			return stream_align_read(stream, chunk);
		}
		tt_direct_touch(chunk->data + chunk->asked_bytes, end - chunk->asked_bytes);
	}
	return end - chunk->asked_bytes;
}

static void stream_submit(struct tt_stream *stream, struct stream_chunk *chunk)
{
	bool reading = chunk->state == STREAM_READING;

	chunk->asked_bytes = chunk->done_bytes;
	uint64_t length =
		reading ? stream_align_read(stream, chunk) : chunk->bytes - chunk->done_bytes;
	struct tt_ring_request ring_request = {
		.op = reading ? TT_RING_READ : TT_RING_WRITE,
		.fd = reading ? stream->request->from_fd : stream->request->writer->fd,
		.flags = reading ? 0 : stream->request->writer->rwf_flags,
		.buffer = chunk->data + chunk->asked_bytes,
		.offset = chunk->offset + chunk->asked_bytes,
		.length = length,
		.token = chunk,
	};
	int r = tt_ring_submit(stream->ring, &ring_request);

	assert(r == 0); /* the ring is deeper than there are chunks */
	(void)r;
}

/* Of both ends. Powers of two. */
static uint64_t stream_align(const struct tt_stream *stream)
{
	const struct tt_neutral_reader *reader = stream->request->reader;
	uint64_t write = stream->request->writer->direct.offset_bytes;
	uint64_t read = reader->is_direct ? reader->direct.offset_bytes : 1;

	return read > write ? read : write;
}

/* Finds the piece for `chunk`. Behind a long hole it has to wait until everything before has been
 * read and passed: the reader makes up its mind about what lies far behind then. Returns 1, 0 at
 * the end, -EAGAIN to wait, or another negative errno. */
static int stream_next_piece(struct tt_stream *stream, struct stream_chunk *chunk)
{
	const struct stream_chunk *oldest = stream_chunk(stream, stream->oldest);
	const struct tt_writer *writer = stream->request->writer;

	if (stream->held_bytes == 0) {
		int r = tt_extents_next(&stream->extents, stream->chunk_bytes, &stream->held_offset,
			&stream->held_bytes);

		if (r <= 0)
			return r;
	}
	if (stream->next_read > stream->oldest
		&& stream->held_offset - oldest->offset >= TT_NEUTRAL_SEGMENT_BYTES)
		return -EAGAIN;
	chunk->offset = stream->held_offset;
	chunk->bytes = stream->held_bytes;
	/* The tail that O_DIRECT cannot write is a piece of its own, from where it can be read. */
	if (writer->is_direct) {
		const uint64_t align = stream_align(stream);

		if (chunk->bytes > align)
			chunk->bytes -= chunk->bytes % align;
	}
	stream->held_offset += chunk->bytes;
	stream->held_bytes -= chunk->bytes;
	return 1;
}

static void stream_start_reads(struct tt_stream *stream)
{
	while (!stream->no_more && stream->next_read - stream->oldest < stream->chunk_count) {
		struct stream_chunk *chunk = stream_chunk(stream, stream->next_read);

		if (atomic_load_explicit(stream->worker->stop, memory_order_relaxed)) {
			stream_fail(stream, -ECANCELED, TT_COPY_READING);
			return;
		}
		int r = stream_next_piece(stream, chunk);

		if (r == -EAGAIN)
			return;
		if (r <= 0) {
			stream->no_more = true;
			if (r < 0)
				stream_fail(stream, r, TT_COPY_READING);
			return;
		}
		tt_neutral_reader_ahead(stream->request->reader, chunk->offset);
		chunk->state = STREAM_READING;
		chunk->done_bytes = 0;
		chunk->number = stream->next_read++;
		stream_submit(stream, chunk);
	}
}

/* Whether the chunk may be written now, the way the writer is. */
static bool stream_may_write(struct tt_stream *stream, struct stream_chunk *chunk)
{
	struct tt_writer *writer = stream->request->writer;

	if (writer->is_direct
		&& (stream->undirect
			|| !tt_direct_fits(
				&writer->direct, chunk->data, chunk->offset, chunk->bytes))) {
		bool is_tail = chunk->offset % writer->direct.offset_bytes == 0
			       && chunk->offset + chunk->bytes >= stream->request->size_bytes;

		if (stream->writes > 0)
			return false;
		tt_writer_leave_direct(writer, stream->undirect
						       ? "the kernel refuses to write it so"
					       : is_tail ? NULL
							 : "a piece of it is not aligned");
	}
	chunk->direct = writer->is_direct;
	/* Asleep only when everything charged so far has been written and handed over. */
	if (!tt_writer_try_charge(writer, chunk->bytes)) {
		if (stream->writes > 0)
			return false;
		tt_writer_charge(writer, chunk->bytes);
	}
	return true;
}

static void stream_start_writes(struct tt_stream *stream)
{
	for (; stream->error == 0 && stream->next_write < stream->next_read
		&& stream->writes < stream->most_writes;
		stream->next_write++) {
		struct stream_chunk *chunk = stream_chunk(stream, stream->next_write);

		/* Behind one that was refused there may be others that were not. */
		if (chunk->state == STREAM_WRITING || chunk->state == STREAM_WRITTEN)
			continue;
		if (chunk->state != STREAM_FILLED)
			return;
		if (chunk->bytes == 0) {
			chunk->state = STREAM_WRITTEN;
			continue;
		}
		if (!stream_may_write(stream, chunk))
			return;
		chunk->state = STREAM_WRITING;
		chunk->done_bytes = 0;
		stream->writes++;
		stream_submit(stream, chunk);
	}
}

/* Written chunks leave in order: the writer and the reader hear of them in order of offsets. */
static void stream_retire(struct tt_stream *stream)
{
	while (stream->oldest < stream->next_read) {
		struct stream_chunk *chunk = stream_chunk(stream, stream->oldest);
		bool abandoned = stream->error != 0 && chunk->state == STREAM_FILLED;

		if (chunk->state != STREAM_WRITTEN && !abandoned)
			return;
		if (chunk->state == STREAM_WRITTEN && chunk->bytes > 0) {
			if (chunk->direct)
				tt_writer_wrote_direct(
					stream->request->writer, chunk->offset, chunk->bytes);
			else
				tt_writer_wrote(
					stream->request->writer, chunk->offset, chunk->bytes);
			stream->result->size_bytes = chunk->offset + chunk->bytes;
			stream->result->literal_bytes += chunk->bytes;
			atomic_fetch_add_explicit(
				stream->worker->progress_bytes, chunk->bytes, memory_order_relaxed);
			tt_neutral_reader_passed(
				stream->request->reader, chunk->offset + chunk->bytes);
		}
		chunk->state = STREAM_FREE;
		stream->oldest++;
		if (stream->next_write < stream->oldest)
			stream->next_write = stream->oldest;
	}
}

/* O_DIRECT was refused: once more, the ordinary way. A write goes back to those that wait, since
 * it has to be charged now. Returns whether it was that. */
static bool stream_refused(struct tt_stream *stream, struct stream_chunk *chunk, int64_t result)
{
	if (!chunk->direct || result != -EINVAL)
		return false;
	if (chunk->state == STREAM_READING) {
		tt_neutral_reader_leave_direct(
			stream->request->reader, "the kernel refuses to read it so");
		stream_submit(stream, chunk);
		return true;
	}
	stream->undirect = true;
	stream->writes--;
	chunk->state = STREAM_FILLED;
	if (stream->next_write > chunk->number)
		stream->next_write = chunk->number;
	return true;
}

/* Counts what a request has done. With O_DIRECT it may have begun before and ended behind what is
 * wanted. Returns whether that was anything. */
static bool stream_progress(struct stream_chunk *chunk, int64_t result)
{
	uint64_t done = chunk->asked_bytes + (uint64_t)result;

	if (done > chunk->bytes)
		done = chunk->bytes;
	if (done <= chunk->done_bytes)
		return false;
	chunk->done_bytes = done;
	return true;
}

static void stream_complete(struct tt_stream *stream, const struct tt_ring_completion *completion)
{
	struct stream_chunk *chunk = completion->token;
	bool reading = chunk->state == STREAM_READING;

	if (stream_refused(stream, chunk, completion->result))
		return;
	if (completion->result < 0 && completion->result != -EINTR
		&& completion->result != -EAGAIN) {
		stream_fail(stream, (int)completion->result,
			reading ? TT_COPY_READING : TT_COPY_WRITING);
		chunk->bytes = chunk->done_bytes;
	} else if (completion->result >= 0 && !stream_progress(chunk, completion->result)) {
		if (reading) {
			/* The source ends early: what was read is the rest. */
			chunk->bytes = chunk->done_bytes;
			stream->no_more = true;
			stream->ended_early = true;
		} else {
			stream_fail(stream, -EIO, TT_COPY_WRITING);
		}
	}
	if (chunk->done_bytes < chunk->bytes && stream->error == 0) {
		stream_submit(stream, chunk);
		return;
	}
	if (!reading)
		stream->writes--;
	chunk->state = reading ? STREAM_FILLED : STREAM_WRITTEN;
}

/* Shares the buffer out. */
static void stream_lay_out(struct tt_stream *stream, char *buffer)
{
	const struct tt_copy_request *request = stream->request;
	const bool direct = request->reader->is_direct || request->writer->is_direct;
	const uint64_t most = tt_writer_most_bytes(request->writer);

	stream->chunk_count = direct ? STREAM_DIRECT_CHUNKS : STREAM_CHUNKS;
	stream->most_writes =
		request->writer->is_direct ? STREAM_DIRECT_WRITES : STREAM_MOST_WRITES;
	/* The next run's --append believes what there is: after a kill that must be a beginning,
	 * without a piece that was still to be written. */
	if (request->in_order)
		stream->most_writes = 1;
	stream->chunk_bytes = TT_POOL_BUFFER_BYTES / stream->chunk_count;
	for (unsigned i = 0; i < stream->chunk_count; i++)
		stream->chunks[i].data = buffer + i * stream->chunk_bytes;
	if (stream->chunk_bytes > most)
		stream->chunk_bytes = most;
	if (direct && stream->chunk_bytes > STREAM_ALIGN_BYTES)
		stream->chunk_bytes -= stream->chunk_bytes % STREAM_ALIGN_BYTES;
}

int tt_stream_copy(struct tt_copy_worker *worker, const struct tt_copy_request *request,
	void *buffer, struct tt_copy_result *ret_result)
{
	struct tt_ring_completion completion;
	int r = worker->stream ? 0 : stream_new(worker);

	if (r < 0)
		return r;
	struct tt_stream *stream = worker->stream;
	struct tt_ring *ring = stream->ring;

	*stream = (struct tt_stream){
		.ring = ring, .request = request, .worker = worker, .result = ret_result};
	stream_lay_out(stream, buffer);
	tt_extents_init(&stream->extents, request->from_fd, request->size_bytes, request->holes);
	tt_extents_start(&stream->extents, request->start_bytes);
	for (;;) {
		stream_start_reads(stream);
		stream_start_writes(stream);
		if (tt_ring_in_flight(ring) == 0) {
			stream_retire(stream);
			if (stream->oldest == stream->next_read
				&& (stream->no_more || stream->error != 0))
				break;
			continue;
		}
		r = tt_ring_wait(ring, true, &completion);
		if (r > 0)
			stream_complete(stream, &completion);
		else if (r < 0)
			stream_fail(stream, r, TT_COPY_READING);
		stream_retire(stream);
	}
	if (stream->error == 0
		&& !stream->ended_early) /* what comes behind the last data is a hole */
		ret_result->size_bytes = request->size_bytes;
	return stream->error;
}
