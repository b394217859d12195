/* SPDX-License-Identifier: MIT */
/*
 * A directory of a test's own, below $TMPDIR or /tmp, removed with what is in it (one level).
 */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

struct scratch {
	char path[256];
	int fd;
};

static inline void scratch_open(struct scratch *scratch)
{
	const char *tmp = getenv("TMPDIR");

	(void)snprintf(
		scratch->path, sizeof(scratch->path), "%s/tt-unit-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(scratch->path));
	scratch->fd = open(scratch->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(scratch->fd >= 0);
}

/* Number of names in it. */
static inline unsigned scratch_count(const struct scratch *scratch)
{
	DIR *dir = opendir(scratch->path);
	unsigned count = 0;

	assert_non_null(dir);
	for (struct dirent *d = readdir(dir); d; d = readdir(dir))
		count += strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
	(void)closedir(dir);
	return count;
}

static inline void scratch_write(const struct scratch *scratch, const char *name, const char *text)
{
	int fd = openat(scratch->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

static inline void scratch_close(struct scratch *scratch)
{
	DIR *dir = opendir(scratch->path);

	assert_non_null(dir);
	for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (unlinkat(scratch->fd, d->d_name, 0) < 0)
			(void)unlinkat(scratch->fd, d->d_name, AT_REMOVEDIR);
	}
	(void)closedir(dir);
	(void)close(scratch->fd);
	assert_int_equal(rmdir(scratch->path), 0);
}
