/* SPDX-License-Identifier: MIT */
#include "walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "residency_probe.h"

struct visiting {
	struct walk *walk;
	void (*visit)(struct walk_file *file, int fd, const struct stat *st, void *context);
	void *context;
	atomic_size_t next;
	atomic_size_t failed;
};

static void *must(void *memory)
{
	if (!memory) {
		fprintf(stderr, "out of memory\n");
		exit(2);
	}
	return memory;
}

static void add_file(struct walk *walk, char *path, ino_t ino, dev_t dev)
{
	if (walk->count == walk->room) {
		walk->room = walk->room ? walk->room * 2 : 1024;
		walk->files = must(realloc(walk->files, walk->room * sizeof(*walk->files)));
	}
	walk->files[walk->count++] =
		(struct walk_file){.path = path, .ino = ino, .dev = dev, .result = NULL};
}

static void complain(struct walk *walk, const char *path)
{
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	walk->unreadable++;
}

static char *join(const char *dir, const char *name)
{
	size_t length = strlen(dir);
	char *path = must(malloc(length + strlen(name) + 2));

	sprintf(path, "%s%s%s", dir, length && dir[length - 1] == '/' ? "" : "/", name);
	return path;
}

/* Takes `path`. */
static void collect_dir(struct walk *walk, int parent_fd, const char *name, char *path, dev_t dev)
{
	int fd = openat(
		parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME);
	struct dirent *entry;
	struct stat st;
	char *child;
	DIR *dir;

	if (fd < 0 && errno == EPERM) {
		fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (fd < 0 || fstat(fd, &st) < 0) {
		complain(walk, path);
		free(path);
		return;
	}
	if (st.st_dev != dev) {
		close(fd);
		free(path);
		return;
	}
	dir = must(fdopendir(fd));
	while ((entry = readdir(dir)) != NULL) {
		unsigned char type = entry->d_type;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) {
			continue;
		}
		if (type == DT_UNKNOWN
			&& fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			type = (unsigned char)IFTODT(st.st_mode);
		}
		if (type != DT_REG && type != DT_DIR) {
			continue;
		}
		child = join(path, entry->d_name);
		if (type == DT_DIR) {
			collect_dir(walk, fd, entry->d_name, child, dev);
		} else {
			add_file(walk, child, entry->d_ino, dev);
		}
	}
	closedir(dir);
	free(path);
}

static int compare_inodes(const void *left, const void *right)
{
	const struct walk_file *a = left, *b = right;

	if (a->dev != b->dev) {
		return a->dev < b->dev ? -1 : 1;
	}
	if (a->ino != b->ino) {
		return a->ino < b->ino ? -1 : 1;
	}
	return strcmp(a->path, b->path);
}

static int compare_names(const void *left, const void *right)
{
	const struct walk_file *a = left, *b = right;

	return strcmp(a->path, b->path);
}

static void drop_links(struct walk *walk)
{
	size_t kept = 0;

	for (size_t i = 0; i < walk->count; i++) {
		struct walk_file *file = &walk->files[i];

		if (kept && walk->files[kept - 1].ino == file->ino
			&& walk->files[kept - 1].dev == file->dev) {
			free(file->path);
			continue;
		}
		walk->files[kept++] = *file;
	}
	walk->count = kept;
}

void walk_collect(struct walk *walk, char **paths, int n_paths, enum walk_order order)
{
	struct stat st;

	*walk = (struct walk){0};
	for (int i = 0; i < n_paths; i++) {
		if (stat(paths[i], &st) < 0) {
			complain(walk, paths[i]);
		} else if (S_ISDIR(st.st_mode)) {
			/* A root that is itself a link is meant: resolve it once, by a trailing
			 * slash. */
			char *root = join(paths[i], "");

			collect_dir(walk, AT_FDCWD, root, must(strdup(root)), st.st_dev);
			free(root);
		} else if (S_ISREG(st.st_mode)) {
			add_file(walk, must(realpath(paths[i], NULL)), st.st_ino, st.st_dev);
		}
	}
	if (walk->count) {
		qsort(walk->files, walk->count, sizeof(*walk->files),
			order == WALK_BY_INODE ? compare_inodes : compare_names);
	}
	if (order == WALK_BY_INODE) {
		drop_links(walk);
	}
}

static void *visit_some(void *argument)
{
	struct visiting *visiting = argument;
	struct walk *walk = visiting->walk;
	struct stat st;
	size_t i;

	while ((i = atomic_fetch_add(&visiting->next, 1)) < walk->count) {
		struct walk_file *file = &walk->files[i];
		int fd = probe_open(AT_FDCWD, file->path);

		if (fd < 0) {
			if (fd != -ENOENT) {
				fprintf(stderr, "%s: %s\n", file->path, strerror(-fd));
				atomic_fetch_add(&visiting->failed, 1);
			}
			continue;
		}
		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
			visiting->visit(file, fd, &st, visiting->context);
		}
		close(fd);
	}
	return NULL;
}

void walk_visit(struct walk *walk, unsigned threads,
	void (*visit)(struct walk_file *file, int fd, const struct stat *st, void *context),
	void *context)
{
	struct visiting visiting = {.walk = walk, .visit = visit, .context = context};
	pthread_t *thread = must(calloc(threads, sizeof(*thread)));
	unsigned started = 0;

	while (started < threads
		&& pthread_create(&thread[started], NULL, visit_some, &visiting) == 0) {
		started++;
	}
	if (started == 0) {
		visit_some(&visiting);
	}
	while (started > 0) {
		pthread_join(thread[--started], NULL);
	}
	free(thread);
	walk->unreadable += atomic_load(&visiting.failed);
}

void walk_free(struct walk *walk)
{
	for (size_t i = 0; i < walk->count; i++) {
		free(walk->files[i].path);
	}
	free(walk->files);
	*walk = (struct walk){0};
}
