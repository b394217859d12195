/* SPDX-License-Identifier: MIT */
/*
 * --exclude and --include: which names of a tree are considered.
 *
 * This subset of rsync's rules: simple patterns with `*`, `**`, `?`, `[class]`, backslash,
 * a leading `/` (anchored at the root of the transfer), a trailing `/` (directories only), a
 * trailing `/` + `***` (the directory and everything below), `dir/` + `**`; a pattern with a `/` or
 * `**` inside is matched against the path, others against the last component. First match wins; no
 * match includes. A pattern text may itself begin with "+ " or "- ", as rsync allows for
 * --exclude/--include.
 */
#pragma once

#include <stdbool.h>

struct tt_filter;

/* Returns 0 or -ENOMEM. */
int tt_filter_new(struct tt_filter **ret_filter);
void tt_filter_free(struct tt_filter *filter); /* accepts NULL */

/* Appends one rule. Before the run only, one thread. Returns 0, -ENOMEM, or -EINVAL for a pattern
 * that rsync would refuse. */
int tt_filter_add(struct tt_filter *filter, bool include, const char *pattern);

/* Whether a rule excludes `path`, which is relative to the root of the transfer, without a leading
 * "./" or "/". `filter` may be NULL: nothing is excluded. Any thread, the filter does not change.
 */
bool tt_filter_is_excluded(const struct tt_filter *filter, const char *path, bool is_dir);

/* Whether there are any rules. */
bool tt_filter_is_empty(const struct tt_filter *filter);
