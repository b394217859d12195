/* SPDX-License-Identifier: MIT */
/*
 * Filters for tests: files are read plainly; questions about one path, of a tree at /top/of/it.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scratch.h"
#include "tree/filter_dir.h"

static inline int read_plainly(void *context, int fd, char **ret_text, size_t *ret_bytes)
{
	char *text = malloc(65536);
	ssize_t got = text ? read(fd, text, 65535) : -1;

	(void)context;
	if (got < 0) {
		free(text);
		return -errno;
	}
	text[got] = '\0';
	*ret_text = text;
	*ret_bytes = (size_t)got;
	return 0;
}

static const struct tt_filter_reader plain_reader = {.read = read_plainly};

static inline struct tt_filter *new_filter(void)
{
	struct tt_filter *filter = NULL;

	assert_int_equal(tt_filter_new(&plain_reader, &filter), 0);
	return filter;
}

static inline void add(struct tt_filter *filter, enum tt_filter_kind kind, const char *text)
{
	struct tt_filter_error error;

	if (tt_filter_add(filter, kind, text, &error) < 0)
		fail_msg("%s: %s", text, error.text);
}

/* A path that ends in '/' is a directory. */
static inline bool excluded_by(const struct tt_filter_dir *rules, const char *path, bool in_deleted)
{
	char copy[256];
	size_t length = strlen(path);
	bool is_dir = path[length - 1] == '/';

	memcpy(copy, path, length + 1);
	if (is_dir)
		copy[length - 1] = '\0';
	return tt_filter_dir_excludes(rules, copy, is_dir, in_deleted);
}

static inline bool excluded_on(
	struct tt_filter *filter, enum tt_filter_side side, const char *path, bool in_deleted)
{
	struct tt_filter_dir *rules = NULL;

	assert_int_equal(tt_filter_dir_new(filter, side, "/top/./of//it/", &rules), 0);
	bool excluded = excluded_by(rules, path, in_deleted);

	tt_filter_dir_release(rules);
	return excluded;
}

static inline bool hides(struct tt_filter *filter, const char *path)
{
	return excluded_on(filter, TT_FILTER_SOURCE, path, false);
}

static inline bool protects(struct tt_filter *filter, const char *path, bool in_deleted)
{
	return excluded_on(filter, TT_FILTER_DESTINATION, path, in_deleted);
}
