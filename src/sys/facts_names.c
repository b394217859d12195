/* SPDX-License-Identifier: MIT */
/*
 * See facts.h. Where there are unnamed files no name is made, so that a kill at any moment leaves
 * nothing: what names do follows from what can be asked without. Elsewhere questions about names
 * need one: a temporary is made, asked about, and removed at once. It has the form that the next
 * run into the directory removes, if this one is killed in that moment.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "sys/facts.h"
#include "sys/fd.h"
#include "sys/temporary.h"

#ifndef FS_CASEFOLD_FL
#define FS_CASEFOLD_FL 0x40000000 /* Linux 5.2 */
#endif

#define NAMES_XFS_MAGIC    0x58465342
#define NAMES_XFS_FOLDS    (1u << 13) /* XFS_FSOP_GEOM_FLAGS_DIRV2CI, fs/xfs/libxfs/xfs_fs.h */
#define NAMES_XFS_GEOMETRY _IOR('X', 100, struct names_xfs_geometry)
#define NAMES_FUSE_MAGIC   0x65735546

/* struct xfs_fsop_geom_v1, which does not change. */
struct names_xfs_geometry {
	uint32_t sizes[8];
	uint64_t counts[4];
	unsigned char uuid[16];
	uint32_t stripe[2], version, flags, others[3];
};
_Static_assert(sizeof(struct names_xfs_geometry) == 112, "the kernel writes so much");

enum {
	NAMES_BUFFER_BYTES = 32 << 10,
	NAMES_MOST_LOOKS = 16,
};

/* Turns the case of the letters a to z. Returns whether there was one. */
static bool names_turn_case(char *name)
{
	bool turned = false;

	for (; *name; name++) {
		if ((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z')) {
			*name ^= 0x20;
			turned = true;
		}
	}
	return turned;
}

static struct tt_facts_answer names_case_of(int dir_fd, const char *name)
{
	char turned[NAME_MAX + 1];
	struct stat st, other;

	if (strlen(name) >= sizeof turned)
		return (struct tt_facts_answer){.error = -ENAMETOOLONG};
	strcpy(turned, name);
	if (!names_turn_case(turned) || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return (struct tt_facts_answer){.error = -ENOENT};
	if (fstatat(dir_fd, turned, &other, AT_SYMLINK_NOFOLLOW) < 0)
		return (struct tt_facts_answer){
			.answer = errno == ENOENT ? TT_PROBE_NO : TT_PROBE_UNKNOWN,
			.error = errno == ENOENT ? 0 : -errno};
	if (st.st_ino == other.st_ino && st.st_dev == other.st_dev && st.st_nlink < 2)
		return (struct tt_facts_answer){.answer = TT_PROBE_YES};
	/* Two files, or two names of one: both spellings are there. */
	return (struct tt_facts_answer){.answer = TT_PROBE_NO};
}

/* By names that the directory has. */
static struct tt_facts_answer names_look_at_some(int dir_fd)
{
	struct tt_facts_answer answer = {.error = -ENOENT};
	char buffer[NAMES_BUFFER_BYTES];
	unsigned looks = 0;
	TT_FD_AUTO fd = tt_fd_open_dir(dir_fd, ".");
	ssize_t got = fd < 0 ? fd : tt_fd_getdents(fd, buffer, sizeof buffer);

	for (ssize_t at = 0; at < got && looks < NAMES_MOST_LOOKS;) {
		const struct tt_fd_dirent *entry = (const void *)(buffer + at);

		at += entry->record_length;
		if (entry->name[0] == '.')
			continue;
		answer = names_case_of(dir_fd, entry->name);
		looks++;
		if (answer.answer != TT_PROBE_UNKNOWN)
			return answer;
	}
	return answer;
}

/* Whether the file system says of all its names that case counts. On these it is a flag of the
 * directory, or does not exist (Linux 6.18). */
static bool names_case_counts(int dir_fd)
{
	struct names_xfs_geometry geometry;
	struct statfs fs;

	if (fstatfs(dir_fd, &fs) < 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
		return true;
	case NAMES_XFS_MAGIC:
		return ioctl(dir_fd, NAMES_XFS_GEOMETRY, &geometry) == 0
		       && !(geometry.flags & NAMES_XFS_FOLDS);
	default:
		return false;
	}
}

/* Without writing. */
static struct tt_facts_answer names_look_for_case(int dir_fd)
{
	int flags = 0;
	int r = ioctl(dir_fd, FS_IOC_GETFLAGS, &flags) < 0 ? -errno : 0;

	if (r == 0 && (flags & FS_CASEFOLD_FL))
		return (struct tt_facts_answer){.answer = TT_PROBE_YES};
	struct tt_facts_answer answer = names_look_at_some(dir_fd);

	if (answer.answer != TT_PROBE_UNKNOWN)
		return answer;
	/* No such question: a kernel without that flag on this file system. */
	if ((r == 0 || r == -ENOTTY || r == -EOPNOTSUPP) && names_case_counts(dir_fd))
		return (struct tt_facts_answer){.answer = TT_PROBE_NO};
	return answer;
}

/* Names that are not there: the kernel finds that out before it asks the file system (fs/namei.c,
 * do_renameat2), so this tells of the call alone. Kernels know the flag on all their file systems
 * with unnamed files (Linux 6.18); a FUSE server need not. */
static struct tt_facts_answer names_ask_for_rename(int dir_fd)
{
	char from[TT_TEMPNAME_SIZE], to[TT_TEMPNAME_SIZE];
	struct statfs fs;

	tt_temporary_name(from);
	tt_temporary_name(to);
	if (syscall(SYS_renameat2, dir_fd, from, dir_fd, to, RENAME_NOREPLACE) == 0
		|| errno != ENOENT)
		return (struct tt_facts_answer){.answer = TT_PROBE_NO, .error = -errno};
	if (fstatfs(dir_fd, &fs) < 0 || (unsigned long)fs.f_type == NAMES_FUSE_MAGIC)
		return (struct tt_facts_answer){.why = "not tried: it takes a name"};
	return (struct tt_facts_answer){
		.answer = TT_PROBE_YES, .why = "the call is allowed; to try it would take a name"};
}

static int names_make(int dir_fd, char *ret_name)
{
	tt_temporary_name(ret_name);
	TT_FD_AUTO made =
		openat(dir_fd, ret_name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return made < 0 ? -errno : 0;
}

static void names_try(int dir_fd, const char *name, struct tt_facts *facts)
{
	struct tt_facts_answer *answers = facts->answers;
	char other[TT_TEMPNAME_SIZE];

	answers[TT_FACTS_CASE_INSENSITIVE] = names_case_of(dir_fd, name);
	tt_temporary_name(other);
	if (syscall(SYS_renameat2, dir_fd, name, dir_fd, other, RENAME_NOREPLACE) < 0) {
		answers[TT_FACTS_RENAME_NOREPLACE] =
			(struct tt_facts_answer){.answer = TT_PROBE_NO, .error = -errno};
		unlinkat(dir_fd, name, 0);
		return;
	}
	answers[TT_FACTS_RENAME_NOREPLACE] = (struct tt_facts_answer){.answer = TT_PROBE_YES};
	unlinkat(dir_fd, other, 0);
}

void tt_facts_look_at_names(int dir_fd, struct tt_facts *facts)
{
	struct tt_facts_answer seen = names_look_for_case(dir_fd);

	if (seen.answer != TT_PROBE_UNKNOWN || facts->open_error == 0)
		facts->answers[TT_FACTS_CASE_INSENSITIVE] = seen;
	if (facts->open_error == 0)
		facts->answers[TT_FACTS_RENAME_NOREPLACE] = names_ask_for_rename(dir_fd);
}

void tt_facts_try_names(int dir_fd, struct tt_facts *facts)
{
	char name[TT_TEMPNAME_SIZE];
	struct stat before;
	int r = fstat(dir_fd, &before) < 0 ? -errno : names_make(dir_fd, name);

	if (r < 0) {
		facts->answers[TT_FACTS_CASE_INSENSITIVE].error =
			facts->answers[TT_FACTS_RENAME_NOREPLACE].error = r;
		return;
	}
	names_try(dir_fd, name, facts);
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, before.st_mtim};

	(void)futimens(dir_fd, times); /* somebody else's directory keeps what it has now */
}
