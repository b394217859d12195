/* SPDX-License-Identifier: MIT */
/*
 * See deleter.h. Directories are descended by descriptor, links are never followed: what is below a
 * link is not ours.
 */
#include "sync/deleter.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sync/branch.h"
#include "sync/delayed.h"
#include "sync/rules.h"
#include "sys/fd.h"

/* One deletion: where it happens, and how it is called. */
struct deleter {
	struct tt_engine *engine;
	struct tt_dir *dir; /* whose change it is; for messages */
	char path[PATH_MAX * 2];
	size_t base;    /* length of dir's path with its slash */
	bool makes_way; /* for something else: never too many */
};

static void deleter_count(struct tt_engine_stats *stats, uint32_t mode)
{
	stats->deleted++;
	if (S_ISREG(mode))
		stats->deleted_regular++;
	else if (S_ISDIR(mode))
		stats->deleted_directories++;
	else if (S_ISLNK(mode))
		stats->deleted_links++;
	else if (S_ISCHR(mode) || S_ISBLK(mode))
		stats->deleted_devices++;
	else
		stats->deleted_specials++;
}

static void deleter_tell(struct deleter *deleter, uint32_t mode)
{
	struct tt_engine *engine = deleter->engine;
	const struct tt_event event = {
		.kind = TT_EVENT_DELETED, .path = deleter->path, .mode = mode};

	deleter_count(&engine->stats, mode);
	tt_branch_tell(engine, &event);
}

static int deleter_compare(const void *a, const void *b)
{
	return tt_entry_compare(a, b);
}

static int deleter_compare_last_first(const void *a, const void *b)
{
	return tt_entry_compare(b, a);
}

/* --max-delete. */
static bool deleter_is_at_limit(const struct deleter *deleter)
{
	struct tt_engine *engine = deleter->engine;

	if (deleter->makes_way || !engine->policy.has_max_delete
		|| engine->stats.deleted < engine->policy.max_delete)
		return false;
	engine->stats.skipped_deletions++;
	return true;
}

static int deleter_remove(struct deleter *deleter, struct tt_filter_dir *rules, int dir_fd,
	const char *name, uint32_t mode, bool contents);

/* Everything in a directory that no filter protects. Returns 0, 1 if something stays on purpose, or
 * a negative errno. */
static int deleter_empty_by(struct deleter *deleter, struct tt_filter_dir *rules, int fd)
{
	struct tt_listing names = {0};
	size_t length = strlen(deleter->path);
	int result = tt_listing_read_names(&names, fd);

	if (names.count > 0)
		qsort(names.entries, names.count, sizeof *names.entries, deleter_compare);
	deleter->path[length] = '/';
	for (unsigned i = names.count; i-- > 0;) {
		const struct tt_entry *entry = &names.entries[i];

		if (length + strlen(entry->name) + 2 > sizeof deleter->path) {
			tt_engine_fail(deleter->engine, "deleting, somewhere in", deleter->dir,
				NULL, -ENAMETOOLONG);
			result = -ENAMETOOLONG;
			continue;
		}
		strcpy(deleter->path + length + 1, entry->name);
		if (tt_filter_dir_excludes(rules, deleter->path, tt_entry_is_dir(entry), true)) {
			result = result < 0 ? result : 1;
			continue;
		}
		int r = deleter_remove(deleter, rules, fd, entry->name, entry->mode, true);

		if (r > 0 && tt_entry_is_dir(entry)) /* it would have been one more */
			(void)deleter_is_at_limit(deleter);
		if (r != 0 && result >= 0)
			result = r;
	}
	deleter->path[length] = '\0';
	tt_listing_deinit(&names);
	return result;
}

/* The same, with what files in it say about that. */
static int deleter_empty(struct deleter *deleter, struct tt_filter_dir *above, int fd)
{
	struct tt_engine *engine = deleter->engine;
	struct tt_filter_dir *rules;
	int r = 0;

	if (!above)
		return deleter_empty_by(deleter, NULL, fd);
	struct tt_worker *worker = tt_branch_worker(engine);
	struct tt_branch *branch = tt_branch_pause(engine);

	r = tt_rules_enter_deleted(engine, worker, deleter->dir, above, fd, deleter->path, &rules);
	tt_branch_resume(engine, branch);
	if (r < 0)
		return 1;
	r = deleter_empty_by(deleter, rules, fd);
	tt_filter_dir_release(rules);
	return r;
}

/* rsync prints this where it prints what it did, not where it prints errors. */
static void deleter_say_not_empty(const struct deleter *deleter)
{
	char shown[PATH_MAX * 5];

	tt_log_line(deleter->engine->log, TT_LOG_INFO, "cannot delete non-empty directory: %s",
		tt_log_escape(deleter->path, shown, sizeof shown));
}

static void deleter_say_mounted(const struct deleter *deleter)
{
	char shown[PATH_MAX * 5];

	tt_log_line(deleter->engine->log, TT_LOG_VERBOSE, "cannot delete mount point: %s",
		tt_log_escape(deleter->path, shown, sizeof shown));
}

/* Whether a directory that was left as it is would not be empty. */
static int deleter_look_inside(int dir_fd, const char *name)
{
	struct tt_listing names = {0};
	TT_FD_AUTO fd = tt_fd_open_dir(dir_fd, name);
	int r = fd < 0 ? fd : tt_listing_read_names(&names, fd);

	if (r >= 0)
		r = names.count > 0;
	tt_listing_deinit(&names);
	return r;
}

/* An ordinary user may have to be let into his own directory first. */
static void deleter_open_mode(const struct tt_engine *engine, int fd)
{
	struct stat st;

	if (!engine->policy.dry_run && !engine->policy.overrides_modes && fstat(fd, &st) == 0
		&& (st.st_mode & 0700) != 0700)
		(void)fchmod(fd, (st.st_mode & 07777) | 0700);
}

static int deleter_unlink(struct tt_engine *engine, int dir_fd, const char *name, int flags)
{
	struct tt_branch *branch = tt_branch_pause(engine);
	int r = unlinkat(dir_fd, name, flags) < 0 ? -errno : 0;

	tt_branch_resume(engine, branch);
	return r;
}

/* -x: what is mounted below stays, and so does the directory that it is mounted on. */
static bool deleter_is_mounted(const struct tt_engine *engine, int dir_fd, int fd)
{
	struct statx above, here;

	return engine->policy.one_file_system && tt_fd_statx(dir_fd, "", &above) == 0
	       && tt_fd_statx(fd, "", &here) == 0
	       && (above.stx_dev_major != here.stx_dev_major
		       || above.stx_dev_minor != here.stx_dev_minor);
}

/* One name, with its contents if that is allowed. Not told. Returns 1 if something stays. */
static int deleter_remove_silently(struct deleter *deleter, struct tt_filter_dir *rules, int dir_fd,
	const char *name, uint32_t mode, bool contents)
{
	struct tt_engine *engine = deleter->engine;
	const char *below = deleter->path + deleter->base;
	int r = 0;

	if (atomic_load(&engine->stop))
		return -ECANCELED;
	if (S_ISDIR(mode) && contents) {
		TT_FD_AUTO fd = tt_fd_open_dir(dir_fd, name);

		if (fd < 0)
			tt_engine_fail(engine, "opening directory", deleter->dir, below, fd);
		else if (deleter_is_mounted(engine, dir_fd, fd)) {
			deleter_say_mounted(deleter);
			return 1;
		} else
			deleter_open_mode(engine, fd);
		/* What is in it counts, also if it makes way itself. */
		bool makes_way = deleter->makes_way;

		deleter->makes_way = false;
		r = fd < 0 ? fd : deleter_empty(deleter, rules, fd);
		deleter->makes_way = makes_way;
	}
	if (S_ISDIR(mode) && !contents && engine->policy.dry_run)
		r = deleter_look_inside(dir_fd, name);
	if (r != 0) {
		if (S_ISDIR(mode) && r != -ECANCELED)
			deleter_say_not_empty(deleter);
		return r;
	}
	if (deleter_is_at_limit(deleter))
		return 1;
	if (!engine->policy.dry_run)
		r = deleter_unlink(engine, dir_fd, name, S_ISDIR(mode) ? AT_REMOVEDIR : 0);
	if (r < 0 && r != -ENOENT) {
		if (r == -ENOTEMPTY || r == -EEXIST)
			deleter_say_not_empty(deleter);
		else
			tt_engine_fail(engine, "deleting", deleter->dir, below, r);
		return r;
	}
	return 0;
}

/* Told and counted when it is gone. */
static int deleter_remove(struct deleter *deleter, struct tt_filter_dir *rules, int dir_fd,
	const char *name, uint32_t mode, bool contents)
{
	int r = deleter_remove_silently(deleter, rules, dir_fd, name, mode, contents);

	if (r == 0)
		deleter_tell(deleter, mode);
	return r;
}

static void deleter_begin(
	struct deleter *deleter, struct tt_engine *engine, struct tt_dir *dir, const char *name)
{
	deleter->engine = engine;
	deleter->dir = dir;
	deleter->makes_way = false;
	tt_engine_path(dir, name, deleter->path, sizeof deleter->path);
	deleter->base = strlen(deleter->path) - strlen(name);
}

static bool deleter_is_extraneous(const struct tt_dir *dir, const struct tt_entry *entry)
{
	char path[PATH_MAX * 2];

	if (entry->twin != TT_ENTRY_NONE || (entry->flags & TT_ENTRY_VANISHED))
		return false;
	if (!dir->destination_rules)
		return true;
	return !tt_filter_dir_excludes(dir->destination_rules,
		tt_engine_path(dir, entry->name, path, sizeof path), tt_entry_is_dir(entry), false);
}

/* What could not be read may be what seems to be missing. */
bool tt_deleter_is_forbidden(struct tt_engine *engine)
{
	engine->io_error = engine->io_error || atomic_load(&engine->list_failed)
			   || (engine->deleting_pass && atomic_load(&engine->source_failed));
	if ((!engine->io_error || engine->policy.ignore_errors) && !atomic_load(&engine->disk_full))
		return false;
	if (!engine->said_no_deletions)
		tt_log_line(
			engine->log, TT_LOG_INFO, "IO error encountered -- skipping file deletion");
	engine->said_no_deletions = true;
	return true;
}

/* Before anything is deleted, as much of the source is looked at as the budget allows: in all but
 * huge trees, all of it. Otherwise nobody runs ahead of the plan with deletions. */
static void deleter_await_listings(struct tt_engine *engine)
{
	pthread_mutex_lock(&engine->lock);
	tt_engine_wake_workers(engine, 1);
	while ((engine->heap_count > 0 || engine->listings > 0) && !engine->listing_rests
		&& engine->entries_ahead < engine->most_entries_ahead
		&& engine->dirs_ahead < engine->most_dirs_ahead && !atomic_load(&engine->stop))
		tt_engine_wait_plan(engine, NULL);
	pthread_mutex_unlock(&engine->lock);
	if (!atomic_load(&engine->listing_complete))
		tt_branch_await_first(engine);
}

/* -x: nothing is deleted on another file system than that of the top of the transfer, which is a
 * named source's directory or the destination. */
static bool deleter_is_elsewhere(const struct tt_engine *engine, const struct tt_dir *dir)
{
	const struct tt_dir *top = dir;

	while (top->parent && (top->parent->is_target || top->parent->parent))
		top = top->parent;
	return engine->policy.one_file_system && top->to && dir->to && top->to != dir->to;
}

void tt_deleter_remove(
	struct tt_engine *engine, struct tt_dir *dir, const struct tt_entry *entry, bool contents)
{
	struct deleter *deleter = malloc(sizeof *deleter);

	if (!deleter) {
		tt_engine_fail(engine, "deleting", dir, entry->name, -ENOMEM);
		return;
	}
	deleter_begin(deleter, engine, dir, entry->name);
	(void)deleter_remove(deleter, dir->destination_rules, dir->destination_fd, entry->name,
		entry->mode, contents);
	free(deleter);
}

/* Now, or when everything has arrived. */
static void deleter_remove_all(struct tt_engine *engine, struct tt_dir *dir,
	const struct tt_entry *entries, unsigned count)
{
	if (engine->policy.delete_mode == TT_DELETE_DELAY) {
		if (tt_delayed_add(engine, dir, entries, count) < 0)
			tt_engine_fail(engine, "deleting in", dir, NULL, -ENOMEM);
		return;
	}
	for (unsigned i = 0; i < count; i++)
		tt_deleter_remove(engine, dir, &entries[i], true);
	pthread_mutex_lock(&engine->lock);
	dir->changed = true;
	pthread_mutex_unlock(&engine->lock);
}

void tt_deleter_extraneous(struct tt_engine *engine, struct tt_dir *dir)
{
	unsigned count = 0;

	if (tt_deleter_is_forbidden(engine) || dir->destination_fd < 0
		|| dir->destination.count == 0 || deleter_is_elsewhere(engine, dir))
		return;
	for (unsigned i = 0; i < dir->destination.count; i++)
		count += deleter_is_extraneous(dir, &dir->destination.entries[i]);
	if (count == 0)
		return;
	deleter_await_listings(engine);
	if (tt_deleter_is_forbidden(engine))
		return;
	struct tt_entry *extraneous = malloc(count * sizeof *extraneous);

	if (!extraneous) {
		tt_engine_fail(engine, "deleting in", dir, NULL, -ENOMEM);
		return;
	}
	for (unsigned i = 0, at = 0; i < dir->destination.count; i++) {
		if (deleter_is_extraneous(dir, &dir->destination.entries[i]))
			extraneous[at++] = dir->destination.entries[i];
	}
	/* Last first, as rsync does. */
	qsort(extraneous, count, sizeof *extraneous, deleter_compare_last_first);
	deleter_remove_all(engine, dir, extraneous, count);
	free(extraneous);
}

void tt_deleter_missing(struct tt_engine *engine, struct tt_dir *root)
{
	bool contents = engine->policy.delete_mode != TT_DELETE_NONE || engine->policy.force;

	for (unsigned i = 0; i < engine->missing_count; i++) {
		struct tt_entry *entry = tt_listing_find(&root->destination, engine->missing[i]);

		if (!entry || !deleter_is_extraneous(root, entry))
			continue;
		tt_deleter_remove(engine, root, entry, contents);
		entry->flags |= TT_ENTRY_VANISHED; /* dealt with */
	}
}

int tt_deleter_make_way(struct tt_engine *engine, struct tt_dir *dir,
	const struct tt_entry *existing, const char *what)
{
	struct deleter *deleter = malloc(sizeof *deleter);
	int r = -ENOMEM;

	if (deleter) {
		deleter_begin(deleter, engine, dir, existing->name);
		deleter->makes_way = true;
		/* It is replaced, which is told of what replaces it. */
		r = deleter_remove_silently(deleter, dir->destination_rules, dir->destination_fd,
			existing->name, existing->mode,
			engine->policy.delete_mode != TT_DELETE_NONE || engine->policy.force);
	}
	free(deleter);
	if (r != 0) {
		char verb[64];

		snprintf(verb, sizeof verb, "making way for new %s", what);
		tt_engine_fail(engine, verb, dir, existing->name, r > 0 ? -ENOTEMPTY : r);
		return r > 0 ? -ENOTEMPTY : r;
	}
	return 0;
}
