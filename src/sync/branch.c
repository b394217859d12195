/* SPDX-License-Identifier: MIT */
/*
 * See branch.h.
 */
#include "sync/branch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sync/crew.h"

enum {
	BRANCH_MOST = 16,
	BRANCH_MOST_KEPT_BYTES = 8 << 20,
};

struct branch_event {
	struct branch_event *next;
	struct tt_event event;
	size_t bytes;
	char text[]; /* path and link */
};

struct tt_branch {
	struct tt_branch *next; /* told behind this one */
	struct tt_branch *rest; /* of a fork: what is told behind it by whoever forked it */
	bool complete;
	struct branch_event *kept, **kept_last;
	struct tt_worker *own;
	/* of a fork */
	struct tt_engine *engine;
	struct tt_dir *dir;
	void (*walk)(struct tt_engine *, struct tt_dir *);
	pthread_t thread;
	bool is_fork;
	struct tt_worker worker;
};

static struct tt_branch *branch_new(struct tt_engine *engine, struct tt_worker *own)
{
	struct tt_branch *branch = calloc(1, sizeof *branch);

	if (!branch)
		return NULL;
	branch->engine = engine;
	branch->own = own;
	branch->kept_last = &branch->kept;
	return branch;
}

int tt_branch_begin(struct tt_engine *engine)
{
	struct tt_branch *branch = branch_new(engine, NULL);

	if (!branch)
		return -ENOMEM;
	pthread_mutex_lock(&engine->turn);
	engine->branch = engine->branches = branch;
	return 0;
}

void tt_branch_end(struct tt_engine *engine)
{
	if (!engine->branches)
		return;
	free(engine->branches);
	engine->branch = engine->branches = NULL;
	pthread_mutex_unlock(&engine->turn);
}

struct tt_branch *tt_branch_pause(struct tt_engine *engine)
{
	struct tt_branch *mine = engine->branch;

	pthread_mutex_unlock(&engine->turn);
	return mine;
}

void tt_branch_resume(struct tt_engine *engine, struct tt_branch *mine)
{
	pthread_mutex_lock(&engine->turn);
	engine->branch = mine;
}

struct tt_worker *tt_branch_worker(const struct tt_engine *engine)
{
	struct tt_worker *own = engine->branch->own;

	return own ? own : &engine->workers[engine->worker_count];
}

/* ---- what is told ---- */

static void branch_free_event(struct tt_engine *engine, struct branch_event *kept)
{
	engine->kept_bytes -= kept->bytes;
	free(kept);
}

static void branch_flush(struct tt_engine *engine, struct tt_branch *branch)
{
	while (branch->kept) {
		struct branch_event *kept = branch->kept;

		branch->kept = kept->next;
		engine->events.event(engine->events.context, &kept->event);
		branch_free_event(engine, kept);
	}
	branch->kept_last = &branch->kept;
}

static bool branch_keep(struct tt_engine *engine, const struct tt_event *event)
{
	size_t path = event->path ? strlen(event->path) + 1 : 0;
	size_t link = event->link ? strlen(event->link) + 1 : 0;
	size_t bytes = sizeof(struct branch_event) + path + link;
	struct branch_event *kept = malloc(bytes);

	if (!kept)
		return false;
	*kept = (struct branch_event){.event = *event, .bytes = bytes};
	if (path > 0)
		kept->event.path = memcpy(kept->text, event->path, path);
	if (link > 0)
		kept->event.link = memcpy(kept->text + path, event->link, link);
	*engine->branch->kept_last = kept;
	engine->branch->kept_last = &kept->next;
	engine->kept_bytes += bytes;
	return true;
}

static void branch_await(struct tt_engine *engine, size_t most_kept_bytes)
{
	pthread_mutex_lock(&engine->lock);
	while (engine->branch != engine->branches && engine->kept_bytes >= most_kept_bytes)
		tt_engine_wait_plan(engine, NULL);
	pthread_mutex_unlock(&engine->lock);
}

void tt_branch_await_first(struct tt_engine *engine)
{
	branch_await(engine, 0);
}

void tt_branch_tell(struct tt_engine *engine, const struct tt_event *event)
{
	if (engine->policy.silent
		&& (event->kind == TT_EVENT_ITEM || event->kind == TT_EVENT_DELETED))
		return;
	branch_await(engine, BRANCH_MOST_KEPT_BYTES);
	if (engine->branch != engine->branches && branch_keep(engine, event))
		return;
	tt_branch_await_first(engine);
	engine->events.event(engine->events.context, event);
}

/* The present branch will tell nothing any more: the next one may, at once. */
static void branch_complete(struct tt_engine *engine)
{
	engine->branch->complete = true;
	while (engine->branches->complete) {
		struct tt_branch *told = engine->branches;

		engine->branches = told->next;
		told->next = engine->told;
		engine->told = told;
		branch_flush(engine, engine->branches);
	}
	pthread_mutex_lock(&engine->lock);
	tt_engine_wake_plan(engine, NULL);
	pthread_mutex_unlock(&engine->lock);
}

/* ---- forks ---- */

static void *branch_thread(void *argument)
{
	struct tt_branch *fork = argument;
	struct tt_engine *engine = fork->engine;

	tt_branch_resume(engine, fork);
	fork->walk(engine, fork->dir);
	branch_complete(engine);
	(void)tt_branch_pause(engine);
	return NULL;
}

bool tt_branch_may_fork(const struct tt_engine *engine)
{
	return engine->copying_pass && !engine->policy.dry_run
	       && engine->branch_count < BRANCH_MOST;
}

struct tt_branch *tt_branch_fork(struct tt_engine *engine, struct tt_branch *behind,
	struct tt_dir *dir, void (*walk)(struct tt_engine *, struct tt_dir *))
{
	struct tt_branch *fork = branch_new(engine, NULL);
	struct tt_branch *rest = branch_new(engine, engine->branch->own);

	if (!behind)
		behind = engine->branch;
	if (fork && rest) {
		fork->own = &fork->worker;
		fork->dir = dir;
		fork->walk = walk;
		fork->rest = rest;
		fork->is_fork = true;
		tt_crew_enlist(engine, &fork->worker);
		rest->next = behind->next;
		fork->next = rest;
		behind->next = fork;
		/* It does nothing before it has the turn, which is ours. */
		if (pthread_create(&fork->thread, NULL, branch_thread, fork) == 0) {
			engine->branch_count++;
			return fork;
		}
		behind->next = rest->next;
	}
	free(fork);
	free(rest);
	return NULL;
}

struct tt_branch *tt_branch_rest(const struct tt_branch *fork)
{
	return fork->rest;
}

void tt_branch_pass(struct tt_engine *engine, struct tt_branch *fork)
{
	struct tt_branch *rest = fork->rest;

	branch_complete(engine);
	engine->branch = rest;
}

void tt_branch_join(struct tt_engine *engine)
{
	struct tt_branch *mine, *told;

	if (engine->branch_count == 0)
		return;
	/* Their work is done, only their last steps may be left. */
	tt_branch_await_first(engine);
	told = engine->told;
	engine->told = NULL;
	mine = tt_branch_pause(engine);
	for (const struct tt_branch *branch = told; branch; branch = branch->next) {
		if (branch->is_fork)
			pthread_join(branch->thread, NULL);
	}
	tt_branch_resume(engine, mine);
	while (told) {
		struct tt_branch *branch = told;

		told = branch->next;
		if (branch->is_fork)
			tt_crew_discharge(engine, &branch->worker);
		free(branch);
	}
	engine->branch_count = 0;
}
