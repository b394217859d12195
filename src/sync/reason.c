/* SPDX-License-Identifier: MIT */
/*
 * See reason.h.
 */
#include "sync/reason.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sync/volume.h"
#include "sys/fd.h"
#include "tree/alias.h"

enum {
	REASON_MOST_TOLD = 10,
	REASON_MOST_REFUSALS = 16,
};

/* What holds a name fast (chattr(1)), asked where it is kept: statx tells it without opening
 * anything (STATX_ATTR_IMMUTABLE, Linux 4.11; ext4, xfs, btrfs, f2fs, overlayfs, tmpfs). */
static const char *reason_pinned(int dir_fd, const char *name)
{
	struct statx stx;

	if (statx(dir_fd, name, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_TYPE,
		    &stx)
		< 0)
		return NULL;
	if (stx.stx_attributes & STATX_ATTR_IMMUTABLE)
		return "immutable";
	return stx.stx_attributes & STATX_ATTR_APPEND ? "append-only" : NULL;
}

/* The directory that a name is in, which may be some levels below (deletions), and its last
 * component. The descriptor is the caller's. */
static int reason_open_parent(const struct tt_dir *dir, const char **name)
{
	const char *slash = *name ? strrchr(*name, '/') : NULL;
	char parent[PATH_MAX];

	if (!slash || (size_t)(slash - *name) >= sizeof parent)
		return tt_fd_open_dir(dir->destination_fd, ".");
	memcpy(parent, *name, (size_t)(slash - *name));
	parent[slash - *name] = '\0';
	*name = slash + 1;
	return tt_fd_open_beneath(dir->destination_fd, parent);
}

static const char *reason_not_permitted(const struct tt_dir *dir, const char *name, char *buffer)
{
	TT_FD_AUTO fd = reason_open_parent(dir, &name);
	const char *what = NULL, *which = "it is";

	if (fd >= 0 && name)
		what = reason_pinned(fd, name);
	if (fd >= 0 && !what) {
		what = reason_pinned(fd, "");
		which = name ? "its directory is" : "it is";
	}
	if (!what)
		return tt_error_text(EPERM);
	snprintf(buffer, TT_REASON_SIZE, "%s (%s %s)", tt_error_text(EPERM), which, what);
	return buffer;
}

static const char *reason_alias(const struct tt_dir *dir, const char *name, char *buffer)
{
	char other[TT_ALIAS_NAME_SIZE], shown[TT_REASON_SIZE - 128];

	if (!name || tt_alias_look(dir->destination_fd, name, other) != 1 || other[0] == '\0')
		return "the file system has it already, spelled otherwise";
	snprintf(buffer, TT_REASON_SIZE, "to this file system it is the same name as %s",
		tt_log_escape(other, shown, sizeof shown));
	return buffer;
}

const char *tt_reason_text(const struct tt_dir *dir, const char *name, int error, char *buffer)
{
	if (dir->destination_fd < 0)
		return tt_error_text(error);
	if (name && dir->destination_name)
		name = dir->destination_name;
	if (error == -EPERM)
		return reason_not_permitted(dir, name, buffer);
	if (error == -ENOTUNIQ)
		return reason_alias(dir, name, buffer);
	return tt_error_text(error);
}

static bool reason_is_the_volumes(int error)
{
	switch (error) {
	case -EIO:
	case -EROFS:
	case -ENOTCONN:  /* a FUSE server has died */
	case -ESHUTDOWN: /* a file system was shut down, Linux 6.13 on */
	case -ENODEV:
	case -ENXIO:
	case -EUCLEAN: /* it has found itself corrupt */
		return true;
	default:
		return false;
	}
}

static bool reason_is_given_up(const struct tt_dir *dir)
{
	return dir->to
	       && atomic_load_explicit(&dir->to->refusals, memory_order_relaxed)
			  >= REASON_MOST_REFUSALS;
}

bool tt_reason_is_news(struct tt_engine *engine, const struct tt_dir *dir, int error)
{
	bool loss =
		error == -EROFS || error == -ENOTCONN || error == -ESHUTDOWN || error == -ENODEV;

	if (!(loss && atomic_fetch_add(&engine->told_of_loss, 1) >= REASON_MOST_TOLD)
		&& !(reason_is_given_up(dir) && reason_is_the_volumes(error)))
		return true;
	atomic_fetch_add(&engine->untold, 1);
	return false;
}

void tt_reason_refused(struct tt_engine *engine, const struct tt_dir *dir, int error)
{
	if (!dir->to || !reason_is_the_volumes(error))
		return;
	if (atomic_fetch_add(&dir->to->refusals, 1) + 1 == REASON_MOST_REFUSALS)
		tt_log_line(engine->log, TT_LOG_ERROR,
			"%s%s%s has taken none of %d files in a row: no more are tried there",
			dir->to->device.fs_type[0] ? dir->to->device.fs_type : "the file system",
			dir->to->device.disk_name[0] ? " on " : "", dir->to->device.disk_name,
			REASON_MOST_REFUSALS);
}

void tt_reason_taken(const struct tt_dir *dir)
{
	if (dir->to && atomic_load_explicit(&dir->to->refusals, memory_order_relaxed) > 0)
		atomic_store(&dir->to->refusals, 0);
}

bool tt_reason_gave_up(struct tt_engine *engine, const struct tt_dir *dir)
{
	if (!reason_is_given_up(dir))
		return false;
	atomic_fetch_add(&engine->errors, 1);
	atomic_fetch_add(&engine->untold, 1);
	return true;
}

void tt_reason_finish(struct tt_engine *engine)
{
	unsigned untold = atomic_load(&engine->untold);

	if (untold > 0)
		tt_log_line(engine->log, TT_LOG_ERROR, "%u more such errors are not shown", untold);
}
