/* SPDX-License-Identifier: MIT */
/*
 * --prune-empty-dirs: directories of the source in which, at any depth, is nothing but directories
 * are as if they were not there. Internal to sync/.
 */
#pragma once

#include "sync/state.h"

/* Takes such directories out of a listing of the source, sorted and not yet paired with the
 * destination. What cannot be read counts as empty, and is reported. The thread that lists. */
void tt_prune_listing(struct tt_engine *engine, struct tt_worker *worker, struct tt_dir *dir);
