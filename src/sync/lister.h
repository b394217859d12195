/* SPDX-License-Identifier: MIT */
/*
 * Reads one directory of the source together with its twin at the destination, and makes nodes for
 * its children. Runs in workers, ahead of the plan, or in the engine thread when the plan has
 * caught up. Internal to sync/.
 */
#pragma once

#include "sync/state.h"

/* Lists `dir`, which is in state LISTING and belongs to the caller, and enters LISTED. */
void tt_lister_run(struct tt_engine *engine, struct tt_worker *worker, struct tt_dir *dir);
