/* SPDX-License-Identifier: MIT */
/*
 * See alias.h.
 */
#include "tree/alias.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "sys/fd.h"

enum {
	ALIAS_BUFFER_BYTES = 32768
};

/* The name with every ASCII letter in the other case; false if that cannot tell: no letter in it,
 * characters whose case or form we do not know, or an end that some file systems cut off. */
static bool alias_swap_case(const char *name, char *ret_swapped)
{
	size_t length = strlen(name);
	bool letters = false;

	if (length == 0 || length >= TT_ALIAS_NAME_SIZE || strchr(". ", name[length - 1])
		|| strchr(name, '~'))
		return false;
	for (size_t i = 0; i <= length; i++) {
		char c = name[i];

		if ((unsigned char)c >= 0x80)
			return false;
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		letters = letters || letter;
		ret_swapped[i] = letter ? (char)(c ^ 0x20) : c;
	}
	return letters;
}

/* Reads the directory: no other call says how a name is spelled there. */
static int alias_read(int dir_fd, const char *name, uint64_t ino, char *ret_other)
{
	char buffer[ALIAS_BUFFER_BYTES] __attribute__((aligned(8)));
	TT_FD_AUTO fd = tt_fd_open_dir(dir_fd, "."); /* with a position of its own */
	ssize_t got;

	if (fd < 0)
		return fd;
	while ((got = tt_fd_getdents(fd, buffer, sizeof buffer)) > 0) {
		for (ssize_t at = 0; at < got;) {
			const struct tt_fd_dirent *dirent = (const void *)(buffer + at);

			at += dirent->record_length;
			if (strcmp(dirent->name, name) == 0)
				return 0;
			/* Several names may be hard links of the inode. */
			if (dirent->ino == ino && strlen(dirent->name) < TT_ALIAS_NAME_SIZE
				&& (ret_other[0] == '\0' || strcasecmp(dirent->name, name) == 0))
				strcpy(ret_other, dirent->name);
		}
	}
	return got < 0 ? (int)got : 1;
}

int tt_alias_look(int dir_fd, const char *name, char *ret_other)
{
	char swapped[TT_ALIAS_NAME_SIZE];
	struct stat st, other;

	ret_other[0] = '\0';
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	/* Where nobody has it in the other case, case counts. Spares reading a large directory for
	 * each name when two runs copy into it. */
	if (alias_swap_case(name, swapped)
		&& fstatat(dir_fd, swapped, &other, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return 0;
	return alias_read(dir_fd, name, st.st_ino, ret_other);
}
