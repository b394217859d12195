/* SPDX-License-Identifier: MIT */
/*
 * With -H: which name of a file leads, and so the order in which the names of a directory are
 * planned.
 *
 * As in rsync, the first name that the destination has leads (its content may be right already),
 * and if it has none, the last one. The names before the leader are planned after it, the nearest
 * first: right behind a leader whose content is there, behind the last name of the file if it has
 * to be copied. A listing does not show names in other directories: a file that has some is led by
 * the first name that was met, or by the first that the destination has in that directory.
 */
#pragma once

#include "sync/state.h"
#include "tree/linkset.h"

/* By which names are found to be links of one inode: `entry` of `dir`. */
struct tt_linkset_key tt_order_link_key(const struct tt_dir *dir, const struct tt_entry *entry);

/* Returns the order of dir->source.entries as an array of indices, which the caller frees, or NULL
 * if it is the listing's own (or there is no memory for another). Engine thread only. */
unsigned *tt_order_names(struct tt_engine *engine, const struct tt_dir *dir);
