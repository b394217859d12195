/* SPDX-License-Identifier: MIT */
/*
 * The names of one directory: read with getdents, looked at with one statx each, sorted in rsync's
 * order.
 *
 * A listing belongs to one thread at a time. Names and link targets live in its arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "tree/entry.h"

struct tt_filter_dir;

struct tt_listing {
	struct tt_entry *entries;
	unsigned count;
	struct tt_arena arena;
	size_t capacity;
};

struct tt_listing_options {
	const struct tt_filter_dir *rules; /* excluded names are left out; may be NULL */
	const char *path; /* of the directory, relative to the root of the transfer, "" for the root
			     itself */
	bool read_links;  /* fill in targets of symbolic links */
};

/* What went wrong with one name; the listing goes on. */
struct tt_listing_problem {
	void (*report)(void *context, const char *name, int error); /* any thread */
	void *context;
};

/* Appends the names of the open source directory `dir_fd`, as layer `layer`, except those that the
 * filter leaves out. Only types are known yet (TT_ENTRY_TYPE_ONLY). Returns 0, or a negative errno
 * if reading stopped early (what was read is kept). */
int tt_listing_read_source(struct tt_listing *listing, int dir_fd, unsigned layer,
	const struct tt_listing_options *options);

/* statx for the entries [from, to), targets of links into `arena`, which tt_arena_join() adds to
 * the listing's later. What cannot be looked at is reported and marked TT_ENTRY_VANISHED, as is
 * what the filter leaves out. Several threads may do parts of one listing. */
void tt_listing_stat(struct tt_listing *listing, int dir_fd, unsigned from, unsigned to,
	const struct tt_listing_options *options, const struct tt_listing_problem *problem,
	struct tt_arena *arena);

/* Takes out what is marked TT_ENTRY_VANISHED, from entry `first` on. */
void tt_listing_compact(struct tt_listing *listing, unsigned first);

/* Adds one entry by name (a source named on the command line). Returns 0 or a negative errno. */
int tt_listing_add(
	struct tt_listing *listing, int dir_fd, const char *name, unsigned layer, bool read_links);

/* Reads the names of a destination directory: types only, sorted by name for tt_listing_find().
 * Returns as above. */
int tt_listing_read_names(struct tt_listing *listing, int dir_fd);

/* Sorts in rsync's order and removes duplicates: of equal names the one from the lowest layer
 * stays, but where any is a directory, only directories do, one behind the other (their contents
 * are merged). */
void tt_listing_sort(struct tt_listing *listing);

/* Pairs the entries [from, to) of the sorted source listing with the destination's names: statx for
 * names that both have, twin on both sides; targets of links (into `arena`, as above) are compared.
 * Several threads may do parts of one pair of listings. Returns 0 or a negative errno of one of the
 * statx (the others are done; TT_ENTRY_UNKNOWN_TWIN). */
int tt_listing_match(struct tt_listing *source, struct tt_listing *destination, int destination_fd,
	bool read_links, unsigned from, unsigned to, struct tt_arena *arena);

/* The entry with this name in a listing made by tt_listing_read_names(), or NULL. */
struct tt_entry *tt_listing_find(const struct tt_listing *names, const char *name);

/* Empties it and keeps its memory for another directory. */
void tt_listing_clear(struct tt_listing *listing);

/* Frees everything; accepts a zero-initialised one. */
void tt_listing_deinit(struct tt_listing *listing);
