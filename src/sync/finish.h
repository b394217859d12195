/* SPDX-License-Identifier: MIT */
/*
 * The end of a directory: when nothing in it is outstanding any more it gets its attributes, is
 * closed, and its parent waits for one less. Internal to sync/.
 */
#pragma once

#include "sync/state.h"

/* Gives a directory its attributes, if any of it has changed. Any thread, when nothing in it
 * changes any more. */
void tt_finish_attributes(struct tt_engine *engine, struct tt_dir *dir);

/* `count` tasks of the directory are done (`changed`: they changed names in it). Any worker. */
void tt_finish_release(struct tt_worker *worker, struct tt_dir *dir, unsigned count, bool changed);

/* The engine thread has planned everything in the directory but its child directories, or given it
 * up. The node may be gone afterwards if it has no children that are still to be planned. */
void tt_finish_planned(struct tt_engine *engine, struct tt_dir *dir);
