/* SPDX-License-Identifier: MIT */
/*
 * --remove-source-files: what has arrived goes from the source. Internal to sync/.
 */
#pragma once

#include "sync/state.h"

/* The destination has `wanted` now, content and name. Removes it from the source, unless it has
 * changed since it was listed, or is the very file that it was copied to; that is reported. Does
 * nothing without the option, and under -n. Any thread; before the directory is released. */
void tt_moved_remove(
	struct tt_engine *engine, const struct tt_dir *dir, const struct tt_entry *wanted);

/* What could not go before all of its names had arrived. The engine thread, when nothing is on its
 * way any more and the root is still open. */
void tt_moved_finish(struct tt_engine *engine, const struct tt_dir *root);
