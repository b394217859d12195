/* SPDX-License-Identifier: MIT */
/*
 * The names in one directory that are no directories: planned, told, given to workers. Internal to
 * sync/.
 */
#pragma once

#include "sync/state.h"

/* Plans all of them. Engine thread. */
void tt_planner_entries(struct tt_engine *engine, struct tt_dir *dir);

/* Tells one planned entry, if there is anything to tell: `name` in `dir`, or with name NULL the
 * directory itself. `leader` is the path of a hard link's leader, or NULL. Engine thread. */
void tt_planner_tell(struct tt_engine *engine, const struct tt_dir *dir, const char *name,
	const struct tt_entry *wanted, const struct tt_plan_action *action, const char *leader);
