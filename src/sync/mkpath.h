/* SPDX-License-Identifier: MIT */
/*
 * --mkpath: the directories above the destination. Internal to sync/.
 */
#pragma once

#include "sync/state.h"

/* The directory that a single file goes to. Does nothing without the option; under -n only tells.
 * Returns how many are missing or were made, or a negative errno, reported. */
int tt_mkpath_parent(const struct tt_engine *engine, const char *parent);

/* The destination itself (`path`, without slashes at its end), with what is above it: as if it had
 * been there from the beginning, as in rsync. Returns 0 or an exit code, reported. */
int tt_mkpath_whole(struct tt_engine *engine, struct tt_dir *root, char *path);
