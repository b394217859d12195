/* SPDX-License-Identifier: MIT */
/*
 * See mkpath.h. These are the user's own words: links on the way are followed.
 */
#include "sync/mkpath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "sys/fd.h"

static void mkpath_say(const struct tt_engine *engine, const char *path, int error)
{
	char shown[PATH_MAX];

	tt_log_line(engine->log, TT_LOG_ERROR, "making directory %s: %s",
		tt_log_escape(path, shown, sizeof shown), tt_error_text(error));
}

/* Makes a directory and those above it. Returns how many, or a negative errno. */
static int mkpath_make(const struct tt_engine *engine, char *path)
{
	mode_t mode = 0777 & ~(mode_t)engine->policy.meta.umask_bits;
	int made = 0;

	for (char *slash = path + strspn(path, "/");; slash += strspn(slash, "/")) {
		slash += strcspn(slash, "/");
		char end = *slash;
		struct stat st;

		*slash = '\0';
		bool is_there = stat(path, &st) == 0;
		int r = is_there || engine->policy.dry_run || mkdir(path, mode) == 0 ? 0 : -errno;

		*slash = end;
		if (r < 0 && r != -EEXIST)
			return r;
		made += !is_there && r == 0;
		if (slash[strspn(slash, "/")] == '\0')
			return made;
	}
}

static void mkpath_tell(
	const struct tt_engine *engine, enum tt_event_kind kind, const char *path, int count)
{
	const struct tt_event event = {
		.kind = kind, .path = path, .mode = S_IFDIR, .count = (unsigned)count};

	engine->events.event(engine->events.context, &event);
}

int tt_mkpath_parent(const struct tt_engine *engine, const char *parent)
{
	char path[PATH_MAX];
	size_t length = strlen(parent);

	if (!engine->policy.mkpath)
		return 0;
	strcpy(path, parent);
	while (length > 1 && path[length - 1] == '/')
		path[--length] = '\0';
	int made = mkpath_make(engine, path);

	if (made < 0)
		mkpath_say(engine, path, made);
	if (made > 0)
		mkpath_tell(engine, TT_EVENT_CREATED_PATH, path, made);
	return made;
}

int tt_mkpath_whole(struct tt_engine *engine, struct tt_dir *root, char *path)
{
	int made = mkpath_make(engine, path);
	struct statx stx;

	if (made < 0) {
		mkpath_say(engine, path, made);
		return TT_EXIT_FILE_IO;
	}
	mkpath_tell(engine, TT_EVENT_CREATED_PATH, path, made);
	if (engine->policy.dry_run) {
		mkpath_tell(engine, TT_EVENT_CREATED_ROOT, path, 1);
		return 0;
	}
	root->destination_fd = tt_fd_open_path(path, O_RDONLY | O_DIRECTORY);
	root->exists = root->destination_fd >= 0;
	if (root->exists && tt_fd_statx(root->destination_fd, "", &stx) == 0)
		tt_entry_set(&root->existing, &stx);
	return 0;
}
