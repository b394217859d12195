/* SPDX-License-Identifier: MIT */
/*
 * From the paths on the command line to the root node of a walk, with rsync's meaning of a trailing
 * slash: `dir/` gives its contents to the destination, `dir` itself becomes a name in it. Internal
 * to sync/.
 */
#pragma once

#include "sync/state.h"

/* Opens sources and destination and makes the root. A source that is missing is reported and left
 * out (exit code 23, no deletions). Makes the destination directory where rsync does (not under
 * -n). Engine thread. Returns 0, or the exit code (a positive enum tt_exit) of an error that was
 * reported. */
int tt_operands_open(struct tt_engine *engine, struct tt_dir **ret_root);
