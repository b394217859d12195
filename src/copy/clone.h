/* SPDX-License-Identifier: MIT */
/*
 * The content of one file by sharing its blocks (FICLONERANGE on btrfs, xfs and whatever else
 * accepts it): nothing is read, nothing is written, no page of either file comes in.
 *
 * The kernel flushes the dirty pages of a source before it shares its blocks (fs/remap_range.c,
 * Linux 6.18). They are somebody else's, so with TT_CLONE_AUTO only a source without dirty and
 * writeback pages is cloned. Where this user may not know, a file that nobody has changed for as
 * long as the kernel keeps dirty pages counts as clean.
 *
 * What cannot be cloned is found out by trying, and remembered for a pair of file systems.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sys/residency.h"

struct stat;

enum tt_clone_mode {
	TT_CLONE_AUTO,   /* where it can be had and disturbs nobody */
	TT_CLONE_ALWAYS, /* or the file fails */
	TT_CLONE_NEVER,
};

/* Source file systems (st_dev) from which something was refused. Lock-free: an entry is made once
 * and stays; when all are taken more sources are simply asked each time. */
struct tt_clone_refused {
	_Atomic uint64_t from[8]; /* st_dev + 1; 0: free */
};

/* What was found out about one destination file system. Zero-initialised; any thread. */
struct tt_clone_memory {
	struct tt_clone_refused clone, offload;
	_Atomic unsigned odd; /* refusals that may be the file's own fault (EINVAL) */
	_Atomic bool has_cloned, has_offloaded;
};

bool tt_clone_is_refused(const struct tt_clone_refused *refused, uint64_t dev);
void tt_clone_refuse(struct tt_clone_refused *refused, uint64_t dev);

struct tt_clone_request {
	int from_fd, to_fd;
	const struct stat *before; /* of the source; its size is what is cloned */
	enum tt_clone_mode mode;
	enum tt_residency_method method; /* how dirty pages of the source are counted */
	bool in_place;                   /* the destination is an old file that stays */
	struct tt_clone_memory *memory;
	const _Atomic bool *stop;
	_Atomic uint64_t *progress_bytes; /* counted up while cloning */
};

/* Clones the whole file into `to_fd`, which is empty, or with in_place an old file: of a longer one
 * only whole blocks are cloned (a part of a block can be cloned only at the end of both files), the
 * rest is to be copied from *ret_bytes on. Returns 1 and the bytes that are there now, 0 if the
 * content is to be copied (`to_fd` is empty again unless in_place), or a negative errno:
 * -ECANCELED, what the kernel said with TT_CLONE_ALWAYS, or that of emptying the destination. Any
 * thread. */
int tt_clone_copy(const struct tt_clone_request *request, uint64_t *ret_bytes);

/* Clones the whole blocks within [offset, offset + bytes) over those of an old file. Returns 1 and
 * the part that was cloned, 0 if there is none or it cannot be, or a negative errno as above. */
int tt_clone_range(const struct tt_clone_request *request, uint64_t offset, uint64_t bytes,
	uint64_t *ret_offset, uint64_t *ret_bytes);
