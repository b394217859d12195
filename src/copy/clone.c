/* SPDX-License-Identifier: MIT */
/*
 * See clone.h. Large files are cloned in pieces, so that a stop need not wait for the whole of a
 * file with many extents (man/tiptoe-internals.7 has what a piece costs).
 */
#include "copy/clone.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/facility.h"

#define CLONE_PIECE_BYTES (UINT64_C(1) << 30)

enum {
	CLONE_MOST_ODD = 16,
};

bool tt_clone_is_refused(const struct tt_clone_refused *refused, uint64_t dev)
{
	for (unsigned i = 0; i < sizeof refused->from / sizeof *refused->from; i++) {
		uint64_t from = atomic_load_explicit(&refused->from[i], memory_order_relaxed);

		if (from == dev + 1)
			return true;
		if (from == 0)
			return false;
	}
	return false;
}

void tt_clone_refuse(struct tt_clone_refused *refused, uint64_t dev)
{
	for (unsigned i = 0; i < sizeof refused->from / sizeof *refused->from; i++) {
		uint64_t none = 0;

		if (atomic_compare_exchange_strong(&refused->from[i], &none, dev + 1)
			|| none == dev + 1)
			return;
	}
}

/* Length 0: to the end of the source. */
static int clone_call(const struct tt_clone_request *request, uint64_t offset, uint64_t bytes)
{
	struct file_clone_range range = {
		.src_fd = request->from_fd,
		.src_offset = offset,
		.src_length = bytes,
		.dest_offset = offset,
	};

	int r = ioctl(request->to_fd, FICLONERANGE, &range) < 0 ? -errno : 0;

	/* Never the file system's own answer; EPERM is, about a file that nothing may change. */
	if (r == -ENOSYS)
		tt_facility_refuse(TT_FACILITY_FICLONERANGE, r);
	return r;
}

/* Remembers what the kernel said. Where something has been cloned, all but EXDEV is about the one
 * file; EINVAL may be so from the beginning (btrfs: its checksums are switched off,
 * fs/btrfs/reflink.c), so it takes some of them. */
static void clone_learn(const struct tt_clone_request *request, int error)
{
	struct tt_clone_memory *memory = request->memory;
	bool has_cloned = atomic_load_explicit(&memory->has_cloned, memory_order_relaxed);
	bool refused =
		error == -EOPNOTSUPP || error == -ENOTTY || tt_facility_may_be_refusal(error);

	if (error == 0 && !has_cloned)
		atomic_store_explicit(&memory->has_cloned, true, memory_order_relaxed);
	if (error == -EINVAL && !has_cloned)
		refused = atomic_fetch_add(&memory->odd, 1) + 1 >= CLONE_MOST_ODD;
	if (error == -EXDEV || (refused && !has_cloned))
		tt_clone_refuse(&memory->clone, (uint64_t)request->before->st_dev);
}

/* Whether it is worth asking the kernel. */
static bool clone_may(const struct tt_clone_request *request)
{
	switch (request->mode) {
	case TT_CLONE_NEVER:
		return false;
	case TT_CLONE_ALWAYS:
		return true;
	case TT_CLONE_AUTO:
		break;
	}
	return request->before->st_size > 0
	       && !tt_clone_is_refused(&request->memory->clone, (uint64_t)request->before->st_dev)
	       && !tt_residency_may_be_dirty(
		       request->from_fd, request->method, request->before, 0, 0);
}

/* As many pieces as there are gibibytes of blocks: a hole takes no time, whatever its length. */
static uint64_t clone_piece_bytes(const struct tt_clone_request *request)
{
	uint64_t pieces = (uint64_t)request->before->st_blocks * 512 / CLONE_PIECE_BYTES + 1;
	uint64_t piece = (uint64_t)request->before->st_size / pieces;

	return (piece / CLONE_PIECE_BYTES + 1) * CLONE_PIECE_BYTES;
}

/* Clones [offset, end) piece by piece; `to_end`: the last piece goes to wherever the source ends by
 * now. *ret_done: how much was counted, after failures too. */
static int clone_pieces(const struct tt_clone_request *request, uint64_t offset, uint64_t end,
	bool to_end, uint64_t *ret_done)
{
	const uint64_t piece = clone_piece_bytes(request);

	*ret_done = 0;
	do {
		bool is_last = end - offset <= piece;
		uint64_t bytes = is_last ? end - offset : piece;

		if (atomic_load_explicit(request->stop, memory_order_relaxed))
			return -ECANCELED;
		int r = clone_call(request, offset, is_last && to_end ? 0 : bytes);

		clone_learn(request, r);
		if (r < 0)
			return r;
		atomic_fetch_add_explicit(request->progress_bytes, bytes, memory_order_relaxed);
		*ret_done += bytes;
		offset += bytes;
	} while (offset < end);
	return 0;
}

/* After a failure what was counted will be counted again when it is copied. */
static int clone_give_up(const struct tt_clone_request *request, uint64_t done, int error)
{
	atomic_fetch_sub_explicit(request->progress_bytes, done, memory_order_relaxed);
	if (error == -ECANCELED || request->mode == TT_CLONE_ALWAYS)
		return error;
	if (done > 0 && !request->in_place && ftruncate(request->to_fd, 0) < 0)
		return -errno;
	return 0;
}

/* The source may have grown or shrunk meanwhile: no more than was asked for, and what is there. */
static int clone_trim(const struct tt_clone_request *request, uint64_t *ret_bytes)
{
	uint64_t size = (uint64_t)request->before->st_size;
	struct stat st;

	if (fstat(request->to_fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size > size && ftruncate(request->to_fd, (off_t)size) < 0)
		return -errno;
	*ret_bytes = (uint64_t)st.st_size < size ? (uint64_t)st.st_size : size;
	return 1;
}

static uint64_t clone_block_bytes(const struct tt_clone_request *request)
{
	struct stat st;
	uint64_t block = (uint64_t)request->before->st_blksize;

	if (fstat(request->to_fd, &st) == 0 && (uint64_t)st.st_blksize > block)
		block = (uint64_t)st.st_blksize;
	return block >= 4096 && (block & (block - 1)) == 0 ? block : 65536;
}

static int clone_in_place(const struct tt_clone_request *request, uint64_t offset, uint64_t bytes,
	uint64_t *ret_offset, uint64_t *ret_bytes)
{
	uint64_t block = clone_block_bytes(request);
	uint64_t start = (offset + block - 1) / block * block;
	uint64_t end = (offset + bytes) / block * block, done;

	*ret_offset = start;
	*ret_bytes = 0;
	if (end <= start)
		return 0;
	int r = clone_pieces(request, start, end, false, &done);

	if (r < 0)
		return clone_give_up(request, done, r);
	*ret_bytes = end - start;
	return 1;
}

int tt_clone_range(const struct tt_clone_request *request, uint64_t offset, uint64_t bytes,
	uint64_t *ret_offset, uint64_t *ret_bytes)
{
	return clone_may(request) ? clone_in_place(request, offset, bytes, ret_offset, ret_bytes)
				  : 0;
}

/* Whether a part of a block may be the last that is cloned: nothing may be behind it. */
static bool clone_may_reach_end(const struct tt_clone_request *request)
{
	struct stat st;

	return fstat(request->to_fd, &st) == 0 && st.st_size <= request->before->st_size;
}

int tt_clone_copy(const struct tt_clone_request *request, uint64_t *ret_bytes)
{
	uint64_t size = (uint64_t)request->before->st_size, start, done;

	if (!clone_may(request))
		return 0;
	if (request->in_place && !clone_may_reach_end(request))
		return clone_in_place(request, 0, size, &start, ret_bytes);
	int r = clone_pieces(request, 0, size, true, &done);

	return r < 0 ? clone_give_up(request, done, r) : clone_trim(request, ret_bytes);
}
