/* SPDX-License-Identifier: MIT */
/*
 * See prune.h. Below each directory is looked until the first name that is none, which mostly is
 * among the first: nothing is remembered, and the tree is not walked twice.
 *
 * An error on the way is told only if nothing was found: otherwise the walk itself comes to the
 * place and tells it.
 */
#include "sync/prune.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "sync/rules.h"
#include "sys/fd.h"

struct prune {
	struct tt_engine *engine;
	struct tt_worker *worker;
	const struct tt_dir *dir;
	unsigned layer;                /* of it */
	uint32_t dev_major, dev_minor; /* -x: nothing is looked for elsewhere */
	int error;                     /* the first one on the way, and where */
	char path[PATH_MAX * 2], error_path[PATH_MAX * 2];
};

static void prune_note(struct prune *prune, int error)
{
	if (prune->error != 0 || error == -ENOENT)
		return;
	prune->error = error;
	strcpy(prune->error_path, prune->path);
}

static void prune_ignore(void *context, const char *name, int error)
{
	(void)context;
	(void)name;
	(void)error;
}

/* The names in a directory with their types, without what is left out. */
static void prune_read(
	struct prune *prune, int fd, const struct tt_filter_dir *rules, struct tt_listing *names)
{
	const struct tt_listing_options options = {.rules = rules, .path = prune->path};
	const struct tt_listing_problem problem = {.report = prune_ignore};
	struct tt_arena arena = {0};
	int r = tt_listing_read_source(names, fd, 0, &options);

	if (r < 0)
		prune_note(prune, r);
	for (unsigned i = 0; i < names->count; i++) {
		if ((names->entries[i].mode & S_IFMT) == 0)
			tt_listing_stat(names, fd, i, i + 1, &options, &problem, &arena);
	}
	tt_arena_join(&names->arena, &arena);
	tt_listing_compact(names, 0);
}

static bool prune_is_elsewhere(const struct prune *prune, int fd)
{
	struct statx stx;

	return prune->engine->policy.one_file_system && tt_fd_statx(fd, "", &stx) == 0
	       && (stx.stx_dev_major != prune->dev_major || stx.stx_dev_minor != prune->dev_minor);
}

/* Whether the command line protects prune->path: that keeps an empty directory, too. */
static bool prune_is_protected(const struct prune *prune)
{
	const struct tt_dir *root = prune->dir;

	while (root->parent)
		root = root->parent;
	return tt_filter_dir_excludes(root->destination_rules, prune->path, true, false);
}

static bool prune_is_full(
	struct prune *prune, struct tt_filter_dir *above, int dir_fd, const char *name);

static bool prune_has_more(struct prune *prune, struct tt_filter_dir *above, int fd)
{
	struct tt_listing names = {0};
	struct tt_filter_dir *rules;
	bool full = false;

	if (tt_rules_enter_below(prune->engine, prune->worker, prune->dir, prune->layer, above, fd,
		    prune->path, &rules)
		< 0)
		return true; /* the run is over */
	prune_read(prune, fd, rules, &names);
	for (unsigned i = 0; i < names.count && !full; i++)
		full = !tt_entry_is_dir(&names.entries[i]);
	for (unsigned i = 0; i < names.count && !full; i++)
		full = prune_is_full(prune, rules, fd, names.entries[i].name);
	tt_filter_dir_release(rules);
	tt_listing_deinit(&names);
	return full;
}

/* Whether there is anything but directories in the directory `name`, at any depth, or one of them
 * is protected. */
static bool prune_is_full(
	struct prune *prune, struct tt_filter_dir *above, int dir_fd, const char *name)
{
	size_t length = strlen(prune->path);
	bool full = false;

	if (length + strlen(name) + 2 > sizeof prune->path)
		return true; /* the walk finds out */
	if (length > 0)
		prune->path[length] = '/';
	strcpy(prune->path + length + (length > 0), name);
	TT_FD_AUTO fd = tt_fd_open_dir(dir_fd, name);

	if (prune_is_protected(prune))
		full = true;
	else if (fd < 0)
		prune_note(prune, fd);
	else if (!prune_is_elsewhere(prune, fd))
		full = prune_has_more(prune, above, fd);
	prune->path[length] = '\0';
	return full;
}

/* In a walk that only deletes nothing is said: the one that copies says it, too. */
static void prune_tell(const struct prune *prune)
{
	struct tt_engine *engine = prune->engine;
	size_t base = strlen(prune->dir->path);

	atomic_store(&engine->list_failed, true);
	if (engine->copying_pass)
		tt_engine_fail(engine, "opening directory", prune->dir,
			prune->error_path + base + (base > 0), prune->error);
	else
		atomic_store(&engine->deleting_error, prune->error);
}

static bool prune_wants(struct prune *prune, const struct tt_entry *entry)
{
	const struct tt_dir *dir = prune->dir;
	struct tt_engine *engine = prune->engine;

	if (!engine->policy.plan.recursive)
		return false;
	prune->error = 0;
	strcpy(prune->path, dir->path);
	if (dir->entry.flags & TT_ENTRY_CONTENTS) {
		prune->dev_major = dir->entry.dev_major;
		prune->dev_minor = dir->entry.dev_minor;
	} else { /* named on the command line: wherever it is */
		prune->dev_major = entry->dev_major;
		prune->dev_minor = entry->dev_minor;
	}
	prune->layer = entry->layer;
	if (prune_is_full(prune, dir->source_rules[entry->layer], dir->source_fds[entry->layer],
		    entry->name))
		return true;
	if (prune->error != 0)
		prune_tell(prune);
	return false;
}

void tt_prune_listing(struct tt_engine *engine, struct tt_worker *worker, struct tt_dir *dir)
{
	struct prune *prune = malloc(sizeof *prune);
	struct tt_listing *source = &dir->source;
	unsigned kept = 0, end;

	if (!prune || strlen(dir->path) >= sizeof prune->path) {
		free(prune);
		return;
	}
	*prune = (struct prune){.engine = engine, .worker = worker, .dir = dir};
	for (unsigned i = 0; i < source->count; i = end) {
		bool wanted = !tt_entry_is_dir(&source->entries[i]);

		/* In several layers: one is enough. */
		for (end = i; end < source->count
			      && strcmp(source->entries[end].name, source->entries[i].name) == 0;
			end++)
			wanted = wanted || prune_wants(prune, &source->entries[end]);
		for (unsigned k = i; wanted && k < end; k++)
			source->entries[kept++] = source->entries[k];
	}
	source->count = kept;
	free(prune);
}
