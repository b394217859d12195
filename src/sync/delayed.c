/* SPDX-License-Identifier: MIT */
/*
 * See delayed.h. Names are all that is kept, in memory: as many as there are to delete, not as many
 * as there are.
 */
#include "sync/delayed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "sync/deleter.h"
#include "sync/dir.h"
#include "sync/finish.h"
#include "sys/fd.h"
#include "tree/filter_dir.h"

struct delayed_name {
	const char *name;
	uint32_t mode;
};

/* What is to be deleted in one directory. */
struct tt_delayed {
	struct tt_delayed *next;
	struct tt_arena arena; /* of the names */
	struct tt_entry entry, existing;
	bool exists, is_target;
	struct tt_filter_dir *rules;
	char *path;
	unsigned count;
	struct delayed_name names[];
};

static void delayed_free_one(struct tt_delayed *delayed)
{
	if (!delayed)
		return;
	tt_filter_dir_release(delayed->rules);
	tt_arena_deinit(&delayed->arena);
	free(delayed);
}

int tt_delayed_add(struct tt_engine *engine, const struct tt_dir *dir,
	const struct tt_entry *entries, unsigned count)
{
	struct tt_delayed *delayed = calloc(1, sizeof *delayed + count * sizeof delayed->names[0]);
	bool whole = delayed;

	if (whole) {
		delayed->path = tt_arena_copy(&delayed->arena, dir->path, strlen(dir->path));
		whole = delayed->path;
	}
	for (unsigned i = 0; whole && i < count; i++) {
		delayed->names[i].name =
			tt_arena_copy(&delayed->arena, entries[i].name, strlen(entries[i].name));
		delayed->names[i].mode = entries[i].mode;
		whole = delayed->names[i].name;
	}
	if (!whole) {
		delayed_free_one(delayed);
		return -ENOMEM;
	}
	delayed->count = count;
	delayed->entry = dir->entry;
	delayed->existing = dir->existing;
	delayed->exists = dir->exists;
	delayed->is_target = dir->is_target;
	delayed->rules = tt_filter_dir_share(dir->destination_rules);
	if (!engine->delayed_last)
		engine->delayed_last = &engine->delayed;
	*engine->delayed_last = delayed;
	engine->delayed_last = &delayed->next;
	return 0;
}

/* An ordinary user may have made his own directory read-only by now, as its source is. */
static void delayed_open_mode(const struct tt_engine *engine, int fd)
{
	struct stat st;

	if (!engine->policy.dry_run && !engine->policy.overrides_modes && fstat(fd, &st) == 0
		&& (st.st_mode & 0700) != 0700)
		(void)fchmod(fd, (st.st_mode & 07777) | 0700);
}

/* A node for the directory as it was, which is all that deleting needs of it. */
static struct tt_dir *delayed_open(struct tt_engine *engine, const struct tt_delayed *delayed)
{
	struct tt_entry entry = delayed->entry;

	entry.name = delayed->path;
	struct tt_dir *dir = tt_dir_new(NULL, &entry, 0);

	if (!dir)
		return NULL;
	dir->existing = delayed->existing;
	dir->exists = delayed->exists;
	dir->is_target = delayed->is_target;
	dir->destination_rules = tt_filter_dir_share(delayed->rules);
	dir->destination_fd = dir->path[0]
				      ? tt_fd_open_beneath(engine->root_destination_fd, dir->path)
				      : tt_fd_open_dir(engine->root_destination_fd, ".");
	dir->changed = true; /* will be, by what is deleted */
	if (dir->destination_fd >= 0)
		delayed_open_mode(engine, dir->destination_fd);
	return dir;
}

static void delayed_run_one(struct tt_engine *engine, const struct tt_delayed *delayed)
{
	struct tt_dir *dir = delayed_open(engine, delayed);

	if (!dir || dir->destination_fd < 0) {
		if (!dir || dir->destination_fd != -ENOENT)
			tt_log_line(engine->log, TT_LOG_ERROR, "deleting: %s",
				tt_error_text(dir ? dir->destination_fd : -ENOMEM));
		atomic_fetch_add(&engine->errors, !dir || dir->destination_fd != -ENOENT);
		if (dir)
			dir->destination_fd = -1;
		tt_dir_free(dir);
		return;
	}
	for (unsigned i = 0; i < delayed->count; i++) {
		const struct tt_entry entry = {
			.name = delayed->names[i].name, .mode = delayed->names[i].mode};

		tt_deleter_remove(engine, dir, &entry, true);
	}
	tt_finish_attributes(engine, dir);
	tt_dir_free(dir);
}

void tt_delayed_run(struct tt_engine *engine)
{
	for (const struct tt_delayed *delayed = engine->delayed; delayed; delayed = delayed->next) {
		if (atomic_load(&engine->stop) || tt_deleter_is_forbidden(engine))
			break;
		delayed_run_one(engine, delayed);
	}
	tt_delayed_free(engine);
}

void tt_delayed_free(struct tt_engine *engine)
{
	while (engine->delayed) {
		struct tt_delayed *delayed = engine->delayed;

		engine->delayed = delayed->next;
		delayed_free_one(delayed);
	}
	engine->delayed_last = NULL;
}
