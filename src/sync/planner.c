/* SPDX-License-Identifier: MIT */
/*
 * See planner.h. Directories are here; the names in them are in planner_entries.c.
 */
#include "sync/planner.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sync/arrive.h"
#include "sync/branch.h"
#include "sync/delayed.h"
#include "sync/deleter.h"
#include "sync/dir.h"
#include "sync/finish.h"
#include "sync/lane.h"
#include "sync/lister.h"
#include "sync/moved.h"
#include "sync/planner_entries.h"
#include "sync/reason.h"
#include "sync/volume.h"
#include "sys/fd.h"
#include "tree/alias.h"

/* Waits until the directory is listed; lists it here if no worker has begun to. With `skip` an
 * unlisted one is not read at all. */
static void planner_await_listing(struct tt_engine *engine, struct tt_dir *dir, bool skip)
{
	bool mine = false;

	pthread_mutex_lock(&engine->lock);
	/* Every directory in progress has two descriptors. Ancestors have, too, and are not
	 * finished before this one: without tasks there is nothing to wait for. */
	while (!skip && dir->state == TT_DIR_WAITING
		&& engine->dirs_ahead >= engine->most_dirs_ahead && tt_lane_any_tasks(engine)
		&& !atomic_load(&engine->stop))
		tt_engine_wait_plan(engine, NULL);
	if (dir->state == TT_DIR_WAITING) {
		if (dir->heap_index > 0)
			tt_dir_queue_remove(engine, dir);
		dir->state = TT_DIR_LISTING;
		engine->dirs_ahead++;
		engine->listings += !skip;
		if (!skip)
			tt_dir_take_listings(engine, dir);
		mine = true;
	}
	while (!mine && dir->state != TT_DIR_LISTED)
		tt_engine_wait_plan(engine, dir);
	pthread_mutex_unlock(&engine->lock);
	if (mine && skip) {
		pthread_mutex_lock(&engine->lock);
		dir->state = TT_DIR_LISTED;
		engine->unlisted--;
		pthread_mutex_unlock(&engine->lock);
		return;
	}
	if (mine) {
		struct tt_worker *worker = tt_branch_worker(engine);
		struct tt_branch *branch = tt_branch_pause(engine);

		tt_lister_run(engine, worker, dir);
		tt_branch_resume(engine, branch);
	}
}

/* The mode while names are made in the directory: an ordinary user must be able to make them
 * whatever its final mode is, and they get its group only if its final mode says so. */
static void planner_open_mode(struct tt_engine *engine, struct tt_dir *dir, uint32_t present)
{
	uint32_t mode = present & 07777;

	if (engine->policy.dry_run || dir->destination_fd < 0)
		return;
	if (!engine->policy.overrides_modes)
		mode |= 0700;
	if (engine->policy.plan.perms)
		mode = (mode & ~(uint32_t)S_ISGID) | (dir->entry.mode & S_ISGID);
	if (mode == (present & 07777))
		return;
	struct tt_branch *branch = tt_branch_pause(engine);
	int r = fchmod(dir->destination_fd, mode);

	tt_branch_resume(engine, branch);
	if (r == 0) {
		pthread_mutex_lock(&engine->lock);
		dir->changed = true;
		pthread_mutex_unlock(&engine->lock);
	}
}

/* Returns 1 if it was made, 0 if somebody else has made it meanwhile, or a negative errno. */
static int planner_mkdir(struct tt_worker *worker, const struct tt_dir *dir)
{
	struct tt_engine *engine = worker->engine;
	int parent_fd = dir->parent->destination_fd;
	char other[TT_ALIAS_NAME_SIZE];
	/* Ours alone until it is complete: it gets its mode when its last child has arrived. */
	int r = mkdirat(parent_fd, dir->name, 0700) < 0 ? -errno : 1;

	if (r == -ENOSPC || r == -EDQUOT) { /* full of our own temporaries, perhaps */
		tt_arrive_drain(worker, tt_lane_of(dir->parent));
		r = mkdirat(parent_fd, dir->name, 0700) < 0 ? -errno : 1;
		if (r == -ENOSPC || r == -EDQUOT)
			tt_engine_full(engine);
	}
	if (r == 1)
		tt_reason_taken(dir->parent);
	else
		tt_reason_refused(engine, dir->parent, r);
	if (r != -EEXIST)
		return r;
	r = tt_alias_look(parent_fd, dir->name, other);
	return r > 0 ? -ENOTUNIQ : r;
}

/* Makes and opens it. */
static int planner_new_directory(struct tt_engine *engine, struct tt_dir *dir)
{
	struct tt_dir *parent = dir->parent;
	struct tt_worker *worker = tt_branch_worker(engine);
	struct tt_branch *branch = tt_branch_pause(engine);
	int made = planner_mkdir(worker, dir);
	int fd = made < 0 ? made : tt_fd_open_dir(parent->destination_fd, dir->name);

	tt_branch_resume(engine, branch);
	if (fd < 0)
		return fd;
	dir->destination_fd = fd;
	dir->to = made ? parent->to : tt_volume_get(engine, fd, parent->to);
	if (engine->policy.plan.perms
		&& ((dir->entry.mode | parent->entry.mode | parent->existing.mode) & S_ISGID))
		/* It has the bit from its parent, perhaps; a mode that cannot be is changed. */
		planner_open_mode(engine, dir, 0700 | (~dir->entry.mode & S_ISGID));
	pthread_mutex_lock(&engine->lock);
	parent->changed = true;
	dir->changed = true;
	pthread_mutex_unlock(&engine->lock);
	return dir->to ? 0 : -ENOMEM;
}

/* Returns 0, or a negative errno, reported. */
static int planner_make_directory(
	struct tt_engine *engine, struct tt_dir *dir, const struct tt_plan_action *action)
{
	if (action->make_way) {
		int r = tt_deleter_make_way(engine, dir->parent, &dir->existing, "directory");

		if (r < 0)
			return r;
	}
	if (engine->policy.dry_run)
		return 0;
	int r = planner_new_directory(engine, dir);

	if (r < 0)
		tt_engine_fail(engine, "making directory", dir->parent, dir->name, r);
	return r;
}

static void planner_count_directory(struct tt_engine *engine, bool is_new)
{
	engine->stats.files++;
	engine->stats.directories++;
	engine->stats.created += is_new;
	engine->stats.created_directories += is_new;
}

/* Makes the directory or finds it there. Returns whether its contents are wanted; *ret_action says
 * what is to be told of it. */
static bool planner_enter_directory(
	struct tt_engine *engine, struct tt_dir *dir, struct tt_plan_action *ret_action)
{
	struct tt_plan_action action;
	const struct tt_entry *existing =
		dir->existing.mode != 0 && (dir->exists || dir->parent) ? &dir->existing : NULL;

	*ret_action = (struct tt_plan_action){.kind = TT_PLAN_SKIP};
	if (!dir->is_target)
		return true;
	struct tt_plan_policy policy = tt_volume_plan_policy(engine, dir);

	/* It was made, if need be, when the operands were opened. */
	if (!dir->parent && !engine->policy.dry_run)
		policy.existing = false;
	tt_plan_entry(&policy, &dir->entry, existing, &action);
	if (!dir->parent)
		action.make_way = false;
	bool is_new = !dir->exists;

	if (action.kind == TT_PLAN_SKIP || action.kind == TT_PLAN_SKIP_DIR) {
		action.item = existing ? 0 : TT_ITEM_NEW;
		*ret_action = action;
		return false;
	}
	planner_count_directory(engine, is_new);
	if (is_new && dir->parent) {
		if (planner_make_directory(engine, dir, &action) < 0) {
			dir->failed = true;
			return false;
		}
	} else if (!is_new) {
		planner_open_mode(engine, dir, dir->existing.mode);
	}
	if (action.item != 0) {
		pthread_mutex_lock(&engine->lock);
		dir->changed = true;
		pthread_mutex_unlock(&engine->lock);
	}
	*ret_action = action;
	return true;
}

static bool planner_deletes(const struct tt_engine *engine)
{
	return engine->deleting_pass
	       || (engine->copying_pass
		       && (engine->policy.delete_mode == TT_DELETE_DURING
			       || engine->policy.delete_mode == TT_DELETE_DELAY));
}

/* All of one directory but its children. Returns whether they are wanted. */
static bool planner_plan_directory(struct tt_engine *engine, struct tt_dir *dir)
{
	struct tt_plan_action action = {.kind = TT_PLAN_SKIP};

	if (dir->failed)
		return false;
	if (engine->copying_pass && !planner_enter_directory(engine, dir, &action)) {
		if (!dir->failed)
			tt_planner_tell(engine, dir, NULL, &dir->entry, &action, NULL);
		return false;
	}
	if (dir->list_error < 0 && dir->list_error != -ENOENT)
		engine->io_error = true;
	if (dir->to && !engine->policy.dry_run
		&& tt_volume_prepare(engine, dir->to, dir->destination_fd) < 0) {
		tt_engine_fail(engine, "preparing", dir, NULL, -ENOMEM);
		return false;
	}
	if (!dir->parent && engine->copying_pass)
		tt_deleter_missing(engine, dir);
	if (planner_deletes(engine) && (dir->entry.flags & TT_ENTRY_CONTENTS) && !dir->no_descent)
		tt_deleter_extraneous(engine, dir);
	if (!engine->copying_pass)
		return true;
	if (dir->is_target)
		tt_planner_tell(engine, dir, NULL, &dir->entry, &action, NULL);
	return true;
}

static void planner_walk(struct tt_engine *engine, struct tt_dir *dir, bool skip);

static void planner_walk_fork(struct tt_engine *engine, struct tt_dir *dir)
{
	planner_walk(engine, dir, false);
}

/* Whether a child that the destination has is a mount point of another disk. */
static bool planner_is_on_other_disk(
	struct tt_engine *engine, const struct tt_dir *dir, const struct tt_dir *child)
{
	const struct tt_entry *there = &child->existing;

	if (!child->exists || !dir->to
		|| (there->dev_major == dir->existing.dev_major
			&& there->dev_minor == dir->existing.dev_minor))
		return false;
	TT_FD_AUTO fd = tt_fd_open_dir(dir->destination_fd, child->name);
	const struct tt_volume *volume = fd < 0 ? NULL : tt_volume_get(engine, fd, NULL);

	return volume && volume->device.disk != dir->to->device.disk;
}

/* Children on other disks are walked by others, from now on. Returns which, or NULL: none. */
static struct tt_branch **planner_fork(struct tt_engine *engine, const struct tt_dir *dir)
{
	struct tt_branch **forks = NULL, *behind = NULL;

	for (unsigned i = 0; i < dir->child_count && tt_branch_may_fork(engine); i++) {
		if (!planner_is_on_other_disk(engine, dir, dir->children[i]))
			continue;
		if (!forks)
			forks = calloc(dir->child_count, sizeof(struct tt_branch *));
		if (!forks)
			return NULL;
		forks[i] = tt_branch_fork(engine, behind, dir->children[i], planner_walk_fork);
		if (forks[i])
			behind = tt_branch_rest(forks[i]);
	}
	return forks;
}

static void planner_walk(struct tt_engine *engine, struct tt_dir *dir, bool skip)
{
	struct tt_branch **forks = NULL;

	skip = skip || atomic_load(&engine->stop);
	planner_await_listing(engine, dir, skip);
	if (!skip)
		skip = !planner_plan_directory(engine, dir);
	if (!skip && engine->copying_pass) {
		forks = planner_fork(engine, dir);
		tt_planner_entries(engine, dir);
	}
	/* From here on the node may go as soon as its last child does; and so may a child that is
	 * another's to walk. */
	struct tt_dir **children = dir->children;
	unsigned count = dir->child_count;

	dir->children = NULL;
	tt_finish_planned(engine, dir);
	for (unsigned i = 0; i < count; i++) {
		if (forks && forks[i])
			tt_branch_pass(engine, forks[i]);
		else
			planner_walk(engine, children[i], skip);
	}
	free(forks);
	free(children);
}

void tt_planner_walk(struct tt_engine *engine, struct tt_dir *root)
{
	engine->root_finished = false;
	engine->unlisted = 1;
	planner_walk(engine, root, false);
	pthread_mutex_lock(&engine->lock);
	while (!engine->root_finished)
		tt_engine_wait_plan(engine, NULL);
	engine->dirs_ahead--;
	pthread_mutex_unlock(&engine->lock);
	tt_branch_join(engine);
	tt_moved_finish(engine, root);
	tt_delayed_run(engine);
	tt_dir_free(root);
}
