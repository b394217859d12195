/* SPDX-License-Identifier: MIT */
/*
 * Temporaries: four system calls for each (openat, flock, fstat, renameat), and one getrandom for
 * many names.
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
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "sys/facility.h"
#include "tree/alias.h"
#include "tree/stage.h"

#define STAGE_MARK ".tt-"

enum {
	STAGE_RANDOM_LENGTH = 3,
	STAGE_CHECK_LENGTH = 3,
	STAGE_SUFFIX_LENGTH = sizeof(STAGE_MARK) - 1 + STAGE_RANDOM_LENGTH + STAGE_CHECK_LENGTH,
	STAGE_NAME_MAX = TT_STAGE_NAME_SIZE - 1,
	STAGE_ATTEMPTS = 100, /* 62^3 names: the second attempt is already a rarity */
};

static const char stage_alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/* Random bytes of this thread, fetched in blocks. A fork copies them: the child might then try the
 * parent's names, which O_EXCL makes harmless. */
static __thread struct {
	unsigned char bytes[256];
	unsigned left;
} stage_pool;

/* A name need not be secret, O_EXCL is what protects: where getrandom is forbidden the clock will
 * do. */
static void stage_fill_from_clock(void)
{
	struct timespec now = {0};
	uint64_t x;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	x = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 32 ^ (uintptr_t)&stage_pool
	    ^ (uint64_t)getpid() << 40;
	for (size_t i = 0; i < sizeof(stage_pool.bytes); i++) {
		x = x * 6364136223846793005U + 1442695040888963407U; /* Knuth, MMIX */
		stage_pool.bytes[i] = (unsigned char)(x >> 56);
	}
}

static unsigned char stage_random_byte(void)
{
	if (!stage_pool.left) {
		/* Up to 256 bytes are never short and never interrupted (getrandom(2)). */
		if (getrandom(stage_pool.bytes, sizeof(stage_pool.bytes), 0)
			!= (ssize_t)sizeof(stage_pool.bytes))
			stage_fill_from_clock();
		stage_pool.left = sizeof(stage_pool.bytes);
	}
	return stage_pool.bytes[--stage_pool.left];
}

static char stage_random_char(void)
{
	unsigned char byte;

	/* 248 = 4 * 62: the rest would make some characters likelier. */
	do {
		byte = stage_random_byte();
	} while (byte >= 248);
	return stage_alphabet[byte % 62];
}

/* Not into the middle of a UTF-8 character, which some file systems refuse. */
static size_t stage_cut(const char *name, size_t limit)
{
	size_t length = strnlen(name, limit + 1);

	if (length <= limit)
		return length;
	length = limit;
	for (int i = 0; i < 3 && length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80; i++)
		length--;
	return length;
}

/* The last characters tell our names from those that only look alike (.notes.tt-backup), one in
 * 62^3 of which is taken for ours: what looks like a temporary is removed by the next run. */
static void stage_check(const char *temp, size_t length, char ret_check[STAGE_CHECK_LENGTH])
{
	uint64_t hash = tt_hash_64(temp, length);

	for (int i = 0; i < STAGE_CHECK_LENGTH; i++) {
		ret_check[i] = stage_alphabet[hash % 62];
		hash /= 62;
	}
}

void tt_stage_name(const char *name, char *ret_temp)
{
	size_t length = stage_cut(name, STAGE_NAME_MAX - 1 - STAGE_SUFFIX_LENGTH);
	char *at = ret_temp;

	*at++ = '.';
	memcpy(at, name, length);
	at += length;
	memcpy(at, STAGE_MARK, sizeof(STAGE_MARK) - 1);
	at += sizeof(STAGE_MARK) - 1;
	for (int i = 0; i < STAGE_RANDOM_LENGTH; i++)
		*at++ = stage_random_char();
	stage_check(ret_temp, (size_t)(at - ret_temp), at);
	at[STAGE_CHECK_LENGTH] = '\0';
}

bool tt_stage_is_temporary(const char *name)
{
	size_t length = strlen(name);
	const char *suffix;
	char check[STAGE_CHECK_LENGTH];

	if (name[0] != '.' || length < 2 + STAGE_SUFFIX_LENGTH || length > STAGE_NAME_MAX)
		return false;
	suffix = name + length - STAGE_SUFFIX_LENGTH;
	if (memcmp(suffix, STAGE_MARK, sizeof(STAGE_MARK) - 1) != 0)
		return false;
	stage_check(name, length - STAGE_CHECK_LENGTH, check);
	return memcmp(name + length - STAGE_CHECK_LENGTH, check, STAGE_CHECK_LENGTH) == 0;
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
	struct stat now;

	if (fstatat(dir_fd, name, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (now.st_dev != seen->st_dev || now.st_ino != seen->st_ino)
		return 1;
	if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

static int stage_sweep_regular(int dir_fd, const char *name)
{
	/* O_NONBLOCK: a fifo may have taken the name since. */
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
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
