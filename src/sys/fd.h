/* SPDX-License-Identifier: MIT */
/*
 * Descriptors: opened one path component at a time, never through a symbolic link, never blocking
 * on a fifo, without touching access times where that is permitted; and calls that glibc 2.36 does
 * not wrap.
 *
 * This is the one place that decides how a name becomes a descriptor, and so whether a link can
 * lead out of the tree.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

struct stat;
struct statx;

/* Closes what is open; -1 is the null value. Keeps errno. */
static inline void tt_fd_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* What close(2) would say, without closing: 0 or a negative errno. NFS, CIFS and FUSE write back
 * and ask their server then, for every descriptor that is closed (f_op->flush). Any thread. */
int tt_fd_flush(int fd);

static inline void tt_fd_closep(int *fd)
{
	tt_fd_close(*fd);
	*fd = -1;
}

#define TT_FD_AUTO __attribute__((cleanup(tt_fd_closep))) int

/* Opens the directory `name` (one component, or "." ) in `dir_fd` for reading and as an anchor.
 * Returns the descriptor or a negative errno: -ENOTDIR or -ELOOP if it is something else by now.
 * Any thread. */
int tt_fd_open_dir(int dir_fd, const char *name);

/* Opens a regular file for reading, O_NOATIME if permitted (owner or CAP_FOWNER; falls back
 * silently). A fifo does not block. Returns the descriptor or a negative errno. The caller looks at
 * fstat: the type may have changed. Any thread. */
int tt_fd_open_read(int dir_fd, const char *name);

/* Opens an existing regular file to change it in place: for reading too if that is permitted,
 * O_NOATIME likewise; one's own file whatever its mode says. A fifo does not block. Returns the
 * descriptor or a negative errno. The caller looks at fstat: the type may have changed. Any thread.
 */
int tt_fd_open_update(int dir_fd, const char *name);

/* Makes a new regular file for reading and writing, which nobody else may open yet. Returns the
 * descriptor or a negative errno, -EEXIST if the name is there, whatever it is. Any thread. */
int tt_fd_create(int dir_fd, const char *name);

/* Opens a directory by a path of several components below `root_fd`, refusing links and anything
 * outside (openat2 RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, Linux 5.6; a component-wise walk where it
 * is refused). Any thread. */
int tt_fd_open_beneath(int root_fd, const char *path);

/* Opens a regular file for reading by a path below `root_fd`, as tt_fd_open_read(). Links are
 * followed as long as they stay below it: -EXDEV if one does not (without openat2 none is followed:
 * -ELOOP, -ENOTDIR). Any thread. */
int tt_fd_open_read_beneath(int root_fd, const char *path);

/* Opens a path as the user wrote it on the command line: links are followed, that is what was asked
 * for. Only for reading: access times stay where the owner is the user. */
int tt_fd_open_path(const char *path, int flags);

/* The basic part of statx, as stat(2) would answer: what FUSE or a server knows better is asked
 * (AT_STATX_DONT_SYNC gave a directory's old time right after a name in it had gone: FUSE, Linux
 * 6.18). Links are not followed; "" is `dir_fd` itself. Where statx is refused fstatat fills it
 * (stx_mask is STATX_BASIC_STATS in both cases, no attributes). Returns 0 or a negative errno. Any
 * thread. */
int tt_fd_statx(int dir_fd, const char *name, struct statx *ret_stx);

/* The mount that a descriptor is on, as /proc/self/mountinfo numbers it: from statx (5.8), or from
 * /proc/self/fdinfo where statx does not say. Returns 0 or a negative errno. Any thread. */
int tt_fd_mount_id(int fd, uint64_t *ret_id);

/* chmod of a name that may be anything but is not followed if it is a link (fchmodat2, 6.6; before,
 * the C library's way over /proc/self/fd). Returns 0 or a negative errno. Any thread. */
int tt_fd_chmod_at(int dir_fd, const char *name, mode_t mode);

/* Whether permission bits are nothing to this process: CAP_DAC_OVERRIDE, in a user namespace that
 * maps everybody. A root without it, or of a namespace of few users, has to look like others. */
bool tt_fd_overrides_modes(void);

/* Whether what only a file's owner is told or may do is for this process with everybody's files:
 * CAP_FOWNER, likewise. */
bool tt_fd_overrides_owners(void);

/* Raises the soft limit of open descriptors to the hard one. Returns the limit now in force. */
unsigned tt_fd_raise_limit(void);

/* Directory entries in bulk. The kernel's struct linux_dirent64 (getdents(2)). */
struct tt_fd_dirent {
	uint64_t ino;
	int64_t offset;
	unsigned short record_length;
	unsigned char type;
	char name[];
};

/* Returns the bytes read, 0 at the end, or a negative errno. */
ssize_t tt_fd_getdents(int dir_fd, void *buffer, size_t size);

#define TT_FD_DONTCACHE 0x80 /* RWF_DONTCACHE, Linux 6.14; Debian 12's headers lack it */

/* pread/pwrite with flags; retries on EINTR. Returns bytes or a negative errno: -EOPNOTSUPP for
 * flags that the file system, the kernel or a seccomp filter refuses. */
ssize_t tt_fd_pread(int fd, void *buffer, size_t size, uint64_t offset, int rwf_flags);
ssize_t tt_fd_pwrite(int fd, const void *buffer, size_t size, uint64_t offset, int rwf_flags);

/* fallocate(2); retries on EINTR. Returns 0 or a negative errno: -EOPNOTSUPP too where the kernel
 * or a seccomp filter refuses the call. Any thread. */
int tt_fd_allocate(int fd, int mode, uint64_t offset, uint64_t bytes);

/* Writes all of it. Returns 0 or a negative errno. */
int tt_fd_pwrite_all(int fd, const void *buffer, size_t size, uint64_t offset, int rwf_flags);
