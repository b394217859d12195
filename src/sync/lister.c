/* SPDX-License-Identifier: MIT */
/*
 * See lister.h. Here is also where the temporaries of dead runs are swept: their names are in the
 * listing anyway.
 */
#include "sync/lister.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "sync/compare.h"
#include "sync/dir.h"
#include "sync/prune.h"
#include "sync/rules.h"
#include "sync/share.h"
#include "sync/volume.h"
#include "sys/fd.h"
#include "tree/stage.h"
#include "tree/sweep.h"

struct lister {
	struct tt_engine *engine;
	struct tt_worker *worker;
	struct tt_dir *dir;
	struct tt_listing_options options;
	unsigned layer;        /* that is being looked at */
	pthread_mutex_t lock;  /* guards the rest; a leaf */
	int error;             /* of one entry */
	struct tt_arena arena; /* of what several threads have found out */
};

/* In a walk that only deletes nothing is said: the one that copies says it, too. */
static void lister_fail(struct tt_engine *engine, const char *verb, const struct tt_dir *dir,
	const char *name, int error)
{
	if (engine->copying_pass)
		tt_engine_fail(engine, verb, dir, name, error);
	else
		atomic_store(&engine->deleting_error, error);
}

static void lister_vanished(struct tt_engine *engine, struct tt_dir *dir, const char *name)
{
	if (engine->copying_pass)
		tt_engine_vanished(engine, dir, name);
}

/* A name that has vanished is no reason not to delete; it must not hide another error. */
static void lister_note(int *noted, int error)
{
	if (error < 0 && (*noted == 0 || *noted == -ENOENT || *noted == -ESTALE))
		*noted = error;
}

static void lister_report(void *context, const char *name, int error)
{
	struct lister *lister = context;

	pthread_mutex_lock(&lister->lock);
	lister_note(&lister->error, error);
	pthread_mutex_unlock(&lister->lock);
	if (error == -ENOENT || error == -ESTALE)
		lister_vanished(lister->engine, lister->dir, name);
	else
		lister_fail(lister->engine, "reading attributes of", lister->dir, name, error);
}

static void lister_open_source(struct tt_engine *engine, struct tt_dir *dir)
{
	/* The root's were opened from the command line; below it, -d looks into nothing. */
	if (!dir->parent || !engine->policy.plan.recursive)
		return;
	for (unsigned i = 0; i < dir->layer_count; i++) {
		int fd = tt_fd_open_dir(dir->parent->source_fds[dir->layers[i]], dir->name);

		dir->source_fds[i] = fd;
		if (fd >= 0)
			continue;
		lister_note(&dir->list_error, fd);
		if (fd == -ENOENT || fd == -ESTALE)
			lister_vanished(engine, dir, NULL);
		else
			lister_fail(engine, "opening directory", dir, NULL, fd);
	}
}

/* The destination's directory, where its parent has one of this name. */
static void lister_open_destination(struct tt_engine *engine, struct tt_dir *dir)
{
	if (!dir->parent || !dir->exists || dir->parent->destination_fd < 0)
		return;
	/* An ordinary user's own, closed to its owner: opened as the plan does with those that lack
	 * only the right to write, and closed again at the end. Only where that comes: not in a
	 * walk that only deletes. */
	if ((dir->existing.mode & 0500) != 0500 && engine->copying_pass && !engine->policy.dry_run
		&& !engine->policy.overrides_modes)
		(void)tt_fd_chmod_at(dir->parent->destination_fd, dir->name,
			(dir->existing.mode & 07777) | 0700);
	int fd = tt_fd_open_dir(dir->parent->destination_fd, dir->name);

	if (fd >= 0) {
		dir->destination_fd = fd;
	} else if (fd == -ENOENT) {
		/* Gone since its parent was listed: as if it had never been there. */
		dir->exists = false;
		dir->existing = (struct tt_entry){.name = dir->name};
	} else {
		dir->failed = true;
		lister_fail(engine, "opening directory at the destination,", dir, NULL, fd);
	}
}

/* Temporaries: a dead run's goes, one that is in use stays and is nobody's to delete; so does one
 * of which we cannot say whose it is, because it may not be opened or locked. */
static void lister_sweep(struct tt_engine *engine, struct tt_dir *dir)
{
	for (unsigned i = 0; i < dir->destination.count; i++) {
		struct tt_entry *entry = &dir->destination.entries[i];

		if (entry->twin != TT_ENTRY_NONE || S_ISDIR(entry->mode)
			|| !tt_stage_is_temporary(entry->name))
			continue;
		if (!engine->policy.dry_run)
			(void)tt_sweep_name(engine->sweep, engine->root_destination_fd, dir->path,
				dir->destination_fd, entry->name);
		entry->flags |= TT_ENTRY_VANISHED;
	}
}

/* Groups that an ordinary user is not in are left alone. Neighbours mostly have the same. */
static void lister_check_groups(struct tt_engine *engine, struct tt_dir *dir)
{
	bool may = true;

	if (!engine->policy.plan.group || engine->policy.plan.is_super)
		return;
	for (unsigned i = 0; i < dir->source.count; i++) {
		struct tt_entry *entry = &dir->source.entries[i];

		if (i == 0 || entry->gid != entry[-1].gid)
			may = tt_meta_may_give_group(entry->gid);
		if (!may)
			entry->flags |= TT_ENTRY_SKIP_GROUP;
	}
	if (!dir->parent && !tt_meta_may_give_group(dir->entry.gid))
		dir->entry.flags |= TT_ENTRY_SKIP_GROUP;
}

/* What one thread has found out about its part. */
static void lister_join(struct lister *lister, struct tt_arena *arena, int error)
{
	pthread_mutex_lock(&lister->lock);
	tt_arena_join(&lister->arena, arena);
	lister_note(&lister->error, error);
	pthread_mutex_unlock(&lister->lock);
}

/* Whether a directory is where another file system is mounted, which -x is about. */
static bool lister_is_mount_point(const struct tt_dir *parent, const struct tt_entry *entry)
{
	return (parent->entry.flags & TT_ENTRY_CONTENTS)
	       && (entry->dev_major != parent->entry.dev_major
		       || entry->dev_minor != parent->entry.dev_minor);
}

/* What follows from the options alone: what entries become, and -xx. */
static void lister_adjust(struct lister *lister, unsigned from, unsigned to)
{
	const struct tt_engine_policy *policy = &lister->engine->policy;
	const struct tt_meta_policy *meta = &policy->meta;
	struct tt_entry *entries = lister->dir->source.entries;

	if (!policy->omit_mounts && !meta->modes && !meta->users && !meta->groups)
		return;
	for (unsigned i = from; i < to; i++) {
		if (policy->omit_mounts && tt_entry_is_dir(&entries[i])
			&& lister_is_mount_point(lister->dir, &entries[i]))
			entries[i].flags |= TT_ENTRY_VANISHED;
		tt_meta_adjust(meta, &entries[i]);
	}
}

static void lister_stat_part(void *context, unsigned from, unsigned to)
{
	struct lister *lister = context;
	const struct tt_listing_problem problem = {.report = lister_report, .context = lister};
	struct tt_arena arena = {0};

	tt_listing_stat(&lister->dir->source, lister->dir->source_fds[lister->layer], from, to,
		&lister->options, &problem, &arena);
	lister_adjust(lister, from, to);
	lister_join(lister, &arena, 0);
}

/* Whether the entry is the same directory in another layer as the one before it. */
static bool lister_is_layered(const struct tt_listing *listing, unsigned at)
{
	return at > 0 && at < listing->count
	       && strcmp(listing->entries[at].name, listing->entries[at - 1].name) == 0;
}

static void lister_match_part(void *context, unsigned from, unsigned to)
{
	struct lister *lister = context;
	struct tt_arena arena = {0};

	/* They have one twin, which is written to: all of them are in the part of the first. */
	while (from < to && lister_is_layered(&lister->dir->source, from))
		from++;
	while (from < to && lister_is_layered(&lister->dir->source, to))
		to++;
	int r = tt_listing_match(&lister->dir->source, &lister->dir->destination,
		lister->dir->destination_fd, lister->options.read_links, from, to, &arena);

	lister_join(lister, &arena, r);
}

static void lister_tell_unknown(struct tt_engine *engine, struct tt_dir *dir, int error)
{
	lister_note(&dir->list_error, error);
	for (unsigned i = 0; i < dir->source.count; i++)
		if (dir->source.entries[i].flags & TT_ENTRY_UNKNOWN_TWIN)
			lister_fail(engine, "reading attributes, at the destination, of", dir,
				dir->source.entries[i].name, error);
}

static void lister_read_source(struct lister *lister)
{
	struct tt_dir *dir = lister->dir;

	for (unsigned i = 0; i < dir->layer_count && !dir->no_descent; i++) {
		if (dir->source_fds[i] < 0 || (dir->layer_is_named && dir->layer_is_named[i]))
			continue;
		unsigned first = dir->source.count;

		lister->layer = i;
		lister->options.rules = dir->source_rules[i];

		int r = tt_listing_read_source(
			&dir->source, dir->source_fds[i], i, &lister->options);

		if (r < 0) {
			lister_note(&dir->list_error, r);
			lister_fail(lister->engine, "reading directory", dir, NULL, r);
		}
		tt_share_run(lister->engine, first, dir->source.count, lister_stat_part, lister);
		tt_listing_compact(&dir->source, first);
		tt_arena_join(&dir->source.arena, &lister->arena);
		lister_note(&dir->list_error, lister->error);
	}
	tt_listing_sort(&dir->source);
	if (lister->engine->policy.prune_empty_dirs)
		tt_prune_listing(lister->engine, lister->worker, dir);
	lister_check_groups(lister->engine, dir);
}

static void lister_read_destination(struct lister *lister)
{
	struct tt_dir *dir = lister->dir;
	int r = tt_listing_read_names(&dir->destination, dir->destination_fd);

	/* Without knowing what is there nothing is done there: it may be newer, or none of ours to
	 * replace. */
	if (r < 0) {
		lister_note(&dir->list_error, r);
		dir->failed = true;
		lister_fail(lister->engine, "reading directory at the destination,", dir, NULL, r);
		return;
	}
	lister->error = 0;
	tt_share_run(lister->engine, 0, dir->source.count, lister_match_part, lister);
	tt_arena_join(&dir->destination.arena, &lister->arena);
	if (lister->error < 0)
		lister_tell_unknown(lister->engine, dir, lister->error);
	lister_sweep(lister->engine, dir);
}

static void lister_read(struct tt_engine *engine, struct tt_worker *worker, struct tt_dir *dir)
{
	struct lister lister = {
		.engine = engine,
		.worker = worker,
		.dir = dir,
		.options = {.path = dir->path, .read_links = engine->policy.plan.links},
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};

	lister_read_source(&lister);
	if (dir->destination_fd >= 0)
		lister_read_destination(&lister);
	pthread_mutex_destroy(&lister.lock);
}

/* Whether what is below a directory is left out: under -d, with -x at a mount point, or if it is
 * the destination itself. */
static bool lister_no_descent(
	struct tt_engine *engine, const struct tt_dir *parent, const struct tt_entry *entry)
{
	if (!engine->policy.plan.recursive)
		return true;
	if (engine->policy.one_file_system && lister_is_mount_point(parent, entry))
		return true;
	if (entry->ino == engine->destination_ino
		&& (((uint64_t)entry->dev_major << 32) | entry->dev_minor)
			   == engine->destination_dev_key) {
		lister_fail(engine, "copying the destination into itself, not descending into",
			parent, entry->name, -ELOOP);
		return true;
	}
	return false;
}

/* Directories with one name in several layers stand one after the other: one node for them. */
static unsigned lister_same_name(const struct tt_listing *listing, unsigned first)
{
	unsigned end = first + 1;

	while (end < listing->count && tt_entry_is_dir(&listing->entries[end])
		&& strcmp(listing->entries[end].name, listing->entries[first].name) == 0)
		end++;
	return end;
}

static struct tt_dir *lister_child(
	struct tt_engine *engine, struct tt_dir *dir, unsigned first, unsigned end)
{
	const struct tt_entry *entry = &dir->source.entries[first];
	struct tt_dir *child = tt_dir_new(dir, entry, end - first);

	if (!child)
		return NULL;
	for (unsigned i = first; i < end; i++)
		child->layers[i - first] = dir->source.entries[i].layer;
	child->entry.flags |= TT_ENTRY_CONTENTS;
	child->no_descent = lister_no_descent(engine, dir, entry);
	child->failed = (entry->flags & TT_ENTRY_UNKNOWN_TWIN) != 0;
	if (entry->twin != TT_ENTRY_NONE) {
		child->existing = dir->destination.entries[entry->twin];
		child->existing.name = child->name;
		child->existing.link = NULL;
		child->exists = tt_entry_is_dir(&child->existing);
	}
	child->mount =
		child->exists
				&& (child->existing.dev_major != dir->existing.dev_major
					|| child->existing.dev_minor != dir->existing.dev_minor)
			? 1 + atomic_fetch_add(&engine->mounts, 1)
			: dir->mount;
	return child;
}

static void lister_make_children(struct tt_engine *engine, struct tt_dir *dir)
{
	unsigned first = 0;

	while (first < dir->source.count && !tt_entry_is_dir(&dir->source.entries[first]))
		first++;
	if (first == dir->source.count
		|| (!engine->policy.plan.recursive && !engine->policy.plan.dirs))
		return;
	dir->children = malloc((dir->source.count - first) * sizeof(struct tt_dir *));
	while (dir->children && first < dir->source.count) {
		unsigned end = lister_same_name(&dir->source, first);
		struct tt_dir *child = lister_child(engine, dir, first, end);

		if (!child)
			break;
		child->index = dir->child_count;
		dir->children[dir->child_count++] = child;
		first = end;
	}
	if (first < dir->source.count) {
		lister_note(&dir->list_error, -ENOMEM);
		lister_fail(engine, "reading directory", dir, NULL, -ENOMEM);
	}
}

/* rsync neither shows nor sets a group that an ordinary user may not give. */
static void lister_mark_groups(const struct tt_engine *engine, struct tt_listing *listing)
{
	uint32_t last_gid = 0;
	bool known = false, may = true;

	if (!engine->policy.plan.group || engine->policy.plan.is_super)
		return;
	for (unsigned i = 0; i < listing->count; i++) {
		struct tt_entry *entry = &listing->entries[i];

		if (!known || entry->gid != last_gid)
			may = tt_meta_may_give_group(entry->gid);
		known = true;
		last_gid = entry->gid;
		if (!may)
			entry->flags |= TT_ENTRY_SKIP_GROUP;
	}
}

static void lister_enter_listed(struct tt_engine *engine, struct tt_dir *dir)
{
	pthread_mutex_lock(&engine->lock);
	dir->state = TT_DIR_LISTED;
	engine->listings--;
	dir->pending += dir->child_count;
	engine->unlisted += dir->child_count;
	if (--engine->unlisted == 0 && engine->copying_pass) {
		atomic_store(&engine->list_ns, tt_clock_now_ns() - engine->start_ns);
		atomic_store(&engine->listing_complete, true);
	}
	dir->entries_ahead = dir->source.count + dir->destination.count + 1;
	engine->entries_ahead += dir->entries_ahead;
	for (unsigned i = 0; i < dir->child_count; i++) {
		/* Without memory for the queue the plan lists the child itself. */
		(void)tt_dir_queue_push(engine, dir->children[i]);
	}
	if (dir->list_error < 0 && dir->list_error != -ENOENT)
		atomic_store(&engine->list_failed, true);
	tt_engine_wake_plan(engine, dir);
	tt_engine_wake_workers(engine, dir->child_count > 0);
	pthread_mutex_unlock(&engine->lock);
}

/* Below the root the listing of the parent has told the device numbers; a child that has become
 * another since is on whatever file system it is on, and only the choice of mechanism is at stake.
 */
static void lister_find_volumes(struct tt_engine *engine, struct tt_dir *dir)
{
	unsigned open = 0; /* the first layer that could be opened */

	while (open < dir->layer_count && dir->source_fds[open] < 0)
		open++;
	if (open < dir->layer_count)
		dir->from = dir->parent && open == 0 ? tt_volume_find(engine, dir->entry.dev_major,
				    dir->entry.dev_minor, dir->source_fds[0], dir->parent->from)
						     : tt_volume_get(
							     engine, dir->source_fds[open], NULL);
	if (dir->destination_fd >= 0)
		dir->to = dir->parent ? tt_volume_find(engine, dir->existing.dev_major,
				  dir->existing.dev_minor, dir->destination_fd, dir->parent->to)
				      : tt_volume_get(engine, dir->destination_fd, NULL);
}

void tt_lister_run(struct tt_engine *engine, struct tt_worker *worker, struct tt_dir *dir)
{
	lister_open_source(engine, dir);
	lister_open_destination(engine, dir);
	lister_find_volumes(engine, dir);
	/* With rules that do not parse the run is over. */
	if (tt_rules_enter_source(engine, worker, dir) < 0
		|| tt_rules_enter_destination(engine, worker, dir) < 0)
		dir->failed = true;
	else
		lister_read(engine, worker, dir);
	if (engine->policy.plan.checksum && engine->copying_pass)
		tt_compare_listing(engine, worker, dir);
	lister_mark_groups(engine, &dir->source);
	lister_make_children(engine, dir);
	uint64_t bytes = 0;

	for (unsigned i = 0; i < dir->source.count; i++)
		bytes += S_ISREG(dir->source.entries[i].mode) ? dir->source.entries[i].size_bytes
							      : 0;
	if (engine->copying_pass) {
		atomic_fetch_add(&engine->files_known, dir->source.count);
		atomic_fetch_add(&engine->bytes_known, bytes);
	}
	lister_enter_listed(engine, dir);
}
