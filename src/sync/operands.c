/* SPDX-License-Identifier: MIT */
/*
 * See operands.h. Only here are links followed: these paths are the user's own words.
 */
#include "sync/operands.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sync/dir.h"
#include "sync/mkpath.h"
#include "sync/rules.h"
#include "sync/volume.h"
#include "sys/fd.h"

struct operand {
	char parent[PATH_MAX];   /* directory part, "." if there is none */
	char name[NAME_MAX + 1]; /* last component without slashes, "" for "/" */
	bool contents;           /* ends in a slash, or names "." or ".." */
};

static int operands_parse(const char *path, struct operand *ret)
{
	size_t length = strlen(path);

	if (length == 0 || length >= sizeof ret->parent)
		return length == 0 ? -ENOENT : -ENAMETOOLONG;
	ret->contents = path[length - 1] == '/';
	while (length > 1 && path[length - 1] == '/')
		length--;
	size_t start = length;

	while (start > 0 && path[start - 1] != '/')
		start--;
	if (length - start > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(ret->name, path + start, length - start);
	ret->name[length - start] = '\0';
	if (strcmp(path, "/") == 0)
		ret->name[0] = '\0';
	if (start == 0)
		strcpy(ret->parent, ".");
	else
		memcpy(ret->parent, path, start), ret->parent[start] = '\0';
	if (ret->name[0] == '\0' || strcmp(ret->name, ".") == 0 || strcmp(ret->name, "..") == 0)
		ret->contents = true;
	return 0;
}

static void operands_say(
	const struct tt_engine *engine, const char *verb, const char *path, const char *why)
{
	char shown[PATH_MAX];

	tt_log_line(engine->log, TT_LOG_ERROR, "%s %s: %s", verb,
		tt_log_escape(path, shown, sizeof shown), why);
}

static void operands_fail(struct tt_engine *engine, const char *verb, const char *path, int error)
{
	engine->io_error = true;
	if (!engine->copying_pass) /* the walk that copies says it, too */
		return;
	operands_say(engine, verb, path, tt_error_text(error));
	atomic_fetch_add(&engine->errors, 1);
}

static void operands_tell_skipped(const struct tt_engine *engine, const char *name)
{
	const struct tt_event event = {.kind = TT_EVENT_SKIP_DIR, .path = name, .mode = S_IFDIR};

	engine->events.event(engine->events.context, &event);
}

/* The descriptor of a directory that is read as one layer of the root, at `path`. */
static void operands_add_layer(
	struct tt_engine *engine, struct tt_dir *root, int fd, bool is_named, const char *path)
{
	if (tt_rules_begin(engine, TT_FILTER_SOURCE, path, &root->source_rules[root->layer_count])
		< 0)
		tt_engine_abort(engine, TT_EXIT_MEMORY);
	root->layer_is_named[root->layer_count] = is_named;
	root->source_fds[root->layer_count++] = fd;
}

/* Whether a source that is not there is none, or one whose copy is to go. */
static bool operands_may_be_missing(
	struct tt_engine *engine, const struct operand *operand, int error)
{
	if (error != -ENOENT || engine->policy.missing == TT_MISSING_IS_ERROR)
		return false;
	if (engine->policy.missing == TT_MISSING_IGNORE || !engine->copying_pass)
		return true;
	char **missing = realloc(engine->missing, (engine->missing_count + 1) * sizeof *missing);
	char *name = strdup(operand->name);

	if (missing)
		engine->missing = missing;
	if (!missing || !name) {
		free(name);
		return false;
	}
	missing[engine->missing_count++] = name;
	return true;
}

/* A source whose contents are wanted: a layer of the root. */
static void operands_add_contents(struct tt_engine *engine, struct tt_dir *root, const char *path)
{
	struct statx stx;
	int fd = tt_fd_open_path(path, O_RDONLY | O_DIRECTORY);

	if (fd < 0) {
		operands_fail(engine, "opening source", path, fd);
		return;
	}
	if (!engine->policy.plan.recursive && !engine->policy.plan.dirs) {
		operands_tell_skipped(engine, ".");
		tt_fd_close(fd);
		return;
	}
	if (!(root->entry.flags & TT_ENTRY_CONTENTS) && tt_fd_statx(fd, "", &stx) == 0) {
		tt_entry_set(&root->entry, &stx);
		tt_meta_adjust(&engine->policy.meta, &root->entry);
		root->entry.flags |= TT_ENTRY_CONTENTS;
		root->is_target = true;
	}
	operands_add_layer(engine, root, fd, false, path);
}

/* The layer that was added last, and its entry. */
static void operands_drop_named(struct tt_dir *root)
{
	unsigned last = --root->layer_count;

	root->source.count--;
	tt_filter_dir_release(root->source_rules[last]);
	root->source_rules[last] = NULL;
	tt_fd_close(root->source_fds[last]);
	root->source_fds[last] = -1;
}

static void operands_add_named(struct tt_engine *engine, struct tt_dir *root, const char *path,
	const struct operand *operand)
{
	int fd = tt_fd_open_path(operand->parent, O_RDONLY | O_DIRECTORY);
	int r = fd < 0 ? fd
		       : tt_listing_add(&root->source, fd, operand->name, root->layer_count,
			       engine->policy.plan.links);

	if (r < 0) {
		if (fd < 0 || !operands_may_be_missing(engine, operand, r))
			operands_fail(engine, "opening source", path, r);
		tt_fd_close(fd);
		return;
	}
	struct tt_entry *entry = &root->source.entries[root->source.count - 1];

	tt_meta_adjust(&engine->policy.meta, entry);
	operands_add_layer(engine, root, fd, true, operand->parent);
	if (tt_filter_dir_excludes(root->source_rules[root->layer_count - 1], entry->name,
		    tt_entry_is_dir(entry), false)) {
		operands_drop_named(root);
	} else if (tt_entry_is_dir(entry) && !engine->policy.plan.recursive
		   && !engine->policy.plan.dirs) {
		operands_tell_skipped(engine, entry->name);
		operands_drop_named(root);
	}
}

static int operands_open_sources(struct tt_engine *engine, struct tt_dir *root)
{
	root->layer_count = 0; /* of those that can be opened */
	root->layer_is_named = calloc(engine->source_count, sizeof *root->layer_is_named);
	if (!root->layer_is_named)
		return TT_EXIT_MEMORY;
	root->is_target = false;
	for (unsigned i = 0; i < engine->source_count; i++) {
		const char *path = engine->sources[i];
		struct operand operand;
		int r = operands_parse(path, &operand);

		if (r < 0)
			operands_fail(engine, "opening source", path, r);
		else if (operand.contents)
			operands_add_contents(engine, root, path);
		else
			operands_add_named(engine, root, path, &operand);
	}
	return 0;
}

/* If all that is to be copied is no directory it may become a file of another name. */
static bool operands_is_single_file(const struct tt_engine *engine, const struct tt_dir *root)
{
	return engine->missing_count == 0 && root->layer_count == 1 && root->layer_is_named[0]
	       && root->source.count == 1 && !tt_entry_is_dir(&root->source.entries[0]);
}

/* DST names a file: the directory above it is opened. */
static int operands_open_file(
	struct tt_engine *engine, struct tt_dir *root, const struct operand *operand)
{
	struct statx stx;
	int made = tt_mkpath_parent(engine, operand->parent);

	if (made < 0)
		return TT_EXIT_FILE_IO;
	if (made > 0 && engine->policy.dry_run) /* nothing can be there */
		return 0;
	root->destination_fd = tt_fd_open_path(operand->parent, O_RDONLY | O_DIRECTORY);
	if (root->destination_fd < 0) {
		operands_say(engine, "opening destination", operand->parent,
			tt_error_text(root->destination_fd));
		return TT_EXIT_SELECT;
	}
	free(engine->destination_name);
	engine->destination_name = strdup(operand->name);
	if (!engine->destination_name)
		return TT_EXIT_MEMORY;
	root->destination_name = engine->destination_name;
	root->exists = true;
	if (tt_fd_statx(root->destination_fd, "", &stx) == 0)
		tt_entry_set(&root->existing, &stx);
	return 0;
}

static int operands_make_directory(struct tt_engine *engine, struct tt_dir *root)
{
	char path[PATH_MAX];
	size_t length = strlen(engine->destination);

	if (length >= sizeof path)
		return TT_EXIT_SELECT;
	strcpy(path, engine->destination);
	while (length > 1 && path[length - 1] == '/')
		path[--length] = '\0';
	if (engine->policy.mkpath)
		return tt_mkpath_whole(engine, root, path);
	if (!engine->policy.dry_run
		&& mkdir(path, 0777 & ~(mode_t)engine->policy.meta.umask_bits) < 0) {
		operands_say(engine, "making directory", path, tt_error_text(errno));
		return TT_EXIT_FILE_IO;
	}
	const struct tt_event event = {
		.kind = TT_EVENT_CREATED_ROOT, .path = path, .mode = S_IFDIR};

	engine->events.event(engine->events.context, &event);
	root->exists = false;
	if (!engine->policy.dry_run)
		root->destination_fd = tt_fd_open_path(path, O_RDONLY | O_DIRECTORY);
	return 0;
}

/* Whether names in the open directory can be looked up. Not faccessat: its system call with flags
 * (5.8) is one that old sandboxes answer with EPERM. Returns 0 or a negative errno. */
static int operands_may_enter(int dir_fd)
{
	struct stat st;

	return fstatat(dir_fd, ".", &st, 0) < 0 ? -errno : 0;
}

/* A destination with a slash at its end is made even if there is nothing to put into it. */
static int operands_make_named_directory(struct tt_engine *engine, struct tt_dir *root)
{
	size_t length = strlen(engine->destination);
	struct stat st;

	if (stat(engine->destination, &st) == 0) {
		TT_FD_AUTO fd = tt_fd_open_path(engine->destination, O_PATH | O_DIRECTORY);
		int r = S_ISDIR(st.st_mode) && fd >= 0 ? operands_may_enter(fd) : 0;

		if (r == 0)
			return 0;
		operands_say(engine, "opening destination", engine->destination, tt_error_text(r));
		return TT_EXIT_SELECT;
	}
	if (length == 0 || engine->destination[length - 1] != '/' || engine->deleting_pass)
		return 0;
	return operands_make_directory(engine, root);
}

static int operands_open_destination(
	struct tt_engine *engine, struct tt_dir *root, bool *ret_missing)
{
	const char *path = engine->destination;
	bool single = operands_is_single_file(engine, root);
	struct operand operand;
	struct statx stx;
	int r = operands_parse(path, &operand);

	if (r < 0) {
		operands_say(engine, "opening destination", path, tt_error_text(r));
		return TT_EXIT_SELECT;
	}
	int fd = tt_fd_open_path(path, O_RDONLY | O_DIRECTORY);

	if (fd == -ENOENT && single && !operand.contents)
		return operands_open_file(engine, root, &operand);
	if (fd == -ENOENT && engine->deleting_pass) {
		*ret_missing = true; /* nothing to delete; the copying makes it */
		return 0;
	}
	if (fd == -ENOENT)
		return operands_make_directory(engine, root);
	/* With a slash behind it, a file was meant to be a directory: it is not replaced. */
	if (fd == -ENOTDIR && single && !operand.contents)
		return operands_open_file(engine, root, &operand);
	if (fd == -ENOTDIR) {
		operands_say(engine,
			"the destination must be a directory, for what is copied or for its slash:",
			path, "it is something else");
		return TT_EXIT_SELECT;
	}
	if (fd < 0) {
		operands_say(engine, "opening destination", path, tt_error_text(fd));
		return TT_EXIT_SELECT;
	}
	r = operands_may_enter(fd);
	if (r < 0) { /* readable, but nothing in it is */
		operands_say(engine, "opening destination", path, tt_error_text(r));
		tt_fd_close(fd);
		return TT_EXIT_SELECT;
	}
	root->destination_fd = fd;
	root->exists = true;
	if (tt_fd_statx(fd, "", &stx) == 0)
		tt_entry_set(&root->existing, &stx);
	return 0;
}

/* Whether a walk of the source at `source_path` (resolved) would come to the destination
 * (resolved). */
static bool operands_would_descend(const struct tt_filter_dir *rules, const char *source_path,
	const char *name, const char *destination_path)
{
	size_t length = strcmp(source_path, "/") == 0 ? 0 : strlen(source_path);
	char path[PATH_MAX * 3];

	if (strncmp(destination_path, source_path, length) != 0 || destination_path[length] != '/')
		return false;
	/* Each directory on the way must be let through by the filter. */
	strcpy(path, name);
	if (name[0] != '\0')
		strcat(path, "/");
	size_t base = strlen(path);

	strcpy(path + base, destination_path + length + 1);
	for (char *slash = path + base;; slash++) {
		slash += strcspn(slash, "/");
		char end = *slash;

		*slash = '\0';
		if (tt_filter_dir_excludes(rules, path, true, false))
			return false;
		if (end == '\0')
			return true;
		*slash = end;
	}
}

/* Where the destination is or will be, without links. */
static bool operands_resolve_destination(
	const struct tt_engine *engine, char *ret_path, size_t size)
{
	struct operand operand;
	char parent[PATH_MAX];

	if (realpath(engine->destination, ret_path))
		return true;
	if (operands_parse(engine->destination, &operand) < 0 || !realpath(operand.parent, parent))
		return false;
	int n = snprintf(
		ret_path, size, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, operand.name);

	return n > 0 && (size_t)n < size;
}

static int operands_refuse(
	const struct tt_engine *engine, const char *what, const char *path, const char *why)
{
	operands_say(engine, what, path, why);
	return TT_EXIT_USAGE;
}

static int operands_check_source(
	const struct tt_engine *engine, const char *path, const char *destination_path)
{
	char source_path[PATH_MAX];
	struct tt_filter_dir *rules = NULL;
	struct operand operand;
	struct stat source, destination;

	if (operands_parse(path, &operand) < 0 || stat(path, &source) < 0)
		return 0;
	bool exists = stat(engine->destination, &destination) == 0;
	bool same = exists && source.st_dev == destination.st_dev
		    && source.st_ino == destination.st_ino;

	if (same && S_ISREG(source.st_mode))
		return operands_refuse(engine, "refusing to copy a file onto itself:", path,
			"source and destination are the same file");
	if (!S_ISDIR(source.st_mode) || !engine->policy.plan.recursive)
		return 0;
	if (same && operand.contents)
		return operands_refuse(engine, "refusing to copy a directory onto itself:", path,
			"source and destination are the same");
	/* -x does not go where the destination is. */
	if (engine->policy.one_file_system && exists && source.st_dev != destination.st_dev)
		return 0;
	if (tt_rules_begin(
		    engine, TT_FILTER_SOURCE, operand.contents ? path : operand.parent, &rules)
		< 0)
		return TT_EXIT_MEMORY;
	bool into_itself = same
			   || (realpath(path, source_path)
				   && operands_would_descend(rules, source_path,
					   operand.contents ? "" : operand.name, destination_path));

	tt_filter_dir_release(rules);
	if (into_itself)
		return operands_refuse(engine,
			"refusing to copy a directory into itself:", engine->destination,
			"it is inside the source; exclude it, or choose another destination");
	return 0;
}

/* Refuses to copy a tree onto itself or into itself, before anything is made. */
static int operands_check_overlap(const struct tt_engine *engine)
{
	char destination_path[PATH_MAX * 2];
	int r = 0;

	if (!operands_resolve_destination(engine, destination_path, sizeof destination_path))
		return 0;
	for (unsigned i = 0; i < engine->source_count && r == 0; i++)
		r = operands_check_source(engine, engine->sources[i], destination_path);
	return r;
}

static void operands_remember_destination(struct tt_engine *engine, const struct tt_dir *root)
{
	struct statx stx;

	engine->root_destination_fd = root->destination_fd;
	engine->destination_ino = 0;
	if (root->destination_fd >= 0 && !root->destination_name
		&& tt_fd_statx(root->destination_fd, "", &stx) == 0) {
		engine->destination_ino = stx.stx_ino;
		engine->destination_dev_key =
			((uint64_t)stx.stx_dev_major << 32) | stx.stx_dev_minor;
	}
}

int tt_operands_open(struct tt_engine *engine, struct tt_dir **ret_root)
{
	struct tt_dir *root = tt_dir_new(NULL, NULL, engine->source_count);
	bool missing = false;

	if (!root)
		return TT_EXIT_MEMORY;
	int r = operands_open_sources(engine, root);

	if (r == 0 && root->layer_count == 0 && engine->missing_count == 0) {
		/* Nothing to copy: no reason to look for what the source does not have. */
		r = operands_make_named_directory(engine, root);
		tt_dir_free(root);
		*ret_root = NULL;
		return r;
	}
	if (r == 0)
		r = operands_check_overlap(engine);
	if (r == 0)
		r = operands_open_destination(engine, root, &missing);
	if (r != 0 || missing) {
		tt_dir_free(root);
		*ret_root = NULL;
		return r;
	}
	operands_remember_destination(engine, root);
	if (tt_rules_begin(
		    engine, TT_FILTER_DESTINATION, engine->destination, &root->destination_rules)
		< 0) {
		tt_dir_free(root);
		*ret_root = NULL;
		return TT_EXIT_MEMORY;
	}
	if (root->destination_fd >= 0) {
		root->to = tt_volume_get(engine, root->destination_fd, NULL);
		if (root->to && !engine->policy.dry_run)
			r = tt_volume_prepare(engine, root->to, root->destination_fd);
		if (!root->to || r < 0) {
			tt_dir_free(root);
			return TT_EXIT_MEMORY;
		}
	}
	*ret_root = root;
	return 0;
}
