/* SPDX-License-Identifier: MIT */
/*
 * See dir.h.
 */
#include "sync/dir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sys/fd.h"
#include "tree/filter_dir.h"

/* One piece of memory: the node, its rules, its descriptors, its layers, its path. */
struct tt_dir *tt_dir_new(struct tt_dir *parent, const struct tt_entry *entry, unsigned layer_count)
{
	size_t base = parent ? strlen(parent->path) : 0;
	size_t length = entry ? strlen(entry->name) : 0;
	size_t layers =
		layer_count * (sizeof(struct tt_filter_dir *) + sizeof(int) + sizeof(uint16_t));
	struct tt_dir *dir = malloc(sizeof *dir + layers + base + length + 2);

	if (!dir)
		return NULL;
	memset(dir, 0, sizeof *dir);
	dir->layer_count = layer_count;
	dir->source_rules = (struct tt_filter_dir **)(dir + 1);
	dir->source_fds = (int *)(dir->source_rules + layer_count);
	dir->layers = (uint16_t *)(dir->source_fds + layer_count);
	dir->path = (char *)(dir->layers + layer_count);
	for (unsigned i = 0; i < layer_count; i++)
		dir->source_fds[i] = -1;
	for (unsigned i = 0; i < layer_count; i++)
		dir->source_rules[i] = NULL;
	if (base > 0) {
		memcpy(dir->path, parent->path, base);
		dir->path[base++] = '/';
	}
	memcpy(dir->path + base, entry ? entry->name : "", length);
	dir->path[base + length] = '\0';
	dir->name = dir->path + base;
	dir->parent = parent;
	dir->depth = parent ? parent->depth + 1 : 0;
	dir->destination_fd = -1;
	dir->is_target = true;
	dir->pending = 1; /* its own planning */
	if (entry)
		dir->entry = *entry;
	dir->entry.name = dir->name;
	dir->entry.link = NULL;
	return dir;
}

void tt_dir_take_listings(struct tt_engine *engine, struct tt_dir *dir)
{
	if (engine->spare_count < 2 || !dir->parent) /* the root's holds named sources already */
		return;
	dir->source = engine->spare[--engine->spare_count];
	dir->destination = engine->spare[--engine->spare_count];
}

static void dir_give_listing(
	struct tt_engine *engine, struct tt_listing *listing, struct tt_listing *ret)
{
	*ret = *listing;
	*listing = (struct tt_listing){0};
	if (ret->capacity == 0 || ret->capacity > TT_SPARE_ENTRIES
		|| engine->spare_count == TT_SPARE_LISTINGS
		|| ret->arena.total_bytes > TT_SPARE_BYTES)
		return;
	tt_listing_clear(ret);
	engine->spare[engine->spare_count++] = *ret;
	*ret = (struct tt_listing){0};
}

void tt_dir_give_listings(struct tt_engine *engine, struct tt_dir *dir,
	struct tt_listing *ret_source, struct tt_listing *ret_destination)
{
	dir_give_listing(engine, &dir->destination, ret_destination);
	dir_give_listing(engine, &dir->source, ret_source);
}

void tt_dir_free(struct tt_dir *dir)
{
	if (!dir)
		return;
	tt_listing_deinit(&dir->source);
	tt_listing_deinit(&dir->destination);
	for (unsigned i = 0; i < dir->layer_count; i++) {
		tt_fd_close(dir->source_fds[i]);
		tt_filter_dir_release(dir->source_rules[i]);
	}
	tt_filter_dir_release(dir->destination_rules);
	tt_fd_close(dir->destination_fd);
	free(dir->layer_is_named);
	free(dir->children);
	free(dir);
}

int tt_dir_compare(const struct tt_dir *a, const struct tt_dir *b)
{
	const struct tt_dir *x = a, *y = b;

	while (x->depth > y->depth)
		x = x->parent;
	while (y->depth > x->depth)
		y = y->parent;
	if (x == y) /* one is above the other */
		return a->depth < b->depth ? -1 : a->depth > b->depth;
	while (x->parent != y->parent) {
		x = x->parent;
		y = y->parent;
	}
	return x->index < y->index ? -1 : 1;
}

static void queue_set(struct tt_engine *engine, unsigned at, struct tt_dir *dir)
{
	engine->heap[at] = dir;
	dir->heap_index = at + 1;
}

static void queue_up(struct tt_engine *engine, unsigned at)
{
	struct tt_dir *dir = engine->heap[at];

	while (at > 0 && tt_dir_compare(dir, engine->heap[(at - 1) / 2]) < 0) {
		queue_set(engine, at, engine->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	queue_set(engine, at, dir);
}

static void queue_down(struct tt_engine *engine, unsigned at)
{
	struct tt_dir *dir = engine->heap[at];

	for (;;) {
		unsigned child = 2 * at + 1;

		if (child + 1 < engine->heap_count
			&& tt_dir_compare(engine->heap[child + 1], engine->heap[child]) < 0)
			child++;
		if (child >= engine->heap_count || tt_dir_compare(dir, engine->heap[child]) <= 0)
			break;
		queue_set(engine, at, engine->heap[child]);
		at = child;
	}
	queue_set(engine, at, dir);
}

int tt_dir_queue_push(struct tt_engine *engine, struct tt_dir *dir)
{
	if (engine->heap_count == engine->heap_capacity) {
		unsigned capacity =
			engine->heap_capacity ? engine->heap_capacity * 2 : TT_HEAP_CAPACITY_START;
		struct tt_dir **heap = realloc(engine->heap, capacity * sizeof *heap);

		if (!heap)
			return -ENOMEM;
		engine->heap = heap;
		engine->heap_capacity = capacity;
	}
	queue_set(engine, engine->heap_count++, dir);
	queue_up(engine, engine->heap_count - 1);
	return 0;
}

struct tt_dir *tt_dir_queue_first(const struct tt_engine *engine)
{
	return engine->heap_count > 0 ? engine->heap[0] : NULL;
}

void tt_dir_queue_remove(struct tt_engine *engine, struct tt_dir *dir)
{
	unsigned at = dir->heap_index - 1;
	struct tt_dir *last = engine->heap[--engine->heap_count];

	dir->heap_index = 0;
	if (last == dir)
		return;
	queue_set(engine, at, last);
	queue_up(engine, at);
	queue_down(engine, last->heap_index - 1);
}
