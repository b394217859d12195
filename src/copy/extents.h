/* SPDX-License-Identifier: MIT */
/*
 * Which parts of a source file hold data. A file without holes is one part; otherwise SEEK_DATA and
 * SEEK_HOLE are asked, part by part, so that a hole costs no I/O.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct stat;

/* What may be believed about holes. */
enum tt_extents_trust {
	TT_EXTENTS_NOTHING, /* --no-seek-hole: every byte is read */
	TT_EXTENTS_ZEROS,   /* every byte is read, blocks of zeros become holes: SEEK_HOLE has lied
			       about files that young (ZFS, openzfs issue 15526) */
	TT_EXTENTS_BLOCKS,  /* SEEK_HOLE, when the file has fewer blocks than its size: asking costs
			       a message to a server or daemon */
	TT_EXTENTS_ASK,     /* SEEK_HOLE for every file: it finds unwritten extents, too */
};

/* By the type of the source's file system ("ext4", "zfs") and the times of the file. */
enum tt_extents_trust tt_extents_trust(const char *fs_type, const struct stat *st, time_t now_sec);

/* Whether parts of the open file read as zeros without having been written. Moves the file offset.
 * Any thread. */
bool tt_extents_has_holes(int fd, const struct stat *st, enum tt_extents_trust trust);

struct tt_extents {
	int fd; /* borrowed; its file offset is moved */
	bool sparse;
	bool finished;
	uint64_t start_bytes, size_bytes;
	uint64_t data_bytes, hole_bytes; /* present part: [data, hole) */
};

/* `sparse`: look for holes. `size_bytes`: parts end there at the latest. */
void tt_extents_init(struct tt_extents *extents, int fd, uint64_t size_bytes, bool sparse);

/* After init: parts begin at `start_bytes` at the earliest. */
void tt_extents_start(struct tt_extents *extents, uint64_t start_bytes);

/* The next piece of at most `most` bytes (pieces are aligned to `most` within a part, except the
 * first of a part). Returns 1 with a piece, 0 at the end, or a negative errno. */
int tt_extents_next(
	struct tt_extents *extents, uint64_t most, uint64_t *ret_offset, uint64_t *ret_bytes);
