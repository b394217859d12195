/* SPDX-License-Identifier: MIT */
/*
 * A small file read whole, the cache left as found: files with filter rules.
 */
#pragma once

#include <stddef.h>

#include "cache/neutral.h"

/* Reads the open file to its end, or a pipe. *ret_text is to be freed and has a NUL behind
 * *ret_bytes. Any thread. Returns 0 or a negative errno: -EISDIR, -EFBIG above `most_bytes`. */
int tt_neutral_whole_read(int fd, size_t most_bytes, enum tt_cache_mode mode,
	struct tt_neutral_fs *fs, struct tt_neutral_stats *stats, char **ret_text,
	size_t *ret_bytes);
