/* SPDX-License-Identifier: MIT */
/*
 * What the user asked for about the page cache: the one struct that cache/ obeys.
 */
#pragma once

#include <stdint.h>

enum tt_cache_mode {
	TT_CACHE_LEAVE,  /* leave as found (default) */
	TT_CACHE_DROP,   /* drop everything that is touched, hot or not */
	TT_CACHE_KEEP,   /* ordinary buffered copying, no pacing */
	TT_CACHE_DIRECT, /* leave as found, with O_DIRECT wherever it is possible */
};

/* Less would not hold the windows of a file. */
#define TT_CACHE_DIRTY_LEAST_BYTES (UINT64_C(256) << 10)

struct tt_cache_policy {
	enum tt_cache_mode mode;
	uint64_t dirty_limit_bytes; /* 0: 48 MiB, at most a quarter of the tightest memory-cgroup
				       limit */
};
