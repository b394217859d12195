/* SPDX-License-Identifier: MIT */
/*
 * See temporary.h.
 */
#include "sys/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define TEMPORARY_FREE_BYTES (UINT64_C(64) << 20)

enum {
	TEMPORARY_MOST_TRIES = 100
};

void tt_temporary_name(char ret_name[TT_TEMPNAME_SIZE])
{
	tt_tempname_make("probe", ret_name);
}

/* The directory keeps its time, if it is ours to set: nothing of it has changed. */
static int temporary_open_named(int dir_fd)
{
	char name[TT_TEMPNAME_SIZE];
	struct stat before;
	int fd = -1;

	if (fstat(dir_fd, &before) < 0)
		return -errno;
	for (unsigned i = 0; i < TEMPORARY_MOST_TRIES && fd < 0; i++) {
		tt_temporary_name(name);
		fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 && errno != EEXIST)
			return -errno;
	}
	if (fd < 0)
		return -EEXIST;
	(void)flock(fd, LOCK_EX | LOCK_NB);
	if (unlinkat(dir_fd, name, 0) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, before.st_mtim};

	(void)futimens(dir_fd, times);
	return fd;
}

int tt_temporary_open(int dir_fd, int *ret_error)
{
	struct statvfs fs;
	int error = 0;

	if (ret_error)
		*ret_error = 0;
	if (fstatvfs(dir_fd, &fs) < 0)
		return -errno;
	if (fs.f_flag & ST_RDONLY)
		return -EROFS;
	/* One without any blocks does not tell (/proc, servers that do not know). */
	if (fs.f_blocks > 0 && (uint64_t)fs.f_bavail * fs.f_frsize < TEMPORARY_FREE_BYTES)
		return -ENOSPC;
	int fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0) {
		(void)flock(fd, LOCK_EX | LOCK_NB);
		return fd;
	}
	error = -errno;
	/* ENOTSUP: not here; EISDIR, ENOENT: a kernel, or a FUSE server, that does not know the
	 * flag (open(2)); EINVAL, ENOSYS: some servers. */
	if (error != -EOPNOTSUPP && error != -EISDIR && error != -ENOENT && error != -EINVAL
		&& error != -ENOSYS && error != -EPERM)
		return error;
	fd = temporary_open_named(dir_fd);
	if (fd >= 0 && ret_error)
		*ret_error = error;
	return fd;
}
