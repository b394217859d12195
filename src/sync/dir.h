/* SPDX-License-Identifier: MIT */
/*
 * Directory nodes and the queue of those that wait to be listed: a heap in rsync's order, so that
 * the directory which the plan needs next is listed first, however many workers list ahead of it.
 * Internal to sync/.
 */
#pragma once

#include "sync/state.h"

/* A node for the child directory `entry` of `parent` (both may be without: the root), merged from
 * so many layers, whose numbers and descriptors are the caller's to fill in. Returns NULL without
 * memory. The parent is not changed. */
struct tt_dir *tt_dir_new(
	struct tt_dir *parent, const struct tt_entry *entry, unsigned layer_count);

/* Closes and frees; the node must not be in the queue. */
void tt_dir_free(struct tt_dir *dir);

/* Listings are used again for the next directory, with the memory that they have: most threads
 * would wait for malloc's one lock otherwise. With the run's lock held. */
void tt_dir_take_listings(struct tt_engine *engine, struct tt_dir *dir);

/* Takes away the listings, which nobody reads any more, for another directory. What is not wanted
 * comes back in *ret_source and *ret_destination, to be freed without the lock. */
void tt_dir_give_listings(struct tt_engine *engine, struct tt_dir *dir,
	struct tt_listing *ret_source, struct tt_listing *ret_destination);

/* rsync's order between any two nodes: depth first, a directory before what is below it. */
int tt_dir_compare(const struct tt_dir *a, const struct tt_dir *b);

/* The queue. With the run's lock held. Push returns 0 or -ENOMEM. */
int tt_dir_queue_push(struct tt_engine *engine, struct tt_dir *dir);
struct tt_dir *tt_dir_queue_first(const struct tt_engine *engine); /* NULL if empty */
void tt_dir_queue_remove(struct tt_engine *engine, struct tt_dir *dir);
