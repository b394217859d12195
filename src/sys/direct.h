/* SPDX-License-Identifier: MIT */
/*
 * O_DIRECT of one open file: how buffers, offsets and lengths must be aligned, and switching it on
 * and off.
 *
 * The answer is the file's, not the file system's: an encrypted, compressed or journalled file
 * cannot what its neighbour can.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* All zeros: O_DIRECT is not possible. Powers of two else. */
struct tt_direct {
	uint32_t memory_bytes; /* of a buffer's address */
	uint32_t offset_bytes; /* of offset and length */
};

/* Asks statx (STATX_DIOALIGN, Linux 6.1). On older kernels, and on file systems that do not say,
 * all zeros. Any thread. */
void tt_direct_ask(int fd, struct tt_direct *ret_direct);

/* For reading a file of a file system that does not say (btrfs, FUSE). The former may answer
 * O_DIRECT from the page cache where data cannot be read as it lies, so every extent is looked at
 * (FIEMAP): none may be compressed, encrypted, inline, or not on the disk yet. Then blocks are what
 * is aligned to. All zeros if not. Any thread. */
void tt_direct_guess(int fd, struct tt_direct *ret_direct);

/* Switches O_DIRECT of the open file description on or off. Not while a request that relies on it
 * is being made. Returns 0 or a negative errno. */
int tt_direct_set(int fd, bool on);

/* Before a read: makes sure that the buffer's pages are there. btrfs reads with page faults off,
 * and what it cannot store so it reads through the page cache (fs/btrfs/direct-io.c,
 * btrfs_direct_read, Linux 6.18): of a file read into fresh memory all pages were left. */
void tt_direct_touch(void *buffer, uint64_t bytes);

/* Whether a request for `bytes` at `offset` with this buffer may be made. */
static inline bool tt_direct_fits(
	const struct tt_direct *direct, const void *buffer, uint64_t offset, uint64_t bytes)
{
	return ((offset | bytes) & (direct->offset_bytes - 1)) == 0
	       && ((uintptr_t)buffer & (direct->memory_bytes - 1)) == 0;
}
