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
	STREAM_MOST_WRITES = 2
};
#define STREAM_CHUNK_BYTES (TT_POOL_BUFFER_BYTES / STREAM_CHUNKS)

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
	uint64_t done_bytes;    /* of the present request */
};

struct tt_stream {
	struct tt_ring *ring;
	struct stream_chunk chunks[STREAM_CHUNKS];
	/* of the present file */
	const struct tt_copy_request *request;
	struct tt_copy_worker *worker;
	struct tt_copy_result *result;
	struct tt_extents extents;
	uint64_t chunk_bytes;             /* less than a chunk holds if the budget is small */
	uint64_t held_offset, held_bytes; /* the piece to be read next, 0 bytes: not known yet */
	uint64_t next_read, next_write, oldest; /* counts of chunks */
	unsigned writes;                        /* in flight */
	bool no_more;                           /* nothing left to read */
	bool ended_early;                       /* the source is shorter than was said */
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
	const struct tt_ring_config config = {
		.depth = 2 * STREAM_CHUNKS, .workers = STREAM_CHUNKS, .no_uring = worker->no_uring};
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

static void stream_submit(struct tt_stream *stream, struct stream_chunk *chunk)
{
	bool reading = chunk->state == STREAM_READING;
	struct tt_ring_request ring_request = {
		.op = reading ? TT_RING_READ : TT_RING_WRITE,
		.fd = reading ? stream->request->from_fd : stream->request->writer->fd,
		.flags = reading ? 0 : stream->request->writer->rwf_flags,
		.buffer = chunk->data + chunk->done_bytes,
		.offset = chunk->offset + chunk->done_bytes,
		.length = chunk->bytes - chunk->done_bytes,
		.token = chunk,
	};
	int r = tt_ring_submit(stream->ring, &ring_request);

	assert(r == 0); /* the ring is deeper than there are chunks */
	(void)r;
}

/* Finds the piece for `chunk`. Behind a long hole it has to wait until everything before has been
 * read and passed: the reader makes up its mind about what lies far behind then. Returns 1, 0 at
 * the end, -EAGAIN to wait, or another negative errno. */
static int stream_next_piece(struct tt_stream *stream, struct stream_chunk *chunk)
{
	const struct stream_chunk *oldest = &stream->chunks[stream->oldest % STREAM_CHUNKS];

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
	stream->held_bytes = 0;
	return 1;
}

static void stream_start_reads(struct tt_stream *stream)
{
	while (!stream->no_more && stream->next_read - stream->oldest < STREAM_CHUNKS) {
		struct stream_chunk *chunk = &stream->chunks[stream->next_read % STREAM_CHUNKS];

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
		stream->next_read++;
		stream_submit(stream, chunk);
	}
}

static void stream_start_writes(struct tt_stream *stream)
{
	while (stream->error == 0 && stream->next_write < stream->next_read
		&& stream->writes < STREAM_MOST_WRITES) {
		struct stream_chunk *chunk = &stream->chunks[stream->next_write % STREAM_CHUNKS];

		if (chunk->state != STREAM_FILLED)
			return;
		if (chunk->bytes > 0) {
			/* Asleep only when everything charged so far has been written and handed
			 * over. */
			if (!tt_writer_try_charge(stream->request->writer, chunk->bytes)) {
				if (stream->writes > 0)
					return;
				tt_writer_charge(stream->request->writer, chunk->bytes);
			}
			chunk->state = STREAM_WRITING;
			chunk->done_bytes = 0;
			stream->writes++;
			stream_submit(stream, chunk);
		} else {
			chunk->state = STREAM_WRITTEN;
		}
		stream->next_write++;
	}
}

/* Written chunks leave in order: the writer and the reader hear of them in order of offsets. */
static void stream_retire(struct tt_stream *stream)
{
	while (stream->oldest < stream->next_read) {
		struct stream_chunk *chunk = &stream->chunks[stream->oldest % STREAM_CHUNKS];
		bool abandoned = stream->error != 0 && chunk->state == STREAM_FILLED;

		if (chunk->state != STREAM_WRITTEN && !abandoned)
			return;
		if (chunk->state == STREAM_WRITTEN && chunk->bytes > 0) {
			tt_writer_wrote(stream->request->writer, chunk->offset, chunk->bytes);
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

static void stream_complete(struct tt_stream *stream, const struct tt_ring_completion *completion)
{
	struct stream_chunk *chunk = completion->token;
	bool reading = chunk->state == STREAM_READING;
	enum stream_state next = reading ? STREAM_FILLED : STREAM_WRITTEN;

	if (completion->result < 0 && completion->result != -EINTR
		&& completion->result != -EAGAIN) {
		stream_fail(stream, (int)completion->result,
			reading ? TT_COPY_READING : TT_COPY_WRITING);
		chunk->bytes = chunk->done_bytes;
	} else if (completion->result == 0 && reading) {
		/* The source ends early: what was read is the rest. */
		chunk->bytes = chunk->done_bytes;
		stream->no_more = true;
		stream->ended_early = true;
	} else if (completion->result == 0) {
		stream_fail(stream, -EIO, TT_COPY_WRITING);
	} else if (completion->result > 0) {
		chunk->done_bytes += (uint64_t)completion->result;
	}
	if (chunk->done_bytes < chunk->bytes && stream->error == 0) {
		stream_submit(stream, chunk);
		return;
	}
	if (!reading)
		stream->writes--;
	chunk->state = next;
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
	for (unsigned i = 0; i < STREAM_CHUNKS; i++)
		stream->chunks[i].data = (char *)buffer + (size_t)i * STREAM_CHUNK_BYTES;
	stream->chunk_bytes = tt_writer_most_bytes(request->writer) < STREAM_CHUNK_BYTES
				      ? tt_writer_most_bytes(request->writer)
				      : STREAM_CHUNK_BYTES;
	tt_extents_init(&stream->extents, request->from_fd, request->size_bytes, request->holes);
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
