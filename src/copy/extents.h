/* SPDX-License-Identifier: MIT */
/*
 * Which parts of a source file hold data. A file without holes is one part; otherwise SEEK_DATA and
 * SEEK_HOLE are asked, part by part, so that a hole costs no I/O.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
