/* SPDX-License-Identifier: MIT */
/*
 * Temporaries: four system calls for each (openat, flock, fstat, renameat).
 *
 * The lock is taken after the file exists, so a sweep could come between and remove a temporary
 * that is just being born. Its creator notices: after locking, the file must still have a link (one
 * fstat), else another one is made.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/facility.h"
#include "sys/tempname.h"
#include "tree/alias.h"
#include "tree/stage.h"

enum {
	STAGE_ATTEMPTS = 100, /* 62^3 names: the second attempt is already a rarity */
};

void tt_stage_name(const char *name, char *ret_temp)
{
	tt_tempname_make(name, ret_temp);
}

bool tt_stage_is_temporary(const char *name)
{
	return tt_tempname_is(name);
}

/* Returns 0, 1 if the lock is somebody else's, or a negative errno. A file system without locks
 * counts as locked by us: sweeping asks for the lock too and will get the same error, so nothing is
 * removed that is in use. */
static int stage_lock(int fd)
{
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EWOULDBLOCK)
			return 1;
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

mode_t tt_stage_early_mode(mode_t mode)
{
	mode_t group = mode >> 3 & 7, other = mode & 7;

	return group == other ? mode & 0777 : mode & 0700;
}

int tt_stage_create(
	int dir_fd, const char *name, mode_t mode, char *ret_temp, int *ret_fd, struct stat *ret_st)
{
	for (int attempt = 0; attempt < STAGE_ATTEMPTS; attempt++) {
		int fd;

		tt_stage_name(name, ret_temp);
		fd = openat(dir_fd, ret_temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			tt_stage_early_mode(mode) | 0600);
		if (fd < 0) {
			if (errno == EEXIST || errno == EINTR)
				continue;
			return -errno;
		}
		if (stage_lock(fd) != 1 && fstat(fd, ret_st) == 0 && ret_st->st_nlink > 0) {
			*ret_fd = fd;
			return 0;
		}
		/* A sweep has it, and is about to remove it or has done so. */
		(void)close(fd);
		(void)unlinkat(dir_fd, ret_temp, 0);
	}
	return -EEXIST;
}

/* Gives a name that nobody had when the directory was listed. Returns 0, 1 if the name may be
 * replaced after all, or a negative errno. *ret_refusal: that of renameat2, if it may be one. */
static int stage_arrive_new(int dir_fd, const char *temp, const char *name, int *ret_refusal)
{
	char other[TT_ALIAS_NAME_SIZE];

	if (!tt_facility_is_refused(TT_FACILITY_RENAMEAT2)) {
		/* The C library's function would make EINVAL of ENOSYS. */
		if (syscall(SYS_renameat2, dir_fd, temp, dir_fd, name, RENAME_NOREPLACE) == 0)
			return 0;
		if (tt_facility_may_be_refusal(-errno))
			*ret_refusal = -errno;
		else if (errno != EEXIST && errno != EINVAL)
			return -errno;
	}
	/* EINVAL: NFS, CIFS and many FUSE servers know no flags, but what the kernel knows to be
	 * there is EEXIST even so (fs/namei.c, do_renameat2()). A refused call tells nothing.
	 * There the look comes before the rename, not with it. */
	int r = tt_alias_look(dir_fd, name, other);

	/* Spelled like this: somebody made it meanwhile, and it is replaced, as rsync does. */
	if (r == 0 || r == -ENOENT)
		return 1;
	return r > 0 ? -ENOTUNIQ : r;
}

int tt_stage_arrive(int dir_fd, const char *temp, const char *name, bool is_new)
{
	int refusal = 0;
	int r = is_new ? stage_arrive_new(dir_fd, temp, name, &refusal) : 1;

	if (r <= 0)
		return r;
	if (renameat(dir_fd, temp, dir_fd, name) < 0)
		return -errno;
	if (refusal < 0)
		tt_facility_refuse(TT_FACILITY_RENAMEAT2, refusal);
	return 0;
}

int tt_stage_arrive_link(int dir_fd, const char *temp, const char *name, bool is_new)
{
	struct stat st;
	int r = tt_stage_arrive(dir_fd, temp, name, is_new);

	if (r < 0)
		return r;
	/* Two names of one inode: rename did nothing and said 0. Only something with a second link
	 * can be that, and what the caller staged has one only if it is a hard link. */
	if (fstatat(dir_fd, temp, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (unlinkat(dir_fd, temp, 0) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

/* Removes the name if it still is the inode that was looked at. */
static int stage_remove(int dir_fd, const char *name, const struct stat *seen)
{
	struct stat now, before;

	if (fstatat(dir_fd, name, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (now.st_dev != seen->st_dev || now.st_ino != seen->st_ino)
		return 1;
	if (fstat(dir_fd, &before) < 0)
		return -errno;
	if (unlinkat(dir_fd, name, 0) < 0)
		return errno == ENOENT ? 0 : -errno;
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, before.st_mtim};

	(void)futimens(dir_fd, times); /* somebody else's directory keeps what it has now */
	return 0;
}

/* For writing too, if that is permitted: NFS and CIFS lock exclusively only what is open for it,
 * and say EBADF (flock(2), "NFS details"). O_NONBLOCK: a fifo may have taken the name since. */
static int stage_open(int dir_fd, const char *name)
{
	const int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = openat(dir_fd, name, O_RDWR | flags);

	if (fd < 0 && (errno == EACCES || errno == EPERM || errno == ETXTBSY))
		fd = openat(dir_fd, name, O_RDONLY | flags);
	return fd < 0 ? -errno : fd;
}

static int stage_sweep_regular(int dir_fd, const char *name)
{
	int fd = stage_open(dir_fd, name);
	struct stat st;
	int r;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = stage_lock(fd);
	if (r == 0) {
		if (fstat(fd, &st) < 0)
			r = -errno;
		else if (!S_ISREG(st.st_mode))
			r = 1;
		else
			r = stage_remove(dir_fd, name, &st);
	}
	(void)close(fd);
	return r;
}

int tt_stage_sweep(int dir_fd, const char *name)
{
	struct stat st;

	if (!tt_stage_is_temporary(name))
		return 1;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return 1;
	if (S_ISREG(st.st_mode))
		return stage_sweep_regular(dir_fd, name);
	return stage_remove(dir_fd, name, &st);
}
