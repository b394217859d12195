/* SPDX-License-Identifier: MIT */
/*
 * Numbers as people write and read them, with rsync's rules.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Parses rsync's SIZE: digits with an optional fraction, then an optional suffix. "b"; "K", "KiB" =
 * 1024; "KB" = 1000; the same for M, G, T, P; case is ignored; an optional "+1" or "-1" at the end
 * moves it by one byte. Without a suffix the number is in units of `default_suffix` ('b', 'K',
 * 'M'). Returns 0, or -EINVAL if the text is no size, or -ERANGE if it does not fit. Any thread. */
int tt_units_parse_size(const char *text, char default_suffix, uint64_t *ret_bytes);

/* Parses a whole decimal number from `min` to `max`. Returns 0, -EINVAL, or -ERANGE. Any thread. */
int tt_units_parse_number(const char *text, int64_t min, int64_t max, int64_t *ret_number);

/* Formats a number as rsync does at its --human-readable level: 0 digits only ("1234567"), 1 with a
 * comma after every three digits ("1,234,567"), 2 in units of 1000 ("1.23M"), 3 in units of 1024
 * ("1.18M"). Returns `buffer`. Any thread. */
const char *tt_units_format(uint64_t number, int level, char *buffer, size_t size);

/* The same for a rate or another number with two decimals, as rsync's "%.2f bytes/sec". Any thread.
 */
const char *tt_units_format_double(double number, int level, char *buffer, size_t size);
