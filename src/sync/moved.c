/* SPDX-License-Identifier: MIT */
/*
 * See moved.h. Between the last look and the removal somebody may write to the file: there is no
 * call that removes a name only if its file is unchanged.
 */
#include "sync/moved.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sync/dir.h"
#include "sys/fd.h"

/* A name of a file with others, under -H: when the first of them has gone from the source, the
 * others would not be known for its links any more. */
struct tt_moved {
	struct tt_moved *next;
	struct tt_entry entry;
	unsigned root_layer;
	const char *path; /* of the directory; behind this, as the name */
	char text[];
};

static bool moved_is_unchanged(const struct tt_entry *wanted, const struct statx *now)
{
	return ((wanted->mode ^ now->stx_mode) & S_IFMT) == 0 && wanted->ino == now->stx_ino
	       && wanted->dev_major == now->stx_dev_major && wanted->dev_minor == now->stx_dev_minor
	       && wanted->size_bytes == now->stx_size && wanted->mtime_sec == now->stx_mtime.tv_sec
	       && wanted->mtime_nsec == now->stx_mtime.tv_nsec;
}

/* Source and destination may be one directory, over another path or a bind mount. */
static bool moved_is_itself(
	const struct tt_dir *dir, const struct tt_entry *wanted, const struct statx *now)
{
	const char *name = dir->destination_name ? dir->destination_name : wanted->name;
	struct statx copy;

	return tt_fd_statx(dir->destination_fd, name, &copy) == 0 && copy.stx_ino == now->stx_ino
	       && copy.stx_dev_major == now->stx_dev_major
	       && copy.stx_dev_minor == now->stx_dev_minor;
}

static void moved_tell(
	const struct tt_engine *engine, const struct tt_dir *dir, const struct tt_entry *wanted)
{
	char path[PATH_MAX * 2], shown[PATH_MAX * 2];

	if (engine->policy.tell_removed)
		tt_log_line(engine->log, TT_LOG_INFO, "sender removed %s",
			tt_log_escape(tt_engine_path(dir, wanted->name, path, sizeof path), shown,
				sizeof shown));
}

static void moved_refuse(struct tt_engine *engine, const struct tt_dir *dir,
	const struct tt_entry *wanted, const char *why)
{
	char path[PATH_MAX * 2], shown[PATH_MAX * 2];

	tt_log_line(engine->log, TT_LOG_ERROR, "not removing %s from the source: %s",
		tt_log_escape(
			tt_engine_path(dir, wanted->name, path, sizeof path), shown, sizeof shown),
		why);
	atomic_fetch_add(&engine->errors, 1);
}

static void moved_remove_now(
	struct tt_engine *engine, const struct tt_dir *dir, const struct tt_entry *wanted)
{
	int source_fd = dir->source_fds[wanted->layer];
	struct statx now;
	int r = tt_fd_statx(source_fd, wanted->name, &now);

	if (r == -ENOENT) /* somebody else has */
		return;
	if (r == 0 && moved_is_itself(dir, wanted, &now)) {
		moved_refuse(engine, dir, wanted, "it is its own copy");
		return;
	}
	if (r == 0 && !moved_is_unchanged(wanted, &now)) {
		moved_refuse(engine, dir, wanted, "it has changed since it was listed");
		return;
	}
	if (r == 0)
		r = unlinkat(source_fd, wanted->name, 0) < 0 ? -errno : 0;
	if (r < 0)
		tt_engine_fail(engine, "removing from the source", dir, wanted->name, r);
	else
		moved_tell(engine, dir, wanted);
}

/* The layer of the root that a layer of the directory is below of. */
static unsigned moved_root_layer(const struct tt_dir *dir, unsigned layer)
{
	for (; dir->parent; dir = dir->parent)
		layer = dir->layers[layer];
	return layer;
}

static void moved_keep(
	struct tt_engine *engine, const struct tt_dir *dir, const struct tt_entry *wanted)
{
	size_t name = strlen(wanted->name) + 1, path = strlen(dir->path) + 1;
	struct tt_moved *moved = malloc(sizeof *moved + name + path);

	if (!moved) {
		tt_engine_fail(engine, "removing from the source", dir, wanted->name, -ENOMEM);
		return;
	}
	moved->entry = *wanted;
	moved->entry.link = NULL;
	moved->entry.layer = 0;
	moved->root_layer = moved_root_layer(dir, wanted->layer);
	moved->path = memcpy(moved->text, dir->path, path);
	moved->entry.name = memcpy(moved->text + path, wanted->name, name);
	pthread_mutex_lock(&engine->lock);
	moved->next = engine->moved;
	engine->moved = moved;
	pthread_mutex_unlock(&engine->lock);
}

void tt_moved_remove(
	struct tt_engine *engine, const struct tt_dir *dir, const struct tt_entry *wanted)
{
	if (!engine->policy.remove_source_files || engine->policy.dry_run)
		return;
	if (engine->policy.plan.hard_links && wanted->nlink > 1)
		moved_keep(engine, dir, wanted);
	else
		moved_remove_now(engine, dir, wanted);
}

/* The two directories that it is about, as they are now. */
static struct tt_dir *moved_open(
	struct tt_engine *engine, const struct tt_dir *root, const struct tt_moved *moved)
{
	struct tt_dir *dir = tt_dir_new(NULL, &(struct tt_entry){.name = moved->path}, 1);
	const char *path = moved->path[0] ? moved->path : ".";

	if (!dir)
		return NULL;
	dir->source_fds[0] = tt_fd_open_beneath(root->source_fds[moved->root_layer], path);
	dir->destination_fd = tt_fd_open_beneath(engine->root_destination_fd, path);
	dir->destination_name = root->destination_name;
	return dir;
}

void tt_moved_finish(struct tt_engine *engine, const struct tt_dir *root)
{
	while (engine->moved) {
		struct tt_moved *moved = engine->moved;
		struct tt_dir *dir = moved_open(engine, root, moved);

		engine->moved = moved->next;
		if (dir && dir->source_fds[0] >= 0 && dir->destination_fd >= 0)
			moved_remove_now(engine, dir, &moved->entry);
		else
			tt_engine_fail(engine, "removing from the source, somewhere below", root,
				moved->path, -ENOENT);
		if (dir && dir->source_fds[0] < 0)
			dir->source_fds[0] = -1;
		if (dir && dir->destination_fd < 0)
			dir->destination_fd = -1;
		tt_dir_free(dir);
		free(moved);
	}
}
