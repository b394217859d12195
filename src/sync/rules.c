/* SPDX-License-Identifier: MIT */
/*
 * See rules.h.
 */
#include "sync/rules.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cache/neutral_whole.h"
#include "sync/turn.h"
#include "sync/volume.h"

/* How a file is read, and by whom. */
struct rules_reading {
	struct tt_engine *engine;
	struct tt_worker *worker;
	struct tt_volume *near;
};

static int rules_read(void *context, int fd, char **ret_text, size_t *ret_bytes)
{
	const struct rules_reading *reading = context;
	struct tt_volume *volume = tt_volume_get(reading->engine, fd, reading->near);

	struct tt_turn turn;
	struct stat st;

	if (!volume)
		return -ENOMEM;
	if (fstat(fd, &st) < 0)
		return -errno;
	tt_turn_take(&turn, reading->worker, volume, st.st_ino);
	int r = tt_neutral_whole_read(fd, TT_FILTER_FILE_MOST_BYTES,
		reading->engine->policy.cache.mode, &volume->neutral, &reading->worker->cache_stats,
		ret_text, ret_bytes);

	tt_turn_end(&turn);
	return r;
}

int tt_rules_begin(const struct tt_engine *engine, enum tt_filter_side side, const char *path,
	struct tt_filter_dir **ret_rules)
{
	*ret_rules = NULL;
	if (tt_filter_is_empty(engine->policy.filter))
		return 0;
	return tt_filter_dir_new(engine->policy.filter, side, path, ret_rules);
}

static void rules_say(struct tt_engine *engine, const struct tt_filter_error *error)
{
	char shown[sizeof error->text * 5];

	atomic_fetch_add(&engine->errors, 1);
	tt_log_line(
		engine->log, TT_LOG_ERROR, "%s", tt_log_escape(error->text, shown, sizeof shown));
}

/* Enters one directory. Returns 0, 1 if some rules are missing, or -EIO when the run is over.
 * *ret_rules is set in any case. */
static int rules_enter(struct rules_reading *reading, struct tt_filter_dir *above,
	struct tt_filter_place *place, bool say, struct tt_filter_dir **ret_rules)
{
	struct tt_engine *engine = reading->engine;
	struct tt_filter_error error;

	place->reader = (struct tt_filter_reader){.read = rules_read, .context = reading};
	int r = tt_filter_dir_enter(above, place, &error, ret_rules);

	if (r >= 0) {
		if (r > 0 && say)
			rules_say(engine, &error);
		return r;
	}
	*ret_rules = tt_filter_dir_share(above);
	/* More than one thread may come upon one; the first has said it. */
	if (atomic_load(&engine->fatal) == 0) {
		if (r != -ENOMEM)
			rules_say(engine, &error);
		tt_engine_abort(engine, r == -ENOMEM    ? TT_EXIT_MEMORY
					: error.is_file ? TT_EXIT_FILE_IO
							: TT_EXIT_USAGE);
	}
	return -EIO;
}

/* The node of the tree that a layer of this directory belongs to: what the user named. */
static const struct tt_dir *rules_tree(const struct tt_dir *dir, unsigned layer, int *ret_fd)
{
	while (dir->parent) {
		const struct tt_dir *parent = dir->parent;

		if (!parent->parent && parent->layer_is_named[dir->layers[layer]])
			break;
		layer = dir->layers[layer];
		dir = parent;
	}
	*ret_fd = dir->source_fds[layer];
	return dir;
}

/* One layer. The rules above it are already in place for the root. */
static int rules_enter_layer(struct rules_reading *reading, struct tt_dir *dir, unsigned layer)
{
	struct tt_engine *engine = reading->engine;
	struct tt_filter_dir *above = dir->parent ? dir->parent->source_rules[dir->layers[layer]]
						  : dir->source_rules[layer];
	struct tt_filter_dir *rules;
	int tree_fd;

	if (!above)
		return 0;
	if (!dir->parent && dir->layer_is_named[layer])
		return 0;
	if (dir->source_fds[layer] < 0 || dir->no_descent) {
		if (dir->parent)
			dir->source_rules[layer] = tt_filter_dir_share(above);
		return 0;
	}
	const struct tt_dir *tree = rules_tree(dir, layer, &tree_fd);
	const char *tree_path = dir->path + strlen(tree->path);
	struct tt_filter_place place = {
		.dir_fd = dir->source_fds[layer],
		.path = dir->path,
		.tree_fd = tree_fd,
		.tree_path = *tree_path == '/' ? tree_path + 1 : tree_path,
	};
	int r = rules_enter(reading, above, &place, engine->copying_pass, &rules);

	if (r > 0 && !engine->copying_pass)
		atomic_store(&engine->deleting_error, -EIO);
	if (!dir->parent)
		tt_filter_dir_release(above);
	dir->source_rules[layer] = rules;
	return r;
}

int tt_rules_enter_source(struct tt_engine *engine, struct tt_worker *worker, struct tt_dir *dir)
{
	struct rules_reading reading = {.engine = engine, .worker = worker, .near = dir->from};
	int result = 0;

	for (unsigned i = 0; i < dir->layer_count; i++) {
		int r = rules_enter_layer(&reading, dir, i);

		if (r > 0)
			dir->list_error = -EIO;
		if (r < 0)
			result = r;
	}
	return result;
}

int tt_rules_enter_destination(
	struct tt_engine *engine, struct tt_worker *worker, struct tt_dir *dir)
{
	struct rules_reading reading = {.engine = engine, .worker = worker, .near = dir->to};
	struct tt_filter_dir *above =
		dir->parent ? dir->parent->destination_rules : dir->destination_rules;
	struct tt_filter_dir *rules;
	bool deletes = engine->deleting_pass || engine->policy.delete_mode == TT_DELETE_DURING
		       || engine->policy.delete_mode == TT_DELETE_DELAY;

	if (!above)
		return 0;
	if (!deletes || dir->destination_fd < 0 || !(dir->entry.flags & TT_ENTRY_CONTENTS)
		|| dir->no_descent) {
		if (dir->parent)
			dir->destination_rules = tt_filter_dir_share(above);
		return 0;
	}
	struct tt_filter_place place = {
		.dir_fd = dir->destination_fd,
		.path = dir->path,
		.tree_fd = engine->root_destination_fd,
		.tree_path = dir->path,
	};
	int r = rules_enter(&reading, above, &place, true, &rules);

	if (!dir->parent)
		tt_filter_dir_release(above);
	dir->destination_rules = rules;
	if (r > 0)
		dir->list_error = -EIO;
	return r < 0 ? r : 0;
}

int tt_rules_enter_below(struct tt_engine *engine, struct tt_worker *worker,
	const struct tt_dir *dir, unsigned layer, struct tt_filter_dir *above, int fd,
	const char *path, struct tt_filter_dir **ret_rules)
{
	struct rules_reading reading = {.engine = engine, .worker = worker, .near = dir->from};
	int tree_fd;

	*ret_rules = NULL;
	if (!above)
		return 0;
	const struct tt_dir *tree = rules_tree(dir, layer, &tree_fd);
	const char *tree_path = path + strlen(tree->path);
	struct tt_filter_place place = {
		.dir_fd = fd,
		.path = path,
		.tree_fd = tree_fd,
		.tree_path = *tree_path == '/' ? tree_path + 1 : tree_path,
	};
	/* What is wrong is said when the walk comes there. */
	return rules_enter(&reading, above, &place, false, ret_rules) < 0 ? -EIO : 0;
}

int tt_rules_enter_deleted(struct tt_engine *engine, struct tt_worker *worker, struct tt_dir *dir,
	struct tt_filter_dir *above, int fd, const char *path, struct tt_filter_dir **ret_rules)
{
	struct rules_reading reading = {.engine = engine, .worker = worker, .near = dir->to};
	struct tt_filter_place place = {
		.dir_fd = fd,
		.path = path,
		.tree_fd = engine->root_destination_fd,
		.tree_path = path,
	};

	*ret_rules = NULL;
	if (!above)
		return 0;
	int r = rules_enter(&reading, above, &place, true, ret_rules);

	if (r == 0)
		return 0;
	tt_filter_dir_release(*ret_rules);
	*ret_rules = NULL;
	return -EIO;
}
