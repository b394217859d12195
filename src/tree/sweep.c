/* SPDX-License-Identifier: MIT */
/*
 * See sweep.h.
 */
#include "tree/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/clock.h"
#include "sys/fd.h"
#include "tree/entry.h"
#include "tree/listing.h"
#include "tree/stage.h"

enum {
	SWEEP_MOST_DIRS = 1024,
	SWEEP_MOST_NAMES =
		4096, /* a megabyte at most, mostly: more than a run has files on their way */
	SWEEP_FIRST_PAUSE_NS = 5000000,
	SWEEP_LONGEST_PAUSE_NS = 80000000,
};

struct sweep_name {
	const char *path, *name; /* neighbours of one directory share the path */
};

struct tt_sweep {
	pthread_mutex_t lock; /* guards the rest; a leaf */
	int root_fd;          /* a duplicate; -1: nothing is remembered */
	bool met;             /* a temporary, whatever became of it */
	struct tt_arena arena;
	unsigned count, dir_count;
	struct sweep_name names[SWEEP_MOST_NAMES];
	const char *dirs[SWEEP_MOST_DIRS];
};

int tt_sweep_new(struct tt_sweep **ret_sweep)
{
	/* Not touched, and so not in memory, before there is something to remember. */
	struct tt_sweep *sweep = calloc(1, sizeof *sweep);

	if (!sweep)
		return -ENOMEM;
	sweep->root_fd = -1;
	(void)pthread_mutex_init(&sweep->lock, NULL);
	*ret_sweep = sweep;
	return 0;
}

void tt_sweep_free(struct tt_sweep *sweep)
{
	if (!sweep)
		return;
	tt_fd_close(sweep->root_fd);
	tt_arena_deinit(&sweep->arena);
	(void)pthread_mutex_destroy(&sweep->lock);
	free(sweep);
}

/* With the lock held. */
static bool sweep_has_root(struct tt_sweep *sweep, int root_fd)
{
	if (sweep->root_fd < 0)
		sweep->root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
	return sweep->root_fd >= 0;
}

static bool sweep_is_remembered(const struct tt_sweep *sweep, const char *path, const char *name)
{
	for (unsigned i = 0; i < sweep->count; i++) {
		if (strcmp(sweep->names[i].name, name) == 0
			&& strcmp(sweep->names[i].path, path) == 0)
			return true;
	}
	return false;
}

/* With the lock held. Without memory or a descriptor it is left for the run after this one. */
static void sweep_remember(struct tt_sweep *sweep, int root_fd, const char *path, const char *name)
{
	struct sweep_name *next = &sweep->names[sweep->count];

	if (sweep->count == SWEEP_MOST_NAMES || !sweep_has_root(sweep, root_fd)
		|| sweep_is_remembered(sweep, path, name))
		return;
	next->path = sweep->count > 0 && strcmp(next[-1].path, path) == 0
			     ? next[-1].path
			     : tt_arena_copy(&sweep->arena, path, strlen(path));
	next->name = tt_arena_copy(&sweep->arena, name, strlen(name));
	sweep->count += next->path && next->name;
}

int tt_sweep_name(
	struct tt_sweep *sweep, int root_fd, const char *path, int dir_fd, const char *name)
{
	int r = tt_stage_sweep(dir_fd, name);

	(void)pthread_mutex_lock(&sweep->lock);
	sweep->met = true;
	if (r == 1)
		sweep_remember(sweep, root_fd, path, name);
	(void)pthread_mutex_unlock(&sweep->lock);
	return r;
}

void tt_sweep_note(struct tt_sweep *sweep, int root_fd, const char *path)
{
	(void)pthread_mutex_lock(&sweep->lock);
	if (sweep->dir_count < SWEEP_MOST_DIRS && sweep_has_root(sweep, root_fd)) {
		const char **next = &sweep->dirs[sweep->dir_count];

		*next = tt_arena_copy(&sweep->arena, path, strlen(path));
		sweep->dir_count += *next != NULL;
	}
	(void)pthread_mutex_unlock(&sweep->lock);
}

static int sweep_open(const struct tt_sweep *sweep, const char *path)
{
	return tt_fd_open_beneath(sweep->root_fd, path[0] ? path : ".");
}

static void sweep_read(struct tt_sweep *sweep, const char *path)
{
	TT_FD_AUTO fd = sweep_open(sweep, path);
	struct tt_listing names = {0};

	if (fd < 0)
		return;
	(void)tt_listing_read_names(&names, fd);
	for (unsigned i = 0; i < names.count; i++) {
		const struct tt_entry *entry = &names.entries[i];

		if (!tt_entry_is_dir(entry) && tt_stage_is_temporary(entry->name))
			(void)tt_sweep_name(sweep, sweep->root_fd, path, fd, entry->name);
	}
	tt_listing_deinit(&names);
}

static void sweep_read_all(struct tt_sweep *sweep)
{
	for (unsigned i = 0; sweep->met && i < sweep->dir_count; i++)
		sweep_read(sweep, sweep->dirs[i]);
}

/* Once at each. What is still in use moves to the front. */
static void sweep_look(struct tt_sweep *sweep)
{
	unsigned left = 0, i = 0;

	while (i < sweep->count) {
		const char *path = sweep->names[i].path;
		TT_FD_AUTO fd = sweep_open(sweep, path);

		for (; i < sweep->count && sweep->names[i].path == path; i++) {
			if (fd >= 0 && tt_stage_sweep(fd, sweep->names[i].name) == 1)
				sweep->names[left++] = sweep->names[i];
		}
	}
	sweep->count = left;
}

unsigned tt_sweep_again(struct tt_sweep *sweep, uint64_t patience_ns, const _Atomic bool *stop)
{
	uint64_t until = tt_clock_now_ns() + patience_ns;
	struct timespec pause = {.tv_nsec = SWEEP_FIRST_PAUSE_NS};

	sweep_look(sweep);
	sweep_read_all(sweep);
	if (sweep->count == 0)
		return 0;
	while (sweep->count > 0 && tt_clock_now_ns() < until && !(stop && atomic_load(stop))) {
		(void)nanosleep(&pause, NULL);
		sweep_look(sweep);
		if (pause.tv_nsec < SWEEP_LONGEST_PAUSE_NS)
			pause.tv_nsec *= 2;
	}
	sweep_read_all(sweep); /* whoever held them has ended since, perhaps */
	return sweep->count;
}
