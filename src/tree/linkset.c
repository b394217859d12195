/* SPDX-License-Identifier: MIT */
/*
 * An open hash table of 32-bit group numbers over groups in blocks that never move, with their
 * paths in an arena: about 64 bytes and the path for an inode. Followers wait in a list per group,
 * which exists only while the leader is on its way.
 *
 * A path is kept until the set is freed, because it is handed out and read without the lock, and is
 * what tells one leader from the next: none is at the address of another. A group that changes its
 * leader leaves the old path behind, which is rare enough.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tree/linkset.h"

enum {
	LINKSET_BLOCK_GROUPS = 1024,
	LINKSET_ARENA_BYTES = 64 << 10,
	LINKSET_FIRST_SLOTS = 1024,
};

struct linkset_followers {
	unsigned count, capacity;
	void *pointers[];
};

struct tt_linkset_group {
	struct tt_linkset_key key;
	const char *leader;
	struct linkset_followers *followers;
	enum tt_linkset_state state;
	/* planner thread only */
	const char *entered; /* the leader that it has let in */
	bool stands;
};

struct linkset_chunk {
	struct linkset_chunk *next;
	size_t used, size;
	char bytes[];
};

struct tt_linkset {
	pthread_mutex_t lock; /* guards everything below; a leaf */
	struct tt_linkset_group **blocks;
	uint32_t group_count;
	uint32_t *slots;     /* group number + 1, 0 is empty */
	uint32_t slot_count; /* a power of two */
	struct linkset_chunk *chunks;
};

int tt_linkset_new(struct tt_linkset **ret_set)
{
	struct tt_linkset *set = calloc(1, sizeof(*set));

	if (!set)
		return -ENOMEM;
	set->slots = calloc(LINKSET_FIRST_SLOTS, sizeof(*set->slots));
	if (!set->slots) {
		free(set);
		return -ENOMEM;
	}
	set->slot_count = LINKSET_FIRST_SLOTS;
	(void)pthread_mutex_init(&set->lock, NULL);
	*ret_set = set;
	return 0;
}

static struct tt_linkset_group *linkset_group(const struct tt_linkset *set, uint32_t number)
{
	return &set->blocks[number / LINKSET_BLOCK_GROUPS][number % LINKSET_BLOCK_GROUPS];
}

static uint32_t linkset_block_count(const struct tt_linkset *set)
{
	return (set->group_count + LINKSET_BLOCK_GROUPS - 1) / LINKSET_BLOCK_GROUPS;
}

void tt_linkset_free(struct tt_linkset *set)
{
	struct linkset_chunk *next;

	if (!set)
		return;
	for (uint32_t i = 0; i < set->group_count; i++)
		free(linkset_group(set, i)->followers);
	for (uint32_t i = 0; i < linkset_block_count(set); i++)
		free(set->blocks[i]);
	for (struct linkset_chunk *chunk = set->chunks; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(set->blocks);
	free(set->slots);
	(void)pthread_mutex_destroy(&set->lock);
	free(set);
}

static char *linkset_copy_path(struct tt_linkset *set, const char *path)
{
	size_t size = strlen(path) + 1;
	struct linkset_chunk *chunk = set->chunks;
	char *copy;

	if (!chunk || chunk->size - chunk->used < size) {
		size_t room = size > LINKSET_ARENA_BYTES ? size : LINKSET_ARENA_BYTES;

		chunk = malloc(sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		chunk->used = 0;
		chunk->size = room;
		chunk->next = set->chunks;
		set->chunks = chunk;
	}
	copy = chunk->bytes + chunk->used;
	memcpy(copy, path, size);
	chunk->used += size;
	return copy;
}

static uint32_t linkset_start(const struct tt_linkset *set, const struct tt_linkset_key *key)
{
	/* Without padding. */
	const uint32_t bits[] = {(uint32_t)key->ino, (uint32_t)(key->ino >> 32), key->dev_major,
		key->dev_minor, key->place};

	return (uint32_t)tt_hash_64(bits, sizeof(bits)) & (set->slot_count - 1);
}

static bool linkset_is_key(const struct tt_linkset_key *a, const struct tt_linkset_key *b)
{
	return a->ino == b->ino && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor
	       && a->place == b->place;
}

/* The slot of the key, or the empty one where it belongs. */
static uint32_t *linkset_find(const struct tt_linkset *set, const struct tt_linkset_key *key)
{
	uint32_t at = linkset_start(set, key);

	for (;; at = (at + 1) & (set->slot_count - 1)) {
		if (!set->slots[at]
			|| linkset_is_key(&linkset_group(set, set->slots[at] - 1)->key, key))
			return &set->slots[at];
	}
}

/* Keeps the table less than two thirds full. */
static int linkset_grow(struct tt_linkset *set)
{
	uint32_t *slots, *old = set->slots;

	if ((uint64_t)set->group_count * 3 < (uint64_t)set->slot_count * 2)
		return 0;
	if (set->slot_count > UINT32_MAX / 2)
		return -ENOMEM;
	slots = calloc((size_t)set->slot_count * 2, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	set->slots = slots;
	set->slot_count *= 2;
	for (uint32_t i = 0; i < set->group_count; i++) {
		const struct tt_linkset_group *group = linkset_group(set, i);

		*linkset_find(set, &group->key) = i + 1;
	}
	free(old);
	return 0;
}

/* Makes room for one more group; *ret_group is the next one, not counted yet. */
static int linkset_reserve(struct tt_linkset *set, struct tt_linkset_group **ret_group)
{
	uint32_t block = set->group_count / LINKSET_BLOCK_GROUPS;

	if (set->group_count % LINKSET_BLOCK_GROUPS == 0) {
		struct tt_linkset_group **blocks;

		blocks = realloc(set->blocks, (block + 1) * sizeof(struct tt_linkset_group *));
		if (!blocks)
			return -ENOMEM;
		set->blocks = blocks;
		blocks[block] = calloc(LINKSET_BLOCK_GROUPS, sizeof(struct tt_linkset_group));
		if (!blocks[block])
			return -ENOMEM;
	}
	*ret_group = linkset_group(set, set->group_count);
	return 0;
}

static void linkset_lead(struct tt_linkset_group *group, const char *copy)
{
	group->leader = copy;
	group->state = TT_LINKSET_PENDING;
}

/* With the lock held. */
static int linkset_enter_locked(struct tt_linkset *set, const struct tt_linkset_key *key,
	const char *path, struct tt_linkset_group **ret_group)
{
	struct tt_linkset_group *group;
	const char *copy;
	uint32_t *slot;
	int r;

	slot = linkset_find(set, key);
	if (*slot && linkset_group(set, *slot - 1)->state != TT_LINKSET_FAILED) {
		*ret_group = linkset_group(set, *slot - 1);
		return 0;
	}
	copy = linkset_copy_path(set, path);
	if (!copy)
		return -ENOMEM;
	if (*slot) {
		group = linkset_group(set, *slot - 1);
		linkset_lead(group, copy);
		group->entered = copy;
		*ret_group = group;
		return 1;
	}
	r = linkset_grow(set);
	if (r < 0)
		return r;
	r = linkset_reserve(set, &group);
	if (r < 0)
		return r;
	*group = (struct tt_linkset_group){.key = *key, .entered = copy};
	linkset_lead(group, copy);
	*linkset_find(set, key) = ++set->group_count;
	*ret_group = group;
	return 1;
}

int tt_linkset_enter(struct tt_linkset *set, const struct tt_linkset_key *key, const char *path,
	struct tt_linkset_group **ret_group)
{
	int r;

	(void)pthread_mutex_lock(&set->lock);
	r = linkset_enter_locked(set, key, path, ret_group);
	(void)pthread_mutex_unlock(&set->lock);
	return r;
}

void tt_linkset_set_stands(struct tt_linkset_group *group)
{
	group->stands = true;
}

bool tt_linkset_stands(const struct tt_linkset_group *group)
{
	return group->stands;
}

bool tt_linkset_is_led(struct tt_linkset *set, const struct tt_linkset_key *key)
{
	(void)pthread_mutex_lock(&set->lock);
	uint32_t number = *linkset_find(set, key);
	bool led = number && linkset_group(set, number - 1)->state != TT_LINKSET_FAILED;

	(void)pthread_mutex_unlock(&set->lock);
	return led;
}

const char *tt_linkset_leader(const struct tt_linkset_group *group)
{
	return group->entered;
}

/* With the lock held. */
static int linkset_add_follower(struct tt_linkset_group *group, void *follower)
{
	struct linkset_followers *list = group->followers;

	if (!list || list->count == list->capacity) {
		unsigned capacity = list ? list->capacity * 2 : 4;

		list = realloc(list, sizeof(*list) + capacity * sizeof(void *));
		if (!list)
			return -ENOMEM;
		if (!group->followers)
			list->count = 0;
		list->capacity = capacity;
		group->followers = list;
	}
	list->pointers[list->count++] = follower;
	return 0;
}

int tt_linkset_follow(struct tt_linkset *set, struct tt_linkset_group *group, void *follower,
	const char **ret_leader)
{
	int r;

	(void)pthread_mutex_lock(&set->lock);
	if (group->state == TT_LINKSET_PENDING)
		r = linkset_add_follower(group, follower);
	else
		r = 1 + (int)group->state;
	if (r > 0)
		*ret_leader = group->leader;
	(void)pthread_mutex_unlock(&set->lock);
	return r;
}

void tt_linkset_settle(struct tt_linkset *set, struct tt_linkset_group *group,
	enum tt_linkset_state state, void ***ret_followers, unsigned *ret_count)
{
	struct linkset_followers *list;

	(void)pthread_mutex_lock(&set->lock);
	group->state = state;
	list = group->followers;
	group->followers = NULL;
	(void)pthread_mutex_unlock(&set->lock);
	*ret_count = list ? list->count : 0;
	if (!list) {
		*ret_followers = NULL;
		return;
	}
	/* The list becomes the caller's array: the pointers move over the counters, so that nothing
	 * has to be allocated, which could fail where it must not. */
	memmove(list, list->pointers, *ret_count * sizeof(void *));
	*ret_followers = (void **)list;
}

int tt_linkset_promote(
	struct tt_linkset *set, struct tt_linkset_group *group, const char *tried, const char *path)
{
	const char *copy;
	int r = 1;

	(void)pthread_mutex_lock(&set->lock);
	if (group->leader == tried) {
		copy = linkset_copy_path(set, path);
		if (copy)
			linkset_lead(group, copy);
		r = copy ? 0 : -ENOMEM;
	}
	(void)pthread_mutex_unlock(&set->lock);
	return r;
}
