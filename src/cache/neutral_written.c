/* SPDX-License-Identifier: MIT */
/*
 * The destination's side of leave-as-found: what was written goes, what readers of the replaced
 * file had stays warm. See neutral.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cache/neutral.h"
#include "cache/neutral_drop.h"
#include "sys/fd.h"

#define NEUTRAL_OLD_MOST_BYTES (UINT64_C(64) << 30)

int tt_neutral_old_look(struct tt_neutral_old *old, int fd, uint64_t size_bytes,
	const struct tt_neutral_fs *fs, struct tt_neutral_stats *stats)
{
	const uint64_t page = tt_residency_page_bytes();
	struct tt_residency count;

	*old = (struct tt_neutral_old){.pages = (size_bytes + page - 1) / page};
	if (size_bytes == 0 || fs->method == TT_RESIDENCY_NONE)
		return 0;
	if (tt_residency_count(fd, fs->method, 0, size_bytes, &count) < 0) {
		stats->files_unknown++;
		return 0;
	}
	if (count.resident_pages == 0)
		return 0;
	stats->found_resident += count.resident_pages;
	if (count.resident_pages >= old->pages) {
		old->resident_pages = old->pages;
		return 0;
	}
	if (size_bytes > NEUTRAL_OLD_MOST_BYTES)
		return 0;
	old->bits = calloc((old->pages + 63) / 64, sizeof *old->bits);
	if (!old->bits)
		return -ENOMEM;
	if (tt_residency_map(fd, 0, old->pages, old->bits) < 0) {
		tt_neutral_old_deinit(old);
		return 0;
	}
	old->resident_pages = count.resident_pages;
	return 0;
}

void tt_neutral_old_deinit(struct tt_neutral_old *old)
{
	free(old->bits);
	*old = (struct tt_neutral_old){0};
}

/* Reads pages back, just these: FADV_RANDOM switches read-ahead off for the descriptor
 * (mm/fadvise.c). The time of the last access has been set (-U), and stays where that is permitted.
 */
static uint64_t neutral_warm(int fd, uint64_t pages, const struct tt_neutral_old *old)
{
	const uint64_t page = tt_residency_page_bytes();
	char buffer[65536];
	uint64_t warmed = 0;

	if (pages > old->pages)
		pages = old->pages;
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0)
		(void)fcntl(fd, F_SETFL, flags | O_NOATIME);
	for (uint64_t at = 0; at < pages;) {
		uint64_t run = at;

		while (run < pages && run - at < sizeof buffer / page
			&& tt_neutral_old_had(old, run))
			run++;
		if (run > at && tt_fd_pread(fd, buffer, (run - at) * page, at * page, 0) > 0)
			warmed += run - at;
		at = run > at ? run : at + 1;
	}
	return warmed;
}

/* Of a clone nothing is resident, and of what was written the kernel may have taken some. */
static bool neutral_is_resident(int fd, uint64_t pages, const struct tt_neutral_fs *fs)
{
	struct tt_residency count;

	return tt_residency_count(fd, fs->method, 0, 0, &count) < 0
	       || count.resident_pages >= pages;
}

void tt_neutral_written(int fd, uint64_t size_bytes, const struct tt_neutral_old *old,
	const struct tt_neutral_fs *fs, _Atomic int64_t *keep_budget_pages,
	struct tt_neutral_stats *stats)
{
	const uint64_t page = tt_residency_page_bytes();
	uint64_t pages = (size_bytes + page - 1) / page;
	uint64_t keep = old && old->resident_pages > 0 ? old->resident_pages : 0;

	if (fs->method == TT_RESIDENCY_NONE || pages == 0)
		return;
	if (keep > 0 && keep_budget_pages
		&& atomic_fetch_sub(keep_budget_pages, (int64_t)keep) < (int64_t)keep) {
		atomic_fetch_add(keep_budget_pages, (int64_t)keep);
		keep = 0;
	}
	bool all = keep > 0 && !old->bits && pages <= old->pages;

	if (!all) {
		uint64_t left = tt_neutral_drop(fd, fs->method, 0, 0, stats);

		stats->left += tt_neutral_drop_left(fd, fs->method, 0, 0, left, stats);
	}
	if (all && neutral_is_resident(fd, pages, fs))
		stats->kept_hot += pages;
	else if (keep > 0)
		stats->kept_hot += neutral_warm(fd, pages, old);
}
