/* SPDX-License-Identifier: MIT */
/*
 * See fd.h. Every open here carries O_NOFOLLOW and O_CLOEXEC.
 */
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "sys/facility.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* the same on all architectures for calls this new */
#endif
#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000
#endif

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

static int fd_openat2(int root_fd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)flags | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
	};
	long fd;

	do {
		fd = syscall(SYS_openat2, root_fd, path, &how, sizeof how);
	} while (fd < 0 && (errno == EAGAIN || errno == EINTR)); /* a rename raced with the walk:
								    try again (openat2(2)) */
	return fd < 0 ? -errno : (int)fd;
}

int tt_fd_open_beneath(int root_fd, const char *path)
{
	if (tt_facility_is_refused(TT_FACILITY_OPENAT2))
		return fd_walk_beneath(root_fd, path);
	int fd = fd_openat2(root_fd, path, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);

	if (!tt_facility_may_be_refusal(fd) && fd != -ENAMETOOLONG)
		return fd;
	int walked = fd_walk_beneath(root_fd, path);

	if (walked >= 0 && fd != -ENAMETOOLONG)
		tt_facility_refuse(TT_FACILITY_OPENAT2, fd);
	return walked;
}

/* The same for a file, without openat2: then no link at all is followed. */
static int fd_walk_to_file(int root_fd, const char *path)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_MAX];

	if (!slash)
		return tt_fd_open_read(root_fd, path);
	if ((size_t)(slash - path) >= sizeof parent)
		return -ENAMETOOLONG;
	memcpy(parent, path, (size_t)(slash - path));
	parent[slash - path] = '\0';
	TT_FD_AUTO dir_fd = fd_walk_beneath(root_fd, parent);

	return dir_fd < 0 ? dir_fd : tt_fd_open_read(dir_fd, slash + 1);
}

int tt_fd_open_read_beneath(int root_fd, const char *path)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;

	if (tt_facility_is_refused(TT_FACILITY_OPENAT2))
		return fd_walk_to_file(root_fd, path);
	int fd = fd_openat2(root_fd, path, flags | O_NOATIME, 0);

	if (fd == -EPERM)
		fd = fd_openat2(root_fd, path, flags, 0);
	return tt_facility_may_be_refusal(fd) ? fd_walk_to_file(root_fd, path) : fd;
}

int tt_fd_open_path(const char *path, int flags)
{
	return fd_open_noatime(AT_FDCWD, path, flags | O_CLOEXEC);
}

static struct statx_timestamp fd_timestamp(struct timespec time)
{
	return (struct statx_timestamp){.tv_sec = time.tv_sec, .tv_nsec = (unsigned)time.tv_nsec};
}

static void fd_statx_from_stat(const struct stat *st, struct statx *ret_stx)
{
	*ret_stx = (struct statx){
		.stx_mask = STATX_BASIC_STATS,
		.stx_blksize = (unsigned)st->st_blksize,
		.stx_nlink = (unsigned)st->st_nlink,
		.stx_uid = st->st_uid,
		.stx_gid = st->st_gid,
		.stx_mode = (unsigned short)st->st_mode,
		.stx_ino = st->st_ino,
		.stx_size = (uint64_t)st->st_size,
		.stx_blocks = (uint64_t)st->st_blocks,
		.stx_atime = fd_timestamp(st->st_atim),
		.stx_ctime = fd_timestamp(st->st_ctim),
		.stx_mtime = fd_timestamp(st->st_mtim),
		.stx_rdev_major = major(st->st_rdev),
		.stx_rdev_minor = minor(st->st_rdev),
		.stx_dev_major = major(st->st_dev),
		.stx_dev_minor = minor(st->st_dev),
	};
}

/* The system call itself: the C library's function would hide ENOSYS behind a second call, for each
 * file. */
static int fd_statx(int dir_fd, const char *name, int flags, unsigned mask, struct statx *ret_stx)
{
	return syscall(SYS_statx, dir_fd, name, flags, mask, ret_stx) < 0 ? -errno : 0;
}

int tt_fd_statx(int dir_fd, const char *name, struct statx *ret_stx)
{
	const int flags =
		AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (name[0] == '\0' ? AT_EMPTY_PATH : 0);
	struct stat st;
	int r = -ENOSYS;

	if (!tt_facility_is_refused(TT_FACILITY_STATX)) {
		r = fd_statx(dir_fd, name, flags, STATX_BASIC_STATS, ret_stx);
		if (!tt_facility_may_be_refusal(r))
			return r;
	}
	if (fstatat(dir_fd, name, &st, flags) < 0)
		return -errno;
	tt_facility_refuse(TT_FACILITY_STATX, r);
	fd_statx_from_stat(&st, ret_stx);
	return 0;
}

int tt_fd_mount_id(int fd, uint64_t *ret_id)
{
	char path[64], line[256];
	unsigned long long id;
	struct statx stx;
	int r = -ENODATA;

	if (!tt_facility_is_refused(TT_FACILITY_STATX)
		&& fd_statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) == 0
		&& (stx.stx_mask & STATX_MNT_ID)) { /* an older kernel ignores the bit */
		*ret_id = stx.stx_mnt_id;
		return 0;
	}
	(void)snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	FILE *file = fopen(path, "re");

	if (!file)
		return -errno;
	while (r != 0 && fgets(line, sizeof line, file)) {
		if (sscanf(line, "mnt_id: %llu", &id) == 1) {
			*ret_id = id;
			r = 0;
		}
	}
	(void)fclose(file);
	return r;
}

int tt_fd_chmod_at(int dir_fd, const char *name, mode_t mode)
{
	int r = -ENOSYS;

	if (!tt_facility_is_refused(TT_FACILITY_FCHMODAT2)) {
		r = syscall(SYS_fchmodat2, dir_fd, name, mode, AT_SYMLINK_NOFOLLOW) < 0 ? -errno
											: 0;
		if (!tt_facility_may_be_refusal(r))
			return r;
	}
	if (fchmodat(dir_fd, name, mode, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	tt_facility_refuse(TT_FACILITY_FCHMODAT2, r);
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

/* "0 0 4294967295" in the first user namespace. Where /proc does not say, it is taken for that. */
static bool fd_all_users_are_mapped(void)
{
	unsigned long long inside, outside, count = 0, all = 0;
	FILE *file = fopen("/proc/self/uid_map", "re");

	if (!file)
		return true;
	while (fscanf(file, "%llu %llu %llu", &inside, &outside, &count) == 3)
		all += count;
	(void)fclose(file);
	return all >= UINT32_MAX;
}

/* Over everybody's files. */
static bool fd_is_capable(unsigned capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (syscall(SYS_capget, &header, sets) < 0)
		return geteuid() == 0;
	return (sets[0].effective & 1u << capability) && fd_all_users_are_mapped();
}

bool tt_fd_overrides_modes(void)
{
	return fd_is_capable(CAP_DAC_OVERRIDE);
}

bool tt_fd_overrides_owners(void)
{
	return fd_is_capable(CAP_FOWNER);
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

/* Flags are what was refused, whatever the filter says; the data has errors of its own. */
static ssize_t fd_transfer_error(int error, int rwf_flags)
{
	return rwf_flags && tt_facility_may_be_refusal(-error) ? -EOPNOTSUPP : -error;
}

ssize_t tt_fd_pread(int fd, void *buffer, size_t size, uint64_t offset, int rwf_flags)
{
	struct iovec iov = {.iov_base = buffer, .iov_len = size};
	ssize_t n;

	do {
		n = rwf_flags ? preadv2(fd, &iov, 1, (off_t)offset, rwf_flags)
			      : pread(fd, buffer, size, (off_t)offset);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? fd_transfer_error(errno, rwf_flags) : n;
}

ssize_t tt_fd_pwrite(int fd, const void *buffer, size_t size, uint64_t offset, int rwf_flags)
{
	struct iovec iov = {.iov_base = (void *)buffer, .iov_len = size};
	ssize_t n;

	do {
		n = rwf_flags ? pwritev2(fd, &iov, 1, (off_t)offset, rwf_flags)
			      : pwrite(fd, buffer, size, (off_t)offset);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? fd_transfer_error(errno, rwf_flags) : n;
}

int tt_fd_allocate(int fd, int mode, uint64_t offset, uint64_t bytes)
{
	int r;

	if (tt_facility_is_refused(TT_FACILITY_FALLOCATE))
		return -EOPNOTSUPP;
	do {
		r = fallocate(fd, mode, (off_t)offset, (off_t)bytes) < 0 ? -errno : 0;
	} while (r == -EINTR);
	/* EPERM can only be the file's own answer if it may not be written to at all (immutable,
	 * append-only): that is said again by the next write. But it is no refusal for all. */
	if (r == -ENOSYS)
		tt_facility_refuse(TT_FACILITY_FALLOCATE, r);
	return tt_facility_may_be_refusal(r) ? -EOPNOTSUPP : r;
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
