/* SPDX-License-Identifier: MIT */
/*
 * See idmap.h. One lock is around the answers that are remembered; trees have few owners.
 */
#include "tree/idmap.h"

#include <errno.h>
#include <fnmatch.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	IDMAP_NAME_BYTES = 65536, /* of a group with all its members */
};

enum idmap_fit {
	IDMAP_NUMBERS,
	IDMAP_NAME,     /* or a pattern */
	IDMAP_ANYTHING, /* "*": the nameless, too */
	IDMAP_NAMELESS,
};

struct idmap_pair {
	enum idmap_fit fit;
	uint32_t low, high; /* IDMAP_NUMBERS */
	const char *name;   /* IDMAP_NAME; in the map's text */
	uint32_t to;
};

struct idmap_answer {
	uint32_t id, to;
};

struct tt_idmap {
	enum tt_idmap_kind kind;
	bool nameless, asks_names;
	char *text;
	struct idmap_pair *pairs;
	unsigned pair_count;

	pthread_mutex_t lock; /* guards what follows; a leaf */
	struct idmap_answer *answers;
	unsigned answer_count, answer_capacity;
};

static bool idmap_read_number(const char *text, uint32_t *ret_id)
{
	unsigned long long value;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (*end || errno || value >= UINT32_MAX) /* the last one stands for "none" */
		return false;
	*ret_id = (uint32_t)value;
	return true;
}

/* The number of a name of this machine. Returns 0, -ENOENT, or another negative errno. */
static int idmap_look_up(enum tt_idmap_kind kind, const char *name, uint32_t *ret_id)
{
	char *buffer = malloc(IDMAP_NAME_BYTES);
	int r = ENOMEM;
	bool found = false;

	if (!buffer)
		return -r;
	if (kind == TT_IDMAP_USERS) {
		struct passwd entry, *user = NULL;

		r = getpwnam_r(name, &entry, buffer, IDMAP_NAME_BYTES, &user);
		found = user;
		if (user)
			*ret_id = user->pw_uid;
	} else {
		struct group entry, *group = NULL;

		r = getgrnam_r(name, &entry, buffer, IDMAP_NAME_BYTES, &group);
		found = group;
		if (group)
			*ret_id = group->gr_gid;
	}
	free(buffer);
	return found ? 0 : r ? -r : -ENOENT;
}

/* The name of a number, in `buffer`, or NULL. */
static const char *idmap_name(enum tt_idmap_kind kind, uint32_t id, char *buffer)
{
	if (kind == TT_IDMAP_USERS) {
		struct passwd entry, *user = NULL;

		(void)getpwuid_r(id, &entry, buffer, IDMAP_NAME_BYTES, &user);
		return user ? user->pw_name : NULL;
	}
	struct group entry, *group = NULL;

	(void)getgrgid_r(id, &entry, buffer, IDMAP_NAME_BYTES, &group);
	return group ? group->gr_name : NULL;
}

static int idmap_read_from(struct idmap_pair *pair, char *from)
{
	char *dash = strchr(from, '-');

	if (*from == '\0') {
		pair->fit = IDMAP_NAMELESS;
		return 0;
	}
	if (*from < '0' || *from > '9') {
		pair->fit = strcmp(from, "*") == 0 ? IDMAP_ANYTHING : IDMAP_NAME;
		pair->name = from;
		return 0;
	}
	pair->fit = IDMAP_NUMBERS;
	if (dash)
		*dash = '\0';
	bool good = idmap_read_number(from, &pair->low)
		    && idmap_read_number(dash ? dash + 1 : from, &pair->high);

	if (dash)
		*dash = '-';
	return good ? 0 : -EINVAL;
}

/* Reads "FROM:TO", which it cuts at the colon. */
static int idmap_read_pair(
	struct tt_idmap *map, struct idmap_pair *pair, char *text, char *problem, size_t size)
{
	char *colon = strchr(text, ':');

	if (!colon) {
		snprintf(problem, size, "no colon in \"%s\"", text);
		return -EINVAL;
	}
	*colon = '\0';
	if (idmap_read_from(pair, text) < 0) {
		snprintf(problem, size, "\"%s\" is neither a number nor a range of numbers", text);
		return -EINVAL;
	}
	map->asks_names = map->asks_names || pair->fit != IDMAP_NUMBERS;
	if (idmap_read_number(colon + 1, &pair->to))
		return 0;
	int r = colon[1] ? idmap_look_up(map->kind, colon + 1, &pair->to) : -ENOENT;

	if (r == -ENOMEM)
		return r;
	if (r < 0)
		snprintf(problem, size, "there is no %s \"%s\"",
			map->kind == TT_IDMAP_USERS ? "user" : "group", colon + 1);
	return r < 0 ? -EINVAL : 0;
}

static int idmap_read(struct tt_idmap *map, char *problem, size_t size)
{
	unsigned most = 1;
	int r = 0;

	for (const char *c = map->text; *c; c++)
		most += *c == ',';
	map->pairs = calloc(most, sizeof *map->pairs);
	if (!map->pairs)
		return -ENOMEM;
	for (char *text = map->text, *next = text; next && r == 0; text = next) {
		next = strchr(text, ',');
		if (next)
			*next++ = '\0';
		r = idmap_read_pair(map, &map->pairs[map->pair_count++], text, problem, size);
	}
	return r;
}

int tt_idmap_new(enum tt_idmap_kind kind, bool nameless, const char *text, char *problem,
	size_t problem_size, struct tt_idmap **ret_map)
{
	struct tt_idmap *map = calloc(1, sizeof *map);

	if (!map)
		return -ENOMEM;
	pthread_mutex_init(&map->lock, NULL);
	map->kind = kind;
	map->nameless = nameless;
	map->text = strdup(text);
	int r = map->text ? idmap_read(map, problem, problem_size) : -ENOMEM;

	if (r < 0) {
		tt_idmap_free(map);
		return r;
	}
	*ret_map = map;
	return 0;
}

void tt_idmap_free(struct tt_idmap *map)
{
	if (!map)
		return;
	pthread_mutex_destroy(&map->lock);
	free(map->answers);
	free(map->pairs);
	free(map->text);
	free(map);
}

static bool idmap_fits(const struct idmap_pair *pair, uint32_t id, const char *name)
{
	switch (pair->fit) {
	case IDMAP_NUMBERS:
		return id >= pair->low && id <= pair->high;
	case IDMAP_ANYTHING:
		return true;
	case IDMAP_NAMELESS:
		return !name;
	case IDMAP_NAME:
		return name && fnmatch(pair->name, name, 0) == 0;
	}
	return false;
}

static uint32_t idmap_find(const struct tt_idmap *map, uint32_t id)
{
	bool asks = map->asks_names && !map->nameless;
	char *buffer = asks ? malloc(IDMAP_NAME_BYTES) : NULL;
	const char *name = buffer ? idmap_name(map->kind, id, buffer) : NULL;
	uint32_t to = id;

	for (unsigned i = 0; i < map->pair_count; i++) {
		if (idmap_fits(&map->pairs[i], id, name)) {
			to = map->pairs[i].to;
			break;
		}
	}
	free(buffer);
	return to;
}

/* With the lock held. Without memory it is only asked for again. */
static void idmap_remember(struct tt_idmap *map, uint32_t id, uint32_t to)
{
	if (map->answer_count == map->answer_capacity) {
		unsigned capacity = map->answer_capacity ? map->answer_capacity * 2 : 16;
		struct idmap_answer *answers =
			realloc(map->answers, capacity * sizeof *map->answers);

		if (!answers)
			return;
		map->answers = answers;
		map->answer_capacity = capacity;
	}
	map->answers[map->answer_count++] = (struct idmap_answer){id, to};
}

uint32_t tt_idmap_get(struct tt_idmap *map, uint32_t id)
{
	pthread_mutex_lock(&map->lock);
	for (unsigned i = 0; i < map->answer_count; i++) {
		if (map->answers[i].id == id) {
			uint32_t to = map->answers[i].to;

			pthread_mutex_unlock(&map->lock);
			return to;
		}
	}
	uint32_t to = idmap_find(map, id);

	idmap_remember(map, id, to);
	pthread_mutex_unlock(&map->lock);
	return to;
}
