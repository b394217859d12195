/* SPDX-License-Identifier: MIT */
/*
 * Dropping one range and looking at what became of it: the only caller of POSIX_FADV_DONTNEED
 * besides the pacer. Internal to cache/.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cache/neutral.h"

/* Drops the clean pages of [from, to), to = 0: to the end of the file. Ranges with dirty or
 * writeback pages are halved down to 64 KiB and those that stay dirty are left: DONTNEED would
 * start their writeback, and they are not ours. Where nobody can count nothing is dropped, except
 * with to = 0, which is for files that we have written: their pages go unseen. Returns the pages
 * that are still resident, as far as that is known. */
uint64_t tt_neutral_drop(int fd, enum tt_residency_method method, uint64_t from, uint64_t to,
	struct tt_neutral_stats *stats);

/* Whether drops that left pages have cost more than 5 % of the time since the start: DONTNEED of a
 * page that will not go makes work on every processor (lru_add_drain_all, mm/fadvise.c). */
bool tt_neutral_drop_too_dear(const struct tt_neutral_stats *stats);

/* For `left` pages of [from, to) that would not go: asks again a few times, two milliseconds apart,
 * unless all of them are dirty. Reclaim and compaction take pages off the lists 32 at a time and
 * hold them for a moment (mm/vmscan.c, SWAP_CLUSTER_MAX; mm/compaction.c, Linux 6.18); so does the
 * thread that started their writeback with up to 31 of them, if it was preempted
 * (mm/page-writeback.c, folio_batch); what is mapped stays mapped. May take 1 % of the time since
 * the start, 50 ms at least. Returns what is left. Sleeps. */
uint64_t tt_neutral_drop_left(int fd, enum tt_residency_method method, uint64_t from, uint64_t to,
	uint64_t left, struct tt_neutral_stats *stats);
