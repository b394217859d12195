/* SPDX-License-Identifier: MIT */
/*
 * See planner_entries.h.
 */
#include "sync/planner_entries.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sync/apply.h"
#include "sync/apply_inplace.h"
#include "sync/arrive.h"
#include "sync/branch.h"
#include "sync/deleter.h"
#include "sync/lane.h"
#include "sync/moved.h"
#include "sync/order.h"
#include "sync/volume.h"
#include "sys/fd.h"
#include "tree/linkset.h"

struct planner_entries {
	struct tt_engine *engine;
	struct tt_dir *dir;
	struct tt_plan_policy policy; /* as it holds here */
	struct tt_job *job;           /* being filled */
};

/* What a link does not do. */
static const uint32_t entries_of_content = TT_ITEM_TRANSFER | TT_ITEM_LOCAL | TT_ITEM_CHECKSUM;

void tt_planner_tell(struct tt_engine *engine, const struct tt_dir *dir, const char *name,
	const struct tt_entry *wanted, const struct tt_plan_action *action, const char *leader)
{
	char path[PATH_MAX * 2];

	if (!engine->policy.report_unchanged
		&& (action->kind == TT_PLAN_SKIP
			|| (action->kind == TT_PLAN_KEEP
				&& (action->item & ~(uint32_t)TT_ITEM_HARD_LINK) == 0)))
		return;
	struct tt_event event = {
		.kind = TT_EVENT_ITEM,
		.path = tt_engine_path(dir, name, path, sizeof path),
		.link = leader ? leader : wanted->link,
		.mode = wanted->mode,
		.size_bytes = wanted->size_bytes,
		.mtime_sec = wanted->mtime_sec,
		.item = action->item,
		.plan_kind = action->kind,
	};

	if (path[0] == '\0')
		event.path = ".";
	if (action->kind == TT_PLAN_SKIP_NONREG)
		event.kind = TT_EVENT_SKIP_NONREG;
	if (action->kind == TT_PLAN_SKIP_DIR)
		event.kind = TT_EVENT_SKIP_DIR;
	tt_branch_tell(engine, &event);
}

/* Sleeps, when there is too much to do already, only after the job is in the queue: what fills the
 * lane may be followers of a leader in it. */
static void entries_queue_job(struct planner_entries *entries)
{
	struct tt_engine *engine = entries->engine;
	struct tt_job *job = entries->job;
	struct tt_lane *lane = tt_lane_of(entries->dir);

	entries->job = NULL;
	if (!job)
		return;
	pthread_mutex_lock(&engine->lock);
	entries->dir->pending += job->count;
	entries->dir->jobs += job->count;
	tt_lane_queue_job(engine, lane, job);
	while (tt_lane_is_full(lane) && !atomic_load(&engine->stop))
		tt_engine_wait_plan(engine, NULL);
	pthread_mutex_unlock(&engine->lock);
}

static void entries_add_task(struct planner_entries *entries, const struct tt_task *task)
{
	struct tt_engine *engine = entries->engine;
	uint64_t bytes = task->action.kind == TT_PLAN_COPY ? task->wanted->size_bytes : 0;

	/* A large file is a job of its own, so that the small ones do not wait behind it. */
	if (entries->job
		&& (entries->job->count == TT_JOB_TASKS
			|| entries->job->bytes + bytes > TT_JOB_BYTES))
		entries_queue_job(entries);
	if (!entries->job) {
		entries->job = malloc(sizeof *entries->job);
		if (!entries->job) {
			tt_engine_fail(
				engine, "copying", entries->dir, task->wanted->name, -ENOMEM);
			return;
		}
		entries->job->dir = entries->dir;
		entries->job->count = 0;
		entries->job->bytes = 0;
	}
	entries->job->tasks[entries->job->count++] = *task;
	entries->job->bytes += bytes;
}

static void entries_count(struct tt_engine *engine, const struct tt_entry *wanted,
	const struct tt_plan_action *action)
{
	struct tt_engine_stats *stats = &engine->stats;
	bool created = (action->item & TT_ITEM_NEW) != 0;

	if (created)
		stats->created++;
	if (S_ISREG(wanted->mode))
		stats->created_regular += created;
	else if (S_ISLNK(wanted->mode))
		stats->created_links += created;
	else if (S_ISCHR(wanted->mode) || S_ISBLK(wanted->mode))
		stats->created_devices += created;
	else
		stats->created_specials += created;
	if (action->kind == TT_PLAN_COPY && !(action->item & TT_ITEM_HARD_LINK)) {
		stats->transferred++;
		stats->transferred_bytes += wanted->size_bytes;
	}
}

static void entries_count_seen(struct tt_engine *engine, const struct tt_entry *wanted)
{
	struct tt_engine_stats *stats = &engine->stats;

	stats->files++;
	if (S_ISREG(wanted->mode))
		stats->regular++;
	else if (S_ISLNK(wanted->mode))
		stats->links++;
	else if (S_ISCHR(wanted->mode) || S_ISBLK(wanted->mode))
		stats->devices++;
	else
		stats->specials++;
	if (S_ISREG(wanted->mode) || S_ISLNK(wanted->mode))
		stats->total_bytes += wanted->size_bytes;
}

static const char *entries_type_words(uint32_t mode)
{
	if (S_ISREG(mode))
		return "regular file";
	if (S_ISLNK(mode))
		return "symlink";
	if (S_ISCHR(mode) || S_ISBLK(mode))
		return "device file";
	return "special file";
}

/* Whether the destination's name is the same inode as the group's leader there. */
static bool entries_is_linked(
	struct tt_engine *engine, const char *leader, const struct tt_entry *existing)
{
	char parent[PATH_MAX * 2];
	const char *slash = strrchr(leader, '/');
	struct statx stx;

	if (!existing || engine->root_destination_fd < 0 || strlen(leader) >= sizeof parent)
		return false;
	strcpy(parent, leader);
	parent[slash ? slash - leader : 0] = '\0';
	TT_FD_AUTO fd = tt_fd_open_beneath(engine->root_destination_fd, slash ? parent : ".");

	return fd >= 0 && tt_fd_statx(fd, slash ? slash + 1 : leader, &stx) == 0
	       && stx.stx_ino == existing->ino && stx.stx_dev_major == existing->dev_major
	       && stx.stx_dev_minor == existing->dev_minor;
}

/* A task that is in no job. */
static void entries_count_task(struct planner_entries *entries, int change)
{
	struct tt_lane *lane = tt_lane_of(entries->dir);

	pthread_mutex_lock(&entries->engine->lock);
	bool full = change > 0 && lane && tt_lane_is_full(lane);

	if (full) {
		pthread_mutex_unlock(&entries->engine->lock);
		entries_queue_job(entries);
		pthread_mutex_lock(&entries->engine->lock);
	}
	entries->dir->pending += (unsigned)change;
	entries->dir->jobs += (unsigned)change;
	if (lane) /* not under -n */
		lane->tasks_out += (unsigned)change;
	pthread_mutex_unlock(&entries->engine->lock);
}

/* A name whose inode has been met before. Returns false if it is to be treated like any other after
 * all. */
static bool entries_follow(struct planner_entries *entries, struct tt_task *task)
{
	struct tt_engine *engine = entries->engine;
	struct tt_dir *dir = entries->dir;
	char leader[PATH_MAX * 2];
	struct tt_follower *follower = malloc(sizeof *follower);

	if (!follower || strlen(tt_linkset_leader(task->group)) >= sizeof leader) {
		free(follower);
		task->group = NULL; /* it must not settle the group as if it led it */
		return false;
	}
	strcpy(leader, tt_linkset_leader(task->group));
	task->is_follower = true;
	if (tt_linkset_stands(task->group) && entries_is_linked(engine, leader, task->existing)) {
		/* One inode there as here: its attributes are the leader's affair. */
		free(follower);
		/* A dry run has not written the leader in place: the differences are still there.
		 */
		task->action.item =
			engine->policy.dry_run && task->action.kind == TT_PLAN_COPY
				? (task->action.item & ~entries_of_content) | TT_ITEM_HARD_LINK
				: TT_ITEM_HARD_LINK;
		task->action.kind = TT_PLAN_KEEP;
		tt_planner_tell(engine, dir, task->wanted->name, task->wanted, &task->action, NULL);
		tt_moved_remove(engine, dir, task->wanted);
		return true;
	}
	task->action.item = (task->action.item & ~entries_of_content) | TT_ITEM_HARD_LINK;
	*follower = (struct tt_follower){.dir = dir, .task = *task};
	entries_count_task(entries, 1);
	const char *present;
	int r = engine->policy.dry_run
			? 1 + (int)TT_LINKSET_ARRIVED
			: tt_linkset_follow(engine->links, task->group, follower, &present);

	if (r != 0) { /* nobody will hand it back */
		entries_count_task(entries, -1);
		free(follower);
	}
	/* The name is made anew, whatever was under it. */
	if (task->action.kind == TT_PLAN_KEEP)
		task->action.kind = TT_PLAN_ATTRIBUTES;
	if (!(task->action.item & TT_ITEM_NEW))
		task->action.item |= tt_plan_made_now(&engine->policy.plan, task->wanted->mode);
	entries_count(engine, task->wanted, &task->action);
	tt_planner_tell(engine, dir, task->wanted->name, task->wanted, &task->action, leader);
	/* Whether it is linked or leads is found out when it is its turn. */
	if (r > 0 && !engine->policy.dry_run)
		entries_add_task(entries, task);
	else if (r < 0) { /* no memory: a copy of its own */
		task->is_follower = false;
		task->group = NULL;
		task->action.kind = S_ISREG(task->wanted->mode)   ? TT_PLAN_COPY
				    : S_ISLNK(task->wanted->mode) ? TT_PLAN_SYMLINK
								  : TT_PLAN_NODE;
		entries_add_task(entries, task);
	}
	return true;
}

/* Returns whether the entry has been dealt with as a follower. */
static bool entries_hard_link(struct planner_entries *entries, struct tt_task *task)
{
	struct tt_engine *engine = entries->engine;
	const struct tt_entry *wanted = task->wanted;
	char path[PATH_MAX * 2];

	/* Links are made by path, and messages have no more either. */
	if (strlen(entries->dir->path) + strlen(wanted->name) + 2 > sizeof path) {
		tt_engine_fail(engine, "linking, so copied apart from its other names,",
			entries->dir, wanted->name, -ENAMETOOLONG);
		return false;
	}
	tt_engine_path(entries->dir, wanted->name, path, sizeof path);
	const struct tt_linkset_key key = tt_order_link_key(entries->dir, wanted);
	int r = tt_linkset_enter(engine->links, &key, path, &task->group);

	if (r < 0)
		return false; /* no memory: a copy of its own */
	if (r == 0)
		return entries_follow(entries, task);
	if (task->action.kind == TT_PLAN_KEEP || task->action.kind == TT_PLAN_ATTRIBUTES
		|| (task->action.exists && tt_inplace_is_asked(engine, task)))
		tt_linkset_set_stands(task->group);
	/* It leads. Where its content is there already, or nothing is done at all, followers need
	 * not wait. */
	bool waits = !engine->policy.dry_run
		     && (task->action.kind == TT_PLAN_COPY || task->action.kind == TT_PLAN_SYMLINK
			     || task->action.kind == TT_PLAN_NODE);

	if (!waits) {
		struct tt_worker *worker = tt_branch_worker(engine);

		tt_apply_settle_group(worker, task->group, true);
		tt_arrive_submit(worker); /* of a follower that came between, and leads: EMLINK */
		task->group = NULL;
	}
	return false;
}

/* A directory in the way of something else goes first; everything else is replaced by the rename.
 */
static bool entries_make_way(struct planner_entries *entries, struct tt_task *task)
{
	if (!task->action.make_way || !S_ISDIR(task->existing->mode))
		return true;
	return tt_deleter_make_way(entries->engine, entries->dir, task->existing,
		       entries_type_words(task->wanted->mode))
	       == 0;
}

/* A file that cannot be read is not told of as one that is copied. Root mostly reads everything;
 * for others the mode says it at once where reading is allowed. */
static bool entries_can_read(struct tt_engine *engine, const struct tt_dir *dir,
	const struct tt_entry *wanted, const struct tt_plan_action *action)
{
	if (action->kind != TT_PLAN_COPY || engine->policy.dry_run || engine->policy.overrides_modes
		|| (wanted->mode & 0444) == 0444)
		return true;
	if (faccessat(dir->source_fds[wanted->layer], wanted->name, R_OK,
		    AT_EACCESS | AT_SYMLINK_NOFOLLOW)
			== 0
		|| errno != EACCES)
		return true;
	atomic_store(&engine->source_failed, true);
	tt_engine_fail(engine, "opening", dir, wanted->name, -EACCES);
	entries_count(engine, wanted, action); /* as rsync, which finds out after it has counted */
	return false;
}

/* What needs no task is done already, as far as progress goes; what is not copied is no content to
 * wait for. */
static void entries_count_progress(
	struct tt_engine *engine, const struct tt_task *task, bool has_task)
{
	if (!has_task)
		atomic_fetch_add(&engine->files_done, 1);
	if (S_ISREG(task->wanted->mode) && (!has_task || task->action.kind != TT_PLAN_COPY))
		atomic_fetch_sub(&engine->bytes_known, task->wanted->size_bytes);
}

/* Returns whether a task was made of it. */
static bool entries_plan(struct planner_entries *entries, struct tt_task *task)
{
	const struct tt_entry *wanted = task->wanted;
	struct tt_engine *engine = entries->engine;
	struct tt_dir *dir = entries->dir;

	if (wanted->twin != TT_ENTRY_NONE)
		task->existing = &dir->destination.entries[wanted->twin];
	tt_plan_entry(&entries->policy, wanted, task->existing, &task->action);
	bool skipped =
		task->action.kind == TT_PLAN_SKIP || task->action.kind == TT_PLAN_SKIP_NONREG;

	if (task->action.kind == TT_PLAN_SKIP_LONG)
		return false;

	if (!skipped && !entries_can_read(engine, dir, wanted, &task->action))
		return false;
	if (!entries_make_way(entries, task))
		return false;
	if (engine->policy.plan.hard_links && wanted->nlink > 1 && !skipped
		&& entries_hard_link(entries, task))
		return task->action.kind != TT_PLAN_KEEP;
	if (task->action.kind == TT_PLAN_SKIP) {
		if (!task->existing)
			task->action.item |= TT_ITEM_NEW;
		tt_planner_tell(engine, dir, wanted->name, wanted, &task->action, NULL);
		return false;
	}
	entries_count(engine, wanted, &task->action);
	tt_planner_tell(engine, dir, wanted->name, wanted, &task->action, NULL);
	if (task->action.kind == TT_PLAN_KEEP)
		tt_moved_remove(engine, dir, wanted);
	if (engine->policy.dry_run || task->action.kind == TT_PLAN_KEEP
		|| task->action.kind == TT_PLAN_SKIP_NONREG)
		return false;
	entries_add_task(entries, task);
	return true;
}

/* The name of a single file at the destination is not its own: its twin is found here. */
static void entries_find_renamed(struct tt_engine *engine, struct tt_dir *dir)
{
	struct tt_entry *wanted = &dir->source.entries[0];

	tt_listing_deinit(&dir->destination);
	wanted->twin = TT_ENTRY_NONE;
	int r = tt_listing_add(
		&dir->destination, dir->destination_fd, dir->destination_name, 0, true);

	if (r < 0) {
		if (r != -ENOENT) {
			wanted->flags |= TT_ENTRY_UNKNOWN_TWIN;
			tt_engine_fail(engine, "reading attributes, at the destination, of", dir,
				dir->destination_name, r);
		}
		return;
	}
	wanted->twin = 0;
	const struct tt_entry *twin = &dir->destination.entries[0];

	if (wanted->link && twin->link && strcmp(wanted->link, twin->link) == 0)
		wanted->flags |= TT_ENTRY_SAME_LINK;
}

void tt_planner_entries(struct tt_engine *engine, struct tt_dir *dir)
{
	struct planner_entries entries = {
		.engine = engine, .dir = dir, .policy = tt_volume_plan_policy(engine, dir)};

	if (dir->destination_name && dir->source.count > 0)
		entries_find_renamed(engine, dir);
	unsigned *order = tt_order_names(engine, dir);

	for (unsigned i = 0;
		i < dir->source.count && !atomic_load_explicit(&engine->stop, memory_order_relaxed);
		i++) {
		const struct tt_entry *wanted = &dir->source.entries[order ? order[i] : i];

		if (!tt_entry_is_dir(wanted)) {
			struct tt_task task = {.wanted = wanted};

			entries_count_seen(engine, wanted);
			bool has_task = !(wanted->flags & TT_ENTRY_UNKNOWN_TWIN)
					&& entries_plan(&entries, &task);

			entries_count_progress(engine, &task, has_task);
		}
	}
	free(order);
	entries_queue_job(&entries);
}
