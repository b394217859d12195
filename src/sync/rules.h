/* SPDX-License-Identifier: MIT */
/*
 * The filter rules of both trees, directory by directory: read when a directory is listed, by
 * whoever lists it, through the same neutral reader as everything else. Internal to sync/.
 *
 * A file that does not parse ends the run. One that cannot be read is an error; copying goes on
 * without it, and nothing is deleted.
 */
#pragma once

#include "sync/state.h"
#include "tree/filter_dir.h"

/* The rules of the command line for the tree at `path`, as the user wrote it. NULL: there are none.
 * Returns 0 or -ENOMEM. */
int tt_rules_begin(const struct tt_engine *engine, enum tt_filter_side side, const char *path,
	struct tt_filter_dir **ret_rules);

/* Before the source directory is read: fills dir->source_rules, for each layer. Returns 0; or -EIO
 * if the names in it must not be known now. */
int tt_rules_enter_source(struct tt_engine *engine, struct tt_worker *worker, struct tt_dir *dir);

/* The same for the destination. */
int tt_rules_enter_destination(
	struct tt_engine *engine, struct tt_worker *worker, struct tt_dir *dir);

/* For the directory `fd` somewhere below a layer of the source directory `dir`, which is `path` in
 * the tree: what holds there. Returns 0 with *ret_rules to be released, or -EIO. */
int tt_rules_enter_below(struct tt_engine *engine, struct tt_worker *worker,
	const struct tt_dir *dir, unsigned layer, struct tt_filter_dir *above, int fd,
	const char *path, struct tt_filter_dir **ret_rules);

/* For the directory `fd`, which is `path` in the destination and about to be deleted with what it
 * holds. `dir`: for messages. Returns 0 with *ret_rules to be released, or -EIO: it stays. */
int tt_rules_enter_deleted(struct tt_engine *engine, struct tt_worker *worker, struct tt_dir *dir,
	struct tt_filter_dir *above, int fd, const char *path, struct tt_filter_dir **ret_rules);
