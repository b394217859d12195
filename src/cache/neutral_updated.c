/* SPDX-License-Identifier: MIT */
/*
 * The destination's side of leave-as-found for files that are written in place. Pages that were
 * resident are overwritten where they are and never go, so nobody who reads the file meanwhile
 * finds it cold; those between them are ours. No folio of ours reaches over a page that was
 * resident (a write makes folios only where nothing is, mm/filemap.c, __filemap_get_folio), so runs
 * of absent pages consist of whole ones and can be dropped page by page. See neutral.h.
 */
#include <fcntl.h>

#include "cache/neutral.h"
#include "cache/neutral_drop.h"
#include "sys/fd.h"

/* From `*at` on, below `end`: the next run of pages that `old` did not have. */
static bool neutral_absent_run(
	const struct tt_neutral_old *old, uint64_t *at, uint64_t end, uint64_t *ret_start)
{
	while (*at < end && tt_neutral_old_had(old, *at))
		++*at;
	*ret_start = *at;
	/* Where nothing is kept, or everything, there is no need to look at each page. */
	if (old->resident_pages == 0 || *at >= old->pages)
		*at = end;
	while (*at < end && !tt_neutral_old_had(old, *at))
		++*at;
	return *at > *ret_start;
}

void tt_neutral_updated_window(
	int fd, uint64_t from_bytes, uint64_t to_bytes, const struct tt_neutral_old *old)
{
	const uint64_t page = tt_residency_page_bytes();
	uint64_t at = from_bytes / page, end = (to_bytes + page - 1) / page, start;

	while (neutral_absent_run(old, &at, end, &start))
		tt_residency_drop(fd, start * page, (at - start) * page);
}

static uint64_t neutral_drop_absent_pages(int fd, uint64_t at, uint64_t end,
	const struct tt_neutral_old *old, enum tt_residency_method method,
	struct tt_neutral_stats *stats)
{
	const uint64_t page = tt_residency_page_bytes();
	uint64_t left = 0, start;

	while (neutral_absent_run(old, &at, end, &start)) {
		if (left > 0 && tt_neutral_drop_too_dear(stats))
			continue;
		uint64_t now = tt_neutral_drop(fd, method, start * page, at * page, stats);

		left += tt_neutral_drop_left(fd, method, start * page, at * page, now, stats);
	}
	return left;
}

/* Reads back those pages of [at, end) that `old` had and that are gone. FADV_RANDOM switches
 * read-ahead off for the descriptor (mm/fadvise.c). */
static void neutral_mend(int fd, uint64_t at, uint64_t end, const struct tt_neutral_old *old)
{
	const uint64_t page = tt_residency_page_bytes();
	const uint64_t most = TT_NEUTRAL_SEGMENT_WORDS * 64;
	uint64_t bits[TT_NEUTRAL_SEGMENT_WORDS];
	char buffer[65536];

	if (end > old->pages)
		end = old->pages;
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	for (; at < end; at += most) {
		uint64_t count = end - at < most ? end - at : most;

		if (tt_residency_map(fd, at * page, count, bits) < 0)
			return;
		for (uint64_t i = 0; i < count;) {
			uint64_t run = i;

			while (i < count && i - run < sizeof buffer / page
				&& tt_neutral_old_had(old, at + i)
				&& !(bits[i / 64] >> (i % 64) & 1))
				i++;
			if (i > run)
				(void)tt_fd_pread(
					fd, buffer, (i - run) * page, (at + run) * page, 0);
			else
				i++;
		}
	}
}

static uint64_t neutral_count_had(const struct tt_neutral_old *old, uint64_t at, uint64_t end)
{
	uint64_t count = 0;

	if (end > old->pages)
		end = old->pages;
	if (!old->bits)
		return old->resident_pages > 0 && end > at ? end - at : 0;
	for (; at < end; at++)
		count += tt_neutral_old_had(old, at);
	return count;
}

void tt_neutral_updated(int fd, uint64_t from_bytes, uint64_t size_bytes,
	const struct tt_neutral_old *old, const struct tt_neutral_fs *fs,
	struct tt_neutral_stats *stats)
{
	const uint64_t page = tt_residency_page_bytes();
	uint64_t at = from_bytes / page, end = (size_bytes + page - 1) / page;
	struct tt_residency count;

	if (fs->method == TT_RESIDENCY_NONE || at >= end)
		return;
	uint64_t left = neutral_drop_absent_pages(fd, at, end, old, fs->method, stats);
	uint64_t kept = neutral_count_had(old, at, end);

	if (kept > 0
		&& tt_residency_count(fd, fs->method, at * page, (end - at) * page, &count) == 0
		&& (left > 0 || count.resident_pages < kept)) {
		/* A folio of ours lies over pages that were resident once and have gone in between:
		 * all of it goes, and they are read again. */
		if (left > 0)
			left = tt_neutral_drop(fd, fs->method, at * page, end * page, stats);
		neutral_mend(fd, at, end, old);
		left = left > kept ? left - kept : 0;
	}
	stats->left += left;
	stats->kept_hot += kept;
}
