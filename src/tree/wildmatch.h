/* SPDX-License-Identifier: MIT */
/*
 * rsync's wildcards: `*` (no slash), `**` (slashes too), `?`, `[class]` with ranges, negation and
 * [:names:], backslash before a character that is meant as it is.
 */
#pragma once

#include <stdbool.h>

/* Whether the whole of `text` matches. Bytes, not characters. Any thread. */
bool tt_wildmatch(const char *pattern, const char *text);
