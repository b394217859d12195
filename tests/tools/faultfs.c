/* SPDX-License-Identifier: MIT */
/*
 * A file system that shows a directory (libfuse3, low level), as it is or with faults and oddities.
 *
 *	faultfs [-o OPTION[,OPTION...]] [--rules FILE] [--log FILE] [--pid FILE] DIRECTORY
 *MOUNTPOINT
 *
 * Returns when it is mounted; `umount MOUNTPOINT` ends it. The process' number is in --pid. What
 *goes wrong is in the file of rules (faultfs_rules.h). OPTIONs, what is odd all the time:
 *
 *	writeback	writes stay in the kernel's cache: an error comes at writeback
 *	direct		nothing is cached, short reads are seen
 *	forget		opening a file empties its cache (what FUSE does by default)
 *	ignore-case	FILE and file are one (ASCII), spelled as it was first
 *	no-rename2	rename takes no flags
 *	no-seek		no SEEK_HOLE
 *	no-type		readdir does not know the types
 *	ino-zero	readdir says inode 0
 *	one-link	a directory has one link
 *	no-blocks	st_blocks is 0
 *	grain=SECONDS	times are multiples
 *	most-links=N	an inode has at most N names
 *	zero-size=GLOB	files so called say that they are empty, as in /proc
 *
 * There is no O_TMPFILE and there are no extended attributes. One inode of the directory below is
 * one inode here, as long as the kernel remembers it.
 */
#define FUSE_USE_VERSION 35
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faultfs_inode.h"
#include "faultfs_rules.h"

#define PROC_PATH_SIZE 64

static struct {
	bool writeback, direct, forget, ignore_case, no_rename2, no_seek, no_type, ino_zero,
		one_link, no_blocks;
	long grain, most_links;
	char *zero_size, *rules, *log, *below;
	FILE *pid;
} options;

/* Judges and answers: true if that was all. */
static bool fails(fuse_req_t req, const char *operation, const char *name, const char *other)
{
	struct fault fault = fault_judge(operation, name, other);

	if (fault.error) {
		fuse_reply_err(req, fault.error);
	}
	return fault.error != 0;
}

static bool fails_at(fuse_req_t req, const char *operation, fuse_ino_t ino)
{
	char name[INODE_NAME_SIZE];

	inode_name(inode_of(ino), name);
	return fails(req, operation, name, NULL);
}

static void reply(fuse_req_t req, int result)
{
	fuse_reply_err(req, result < 0 ? errno : 0);
}

static int fd_of(fuse_ino_t ino)
{
	return inode_of(ino)->fd;
}

static const char *proc_path(int fd, char *buffer)
{
	snprintf(buffer, PROC_PATH_SIZE, "/proc/self/fd/%d", fd);
	return buffer;
}

/* The name as it is spelled below: the name itself, or one that differs in case only. */
static const char *spelled(fuse_ino_t parent, const char *name, char *buffer)
{
	struct stat st;
	char path[PROC_PATH_SIZE];
	struct dirent *entry;
	DIR *dir;

	if (!options.ignore_case || fstatat(fd_of(parent), name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		return name;
	}
	dir = opendir(proc_path(fd_of(parent), path));
	while (dir && (entry = readdir(dir))) {
		if (!strcasecmp(entry->d_name, name)) {
			snprintf(buffer, INODE_NAME_SIZE, "%s", entry->d_name);
			name = buffer;
			break;
		}
	}
	if (dir) {
		closedir(dir);
	}
	return name;
}

static bool is_unsized(const char *name)
{
	return options.zero_size && fnmatch(options.zero_size, name, 0) == 0;
}

static void make_odd(struct stat *st, const char *name)
{
	if (options.grain > 0) {
		st->st_mtim.tv_sec -= st->st_mtim.tv_sec % options.grain;
		st->st_mtim.tv_nsec = 0;
		st->st_atim.tv_sec -= st->st_atim.tv_sec % options.grain;
		st->st_atim.tv_nsec = 0;
	}
	if (S_ISREG(st->st_mode) && is_unsized(name)) {
		st->st_size = 0;
	}
	if (options.no_blocks || (S_ISREG(st->st_mode) && is_unsized(name))) {
		st->st_blocks = 0;
	}
	if (options.one_link && S_ISDIR(st->st_mode)) {
		st->st_nlink = 1;
	}
}

/* Where names alias each other the kernel must ask each time. */
static double cache_seconds(void)
{
	return options.ignore_case ? 0 : 1;
}

static int look(fuse_ino_t parent, const char *name, struct fuse_entry_param *ret_entry)
{
	char other[INODE_NAME_SIZE] = "";
	struct inode *inode;
	int fd = openat(fd_of(parent), spelled(parent, name, other), O_PATH | O_NOFOLLOW);

	*ret_entry = (struct fuse_entry_param){0};
	if (fd < 0) {
		return -1;
	}
	if (fstat(fd, &ret_entry->attr) < 0) {
		close(fd);
		return -1;
	}
	inode = inode_find(fd, &ret_entry->attr, name);
	if (!inode) {
		errno = ENOMEM;
		return -1;
	}
	make_odd(&ret_entry->attr, name);
	ret_entry->ino = inode_id(inode);
	ret_entry->attr_timeout = options.ignore_case ? 0 : 1;
	ret_entry->entry_timeout = cache_seconds();
	return 0;
}

static void reply_look(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry;

	if (look(parent, name, &entry) < 0) {
		fuse_reply_err(req, errno);
	} else {
		fuse_reply_entry(req, &entry);
	}
}

static void fs_init(void *data, struct fuse_conn_info *connection)
{
	(void)data;
	if (options.writeback && (connection->capable & FUSE_CAP_WRITEBACK_CACHE)) {
		connection->want |= FUSE_CAP_WRITEBACK_CACHE;
	}
	connection->want &= ~(unsigned)FUSE_CAP_READDIRPLUS;
	connection->time_gran = options.grain > 0 ? 1000000000 : 1;
}

static void fs_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	if (!fails(req, "lookup", name, NULL)) {
		reply_look(req, parent, name);
	}
}

static void fs_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
	inode_forget(inode_of(ino), count);
	fuse_reply_none(req);
}

static void fs_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++) {
		inode_forget(inode_of(forgets[i].ino), forgets[i].nlookup);
	}
	fuse_reply_none(req);
}

static void reply_attributes(fuse_req_t req, fuse_ino_t ino)
{
	char name[INODE_NAME_SIZE];
	struct stat st;

	if (fstatat(fd_of(ino), "", &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	inode_name(inode_of(ino), name);
	make_odd(&st, name);
	fuse_reply_attr(req, &st, cache_seconds());
}

static void fs_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
	(void)info;
	if (!fails_at(req, "getattr", ino)) {
		reply_attributes(req, ino);
	}
}

static int set_times(int fd, const struct stat *wanted, int which)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};

	if (which & FUSE_SET_ATTR_ATIME) {
		times[0] = wanted->st_atim;
	}
	if (which & FUSE_SET_ATTR_ATIME_NOW) {
		times[0].tv_nsec = UTIME_NOW;
	}
	if (which & FUSE_SET_ATTR_MTIME) {
		times[1] = wanted->st_mtim;
	}
	if (which & FUSE_SET_ATTR_MTIME_NOW) {
		times[1].tv_nsec = UTIME_NOW;
	}
	return utimensat(fd, "", times, AT_EMPTY_PATH);
}

static void fs_setattr(
	fuse_req_t req, fuse_ino_t ino, struct stat *wanted, int which, struct fuse_file_info *info)
{
	char path[PROC_PATH_SIZE];
	int fd = fd_of(ino), r = 0;

	(void)info;
	proc_path(fd, path);
	if (which & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) {
		if (fails_at(req, "chown", ino)) {
			return;
		}
		r = fchownat(fd, "", which & FUSE_SET_ATTR_UID ? wanted->st_uid : (uid_t)-1,
			which & FUSE_SET_ATTR_GID ? wanted->st_gid : (gid_t)-1, AT_EMPTY_PATH);
	}
	if (r == 0 && (which & FUSE_SET_ATTR_MODE)) {
		if (fails_at(req, "chmod", ino)) {
			return;
		}
		r = chmod(path, wanted->st_mode);
	}
	if (r == 0 && (which & FUSE_SET_ATTR_SIZE)) {
		if (fails_at(req, "truncate", ino)) {
			return;
		}
		r = truncate(path, wanted->st_size);
	}
	if (r == 0
		&& (which
			& (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW
				| FUSE_SET_ATTR_MTIME_NOW))) {
		if (fails_at(req, "utimens", ino)) {
			return;
		}
		r = set_times(fd, wanted, which);
	}
	if (r < 0) {
		fuse_reply_err(req, errno);
	} else {
		reply_attributes(req, ino);
	}
}

static void fs_readlink(fuse_req_t req, fuse_ino_t ino)
{
	char target[4097];
	ssize_t length;

	if (fails_at(req, "readlink", ino)) {
		return;
	}
	length = readlinkat(fd_of(ino), "", target, sizeof(target) - 1);
	if (length < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	target[length] = '\0';
	fuse_reply_readlink(req, target);
}

/* What was made belongs to who asked for it. */
static void reply_made(fuse_req_t req, fuse_ino_t parent, const char *name, int result)
{
	const struct fuse_ctx *caller = fuse_req_ctx(req);

	if (result < 0
		|| fchownat(fd_of(parent), name, caller->uid, caller->gid, AT_SYMLINK_NOFOLLOW)
			   < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	reply_look(req, parent, name);
}

static bool is_taken(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	char other[INODE_NAME_SIZE] = "";

	if (spelled(parent, name, other) == name) {
		return false;
	}
	fuse_reply_err(req, EEXIST);
	return true;
}

static void fs_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
	if (!fails(req, "mknod", name, NULL) && !is_taken(req, parent, name)) {
		reply_made(req, parent, name, mknodat(fd_of(parent), name, mode, device));
	}
}

static void fs_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	if (!fails(req, "mkdir", name, NULL) && !is_taken(req, parent, name)) {
		reply_made(req, parent, name, mkdirat(fd_of(parent), name, mode));
	}
}

static void fs_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	if (!fails(req, "symlink", name, NULL) && !is_taken(req, parent, name)) {
		reply_made(req, parent, name, symlinkat(target, fd_of(parent), name));
	}
}

static void fs_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	char path[PROC_PATH_SIZE];
	struct stat st;

	if (fails(req, "link", name, NULL) || is_taken(req, parent, name)) {
		return;
	}
	if (fstat(fd_of(ino), &st) == 0 && options.most_links > 0
		&& st.st_nlink >= (nlink_t)options.most_links) {
		fuse_reply_err(req, EMLINK);
		return;
	}
	if (linkat(AT_FDCWD, proc_path(fd_of(ino), path), fd_of(parent), name, AT_SYMLINK_FOLLOW)
		< 0) {
		fuse_reply_err(req, errno);
	} else {
		reply_look(req, parent, name);
	}
}

static void fs_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	char other[INODE_NAME_SIZE] = "";

	if (!fails(req, "unlink", name, NULL)) {
		reply(req, unlinkat(fd_of(parent), spelled(parent, name, other), 0));
	}
}

static void fs_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	char other[INODE_NAME_SIZE] = "";

	if (!fails(req, "rmdir", name, NULL)) {
		reply(req, unlinkat(fd_of(parent), spelled(parent, name, other), AT_REMOVEDIR));
	}
}

static void fs_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
	const char *new_name, unsigned flags)
{
	char other[INODE_NAME_SIZE] = "", new_other[INODE_NAME_SIZE] = "";
	const char *from, *to;
	struct stat st;

	if (flags != 0 && options.no_rename2) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	if (fails(req, "rename", name, new_name)) {
		return;
	}
	from = spelled(parent, name, other);
	to = spelled(new_parent, new_name, new_other);
	int r = renameat2(fd_of(parent), from, fd_of(new_parent), to, flags);

	if (r == 0 && fstatat(fd_of(new_parent), to, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		inode_rename(&st, new_name);
	}
	reply(req, r);
}

static void take_options(struct fuse_file_info *info, const char *name)
{
	info->keep_cache = !options.forget;
	info->direct_io = options.direct || is_unsized(name);
}

/* With a cache that writes back the kernel reads what is around, and knows the end itself. */
static int open_flags(int flags)
{
	flags &= ~(O_NOFOLLOW | O_EXCL | O_CREAT | O_DIRECT);
	if (options.writeback) {
		flags &= ~O_APPEND;
		if ((flags & O_ACCMODE) == O_WRONLY) {
			flags = (flags & ~O_ACCMODE) | O_RDWR;
		}
	}
	return flags | O_CLOEXEC;
}

static void fs_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
	char path[PROC_PATH_SIZE], name[INODE_NAME_SIZE];
	int fd;

	if (fails_at(req, "open", ino)) {
		return;
	}
	fd = open(proc_path(fd_of(ino), path), open_flags(info->flags));
	if (fd < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	inode_name(inode_of(ino), name);
	take_options(info, name);
	info->fh = (uint64_t)fd;
	fuse_reply_open(req, info);
}

static void fs_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	struct fuse_file_info *info)
{
	const struct fuse_ctx *caller = fuse_req_ctx(req);
	struct fuse_entry_param entry;
	int fd;

	if (fails(req, "create", name, NULL) || is_taken(req, parent, name)) {
		return;
	}
	fd = openat(fd_of(parent), name,
		open_flags(info->flags) | O_CREAT | (info->flags & O_EXCL) | O_NOFOLLOW, mode);
	if (fd < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	if (fchown(fd, caller->uid, caller->gid) < 0 || look(parent, name, &entry) < 0) {
		fuse_reply_err(req, errno);
		close(fd);
		return;
	}
	take_options(info, name);
	info->fh = (uint64_t)fd;
	fuse_reply_create(req, &entry, info);
}

static void fs_read(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *info)
{
	struct fuse_bufvec buffer = FUSE_BUFVEC_INIT(size);
	char name[INODE_NAME_SIZE];
	struct fault fault;

	inode_name(inode_of(ino), name);
	fault = fault_judge("read", name, NULL);
	if (fault.error) {
		fuse_reply_err(req, fault.error);
		return;
	}
	if (fault.short_bytes < size) {
		buffer.buf[0].size = fault.short_bytes;
	}
	buffer.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
	buffer.buf[0].fd = (int)info->fh;
	buffer.buf[0].pos = offset;
	fuse_reply_data(req, &buffer, 0);
}

static void fs_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
	struct fuse_file_info *info)
{
	char name[INODE_NAME_SIZE];
	struct fault fault;
	ssize_t written;

	inode_name(inode_of(ino), name);
	fault = fault_judge("write", name, NULL);
	if (fault.error) {
		fuse_reply_err(req, fault.error);
		return;
	}
	written = pwrite(
		(int)info->fh, data, fault.short_bytes < size ? fault.short_bytes : size, offset);
	if (written < 0) {
		fuse_reply_err(req, errno);
	} else {
		fuse_reply_write(req, (size_t)written);
	}
}

static void fs_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
	if (!fails_at(req, "flush", ino)) {
		reply(req, close(dup((int)info->fh)));
	}
}

static void fs_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
	(void)ino;
	reply(req, close((int)info->fh));
}

static void fs_fsync(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *info)
{
	if (!fails_at(req, "fsync", ino)) {
		reply(req, data_only ? fdatasync((int)info->fh) : fsync((int)info->fh));
	}
}

static void fs_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
	struct fuse_file_info *info)
{
	if (!fails_at(req, "fallocate", ino)) {
		reply(req, fallocate((int)info->fh, mode, offset, length));
	}
}

static void fs_lseek(
	fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, struct fuse_file_info *info)
{
	off_t r;

	if (options.no_seek) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	if (fails_at(req, "lseek", ino)) {
		return;
	}
	r = lseek((int)info->fh, offset, whence);
	if (r < 0) {
		fuse_reply_err(req, errno);
	} else {
		fuse_reply_lseek(req, r);
	}
}

static void fs_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct statvfs st;

	if (fails_at(req, "statfs", ino)) {
		return;
	}
	if (fstatvfs(fd_of(ino), &st) < 0) {
		fuse_reply_err(req, errno);
	} else {
		fuse_reply_statfs(req, &st);
	}
}

static void fs_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
	char path[PROC_PATH_SIZE];
	DIR *dir;

	if (fails_at(req, "opendir", ino)) {
		return;
	}
	dir = opendir(proc_path(fd_of(ino), path));
	if (!dir) {
		fuse_reply_err(req, errno);
		return;
	}
	info->fh = (uintptr_t)dir;
	fuse_reply_open(req, info);
}

/* At most a few dozen names in each answer, so that a rule can strike in the middle. */
static void fs_readdir(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *info)
{
	DIR *dir = (DIR *)(uintptr_t)info->fh; /* NOLINT: libfuse keeps numbers */
	char buffer[2048];
	size_t used = 0, most = size < sizeof(buffer) ? size : sizeof(buffer);
	struct dirent *entry;

	if (fails_at(req, "readdir", ino)) {
		return;
	}
	seekdir(dir, offset);
	while ((entry = readdir(dir))) {
		struct stat st = {
			.st_ino = options.ino_zero ? 0 : entry->d_ino,
			.st_mode = options.no_type ? 0 : DTTOIF(entry->d_type),
		};
		size_t length = fuse_add_direntry(
			req, buffer + used, most - used, entry->d_name, &st, entry->d_off);

		if (length > most - used) {
			break;
		}
		used += length;
	}
	fuse_reply_buf(req, buffer, used);
}

static void fs_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
	(void)ino;
	closedir((DIR *)(uintptr_t)info->fh); /* NOLINT: libfuse keeps numbers */
	fuse_reply_err(req, 0);
}

static void fs_fsyncdir(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *info)
{
	(void)data_only;
	if (!fails_at(req, "fsyncdir", ino)) {
		/* NOLINTNEXTLINE: libfuse keeps numbers */
		reply(req, fsync(dirfd((DIR *)(uintptr_t)info->fh)));
	}
}

static const struct fuse_lowlevel_ops operations = {
	.init = fs_init,
	.lookup = fs_lookup,
	.forget = fs_forget,
	.forget_multi = fs_forget_multi,
	.getattr = fs_getattr,
	.setattr = fs_setattr,
	.readlink = fs_readlink,
	.mknod = fs_mknod,
	.mkdir = fs_mkdir,
	.unlink = fs_unlink,
	.rmdir = fs_rmdir,
	.symlink = fs_symlink,
	.rename = fs_rename,
	.link = fs_link,
	.open = fs_open,
	.create = fs_create,
	.read = fs_read,
	.write = fs_write,
	.flush = fs_flush,
	.release = fs_release,
	.fsync = fs_fsync,
	.fallocate = fs_fallocate,
	.lseek = fs_lseek,
	.statfs = fs_statfs,
	.opendir = fs_opendir,
	.readdir = fs_readdir,
	.releasedir = fs_releasedir,
	.fsyncdir = fs_fsyncdir,
};

static bool take_option(char *word)
{
	static const struct {
		const char *name;
		bool *value;
	} known[] = {
		{"writeback", &options.writeback},
		{"direct", &options.direct},
		{"forget", &options.forget},
		{"ignore-case", &options.ignore_case},
		{"no-rename2", &options.no_rename2},
		{"no-seek", &options.no_seek},
		{"no-type", &options.no_type},
		{"ino-zero", &options.ino_zero},
		{"one-link", &options.one_link},
		{"no-blocks", &options.no_blocks},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strcmp(word, known[i].name)) {
			*known[i].value = true;
			return true;
		}
	}
	if (!strncmp(word, "grain=", 6)) {
		options.grain = strtol(word + 6, NULL, 10);
	} else if (!strncmp(word, "most-links=", 11)) {
		options.most_links = strtol(word + 11, NULL, 10);
	} else if (!strncmp(word, "zero-size=", 10)) {
		options.zero_size = word + 10;
	} else {
		return false;
	}
	return true;
}

static bool parse(int argc, char **argv, char **ret_mountpoint)
{
	int i = 1;

	for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
		if (!strcmp(argv[i], "--rules")) {
			options.rules = realpath(argv[i + 1], NULL);
		} else if (!strcmp(argv[i], "--log")) {
			options.log = realpath(argv[i + 1], NULL);
		} else if (!strcmp(argv[i], "--pid")) {
			options.pid = fopen(argv[i + 1], "we");
		} else if (!strcmp(argv[i], "-o")) {
			for (char *word = strtok(argv[i + 1], ","); word;
				word = strtok(NULL, ",")) {
				if (!take_option(word)) {
					return false;
				}
			}
		} else {
			return false;
		}
	}
	if (argc - i != 2) {
		return false;
	}
	options.below = argv[i];
	*ret_mountpoint = realpath(argv[i + 1], NULL);
	return *ret_mountpoint != NULL;
}

/* One descriptor for each inode that the kernel remembers. */
static void raise_limit(void)
{
	struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};

	if (setrlimit(RLIMIT_NOFILE, &limit) < 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int main(int argc, char **argv)
{
	char *arguments[] = {argv[0], "-o",
		"allow_other,default_permissions,dev,suid,fsname=faultfs,subtype=faultfs"};
	struct fuse_args args = FUSE_ARGS_INIT(3, arguments);
	struct fuse_loop_config loop = {.max_idle_threads = 10};
	struct fuse_session *session;
	char *mountpoint;
	int r;

	if (!parse(argc, argv, &mountpoint)) {
		fprintf(stderr, "usage: faultfs [-o OPTION[,OPTION...]] [--rules FILE] "
				"[--log FILE] [--pid FILE] DIRECTORY MOUNTPOINT\n");
		return 125;
	}
	umask(0);
	raise_limit();
	if (!inode_begin(options.below)) {
		fprintf(stderr, "faultfs: %s: %s\n", options.below, strerror(errno));
		return 1;
	}
	fault_begin(options.rules, options.log);
	session = fuse_session_new(&args, &operations, sizeof(operations), NULL);
	if (!session || fuse_set_signal_handlers(session) != 0
		|| fuse_session_mount(session, mountpoint) != 0) {
		return 1;
	}
	fuse_daemonize(0);
	if (options.pid) {
		fprintf(options.pid, "%d\n", getpid());
		fclose(options.pid);
	}
	r = fuse_session_loop_mt(session, &loop);
	fuse_session_unmount(session);
	fuse_remove_signal_handlers(session);
	fuse_session_destroy(session);
	return r != 0;
}
