/* SPDX-License-Identifier: MIT */
/*
 * See arena.h. Blocks grow from 1 KiB to 64 KiB, so that a directory of three names stays small.
 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

struct tt_arena_block {
	struct tt_arena_block *next;
	size_t size;
	char data[];
};

static void *arena_grow(struct tt_arena *arena, size_t size)
{
	size_t block_size =
		arena->blocks ? arena->blocks->size * 2 : 1024 - sizeof(struct tt_arena_block);

	if (block_size > 65536)
		block_size = 65536;
	if (block_size < size)
		block_size = size;
	struct tt_arena_block *block = malloc(sizeof *block + block_size);

	if (!block)
		return NULL;
	block->next = arena->blocks;
	block->size = block_size;
	arena->blocks = block;
	arena->left = block_size - size;
	arena->total_bytes += sizeof *block + block_size;
	return block->data;
}

static void *arena_take(struct tt_arena *arena, size_t size, size_t align)
{
	if (arena->blocks) {
		size_t used = arena->blocks->size - arena->left;
		size_t at = (used + align - 1) / align * align;

		if (at + size <= arena->blocks->size) {
			arena->left = arena->blocks->size - at - size;
			return arena->blocks->data + at;
		}
	}
	return arena_grow(arena, size);
}

void *tt_arena_take(struct tt_arena *arena, size_t size)
{
	return arena_take(arena, size, alignof(max_align_t));
}

char *tt_arena_copy(struct tt_arena *arena, const char *text, size_t length)
{
	char *copy = arena_take(arena, length + 1, 1);

	if (copy) {
		memcpy(copy, text, length);
		copy[length] = '\0';
	}
	return copy;
}

void tt_arena_join(struct tt_arena *arena, struct tt_arena *from)
{
	struct tt_arena_block **last = &arena->blocks;

	while (*last)
		last = &(*last)->next;
	if (!arena->blocks)
		arena->left = from->left;
	*last = from->blocks;
	arena->total_bytes += from->total_bytes;
	*from = (struct tt_arena){0};
}

void tt_arena_clear(struct tt_arena *arena)
{
	struct tt_arena_block *kept = arena->blocks;

	if (!kept)
		return;
	arena->blocks = kept->next;
	tt_arena_deinit(arena);
	kept->next = NULL;
	*arena = (struct tt_arena){
		.blocks = kept, .left = kept->size, .total_bytes = sizeof *kept + kept->size};
}

void tt_arena_deinit(struct tt_arena *arena)
{
	while (arena->blocks) {
		struct tt_arena_block *block = arena->blocks;

		arena->blocks = block->next;
		free(block);
	}
	*arena = (struct tt_arena){0};
}
