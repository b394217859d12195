/* SPDX-License-Identifier: MIT */
/*
 * Memory for many small things that end together: names of one directory. Nothing is freed singly.
 */
#pragma once

#include <stddef.h>

struct tt_arena_block;

struct tt_arena {
	struct tt_arena_block *blocks;
	size_t left;        /* free bytes at the end of the newest block */
	size_t total_bytes; /* taken from malloc so far */
};

/* Zero-initialised is empty. One thread at a time. */

/* `size` bytes aligned for any object, not cleared; NULL when there is no memory. */
void *tt_arena_take(struct tt_arena *arena, size_t size);

/* A copy of `length` bytes with a NUL behind them, unaligned; NULL when there is no memory. */
char *tt_arena_copy(struct tt_arena *arena, const char *text, size_t length);

/* Moves everything from `from`, which is empty afterwards. */
void tt_arena_join(struct tt_arena *arena, struct tt_arena *from);

/* Forgets everything; one block is kept for what comes next. */
void tt_arena_clear(struct tt_arena *arena);

/* Frees everything; the arena is empty and can be used again. */
void tt_arena_deinit(struct tt_arena *arena);
