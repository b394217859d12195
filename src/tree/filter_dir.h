/* SPDX-License-Identifier: MIT */
/*
 * The rules that hold in one directory: those of the command line, and those that files in this
 * directory and in the ones above it add (dir-merge, -F, -C).
 *
 * They are made from those of the directory above and do not change any more: any thread may ask.
 * A directory without such a file shares those of the one above. Each tree has rules of its own, as
 * with rsync: those for the source tell what is copied (hide, show), those for the destination what
 * is kept although the source does not have it (protect, risk). A rule of neither kind is both.
 *
 * What files in a tree say is what somebody else says: no name in them is opened outside of the
 * tree, and no link that leads there is followed.
 */
#pragma once

#include <stdbool.h>

#include "tree/filter.h"

struct tt_filter_dir;

enum tt_filter_side {
	TT_FILTER_SOURCE,
	TT_FILTER_DESTINATION,
};

/* A directory whose rule files are to be read. */
struct tt_filter_place {
	struct tt_filter_reader reader;
	int dir_fd;
	const char *path;      /* relative to the top of the transfer, "" for the top itself */
	int tree_fd;           /* the top of what may be read; borrowed as dir_fd */
	const char *tree_path; /* of the directory, relative to that */
};

/* The rules of the command line, for a tree whose top of the transfer is the directory `root`, a
 * path as the user wrote it. `filter` is borrowed for as long as there are rules made from it.
 * Returns 0 or a negative errno. */
int tt_filter_dir_new(struct tt_filter *filter, enum tt_filter_side side, const char *root,
	struct tt_filter_dir **ret_rules);

/* The rules in a directory below the one that `above` (may be NULL: no rules) holds in. Returns 0;
 * 1 if a file with rules is there and cannot be read, with `error`: the others hold; -EINVAL or
 * another negative errno, with `error`, for one that does not parse or names a file that cannot be
 * read; -ENOMEM. *ret_rules is for tt_filter_dir_release(). */
int tt_filter_dir_enter(struct tt_filter_dir *above, const struct tt_filter_place *place,
	struct tt_filter_error *error, struct tt_filter_dir **ret_rules);

/* The same rules once more. Accepts and returns NULL. Any thread. */
struct tt_filter_dir *tt_filter_dir_share(struct tt_filter_dir *rules);
void tt_filter_dir_release(struct tt_filter_dir *rules); /* accepts NULL. Any thread. */

/* Whether a rule excludes `path`, which is relative to the top of the transfer, without a leading
 * "./" or "/": hides it in the source, protects it in the destination. `in_deleted`: it is inside a
 * directory that is being deleted, where perishable rules do not count. `rules` may be NULL. */
bool tt_filter_dir_excludes(
	const struct tt_filter_dir *rules, const char *path, bool is_dir, bool in_deleted);
