/* SPDX-License-Identifier: MIT */
/*
 * Every regular file below some paths, visited by several threads.
 *
 * Symbolic links are not followed, other file systems are not entered (a path given by name is a
 * root of its own). Nothing is read but directories.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct walk_file {
	char *path;
	ino_t ino;
	dev_t dev;
	void *result; /* the visitor's */
};

struct walk {
	struct walk_file *files;
	size_t count, room;
	size_t unreadable; /* directories and names that could not be looked at; said on stderr */
};

enum walk_order {
	WALK_BY_INODE, /* hard links once, in the order of inode numbers */
	WALK_BY_NAME,  /* every name, sorted by bytes */
};

/* Dies with exit code 2 on lack of memory: this is for tools. */
void walk_collect(struct walk *walk, char **paths, int n_paths, enum walk_order order);

/* Calls visit for each file with an open descriptor, from `threads` threads. Files that cannot be
 * opened are said on stderr and counted in unreadable; those that vanished are passed over. */
void walk_visit(struct walk *walk, unsigned threads,
	void (*visit)(struct walk_file *file, int fd, const struct stat *st, void *context),
	void *context);

void walk_free(struct walk *walk);
