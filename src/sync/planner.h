/* SPDX-License-Identifier: MIT */
/*
 * The walk: goes through the listed directories in rsync's order, asks plan about each name, tells
 * the events, and gives the work away as jobs. One thread, so that what it does and says is the
 * same with one worker and with many. Internal to sync/.
 */
#pragma once

#include "sync/state.h"

/* Walks the tree below `root`, which this frees when everything in it has arrived. Engine thread.
 */
void tt_planner_walk(struct tt_engine *engine, struct tt_dir *root);
