/* SPDX-License-Identifier: MIT */
/*
 * Removing what the source does not have, and what is in the way. Engine thread only. Internal to
 * sync/.
 */
#pragma once

#include "sync/state.h"

/* Deletes the names of the listed destination directory `dir` that have no twin and no filter
 * protects, last first as rsync does, telling each. */
void tt_deleter_extraneous(struct tt_engine *engine, struct tt_dir *dir);

/* Deletes one name of `dir`, with all it holds, and tells it. */
void tt_deleter_remove(
	struct tt_engine *engine, struct tt_dir *dir, const struct tt_entry *entry, bool contents);

/* Whether nothing may be deleted any more, because what seems to be missing may only be unreadable;
 * says so once. */
bool tt_deleter_is_forbidden(struct tt_engine *engine);

/* Deletes in the root of the transfer what is named like a source that is not there. */
void tt_deleter_missing(struct tt_engine *engine, struct tt_dir *root);

/* Removes `name` of another type than what is to come. A directory with contents only if deletion
 * was asked for. Returns 0 or a negative errno, reported. */
int tt_deleter_make_way(struct tt_engine *engine, struct tt_dir *dir,
	const struct tt_entry *existing, const char *what);
