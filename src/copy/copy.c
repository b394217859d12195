/* SPDX-License-Identifier: MIT */
/*
 * See copy.h. Here it is chosen how; the plain loop is here too, the stream in stream.c.
 */
#include "copy/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "copy/extents.h"
#include "copy/offload.h"
#include "copy/preallocate.h"
#include "copy/stream.h"
#include "copy/unwritten.h"
#include "sys/fd.h"

/* From here on the ring pays for itself (see man/tiptoe-internals.7). */
#define COPY_STREAM_BYTES (UINT64_C(8) << 20)
/* O_DIRECT has no read-ahead: what is more than a buffer waits in the ring. */
#define COPY_DIRECT_BYTES        (TT_COPY_BUFFER_BYTES + 1)
#define COPY_BLOCK_BYTES         4096
#define COPY_LARGEST_BLOCK_BYTES 65536

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
	const struct tt_copy_request *request, const char *from, uint64_t bytes, uint64_t offset)
{
	struct tt_writer *writer = request->writer;

	if (!writer->is_direct)
		return 0;
	uint64_t part = bytes & ~(uint64_t)(writer->direct.offset_bytes - 1);

	if (!tt_direct_fits(&writer->direct, from, offset, part)) {
		tt_writer_leave_direct(writer, "a piece of it is not aligned");
		return 0;
	}
	int r = part > 0 ? tt_fd_pwrite_all(writer->fd, from, part, offset, 0) : 0;

	if (part == 0 || r == -EINVAL) {
		const bool is_tail = offset + bytes >= request->size_bytes;

		tt_writer_leave_direct(writer, r < 0     ? "the kernel refuses to write it so"
					       : is_tail ? NULL
							 : "a piece of it is not aligned");
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
		int64_t direct = copy_write_direct(request, from, bytes, offset);

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

/* [offset, offset + bytes) is to be a hole: given back where it was preallocated (with -S). A file
 * system that cannot keeps what it has allocated, which reads as zeros too. */
static int copy_leave_hole(const struct tt_copy_request *request, uint64_t offset, uint64_t bytes,
	const struct tt_copy_result *result)
{
	if (bytes == 0 || !request->sparse || !request->preallocate
		|| result->preallocate_error != 0)
		return 0;
	/* Only whole blocks are given back; behind the end nothing is lost. */
	if (offset + bytes == request->size_bytes)
		bytes += COPY_LARGEST_BLOCK_BYTES;
	int r = tt_fd_allocate(
		request->writer->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);

	return r == -EOPNOTSUPP || r == -EINVAL ? 0 : r;
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
		r = copy_leave_hole(request, offset + run, at - run, result);
		if (r < 0)
			return r;
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
	uint64_t offset, bytes, end = request->start_bytes;
	int r, left;

	tt_extents_init(&extents, request->from_fd, request->size_bytes, request->holes);
	tt_extents_start(&extents, request->start_bytes);
	while ((r = tt_extents_next(&extents, buffer_bytes, &offset, &bytes)) > 0) {
		result->failed = TT_COPY_WRITING;
		r = copy_leave_hole(request, end, offset - end, result);
		if (r == 0)
			r = copy_piece(worker, request, buffer, offset, bytes, result);
		if (r <= 0)
			return r;
		end = offset + bytes;
	}
	result->failed = TT_COPY_READING;
	if (r < 0)
		return r;
	result->failed = TT_COPY_WRITING;
	left = copy_leave_hole(request, end, request->size_bytes - end, result);
	result->size_bytes = request->size_bytes; /* what comes behind the last data is a hole */
	return left;
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

/* Before the first write. Where writes do not make the file longer, xfs allocates no more than is
 * written: its guess of what will follow would fill holes (fs/xfs/xfs_iomap.c), and stay for good
 * in a file that has been given space by fallocate(2). */
static int copy_prepare(const struct tt_copy_request *request, struct tt_copy_result *result)
{
	bool length_first =
		request->holes || request->sparse || request->preallocate
		|| request->writer->is_direct
		|| (request->before
			&& tt_unwritten_is_behind_end(request->from_fd, request->before));

	result->failed = TT_COPY_WRITING;
	if (request->size_bytes == 0)
		return 0;
	if (length_first && !request->in_place
		&& ftruncate(request->writer->fd, (off_t)request->size_bytes) < 0)
		return -errno;
	/* Of an old file, what is behind its end: its holes are the caller's. */
	if (request->preallocate)
		result->preallocate_error = tt_preallocate_ahead(request->writer->fd,
			request->in_place ? request->writer->clear_bytes : 0, request->size_bytes,
			request->holes || request->sparse, request->preallocate_lock);
	return 0;
}

/* Only where it is another: cutting a file in the middle of a block writes that block again, which
 * would end the sharing of a clone's last one. */
static int copy_set_length(int fd, uint64_t bytes)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && (uint64_t)st.st_size == bytes)
		return 0;
	return ftruncate(fd, (off_t)bytes) < 0 ? -errno : 0;
}

/* After the last write: a hole at the end is a length, not a write, and what was allocated for more
 * than there was goes. */
static int copy_finish(const struct tt_copy_request *request, struct tt_copy_result *result)
{
	int fd = request->writer->fd, r = 0;

	result->failed = TT_COPY_WRITING;
	if (request->holes || request->sparse || request->in_place || request->writer->was_direct
		|| result->size_bytes != request->size_bytes)
		r = copy_set_length(fd, result->size_bytes);
	/* In place there may still be old content where holes will be, and behind the end. */
	if (r < 0 || !request->before || request->sparse || request->in_place)
		return r;
	return tt_unwritten_copy(request->from_fd, fd, request->before, request->holes);
}

/* Where it can be had without moving the content: by clone, or in the file server. Returns 1 if
 * nothing is left to copy, 0 with the number of bytes that are there in *ret_start, or a negative
 * errno. */
static int copy_share(struct tt_copy_worker *worker, const struct tt_copy_request *request,
	struct tt_copy_result *result, uint64_t *ret_start)
{
	const struct tt_clone_request clone = {
		.from_fd = request->from_fd,
		.to_fd = request->writer->fd,
		.before = request->before,
		.mode = request->reflink,
		.method = request->reader->fs->method,
		.in_place = request->in_place,
		.memory = request->clones,
		.stop = worker->stop,
		.progress_bytes = worker->progress_bytes,
	};

	result->failed = TT_COPY_CLONING;
	int r = tt_clone_copy(&clone, &result->cloned_bytes);

	if (r <= 0)
		return r;
	result->size_bytes = *ret_start = result->cloned_bytes;
	return !request->in_place || result->cloned_bytes == request->size_bytes;
}

static int copy_offload(struct tt_copy_worker *worker, const struct tt_copy_request *request,
	struct tt_copy_result *result, uint64_t *ret_start)
{
	const struct tt_offload_request offload = {
		.from_fd = request->from_fd,
		.to_fd = request->writer->fd,
		.size_bytes = request->size_bytes,
		.stop = worker->stop,
		.progress_bytes = worker->progress_bytes,
	};
	uint64_t dev = (uint64_t)request->before->st_dev;

	if (tt_clone_is_refused(&request->clones->offload, dev))
		return 0;
	if (!tt_offload_may(request->from_fd, request->writer->fd, dev, request->clones)) {
		tt_clone_refuse(&request->clones->offload, dev);
		return 0;
	}
	if (tt_residency_may_be_dirty(
		    request->from_fd, request->reader->fs->method, request->before, 0, 0))
		return 0;
	int r = tt_offload_copy(&offload, ret_start);

	if (r > 0)
		tt_clone_refuse(&request->clones->offload, dev);
	if (*ret_start > 0)
		atomic_store(&request->clones->has_offloaded, true);
	result->size_bytes = *ret_start;
	result->failed = TT_COPY_WRITING;
	return r < 0 ? r : *ret_start == request->size_bytes;
}

/* What has its blocks preallocated or its zeros left out has blocks of its own. */
static bool copy_may_share(const struct tt_copy_request *request)
{
	return request->clones && request->before && request->start_bytes == 0
	       && request->reflink != TT_CLONE_NEVER && !request->sparse && !request->preallocate;
}

int tt_copy_content(struct tt_copy_worker *worker, const struct tt_copy_request *request,
	struct tt_copy_result *ret_result)
{
	struct tt_copy_request rest = *request;
	int r = 0;

	*ret_result = (struct tt_copy_result){0};
	if (copy_may_share(request)) {
		r = copy_share(worker, request, ret_result, &rest.start_bytes);
		if (r == 0 && rest.start_bytes == 0 && !request->holes && request->size_bytes > 0)
			r = copy_offload(worker, request, ret_result, &rest.start_bytes);
	}
	if (r < 0)
		return r;
	if (rest.start_bytes > request->start_bytes) /* by clone or by the server */
		tt_writer_skip(request->writer, rest.start_bytes);
	if (r > 0) {
		tt_neutral_reader_untouched(request->reader);
		tt_writer_untouched(request->writer);
		return copy_finish(&rest, ret_result);
	}
	r = copy_prepare(&rest, ret_result);
	ret_result->size_bytes = rest.start_bytes;
	if (r == 0)
		r = copy_data(worker, &rest, ret_result);
	if (r == 0)
		return copy_finish(&rest, ret_result);
	/* O_DIRECT began with the length that was told, which a copy that failed must not seem to
	 * have. */
	if (request->writer->was_direct)
		(void)copy_set_length(request->writer->fd, ret_result->size_bytes);
	return r;
}
