/* SPDX-License-Identifier: MIT */
/*
 * See finish.h.
 */
#include "sync/finish.h"

#include <errno.h>
#include <unistd.h>

#include "sync/dir.h"
#include "sync/lane.h"
#include "tree/sweep.h"

/* Modes and times last: children that arrived have changed the time, and could not have been made
 * below a read-only mode. */
void tt_finish_attributes(struct tt_engine *engine, struct tt_dir *dir)
{
	enum tt_meta_step step;

	if (engine->policy.dry_run || dir->destination_fd < 0 || !dir->changed)
		return;
	tt_sweep_note(engine->sweep, engine->root_destination_fd, dir->path);
	if (!dir->is_target || dir->failed)
		return;
	/* --delete-before: the copying comes to the directory again, and tells of its time. */
	if (!engine->copying_pass && engine->policy.delete_mode == TT_DELETE_BEFORE)
		return;
	int r = tt_meta_apply_fd(&engine->policy.meta, dir->destination_fd, &dir->entry,
		dir->exists ? &dir->existing : NULL, &step);

	/* The time of somebody else's directory that we may write to was right until we did: no
	 * error, as in rsync. */
	if (r == -EPERM && step == TT_META_TIMES && dir->exists
		&& dir->existing.mtime_sec == dir->entry.mtime_sec)
		r = 0;
	if (r < 0)
		tt_engine_fail(engine, tt_meta_step_text(step), dir, NULL, r);
	if (engine->policy.fsync && fsync(dir->destination_fd) < 0)
		tt_engine_fail(engine, "syncing directory", dir, NULL, -errno);
}

/* With the lock held: whether this was the last thing the directory waited for. */
static bool finish_is_last(struct tt_dir *dir)
{
	return --dir->pending == 0;
}

/* Finishes the directory and every ancestor that waited only for it. */
static void finish_up(struct tt_engine *engine, struct tt_dir *dir)
{
	while (dir) {
		struct tt_dir *parent = dir->parent;
		bool last = false;

		tt_finish_attributes(engine, dir);
		atomic_fetch_add(&engine->files_done, 1);
		if (parent) { /* the root is the engine's to free */
			pthread_mutex_lock(&engine->lock);
			last = finish_is_last(parent);
			/* Whoever had to stop because of the descriptors. */
			if (engine->dirs_ahead-- == engine->most_dirs_ahead) {
				tt_engine_wake_plan(engine, NULL);
				if (engine->heap_count > 0)
					tt_engine_wake_workers(engine, 1);
			}
			pthread_mutex_unlock(&engine->lock);
			tt_dir_free(dir);
		} else {
			pthread_mutex_lock(&engine->lock);
			engine->root_finished = true;
			tt_engine_wake_plan(engine, NULL);
			pthread_mutex_unlock(&engine->lock);
		}
		dir = last ? parent : NULL;
	}
}

/* With the lock held: takes away the listings when nothing reads them any more. What is not used
 * again is freed without the lock; the node itself may be gone by then. */
static void finish_steal_listings(struct tt_engine *engine, struct tt_dir *dir,
	struct tt_listing *ret_source, struct tt_listing *ret_destination)
{
	if (dir->planned && dir->jobs == 0)
		tt_dir_give_listings(engine, dir, ret_source, ret_destination);
}

void tt_finish_release(struct tt_worker *worker, struct tt_dir *dir, unsigned count, bool changed)
{
	struct tt_engine *engine = worker->engine;
	struct tt_listing source = {0}, destination = {0};
	struct tt_lane *lane = tt_lane_of(dir);

	atomic_fetch_add(&engine->files_done, count);
	pthread_mutex_lock(&engine->lock);
	dir->changed = dir->changed || changed;
	dir->jobs -= count;
	dir->pending -= count - 1;
	lane->tasks_out -= count;
	finish_steal_listings(engine, dir, &source, &destination);
	bool last = finish_is_last(dir);

	if (lane->tasks_out < TT_MOST_TASKS / 2)
		tt_engine_wake_plan(engine, NULL);
	pthread_mutex_unlock(&engine->lock);
	tt_listing_deinit(&source);
	tt_listing_deinit(&destination);
	if (last)
		finish_up(engine, dir);
}

void tt_finish_planned(struct tt_engine *engine, struct tt_dir *dir)
{
	struct tt_listing source = {0}, destination = {0};

	pthread_mutex_lock(&engine->lock);
	dir->planned = true;
	engine->entries_ahead -= dir->entries_ahead;
	finish_steal_listings(engine, dir, &source, &destination);
	bool last = finish_is_last(dir);

	/* Those who list ahead may go on: not for every directory, or they would fall asleep and
	 * be woken for each. */
	if (engine->entries_ahead < engine->most_entries_ahead / 2)
		engine->listing_rests = false;
	if (engine->heap_count > 0 && !engine->listing_rests)
		tt_engine_wake_workers(engine, 1);
	pthread_mutex_unlock(&engine->lock);
	tt_listing_deinit(&source);
	tt_listing_deinit(&destination);
	if (last)
		finish_up(engine, dir);
}
