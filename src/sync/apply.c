/* SPDX-License-Identifier: MIT */
/*
 * See apply.h. Links and nodes are here; the content of regular files is in apply_file.c.
 */
#include "sync/apply.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sync/apply_file.h"
#include "sync/arrive.h"
#include "sync/finish.h"
#include "sync/lane.h"
#include "sync/moved.h"
#include "sys/fd.h"
#include "tree/linkset.h"
#include "tree/stage.h"

enum {
	APPLY_MOST_TRIES = 100
};

bool tt_apply_is_pinned(const struct tt_dir *dir, const struct tt_task *task)
{
	return (dir->exists && (dir->existing.flags & TT_ENTRY_PINNED))
	       || (task->existing && (task->existing->flags & TT_ENTRY_PINNED));
}

static int apply_make(const struct tt_task *task, int dir_fd, const char *name)
{
	const struct tt_entry *wanted = task->wanted;

	if (S_ISLNK(wanted->mode))
		return symlinkat(wanted->link, dir_fd, name) < 0 ? -errno : 0;
	return mknodat(dir_fd, name, (wanted->mode & S_IFMT) | 0600,
		       makedev(wanted->rdev_major, wanted->rdev_minor))
			       < 0
		       ? -errno
		       : 0;
}

/* Returns the error, which is reported unless the name is gone. */
static int apply_attributes_at(struct tt_worker *worker, struct tt_dir *dir, const char *name,
	const struct tt_task *task, const char *shown)
{
	enum tt_meta_step step;
	const struct tt_entry *existing = task->action.exists ? task->existing : NULL;
	int r = tt_meta_apply_at(&worker->engine->policy.meta, dir->destination_fd, name,
		task->wanted, existing, &step);

	if (r < 0 && r != -ENOENT)
		tt_engine_fail(worker->engine, tt_meta_step_text(step), dir, shown, r);
	return r;
}

static int apply_make_temporary(
	const struct tt_task *task, int dir_fd, const char *name, char *ret_temp)
{
	int r = -EEXIST;

	for (unsigned i = 0; i < APPLY_MOST_TRIES && r == -EEXIST; i++) {
		tt_stage_name(name, ret_temp);
		r = apply_make(task, dir_fd, ret_temp);
	}
	return r;
}

/* Replaces what has the name: made under a temporary name, with its attributes, then renamed, so
 * that the name is never missing. */
static int apply_replace_node(
	struct tt_worker *worker, struct tt_dir *dir, const struct tt_task *task, const char *name)
{
	char temp[TT_STAGE_NAME_SIZE];
	int r = -ENOENT;

	if (tt_apply_is_pinned(dir, task))
		return -EPERM;
	/* -ENOENT: links and nodes cannot be locked, a run beside us may have taken the temporary
	 * for a dead one's. */
	for (unsigned i = 0; i < APPLY_MOST_TRIES && r == -ENOENT; i++) {
		r = apply_make_temporary(task, dir->destination_fd, name, temp);
		if (r < 0)
			return r;
		if (apply_attributes_at(worker, dir, temp, task, name) == -ENOENT)
			r = -ENOENT;
		else
			r = tt_stage_arrive(dir->destination_fd, temp, name, !task->existing);
	}
	if (r < 0)
		unlinkat(dir->destination_fd, temp, 0);
	return r;
}

static bool apply_is_full(int error)
{
	return error == -ENOSPC || error == -EDQUOT;
}

/* Where nothing has the name it is made in place: its content is whole from the first moment. */
static int apply_make_or_replace(
	struct tt_worker *worker, struct tt_dir *dir, const struct tt_task *task, const char *name)
{
	int r = task->existing ? -EEXIST : apply_make(task, dir->destination_fd, name);

	if (r == 0)
		(void)apply_attributes_at(worker, dir, name, task, name);
	return r == -EEXIST ? apply_replace_node(worker, dir, task, name) : r;
}

/* A link or node. */
static int apply_node(
	struct tt_worker *worker, struct tt_dir *dir, const struct tt_task *task, const char *name)
{
	int r = apply_make_or_replace(worker, dir, task, name);

	if (apply_is_full(r)) { /* of our own temporaries, perhaps */
		tt_arrive_drain(worker, tt_lane_of(dir));
		r = apply_make_or_replace(worker, dir, task, name);
	}
	if (r < 0)
		tt_engine_fail(worker->engine,
			S_ISLNK(task->wanted->mode) ? "making symbolic link" : "making node", dir,
			name, r);
	if (apply_is_full(r))
		tt_engine_full(worker->engine);
	return r;
}

/* Whether the name is one of the leader's already. Asked now: the number that was listed may have
 * been that of a directory in the way, which has gone, and be the leader's by now. */
static bool apply_is_linked(
	const struct tt_dir *dir, const struct tt_task *task, int leader_dir_fd, const char *leader)
{
	struct statx one, other;

	return task->existing && tt_fd_statx(leader_dir_fd, leader, &one) == 0
	       && tt_fd_statx(dir->destination_fd, task->wanted->name, &other) == 0
	       && one.stx_ino == other.stx_ino && one.stx_dev_major == other.stx_dev_major
	       && one.stx_dev_minor == other.stx_dev_minor;
}

/* Links the name to its group's leader, which has arrived under this path. */
static int apply_hard_link(
	struct tt_worker *worker, struct tt_dir *dir, const struct tt_task *task, const char *path)
{
	struct tt_engine *engine = worker->engine;
	char leader[PATH_MAX * 2], temp[TT_STAGE_NAME_SIZE];
	const char *slash = strrchr(path, '/');
	int r;

	if (strlen(path) >= sizeof leader)
		return -ENAMETOOLONG;
	if (tt_apply_is_pinned(dir, task))
		return -EPERM;
	strcpy(leader, path);
	leader[slash ? slash - path : 0] = '\0';
	TT_FD_AUTO fd = tt_fd_open_beneath(engine->root_destination_fd, slash ? leader : ".");

	if (fd < 0)
		return fd;
	if (apply_is_linked(dir, task, fd, slash ? slash + 1 : path))
		return 0;
	/* -ENOENT: see apply_replace_node(). */
	r = -ENOENT;
	for (unsigned i = 0; i < APPLY_MOST_TRIES && (r == -EEXIST || r == -ENOENT); i++) {
		tt_stage_name(task->wanted->name, temp);
		r = linkat(fd, slash ? slash + 1 : path, dir->destination_fd, temp, 0) < 0 ? -errno
											   : 0;
		if (r == -ENOENT)
			break; /* the leader */
		if (r == 0) {
			r = tt_stage_arrive_link(
				dir->destination_fd, temp, task->wanted->name, !task->existing);
			if (r < 0)
				unlinkat(dir->destination_fd, temp, 0);
		}
	}
	return r;
}

/* What is wanted of a name that is no regular file with content to copy. Returns 0 or a negative
 * errno, reported. */
static int apply_other(struct tt_worker *worker, struct tt_dir *dir, const struct tt_task *task)
{
	const char *name = dir->destination_name ? dir->destination_name : task->wanted->name;

	switch (task->action.kind) {
	case TT_PLAN_SYMLINK:
	case TT_PLAN_NODE:
		return apply_node(worker, dir, task, name);
	case TT_PLAN_ATTRIBUTES: {
		int r = apply_attributes_at(worker, dir, name, task, name);

		if (r == -ENOENT)
			tt_engine_fail(worker->engine, "setting attributes of", dir, name, -ENOENT);
		if (r == 0)
			tt_moved_remove(worker->engine, dir, task->wanted);
		return 0;
	}
	case TT_PLAN_SKIP:
	case TT_PLAN_SKIP_NONREG:
	case TT_PLAN_SKIP_DIR:
	case TT_PLAN_SKIP_LONG:
	case TT_PLAN_KEEP:
	case TT_PLAN_COPY:
	case TT_PLAN_DIRECTORY:
		break;
	}
	return 0;
}

static void apply_task(struct tt_worker *worker, struct tt_dir *dir, const struct tt_task *task)
{
	if (task->action.kind == TT_PLAN_COPY) {
		tt_apply_file(
			worker, dir, task); /* gives the directory back when the file has arrived */
		return;
	}
	int r = apply_other(worker, dir, task);

	if (r == 0 && task->action.kind != TT_PLAN_ATTRIBUTES)
		tt_moved_remove(worker->engine, dir, task->wanted);
	if (task->group)
		tt_apply_settle_group(worker, task->group, r == 0);
	tt_finish_release(worker, dir, 1, true);
}

/* The same where there may be room again when everything on its way has arrived. */
static int apply_link_to(
	struct tt_worker *worker, const struct tt_follower *follower, const char *leader)
{
	int r = apply_hard_link(worker, follower->dir, &follower->task, leader);

	if (!apply_is_full(r))
		return r;
	tt_arrive_drain(worker, tt_lane_of(follower->dir));
	return apply_hard_link(worker, follower->dir, &follower->task, leader);
}

/* It has its name, or an error that is told. */
static void apply_follower_done(struct tt_worker *worker, struct tt_follower *follower, int result)
{
	if (result < 0)
		tt_engine_fail(worker->engine, "linking", follower->dir,
			follower->task.wanted->name, result);
	if (apply_is_full(result))
		tt_engine_full(worker->engine);
	if (result == 0)
		tt_moved_remove(worker->engine, follower->dir, follower->task.wanted);
	tt_finish_release(worker, follower->dir, 1, true);
	free(follower);
}

/* The name gets content of its own, or keeps what is right already, and those that still come in
 * `group` are linked to it; NULL: for itself alone. */
static void apply_lead(
	struct tt_worker *worker, struct tt_follower *follower, struct tt_linkset_group *group)
{
	struct tt_task task = follower->task;
	struct tt_dir *dir = follower->dir;

	free(follower);
	task.group = group;
	task.is_follower = false;
	if (task.action.kind != TT_PLAN_ATTRIBUTES)
		task.action.kind = S_ISREG(task.wanted->mode)   ? TT_PLAN_COPY
				   : S_ISLNK(task.wanted->mode) ? TT_PLAN_SYMLINK
								: TT_PLAN_NODE;
	apply_task(worker, dir, &task);
}

/* A name of an inode that was met before: it is linked to the leader, waits for one that is on its
 * way, or leads, if nobody does or the leader takes no more names (EMLINK). The follower is given
 * away. Others do the same at the same time: what to do is asked anew each time, never remembered.
 */
static void apply_follow(struct tt_worker *worker, struct tt_follower *follower)
{
	struct tt_engine *engine = worker->engine;
	struct tt_linkset_group *group = follower->task.group;
	char path[PATH_MAX * 2];
	int promoted = 1;

	tt_engine_path(follower->dir, follower->task.wanted->name, path, sizeof path);
	while (promoted > 0) {
		const char *leader;
		int r = tt_linkset_follow(engine->links, group, follower, &leader);

		if (r == 0) /* handed back when the leader's fate is known */
			return;
		if (r < 0) { /* no memory to wait in */
			apply_lead(worker, follower, NULL);
			return;
		}
		if (r == 1 + (int)TT_LINKSET_ARRIVED) {
			r = apply_link_to(worker, follower, leader);
			if (r != -EMLINK) {
				apply_follower_done(worker, follower, r);
				return;
			}
		}
		if (atomic_load_explicit(&engine->stop, memory_order_relaxed)) {
			tt_finish_release(worker, follower->dir, 1, false);
			free(follower);
			return;
		}
		promoted = tt_linkset_promote(engine->links, group, leader, path);
	}
	apply_lead(worker, follower, promoted == 0 ? group : NULL);
}

/* A follower whose leader was settled when it was planned. */
static void apply_late_follower(
	struct tt_worker *worker, struct tt_dir *dir, const struct tt_task *task)
{
	struct tt_follower *follower = malloc(sizeof *follower);

	if (!follower) {
		tt_engine_fail(worker->engine, "linking", dir, task->wanted->name, -ENOMEM);
		tt_finish_release(worker, dir, 1, false);
		return;
	}
	*follower = (struct tt_follower){.dir = dir, .task = *task};
	apply_follow(worker, follower);
}

void tt_apply_settle_group(struct tt_worker *worker, struct tt_linkset_group *group, bool arrived)
{
	void **followers = NULL;
	unsigned count = 0;

	tt_linkset_settle(worker->engine->links, group,
		arrived ? TT_LINKSET_ARRIVED : TT_LINKSET_FAILED, &followers, &count);
	for (unsigned i = 0; i < count; i++)
		apply_follow(worker, followers[i]);
	free(followers);
}

void tt_apply_job(struct tt_worker *worker, struct tt_job *job)
{
	for (unsigned i = 0; i < job->count; i++) {
		struct tt_task *task = &job->tasks[i];

		if (atomic_load_explicit(&worker->engine->stop, memory_order_relaxed)) {
			if (task->group && !task->is_follower)
				tt_apply_settle_group(worker, task->group, false);
			tt_finish_release(worker, job->dir, 1, false);
			continue;
		}
		if (task->is_follower)
			apply_late_follower(worker, job->dir, task);
		else
			apply_task(worker, job->dir, task);
	}
	free(job);
}
