/* SPDX-License-Identifier: MIT */
/*
 * See neutral_drop.h.
 */
#include "cache/neutral_drop.h"

#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"

enum {
	NEUTRAL_SMALLEST_BYTES = 65536,
	NEUTRAL_PATIENCE_NS = 2000000,
	NEUTRAL_LEAST_PATIENCE_NS = 50000000, /* that a thread may always have */
	NEUTRAL_MOST_PATIENCE = 10,           /* times per file */
};

static uint64_t neutral_ask(int fd, uint64_t from, uint64_t length, struct tt_neutral_stats *stats)
{
	uint64_t start_ns = tt_clock_now_ns();

	tt_residency_drop(fd, from, length);
	uint64_t spent_ns = tt_clock_now_ns() - start_ns;

	stats->drop_calls++;
	stats->drop_ns += spent_ns;
	return spent_ns;
}

static uint64_t neutral_drop_clean(int fd, enum tt_residency_method method, uint64_t from,
	uint64_t length, const struct tt_residency *before, struct tt_neutral_stats *stats)
{
	struct tt_residency after = {0};

	/* mincore names only pages that are up to date: of one that was written in part, on a file
	 * system with smaller blocks, it says nothing (mm/mincore.c, Linux 6.18). What is ours to
	 * the end of the file goes unseen. */
	if (before->resident_pages == 0 && (method == TT_RESIDENCY_CACHESTAT || length != 0))
		return 0;
	uint64_t spent_ns = neutral_ask(fd, from, length, stats);

	tt_residency_count(fd, method, from, length, &after);
	if (before->resident_pages > after.resident_pages)
		stats->dropped += before->resident_pages - after.resident_pages;
	if (after.resident_pages > 0) {
		stats->not_dropped += after.resident_pages;
		stats->failed_drop_ns += spent_ns;
	}
	return after.resident_pages;
}

static uint64_t neutral_drop_range(int fd, enum tt_residency_method method, uint64_t from,
	uint64_t to, struct tt_neutral_stats *stats)
{
	uint64_t length = to == 0 ? 0 : to - from;
	struct tt_residency before;

	if (tt_residency_count(fd, method, from, length, &before) < 0) {
		/* A file that we have written: its pages are ours, also if nobody can count them.
		 */
		if (to == 0) {
			neutral_ask(fd, from, length, stats);
			stats->files_unknown++;
		}
		return 0;
	}
	if (before.dirty_pages == 0 && before.writeback_pages == 0)
		return neutral_drop_clean(fd, method, from, length, &before, stats);
	if (to == 0) {
		struct stat st;

		/* An end is needed to halve. Pages behind it are somebody's who is appending. */
		if (fstat(fd, &st) < 0 || (uint64_t)st.st_size <= from)
			return before.resident_pages;
		to = (uint64_t)st.st_size;
		length = to - from;
	}
	if (length <= NEUTRAL_SMALLEST_BYTES) {
		stats->not_dropped += before.resident_pages;
		return before.resident_pages;
	}
	uint64_t middle = (from + length / 2) / NEUTRAL_SMALLEST_BYTES * NEUTRAL_SMALLEST_BYTES;

	if (middle <= from)
		middle = from + NEUTRAL_SMALLEST_BYTES;
	return neutral_drop_range(fd, method, from, middle, stats)
	       + neutral_drop_range(fd, method, middle, to, stats);
}

uint64_t tt_neutral_drop(int fd, enum tt_residency_method method, uint64_t from, uint64_t to,
	struct tt_neutral_stats *stats)
{
	return neutral_drop_range(fd, method, from, to, stats);
}

bool tt_neutral_drop_too_dear(const struct tt_neutral_stats *stats)
{
	return stats->failed_drop_ns * 20 > tt_clock_now_ns() - stats->start_ns;
}

uint64_t tt_neutral_drop_left(int fd, enum tt_residency_method method, uint64_t from, uint64_t to,
	uint64_t left, struct tt_neutral_stats *stats)
{
	struct tt_residency count;

	for (unsigned i = 0; i < NEUTRAL_MOST_PATIENCE && left > 0; i++) {
		if (tt_residency_count(fd, method, from, to == 0 ? 0 : to - from, &count) < 0
			|| count.resident_pages <= count.dirty_pages + count.writeback_pages)
			break;
		if (stats->patience_ns >= NEUTRAL_LEAST_PATIENCE_NS
			&& stats->patience_ns * 100 > tt_clock_now_ns() - stats->start_ns)
			break;
		nanosleep(&(struct timespec){.tv_nsec = NEUTRAL_PATIENCE_NS}, NULL);
		left = tt_neutral_drop(fd, method, from, to, stats);
		stats->patience_ns += NEUTRAL_PATIENCE_NS;
	}
	return left;
}

void tt_neutral_stats_add(struct tt_neutral_stats *to, const struct tt_neutral_stats *from)
{
	to->found_resident += from->found_resident;
	to->dropped += from->dropped;
	to->not_dropped += from->not_dropped;
	to->left += from->left;
	to->kept_hot += from->kept_hot;
	to->files_unknown += from->files_unknown;
	to->files_read_direct += from->files_read_direct;
	to->files_written_direct += from->files_written_direct;
	to->failed_drop_ns += from->failed_drop_ns;
	to->patience_ns += from->patience_ns;
	to->drop_calls += from->drop_calls;
	to->drop_ns += from->drop_ns;
}
