/* SPDX-License-Identifier: MIT */
/*
 * -c: which files of one directory have the same content as their twins. Both sides are read
 * through the neutral reader: a checksum pass leaves no page. Internal to sync/.
 */
#pragma once

#include "sync/state.h"

/* Sets TT_ENTRY_SAME_DATA on the regular files of dir->source whose twins have the same size and
 * the same XXH3-128. Files that cannot be read count as different, without a message: copying them
 * will tell. */
void tt_compare_listing(struct tt_engine *engine, struct tt_worker *worker, struct tt_dir *dir);
