/* SPDX-License-Identifier: MIT */
/*
 * See copy.h. The plain loop is here, the stream in stream.c.
 */
#include "copy/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "copy/extents.h"
#include "copy/stream.h"
#include "sys/fd.h"

/* From here on the ring pays for itself (see man/tiptoe-internals.7). */
#define COPY_STREAM_BYTES (UINT64_C(8) << 20)
/* O_DIRECT has no read-ahead: what is more than a buffer waits in the ring. */
#define COPY_DIRECT_BYTES (TT_COPY_BUFFER_BYTES + 1)
#define COPY_BLOCK_BYTES  4096

void tt_copy_worker_deinit(struct tt_copy_worker *worker)
{
	free(worker->buffer);
	tt_stream_free(worker->stream);
	worker->buffer = NULL;
	worker->stream = NULL;
}

static bool copy_is_zero(const void *block, size_t bytes)
{
	const char *from = block;

	return bytes > 0 && from[0] == 0 && memcmp(from, from + 1, bytes - 1) == 0;
}

/* Writes the aligned part of [offset, offset + bytes) with O_DIRECT. Returns how much that was; 0:
 * the rest goes the ordinary way; or a negative errno. */
static int64_t copy_write_direct(
	struct tt_writer *writer, const char *from, uint64_t bytes, uint64_t offset)
{
	if (!writer->is_direct)
		return 0;
	uint64_t part = bytes & ~(uint64_t)(writer->direct.offset_bytes - 1);

	if (!tt_direct_fits(&writer->direct, from, offset, part)) {
		tt_writer_leave_direct(writer, "a piece of it is not aligned");
		return 0;
	}
	int r = part > 0 ? tt_fd_pwrite_all(writer->fd, from, part, offset, 0) : 0;

	if (part == 0 || r == -EINVAL) {
		tt_writer_leave_direct(writer, r < 0 ? "the kernel refuses to write it so" : NULL);
		return 0;
	}
	if (r < 0)
		return r;
	tt_writer_wrote_direct(writer, offset, part);
	return (int64_t)part;
}

static int copy_write(const struct tt_copy_request *request, const char *from, uint64_t bytes,
	uint64_t offset, struct tt_copy_result *result)
{
	struct tt_writer *writer = request->writer;

	while (bytes > 0) {
		int64_t direct = copy_write_direct(writer, from, bytes, offset);

		if (direct < 0)
			return (int)direct;
		if (direct > 0) {
			result->literal_bytes += (uint64_t)direct;
			from += direct;
			offset += (uint64_t)direct;
			bytes -= (uint64_t)direct;
			continue;
		}
		uint64_t most = tt_writer_most_bytes(writer);
		uint64_t piece = bytes < most ? bytes : most;

		tt_writer_charge(writer, piece);
		int r = tt_fd_pwrite_all(writer->fd, from, piece, offset, writer->rwf_flags);

		if (r < 0)
			return r;
		tt_writer_wrote(writer, offset, piece);
		result->literal_bytes += piece;
		from += piece;
		offset += piece;
		bytes -= piece;
	}
	return 0;
}

/* Writes the runs of blocks that are not zero. */
static int copy_write_sparse(const struct tt_copy_request *request, const char *from,
	uint64_t bytes, uint64_t offset, struct tt_copy_result *result)
{
	for (uint64_t at = 0; at < bytes;) {
		uint64_t run = at;

		while (run < bytes) {
			uint64_t block =
				bytes - run < COPY_BLOCK_BYTES ? bytes - run : COPY_BLOCK_BYTES;

			if (copy_is_zero(from + run, block))
				break;
			run += block;
		}
		int r = copy_write(request, from + at, run - at, offset + at, result);

		if (r < 0)
			return r;
		at = run;
		while (at < bytes) {
			uint64_t block =
				bytes - at < COPY_BLOCK_BYTES ? bytes - at : COPY_BLOCK_BYTES;

			if (!copy_is_zero(from + at, block))
				break;
			at += block;
		}
	}
	return 0;
}

/* One piece. Returns 1 to go on, 0 at the end of the file, or a negative errno. */
static int copy_piece(struct tt_copy_worker *worker, const struct tt_copy_request *request,
	char *buffer, uint64_t offset, uint64_t bytes, struct tt_copy_result *result)
{
	for (uint64_t done = 0; done < bytes;) {
		if (atomic_load_explicit(worker->stop, memory_order_relaxed))
			return -ECANCELED;
		ssize_t got = tt_neutral_reader_pread(
			request->reader, buffer, bytes - done, offset + done);

		result->failed = TT_COPY_READING;
		if (got <= 0)
			return (int)got;
		result->failed = TT_COPY_WRITING;
		int r = request->sparse
				? copy_write_sparse(
					request, buffer, (uint64_t)got, offset + done, result)
				: copy_write(request, buffer, (uint64_t)got, offset + done, result);

		if (r < 0)
			return r;
		done += (uint64_t)got;
		result->size_bytes = offset + done;
		tt_neutral_reader_passed(request->reader, offset + done);
		atomic_fetch_add_explicit(
			worker->progress_bytes, (uint64_t)got, memory_order_relaxed);
	}
	return 1;
}

static int copy_plain(struct tt_copy_worker *worker, const struct tt_copy_request *request,
	char *buffer, uint64_t buffer_bytes, struct tt_copy_result *result)
{
	struct tt_extents extents;
	uint64_t offset, bytes;
	int r;

	tt_extents_init(&extents, request->from_fd, request->size_bytes, request->holes);
	tt_extents_start(&extents, request->start_bytes);
	while ((r = tt_extents_next(&extents, buffer_bytes, &offset, &bytes)) > 0) {
		r = copy_piece(worker, request, buffer, offset, bytes, result);
		if (r <= 0)
			return r;
	}
	result->failed = TT_COPY_READING;
	if (r == 0)
		result->size_bytes =
			request->size_bytes; /* what comes behind the last data is a hole */
	return r;
}

/* A file that says it is empty: so it is, or it is one of those that do not know (/proc). */
static int copy_unsized(struct tt_copy_worker *worker, const struct tt_copy_request *request,
	char *buffer, struct tt_copy_result *result)
{
	int r = 1;

	for (uint64_t offset = 0; r > 0; offset += TT_COPY_BUFFER_BYTES)
		r = copy_piece(worker, request, buffer, offset, TT_COPY_BUFFER_BYTES, result);
	return r;
}

static int copy_data(struct tt_copy_worker *worker, const struct tt_copy_request *request,
	struct tt_copy_result *result)
{
	bool dontcache = tt_neutral_reader_flags(request->reader) != 0
			 && request->size_bytes > TT_COPY_BUFFER_BYTES;
	bool direct = request->reader->is_direct || request->writer->is_direct;
	bool large = !request->sparse
		     && request->size_bytes >= (direct ? COPY_DIRECT_BYTES : COPY_STREAM_BYTES);
	void *pooled = dontcache || large ? tt_pool_take(worker->pool, dontcache) : NULL;
	int r;

	result->failed = TT_COPY_READING;
	if (dontcache && !pooled)
		return -ENOMEM;
	if (!pooled && !worker->buffer) {
		worker->buffer = aligned_alloc(4096, TT_COPY_BUFFER_BYTES);
		if (!worker->buffer)
			return -ENOMEM;
	}
	if (request->size_bytes == 0)
		r = copy_unsized(worker, request, worker->buffer, result);
	else if (pooled && !dontcache)
		r = tt_stream_copy(worker, request, pooled, result);
	else if (pooled)
		r = copy_plain(worker, request, pooled, TT_POOL_BUFFER_BYTES, result);
	else
		r = copy_plain(worker, request, worker->buffer, TT_COPY_BUFFER_BYTES, result);
	tt_pool_give(worker->pool, pooled);
	return r;
}

int tt_copy_content(struct tt_copy_worker *worker, const struct tt_copy_request *request,
	struct tt_copy_result *ret_result)
{
	*ret_result = (struct tt_copy_result){0};
	int r = copy_data(worker, request, ret_result);
	/* A hole at the end is a length, not a write; and O_DIRECT began with the length that was
	 * told, which a copy that failed must not seem to have. */
	bool is_long = request->writer->was_direct && ret_result->size_bytes != request->size_bytes;
	bool is_sparse =
		r == 0 && ret_result->size_bytes > 0 && (request->holes || request->sparse);

	if ((is_long || is_sparse)
		&& ftruncate(request->writer->fd, (off_t)ret_result->size_bytes) < 0 && r == 0) {
		ret_result->failed = TT_COPY_WRITING;
		return -errno;
	}
	return r;
}
