/* SPDX-License-Identifier: MIT */
/*
 * Which names of a tree are considered, and which of the destination are kept: the rules of
 * --filter, --exclude, --include, their files, -F and -C, in rsync's language (rsync(1), FILTER
 * RULES).
 *
 * The rules of the command line are here. What holds in one directory, with the rules that files in
 * the tree add, is in filter_dir.h; the language in filter_parse.h; a rule in filter_rule.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct tt_filter;

/* Files with rules are small. */
#define TT_FILTER_FILE_MOST_BYTES ((size_t)64 << 20)

/* How an open file is read: this layer does not know the page cache. Gives the whole text, to be
 * freed, with a NUL behind `*ret_bytes`; at most TT_FILTER_FILE_MOST_BYTES (-EFBIG). Returns 0 or a
 * negative errno. */
struct tt_filter_reader {
	int (*read)(void *context, int fd, char **ret_text, size_t *ret_bytes);
	void *context;
};

/* What is wrong, for people, in one line: the rule, and the file and line that it is in. Not
 * escaped, names and rules are as they were found. */
struct tt_filter_error {
	bool is_file; /* a file could not be read; else a rule does not parse */
	char text[1024];
};

enum tt_filter_kind {
	TT_FILTER_RULE,    /* --filter */
	TT_FILTER_EXCLUDE, /* a pattern, perhaps behind "- " or "+ ", or "!" */
	TT_FILTER_INCLUDE,
	TT_FILTER_EXCLUDE_FROM, /* a file of such, "-": standard input */
	TT_FILTER_INCLUDE_FROM,
};

/* The reader's context is borrowed. Returns 0 or -ENOMEM. */
int tt_filter_new(const struct tt_filter_reader *reader, struct tt_filter **ret_filter);
void tt_filter_free(struct tt_filter *filter); /* accepts NULL */

/* Before the run only, one thread, in the order of the command line. Returns 0, -ENOMEM, -EINVAL
 * for a rule that does not parse, another negative errno for a file that could not be read; the
 * last two with `error`. */
int tt_filter_add(struct tt_filter *filter, enum tt_filter_kind kind, const char *text,
	struct tt_filter_error *error);

/* -0: files that are read from now on have rules that end with a NUL, not with a line. */
void tt_filter_set_from0(struct tt_filter *filter, bool from0);

/* --delete-excluded: rules that name no side are about the source. Whenever it is set, it holds for
 * all. */
void tt_filter_set_delete_excluded(struct tt_filter *filter, bool delete_excluded);

/* Whether there are any rules. Accepts NULL. */
bool tt_filter_is_empty(const struct tt_filter *filter);
