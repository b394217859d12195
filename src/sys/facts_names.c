/* SPDX-License-Identifier: MIT */
/*
 * See facts.h. Questions about names need one: a temporary is made (linked, where it has none),
 * asked about, and removed at once. It has the form that the next run into the directory removes,
 * if this one is killed in that moment.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/facts.h"
#include "sys/fd.h"
#include "sys/temporary.h"

#ifndef FS_CASEFOLD_FL
#define FS_CASEFOLD_FL 0x40000000 /* Linux 5.2 */
#endif

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

/* Without writing: by the directory's flag, or by names that it has. */
static struct tt_facts_answer names_look_for_case(int dir_fd)
{
	struct tt_facts_answer answer = {.error = -ENOENT};
	char buffer[NAMES_BUFFER_BYTES];
	unsigned looks = 0;
	int flags = 0;

	if (ioctl(dir_fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_CASEFOLD_FL))
		return (struct tt_facts_answer){.answer = TT_PROBE_YES};
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

/* Gives the temporary a name, or makes another file where it cannot get one. */
static int names_make(int dir_fd, int fd, char *ret_name)
{
	char path[32];

	tt_temporary_name(ret_name);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, path, dir_fd, ret_name, AT_SYMLINK_FOLLOW) == 0)
		return 0;
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

void tt_facts_try_names(int dir_fd, int fd, struct tt_facts *facts)
{
	char name[TT_TEMPNAME_SIZE];
	struct stat before;
	int r;

	if (fd < 0) {
		struct tt_facts_answer seen = names_look_for_case(dir_fd);

		if (seen.answer != TT_PROBE_UNKNOWN)
			facts->answers[TT_FACTS_CASE_INSENSITIVE] = seen;
		return;
	}
	r = fstat(dir_fd, &before) < 0 ? -errno : names_make(dir_fd, fd, name);
	if (r < 0) {
		facts->answers[TT_FACTS_CASE_INSENSITIVE].error =
			facts->answers[TT_FACTS_RENAME_NOREPLACE].error = r;
		return;
	}
	names_try(dir_fd, name, facts);
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, before.st_mtim};

	(void)futimens(dir_fd, times); /* somebody else's directory keeps what it has now */
}
