/* SPDX-License-Identifier: MIT */
/*
 * See rulereader.h.
 */
#include "cli/rulereader.h"

#include "cache/neutral_whole.h"
#include "sys/residency.h"

/* Before the run: --cache may still come, and nobody counts. */
static int rulereader_read(void *context, int fd, char **ret_text, size_t *ret_bytes)
{
	struct tt_neutral_fs fs = {.method = tt_residency_method(fd), .dontcache_read = true};
	struct tt_neutral_stats stats = {0};

	(void)context;
	return tt_neutral_whole_read(
		fd, TT_FILTER_FILE_MOST_BYTES, TT_CACHE_LEAVE, &fs, &stats, ret_text, ret_bytes);
}

const struct tt_filter_reader tt_rulereader = {.read = rulereader_read};
