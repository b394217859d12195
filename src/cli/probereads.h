/* SPDX-License-Identifier: MIT */
/*
 * How files of a directory would be read: asked of a file, as a run does, since neither the type of
 * a file system nor its settings say. A temporary of our own, or where none can be made a file that
 * is there, of which nothing is read.
 */
#pragma once

#include <stdbool.h>

#include "cache/mechanism.h"
#include "sys/direct.h"

#define TT_PROBEREADS_MOST_CELLS 2

struct tt_probereads {
	struct tt_mechanism_cell own[TT_PROBEREADS_MOST_CELLS]; /* this user's files */
	struct tt_mechanism_cell other[TT_PROBEREADS_MOST_CELLS];
	unsigned own_count, other_count;
	bool seen;              /* there was a file to ask */
	bool dontcache_refused; /* RWF_DONTCACHE, by that file */
	struct tt_direct direct;
};

/* Asks. The directory's file system is not changed, except for the temporary. Returns 0 or -ENOMEM.
 */
int tt_probereads_try(int dir_fd, struct tt_probereads *ret_reads);
