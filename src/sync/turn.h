/* SPDX-License-Identifier: MIT */
/*
 * Before a worker reads a file through the page cache: nobody else of us is to read the same one
 * (cache/neutral_turn.h). Internal to sync/.
 */
#pragma once

#include <stdint.h>

#include "cache/neutral_turn.h"

struct tt_volume;
struct tt_worker;

struct tt_turn {
	struct tt_neutral_turn turn;
	struct tt_volume *volume; /* NULL: not taken */
	struct tt_worker *worker;
};

/* Takes the worker's turn with a file of the volume; may sleep, and then submits the worker's batch
 * first: whoever has the turn may need its budget. A worker that has one already, or that is in the
 * middle of an arrival, which the one with the turn may wait for, goes on without: nobody waits in
 * a circle. */
void tt_turn_take(
	struct tt_turn *turn, struct tt_worker *worker, struct tt_volume *volume, uint64_t ino);

void tt_turn_end(struct tt_turn *turn);
