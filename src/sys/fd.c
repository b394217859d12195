/* SPDX-License-Identifier: MIT */
/*
 * See fd.h. Every open here carries O_NOFOLLOW and O_CLOEXEC.
 */
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static int fd_open_noatime(int dir_fd, const char *name, int flags)
{
	int fd = openat(dir_fd, name, flags | O_NOATIME);

	/* EPERM: neither owner nor CAP_FOWNER (open(2)). */
	if (fd < 0 && errno == EPERM)
		fd = openat(dir_fd, name, flags);
	return fd < 0 ? -errno : fd;
}

int tt_fd_open_dir(int dir_fd, const char *name)
{
	return fd_open_noatime(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int tt_fd_open_read(int dir_fd, const char *name)
{
	return fd_open_noatime(
		dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* One's own file may say that its owner must not write: it is made writable for the moment, as
 * rsync 3.5 does. */
static int fd_open_own(int dir_fd, const char *name, int flags)
{
	char path[64];
	struct stat st;
	TT_FD_AUTO handle = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (handle < 0 || fstat(handle, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return -EACCES;
	/* A handle cannot be changed itself; what this opens is the file that was looked at. */
	snprintf(path, sizeof path, "/proc/self/fd/%d", handle);
	if (chmod(path, (st.st_mode & 07777) | 0600) < 0)
		return -errno;
	int fd = fd_open_noatime(dir_fd, name, O_RDWR | flags);

	(void)chmod(path, st.st_mode & 07777);
	return fd;
}

int tt_fd_open_update(int dir_fd, const char *name)
{
	const int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = fd_open_noatime(dir_fd, name, O_RDWR | flags);

	if (fd == -EACCES)
		fd = fd_open_noatime(dir_fd, name, O_WRONLY | flags);
	if (fd == -EACCES)
		fd = fd_open_own(dir_fd, name, flags);
	return fd;
}

int tt_fd_create(int dir_fd, const char *name)
{
	int fd = openat(
		dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/* One component after the other, for kernels and sandboxes without openat2. */
static int fd_walk_beneath(int root_fd, const char *path)
{
	char name[NAME_MAX + 1];
	int fd = tt_fd_open_dir(root_fd, ".");

	while (fd >= 0 && *path != '\0') {
		size_t length = strcspn(path, "/");

		if (length > NAME_MAX) {
			tt_fd_close(fd);
			return -ENAMETOOLONG;
		}
		memcpy(name, path, length);
		name[length] = '\0';
		path += length + strspn(path + length, "/");
		if (length == 0 || strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") == 0) {
			tt_fd_close(fd);
			return -EXDEV;
		}
		int next = tt_fd_open_dir(fd, name);
		tt_fd_close(fd);
		fd = next;
	}
	return fd;
}

int tt_fd_open_beneath(int root_fd, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	do {
		fd = syscall(SYS_openat2, root_fd, path, &how, sizeof how);
	} while (fd < 0 && (errno == EAGAIN || errno == EINTR)); /* a rename raced with the walk:
								    try again (openat2(2)) */
	if (fd >= 0)
		return (int)fd;
	if (errno == ENOSYS || errno == EPERM || errno == ENAMETOOLONG)
		return fd_walk_beneath(root_fd, path);
	return -errno;
}

int tt_fd_open_path(const char *path, int flags)
{
	return fd_open_noatime(AT_FDCWD, path, flags | O_CLOEXEC);
}

int tt_fd_statx(int dir_fd, const char *name, struct statx *ret_stx)
{
	if (statx(dir_fd, name, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
		    STATX_BASIC_STATS, ret_stx)
		< 0)
		return -errno;
	return 0;
}

int tt_fd_flush(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return -errno;
	/* EINTR: Linux has closed it (close(2)). */
	return close(copy) < 0 && errno != EINTR ? -errno : 0;
}

unsigned tt_fd_raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 256;
	if (limit.rlim_cur < limit.rlim_max) {
		rlim_t soft = limit.rlim_cur;

		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
			limit.rlim_cur = soft;
	}
	return limit.rlim_cur > UINT_MAX ? UINT_MAX : (unsigned)limit.rlim_cur;
}

ssize_t tt_fd_getdents(int dir_fd, void *buffer, size_t size)
{
	long n = syscall(SYS_getdents64, dir_fd, buffer, size);

	return n < 0 ? -errno : n;
}

ssize_t tt_fd_pread(int fd, void *buffer, size_t size, uint64_t offset, int rwf_flags)
{
	struct iovec iov = {.iov_base = buffer, .iov_len = size};
	ssize_t n;

	do {
		n = rwf_flags ? preadv2(fd, &iov, 1, (off_t)offset, rwf_flags)
			      : pread(fd, buffer, size, (off_t)offset);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t tt_fd_pwrite(int fd, const void *buffer, size_t size, uint64_t offset, int rwf_flags)
{
	struct iovec iov = {.iov_base = (void *)buffer, .iov_len = size};
	ssize_t n;

	do {
		n = rwf_flags ? pwritev2(fd, &iov, 1, (off_t)offset, rwf_flags)
			      : pwrite(fd, buffer, size, (off_t)offset);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int tt_fd_pwrite_all(int fd, const void *buffer, size_t size, uint64_t offset, int rwf_flags)
{
	const char *from = buffer;

	while (size > 0) {
		ssize_t n = tt_fd_pwrite(fd, from, size, offset, rwf_flags);

		if (n < 0)
			return (int)n;
		if (n == 0)
			return -EIO;
		from += n;
		offset += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}
