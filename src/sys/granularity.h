/* SPDX-License-Identifier: MIT */
/*
 * How finely a file system keeps modification times. What is coarser than its source would seem to
 * have changed in every run: times are compared after both have been cut to this.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TT_GRANULARITY_SECOND_NS UINT64_C(1000000000)

/* Sets an odd time on the writable file `fd` and looks what became of it. Any thread. Returns 0, or
 * a negative errno; -ERANGE if the time came back as something that no cutting makes of it. */
int tt_granularity_try(int fd, uint64_t *ret_ns);

/* Without trying: by the name of the file system's type and the times of `fd`, an open file or
 * directory on it. 0: not known: whole
 * seconds, unless both times have a fraction. Any thread. */
uint64_t tt_granularity_guess(const char *fs_type, int fd);

/* How two times compare, both cut to `granularity_ns`: below, equal to or above 0. */
int tt_granularity_compare(
	uint64_t granularity_ns, int64_t a_sec, uint32_t a_nsec, int64_t b_sec, uint32_t b_nsec);
