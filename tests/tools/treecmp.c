/* SPDX-License-Identifier: MIT */
/*
 * Compares two trees in everything that a faithful copy must keep, with no code of tiptoe's or
 * rsync's in it.
 *
 *   treecmp [--no-times] [--no-owner] [--no-dir-times] [--no-links] [--no-sparse] [--now=SECONDS]
 *           A B
 *
 * Names, types, modes (12 bits), owners, sizes, times to the nanosecond, link targets and the
 * links' own times, device numbers, contents, which names are one inode, and holes (B must not hold
 * more than A). The page cache stays as it was: contents are read with O_DIRECT, and what a file
 * system caches nevertheless is dropped again page by page. Not compared: access and change times,
 * ACLs, xattrs. With --now, two times that are both later than that second since 1970 are equal:
 * each was set when it happened.
 *
 * Prints one line per difference. Exit: 0 equal, 1 different, 2 something could not be looked at.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "residency_probe.h"

#define READ_BYTES             (1UL << 20)
#define THREADS                4
#define SPARE_BYTES_PER_EXTENT 131072 /* a block before and one behind, at most 64 KiB each */

struct pair {
	char *path; /* from the roots */
	uint64_t size;
};

struct names {
	char **name;
	size_t count;
};

struct link_pair {
	dev_t dev_a, dev_b;
	ino_t ino_a, ino_b;
	char *path;
};

static bool no_times, no_owner, no_dir_times, no_links, no_sparse;
static time_t now_sec;
static int root_a, root_b;
static struct pair *contents;
static size_t n_contents, room_contents;
static struct link_pair *links;
static size_t n_links, room_links;
static atomic_size_t next_content;
static atomic_ulong differences, troubles;
static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER;

static void *must(void *memory)
{
	if (!memory) {
		fprintf(stderr, "treecmp: out of memory\n");
		exit(2);
	}
	return memory;
}

__attribute__((format(printf, 2, 3))) static void differ(const char *path, const char *format, ...)
{
	va_list arguments;

	atomic_fetch_add(&differences, 1);
	pthread_mutex_lock(&print_lock);
	probe_print_name(*path ? path : ".", stdout);
	printf(": ");
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	pthread_mutex_unlock(&print_lock);
}

static void trouble(const char *path, const char *what, int error)
{
	atomic_fetch_add(&troubles, 1);
	pthread_mutex_lock(&print_lock);
	fprintf(stderr, "treecmp: %s ", what);
	probe_print_name(*path ? path : ".", stderr);
	fprintf(stderr, ": %s\n", strerror(error));
	pthread_mutex_unlock(&print_lock);
}

static int compare_strings(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Consumes the descriptor. */
static bool read_names(int fd, const char *path, struct names *ret_names)
{
	struct names names = {0};
	struct dirent *entry;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t room = 0;

	if (!dir) {
		trouble(path, "reading directory", errno);
		return false;
	}
	while ((entry = readdir(dir)) != NULL) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) {
			continue;
		}
		if (names.count == room) {
			room = room ? room * 2 : 16;
			names.name = must(realloc(names.name, room * sizeof(*names.name)));
		}
		names.name[names.count++] = must(strdup(entry->d_name));
	}
	closedir(dir);
	if (names.count) {
		qsort(names.name, names.count, sizeof(*names.name), compare_strings);
	}
	*ret_names = names;
	return true;
}

static int open_dir(int parent_fd, const char *name)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(parent_fd, name, flags | O_NOATIME);

	return fd < 0 && errno == EPERM ? openat(parent_fd, name, flags) : fd;
}

static const char *type_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symbolic link";
	case S_IFCHR:
		return "character device";
	case S_IFBLK:
		return "block device";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	default:
		return "unknown type";
	}
}

static void compare_link_targets(int fd_a, int fd_b, const char *name, const char *path)
{
	char a[65536], b[65536];
	ssize_t n_a = readlinkat(fd_a, name, a, sizeof(a));
	ssize_t n_b = readlinkat(fd_b, name, b, sizeof(b));

	if (n_a < 0 || n_b < 0) {
		trouble(path, "reading link", errno);
	} else if (n_a != n_b || memcmp(a, b, (size_t)n_a) != 0) {
		differ(path, "link target");
	}
}

static void remember_links(const struct stat *a, const struct stat *b, const char *path)
{
	if (n_links == room_links) {
		room_links = room_links ? room_links * 2 : 256;
		links = must(realloc(links, room_links * sizeof(*links)));
	}
	links[n_links++] =
		(struct link_pair){a->st_dev, b->st_dev, a->st_ino, b->st_ino, must(strdup(path))};
}

static void remember_contents(const char *path, uint64_t size)
{
	if (n_contents == room_contents) {
		room_contents = room_contents ? room_contents * 2 : 1024;
		contents = must(realloc(contents, room_contents * sizeof(*contents)));
	}
	contents[n_contents++] = (struct pair){must(strdup(path)), size};
}

static void compare_stat(const struct stat *a, const struct stat *b, const char *path)
{
	bool is_dir = S_ISDIR(a->st_mode);

	if (!S_ISLNK(a->st_mode) && (a->st_mode & 07777) != (b->st_mode & 07777)) {
		differ(path, "mode %04o, %04o", a->st_mode & 07777, b->st_mode & 07777);
	}
	if (!no_owner && (a->st_uid != b->st_uid || a->st_gid != b->st_gid)) {
		differ(path, "owner %u:%u, %u:%u", a->st_uid, a->st_gid, b->st_uid, b->st_gid);
	}
	bool is_now = now_sec != 0 && a->st_mtim.tv_sec >= now_sec && b->st_mtim.tv_sec >= now_sec;

	if (!no_times && !is_now && !(is_dir && no_dir_times)
		&& (a->st_mtim.tv_sec != b->st_mtim.tv_sec
			|| a->st_mtim.tv_nsec != b->st_mtim.tv_nsec)) {
		differ(path, "mtime %lld.%09ld, %lld.%09ld", (long long)a->st_mtim.tv_sec,
			a->st_mtim.tv_nsec, (long long)b->st_mtim.tv_sec, b->st_mtim.tv_nsec);
	}
	if ((S_ISCHR(a->st_mode) || S_ISBLK(a->st_mode)) && a->st_rdev != b->st_rdev) {
		differ(path, "device %u:%u, %u:%u", major(a->st_rdev), minor(a->st_rdev),
			major(b->st_rdev), minor(b->st_rdev));
	}
	if (S_ISREG(a->st_mode) && a->st_size != b->st_size) {
		differ(path, "size %lld, %lld", (long long)a->st_size, (long long)b->st_size);
	}
}

static void compare_dirs(int fd_a, int fd_b, const char *path);

static void compare_entry(int fd_a, int fd_b, const char *name, const char *path)
{
	struct stat a, b;

	if (fstatat(fd_a, name, &a, AT_SYMLINK_NOFOLLOW) < 0
		|| fstatat(fd_b, name, &b, AT_SYMLINK_NOFOLLOW) < 0) {
		trouble(path, "looking at", errno);
		return;
	}
	if ((a.st_mode & S_IFMT) != (b.st_mode & S_IFMT)) {
		differ(path, "%s, %s", type_name(a.st_mode), type_name(b.st_mode));
		return;
	}
	compare_stat(&a, &b, path);
	if (S_ISLNK(a.st_mode)) {
		compare_link_targets(fd_a, fd_b, name, path);
	}
	if (S_ISREG(a.st_mode) && a.st_size == b.st_size && a.st_size > 0
		&& !(a.st_dev == b.st_dev && a.st_ino == b.st_ino)) {
		remember_contents(path, (uint64_t)a.st_size);
	}
	if (S_ISDIR(a.st_mode)) {
		compare_dirs(open_dir(fd_a, name), open_dir(fd_b, name), path);
	} else if (!no_links && (a.st_nlink > 1 || b.st_nlink > 1)) {
		remember_links(&a, &b, path);
	}
}

/* Consumes both descriptors. */
static void compare_dirs(int fd_a, int fd_b, const char *path)
{
	struct names a = {0}, b = {0};
	size_t i = 0, j = 0;

	if (!read_names(fd_a < 0 ? -1 : dup(fd_a), path, &a)
		|| !read_names(fd_b < 0 ? -1 : dup(fd_b), path, &b)) {
		goto out;
	}
	while (i < a.count || j < b.count) {
		int order = i == a.count ? 1 : j == b.count ? -1 : strcmp(a.name[i], b.name[j]);
		const char *name = order <= 0 ? a.name[i] : b.name[j];
		char *child = must(malloc(strlen(path) + strlen(name) + 2));

		sprintf(child, "%s%s%s", path, *path ? "/" : "", name);
		if (order == 0) {
			compare_entry(fd_a, fd_b, name, child);
		} else {
			differ(child, order < 0 ? "only in A" : "only in B");
		}
		free(child);
		i += order <= 0;
		j += order >= 0;
	}
out:
	for (i = 0; i < a.count; i++) {
		free(a.name[i]);
	}
	for (j = 0; j < b.count; j++) {
		free(b.name[j]);
	}
	free(a.name);
	free(b.name);
	if (fd_a >= 0) {
		close(fd_a);
	}
	if (fd_b >= 0) {
		close(fd_b);
	}
}

static int compare_by_a(const void *left, const void *right)
{
	const struct link_pair *a = left, *b = right;

	if (a->dev_a != b->dev_a) {
		return a->dev_a < b->dev_a ? -1 : 1;
	}
	return (a->ino_a > b->ino_a) - (a->ino_a < b->ino_a);
}

static int compare_by_b(const void *left, const void *right)
{
	const struct link_pair *a = left, *b = right;

	if (a->dev_b != b->dev_b) {
		return a->dev_b < b->dev_b ? -1 : 1;
	}
	return (a->ino_b > b->ino_b) - (a->ino_b < b->ino_b);
}

static void compare_links(void)
{
	if (n_links == 0) {
		return;
	}
	qsort(links, n_links, sizeof(*links), compare_by_a);
	for (size_t i = 1; i < n_links; i++) {
		if (compare_by_a(&links[i - 1], &links[i]) == 0
			&& compare_by_b(&links[i - 1], &links[i]) != 0) {
			differ(links[i].path, "one inode with another name in A, not in B");
		}
	}
	qsort(links, n_links, sizeof(*links), compare_by_b);
	for (size_t i = 1; i < n_links; i++) {
		if (compare_by_b(&links[i - 1], &links[i]) == 0
			&& compare_by_a(&links[i - 1], &links[i]) != 0) {
			differ(links[i].path, "one inode with another name in B, not in A");
		}
	}
}

static uint64_t data_bytes(int fd, uint64_t size, uint64_t *ret_extents)
{
	off_t data, hole = 0;
	uint64_t sum = 0;

	*ret_extents = 0;
	while ((data = lseek(fd, hole, SEEK_DATA)) >= 0 && (uint64_t)data < size) {
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole < 0) {
			break;
		}
		sum += (uint64_t)(hole - data);
		++*ret_extents;
	}
	return sum;
}

static void compare_holes(int fd_a, int fd_b, const struct pair *pair)
{
	uint64_t extents_a, extents_b, a, b;
	struct stat st_a, st_b;

	if (fstat(fd_a, &st_a) < 0 || fstat(fd_b, &st_b) < 0 || st_b.st_blocks <= st_a.st_blocks
		|| (uint64_t)st_a.st_blocks * 512 >= pair->size) {
		return;
	}
	a = data_bytes(fd_a, pair->size, &extents_a);
	b = data_bytes(fd_b, pair->size, &extents_b);
	if (b > a + extents_a * SPARE_BYTES_PER_EXTENT) {
		differ(pair->path, "holes filled: %llu data bytes in %llu extents, %llu in %llu",
			(unsigned long long)a, (unsigned long long)extents_a, (unsigned long long)b,
			(unsigned long long)extents_b);
	}
}

struct reader {
	int fd;        /* for looking */
	int direct_fd; /* for reading; the same without O_DIRECT support */
	struct probe_map before;
	bool restore;
};

static int reader_open(struct reader *reader, int root, const struct pair *pair)
{
	struct probe_count count;
	int r;

	*reader = (struct reader){.fd = probe_open(root, pair->path), .direct_fd = -1};
	if (reader->fd < 0) {
		return reader->fd;
	}
	reader->direct_fd =
		openat(root, pair->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOATIME | O_DIRECT);
	if (reader->direct_fd < 0) {
		reader->direct_fd = dup(reader->fd);
		posix_fadvise(reader->direct_fd, 0, 0, POSIX_FADV_RANDOM);
	}
	r = probe_count_fd(reader->fd, pair->size, &count);
	if (r == 0 && count.resident < count.pages) {
		r = probe_map_fd(reader->fd, pair->size, &reader->before);
		reader->restore = r == 0;
	}
	return 0;
}

static void reader_close(struct reader *reader, uint64_t size)
{
	struct probe_count count;

	if (reader->restore) {
		if (probe_count_fd(reader->fd, size, &count) == 0 && count.resident > 0) {
			probe_restore_fd(reader->fd, size, &reader->before);
		}
		free(reader->before.page);
	}
	if (reader->direct_fd >= 0) {
		close(reader->direct_fd);
	}
	if (reader->fd >= 0) {
		close(reader->fd);
	}
}

/* Reads up to a full piece; a direct read that ends off a block is only right at the end of the
 * file. */
static ssize_t read_piece(struct reader *reader, char *buffer, uint64_t offset)
{
	size_t have = 0;
	ssize_t n;

	do {
		n = pread(reader->direct_fd, buffer + have, READ_BYTES - have,
			(off_t)(offset + have));
		if (n < 0 && errno == EINVAL && reader->direct_fd != reader->fd) {
			close(reader->direct_fd);
			reader->direct_fd = dup(reader->fd);
			n = pread(reader->direct_fd, buffer + have, READ_BYTES - have,
				(off_t)(offset + have));
		}
		if (n < 0) {
			return -errno;
		}
		have += (size_t)n;
	} while (n > 0 && have < READ_BYTES && have % 4096 == 0);
	return (ssize_t)have;
}

static void compare_content(const struct pair *pair, char *buffer_a, char *buffer_b)
{
	struct reader a, b;
	int r_a = reader_open(&a, root_a, pair), r_b = reader_open(&b, root_b, pair);
	uint64_t offset = 0;
	ssize_t n_a = 1, n_b;

	if (r_a < 0 || r_b < 0) {
		trouble(pair->path, "opening", r_a < 0 ? -r_a : -r_b);
		goto out;
	}
	while (offset < pair->size && n_a > 0) {
		n_a = read_piece(&a, buffer_a, offset);
		n_b = read_piece(&b, buffer_b, offset);
		if (n_a < 0 || n_b < 0) {
			trouble(pair->path, "reading", (int)(n_a < 0 ? -n_a : -n_b));
			goto out;
		}
		if (n_a != n_b || memcmp(buffer_a, buffer_b, (size_t)n_a) != 0) {
			differ(pair->path, "content, within the MiB at %llu",
				(unsigned long long)offset);
			break;
		}
		offset += (uint64_t)n_a;
	}
	if (!no_sparse) {
		compare_holes(a.fd, b.fd, pair);
	}
out:
	reader_close(&a, pair->size);
	reader_close(&b, pair->size);
}

static void *compare_contents(void *unused)
{
	char *buffer_a = must(aligned_alloc(4096, READ_BYTES));
	char *buffer_b = must(aligned_alloc(4096, READ_BYTES));
	size_t i;

	(void)unused;
	while ((i = atomic_fetch_add(&next_content, 1)) < n_contents) {
		compare_content(&contents[i], buffer_a, buffer_b);
	}
	free(buffer_a);
	free(buffer_b);
	return NULL;
}

static int parse_options(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool *flag;
	} options[] = {{"--no-times", &no_times}, {"--no-owner", &no_owner},
		{"--no-dir-times", &no_dir_times}, {"--no-links", &no_links},
		{"--no-sparse", &no_sparse}};
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (!strncmp(argv[i], "--now=", 6)) {
			now_sec = (time_t)strtoll(argv[i] + 6, NULL, 10);
			continue;
		}
		bool known = false;

		for (size_t k = 0; k < sizeof(options) / sizeof(options[0]); k++) {
			if (!strcmp(argv[i], options[k].name)) {
				*options[k].flag = known = true;
			}
		}
		if (!known) {
			return 0;
		}
	}
	return argc - i == 2 ? i : 0;
}

/* Two single files, or two directories. */
static void compare_roots(const char *path_a, const char *path_b)
{
	struct stat a, b;

	root_a = open(path_a, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOATIME);
	root_b = open(path_b, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOATIME);
	if (root_a < 0 || root_b < 0 || fstat(root_a, &a) < 0 || fstat(root_b, &b) < 0) {
		trouble(root_a < 0 ? path_a : path_b, "opening", errno);
		return;
	}
	compare_stat(&a, &b, "");
	compare_dirs(dup(root_a), dup(root_b), "");
}

int main(int argc, char **argv)
{
	int first = parse_options(argc, argv);
	pthread_t threads[THREADS];
	unsigned started = 0;

	probe_assert_page_size();
	if (first == 0) {
		fprintf(stderr, "usage: treecmp [--no-times] [--no-owner] [--no-dir-times] "
				"[--no-links] [--no-sparse] [--now=SECONDS] A B\n");
		return 2;
	}
	compare_roots(argv[first], argv[first + 1]);
	while (started < THREADS
		&& pthread_create(&threads[started], NULL, compare_contents, NULL) == 0) {
		started++;
	}
	while (started > 0) {
		pthread_join(threads[--started], NULL);
	}
	compare_links();
	return troubles ? 2 : differences ? 1 : 0;
}
