/* SPDX-License-Identifier: MIT */
/*
 * Whose turn it is to read a file. A file that has several names (hard links without -H, a source
 * that is named twice) may be read by several workers at once; the later one would take what the
 * earlier has just brought in for somebody else's, and leave it. So they read one after the other.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct tt_neutral_turn {
	struct tt_neutral_turn *next;
	uint64_t ino;
};

/* Of one file system. */
struct tt_neutral_turns {
	pthread_mutex_t lock; /* a leaf; guards the rest */
	pthread_cond_t ended;
	struct tt_neutral_turn *first; /* that are being read */
	unsigned waiters;
};

void tt_neutral_turns_init(struct tt_neutral_turns *turns);
void tt_neutral_turns_deinit(struct tt_neutral_turns *turns);

/* Takes the turn if nobody reads the file. `turn` is the caller's, and stays where it is until
 * tt_neutral_turn_end(). Any thread. */
bool tt_neutral_turn_try(
	struct tt_neutral_turns *turns, struct tt_neutral_turn *turn, uint64_t ino);

/* The same; sleeps until it is there. Who has a turn may not wait for another. */
void tt_neutral_turn_wait(
	struct tt_neutral_turns *turns, struct tt_neutral_turn *turn, uint64_t ino);

/* After the reader's end. */
void tt_neutral_turn_end(struct tt_neutral_turns *turns, struct tt_neutral_turn *turn);
