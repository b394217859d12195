/* SPDX-License-Identifier: MIT */
/*
 * Which parts of an open file are preallocated and not written (FS_IOC_FIEMAP, Linux 2.6.28).
 * SEEK_HOLE does not tell them from holes. Asking flushes nothing: what is dirty in the page cache
 * over an unwritten extent is still called unwritten, so this says where space is, never where data
 * is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TT_FIEMAP_EXTENTS 64

struct tt_fiemap {
	int fd; /* borrowed */
	uint64_t next_bytes;
	unsigned count, at;
	bool last; /* what is held ends with the last extent of the file */
	struct {
		uint64_t offset, bytes;
		uint32_t flags;
	} extents[TT_FIEMAP_EXTENTS];
};

void tt_fiemap_init(struct tt_fiemap *map, int fd);

/* The next run of unwritten extents, neighbours put together; also behind the end of the file.
 * Returns 1 with a run, 0 at the end, or a negative errno: -EOPNOTSUPP or -ENOTTY where the file
 * system cannot tell. */
int tt_fiemap_next_unwritten(struct tt_fiemap *map, uint64_t *ret_offset, uint64_t *ret_bytes);

/* Whether space behind the end of the file was asked for by somebody. xfs allocates some of its own
 * accord while a file grows and takes it back later (fs/xfs/xfs_iomap.c,
 * xfs_iomap_prealloc_size()); what was asked for has FS_XFLAG_PREALLOC there. */
bool tt_fiemap_is_asked_for(int fd);
