/* SPDX-License-Identifier: MIT */
/*
 * --delete-delay: names to be deleted are found while the trees are walked, and deleted when
 * everything has arrived. Internal to sync/.
 */
#pragma once

#include "sync/state.h"

/* Remembers names in the destination's directory `dir` (of each entry the name and the type), to be
 * deleted in this order. Whoever plans. Returns 0 or -ENOMEM. */
int tt_delayed_add(struct tt_engine *engine, const struct tt_dir *dir,
	const struct tt_entry *entries, unsigned count);

/* Deletes what was remembered, and gives the directories their times again. The engine thread, when
 * all directories are finished and the destination's root is still open. */
void tt_delayed_run(struct tt_engine *engine);

/* Forgets what was remembered. */
void tt_delayed_free(struct tt_engine *engine);
