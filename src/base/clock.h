/* SPDX-License-Identifier: MIT */
/*
 * Time that only goes forward, for measuring how long something took.
 */
#pragma once

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC. Any thread. */
static inline uint64_t tt_clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
