/* SPDX-License-Identifier: MIT */
/*
 * Which pages of an open file are in the page cache. Asking never brings one in.
 *
 * cachestat(2) (Linux 6.5) counts, mincore(2) names pages. Both answer only the file's owner,
 * CAP_FOWNER, or somebody who may write to it: cachestat says EPERM to others (since 6.14 and
 * stable 6.6.75, commit 5f537664e705), mincore tells them that everything is resident. On overlayfs
 * cachestat looks at the wrong mapping and answers zeros, mincore is right.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stat;

/* Pages, over the range asked for. */
struct tt_residency {
	uint64_t resident_pages;  /* nr_cache */
	uint64_t dirty_pages;     /* nr_dirty */
	uint64_t writeback_pages; /* nr_writeback */
};

enum tt_residency_method {
	TT_RESIDENCY_CACHESTAT, /* ask cachestat, mincore only for names of pages */
	TT_RESIDENCY_MINCORE,   /* ask mincore for counts too: overlayfs, kernels before 6.5 (dirty
				   pages stay unknown: 0) */
	TT_RESIDENCY_NONE, /* nothing to know: tmpfs and other file systems without a cache of their
			      own */
};

/* How to ask on the file system that `fd` is on: by its type, and whether this process has
 * cachestat at all (sys/facility.h). Any thread. */
enum tt_residency_method tt_residency_method(int fd);

/* Counts [offset, offset + length), length 0 means to the end of the file. Any thread.
 * Returns 0; -EPERM if this user may not know; another negative errno. */
int tt_residency_count(int fd, enum tt_residency_method method, uint64_t offset, uint64_t length,
	struct tt_residency *ret);

/* Whether pages of [offset, offset + length) (0: to the end) may be dirty or under writeback, so
 * that FICLONE or an O_DIRECT read would flush what somebody else is writing. Where nobody can
 * count dirty pages, the file's last change tells: dirty pages older than the kernel lets them
 * become are on the disk. `st` is of `fd`, from just now. "Yes" if in doubt. Any thread. */
bool tt_residency_may_be_dirty(int fd, enum tt_residency_method method, const struct stat *st,
	uint64_t offset, uint64_t length);

/* One bit per page, set if resident, bit 0 is the page at `offset` (page aligned). `ret_bits` has
 * room for (pages + 63) / 64 words. Only for files whose count was answered. By mincore; where that
 * is refused, or would lie to this user, by counting with cachestat. Any thread. Returns 0 or a
 * negative errno. */
int tt_residency_map(int fd, uint64_t offset, uint64_t pages, uint64_t *ret_bits);

/* The page size, and the largest folio that read-ahead makes (transparent huge page size, at least
 * 2 MiB): windows whose ends are multiples of this never cut a folio. */
size_t tt_residency_page_bytes(void);
size_t tt_residency_folio_bytes(void);

/* Asks the kernel to drop [offset, offset + length) from the cache (POSIX_FADV_DONTNEED), length 0:
 * to the end. Pages that are dirty are sent to the disk by this call and stay. Any thread. Returns
 * 0 or a negative errno. */
int tt_residency_drop(int fd, uint64_t offset, uint64_t length);
