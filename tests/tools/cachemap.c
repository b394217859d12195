/* SPDX-License-Identifier: MIT */
/*
 * Looks at, empties and fills the page cache of files, exactly.
 *
 *   count PATH...     totals of all files: files, pages, resident, dirty, writeback
 *   list FILE         the resident ranges of one file, in pages, one per line
 *   snapshot PATH...  per file its resident ranges, sorted by name: two snapshots can be diffed
 *   evict PATH...     writes back and drops, says what would not go (mapped or locked pages)
 *   warm FILE PATTERN makes exactly the pattern resident, nothing more: --every N | --half SIZE |
 * --pages A-B | --all warmtree PATH...  reads everything
 *
 * Exit: 0, 1 a pattern could not be made exactly, 2 something could not be looked at.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "residency_probe.h"
#include "walk.h"

#define THREADS    8
#define READ_BYTES (1UL << 20)

struct totals {
	atomic_ullong files, pages, resident, dirty, writeback, stayed_files, failed;
	bool verbose;
};

static void count_file(struct walk_file *file, int fd, const struct stat *st, void *context)
{
	struct totals *totals = context;
	struct probe_count count;
	int r = probe_count_fd(fd, (uint64_t)st->st_size, &count);

	if (r < 0) {
		fprintf(stderr, "%s: %s\n", file->path, strerror(-r));
		atomic_fetch_add(&totals->failed, 1);
		return;
	}
	atomic_fetch_add(&totals->files, 1);
	atomic_fetch_add(&totals->pages, count.pages);
	atomic_fetch_add(&totals->resident, count.resident);
	atomic_fetch_add(&totals->dirty, count.dirty);
	atomic_fetch_add(&totals->writeback, count.writeback);
	if (totals->verbose && count.resident) {
		printf("%llu\t%s\n", (unsigned long long)count.resident, file->path);
	}
}

static int run_count(char **paths, int n_paths, bool verbose)
{
	struct totals totals = {.verbose = verbose};
	struct walk walk;
	bool failed;

	walk_collect(&walk, paths, n_paths, WALK_BY_INODE);
	walk_visit(&walk, THREADS, count_file, &totals);
	printf("files=%llu pages=%llu resident=%llu dirty=%llu writeback=%llu\n", totals.files,
		totals.pages, totals.resident, totals.dirty, totals.writeback);
	failed = walk.unreadable || totals.failed;
	walk_free(&walk);
	return failed ? 2 : 0;
}

static void evict_file(struct walk_file *file, int fd, const struct stat *st, void *context)
{
	struct totals *totals = context;
	int64_t stayed = probe_evict_fd(fd, (uint64_t)st->st_size);

	atomic_fetch_add(&totals->files, 1);
	if (stayed < 0) {
		fprintf(stderr, "%s: %s\n", file->path, strerror((int)-stayed));
		atomic_fetch_add(&totals->failed, 1);
	} else if (stayed > 0) {
		atomic_fetch_add(&totals->stayed_files, 1);
		atomic_fetch_add(&totals->resident, (unsigned long long)stayed);
		if (totals->verbose) {
			printf("%lld\t%s\n", (long long)stayed, file->path);
		}
	}
}

static int run_evict(char **paths, int n_paths, bool verbose)
{
	struct totals totals = {.verbose = verbose};
	struct walk walk;
	bool failed;

	walk_collect(&walk, paths, n_paths, WALK_BY_INODE);
	walk_visit(&walk, THREADS, evict_file, &totals);
	printf("files=%llu stayed_files=%llu stayed_pages=%llu\n", totals.files,
		totals.stayed_files, totals.resident);
	failed = walk.unreadable || totals.failed;
	walk_free(&walk);
	return failed ? 2 : 0;
}

static void print_ranges(const struct probe_map *map, char separator, FILE *out)
{
	bool first = true;
	uint64_t start;

	for (uint64_t i = 0; i < map->pages;) {
		if (!(map->page[i] & 1)) {
			i++;
			continue;
		}
		for (start = i; i < map->pages && (map->page[i] & 1); i++) {
		}
		if (!first) {
			fputc(separator, out);
		}
		first = false;
		fprintf(out, "%llu", (unsigned long long)start);
		if (i - 1 > start) {
			fprintf(out, "-%llu", (unsigned long long)(i - 1));
		}
	}
	if (first && separator == ',') {
		fputc('-', out);
	} else if (!first && separator == '\n') {
		fputc('\n', out);
	}
}

static int run_list(const char *path)
{
	struct probe_map map;
	struct stat st;
	int fd = probe_open(AT_FDCWD, path);
	int r = fd < 0 ? fd : (fstat(fd, &st) < 0 ? -errno : 0);

	if (r == 0) {
		r = probe_map_fd(fd, (uint64_t)st.st_size, &map);
	}
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(-r));
		return 2;
	}
	print_ranges(&map, '\n', stdout);
	free(map.page);
	close(fd);
	return 0;
}

static void snapshot_file(struct walk_file *file, int fd, const struct stat *st, void *context)
{
	struct totals *totals = context;
	struct probe_count count;
	struct probe_map map = {0};
	size_t length;
	char *text = NULL;
	FILE *out;
	int r = probe_count_fd(fd, (uint64_t)st->st_size, &count);

	/* mincore costs a mapping: only where there is something to say. */
	if (r == 0 && count.resident > 0) {
		r = probe_map_fd(fd, (uint64_t)st->st_size, &map);
	}
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", file->path, strerror(-r));
		atomic_fetch_add(&totals->failed, 1);
		return;
	}
	out = open_memstream(&text, &length);
	if (!out) {
		abort();
	}
	print_ranges(&map, ',', out);
	fclose(out);
	free(map.page);
	file->result = text;
}

static int run_snapshot(char **paths, int n_paths)
{
	struct totals totals = {0};
	struct walk walk;
	bool failed;

	walk_collect(&walk, paths, n_paths, WALK_BY_NAME);
	walk_visit(&walk, THREADS, snapshot_file, &totals);
	for (size_t i = 0; i < walk.count; i++) {
		if (walk.files[i].result) {
			probe_print_name(walk.files[i].path, stdout);
			printf("\t%s\n", (char *)walk.files[i].result);
			free(walk.files[i].result);
		}
	}
	failed = walk.unreadable || totals.failed;
	walk_free(&walk);
	return failed ? 2 : 0;
}

static void warm_file(struct walk_file *file, int fd, const struct stat *st, void *context)
{
	static _Thread_local char *buffer;
	struct totals *totals = context;
	ssize_t n;

	(void)st;
	if (!buffer && !(buffer = malloc(READ_BYTES))) {
		abort();
	}
	while ((n = read(fd, buffer, READ_BYTES)) > 0) {
		atomic_fetch_add(
			&totals->pages, ((unsigned long long)n + PROBE_PAGE - 1) / PROBE_PAGE);
	}
	if (n < 0) {
		fprintf(stderr, "%s: %s\n", file->path, strerror(errno));
		atomic_fetch_add(&totals->failed, 1);
	}
	atomic_fetch_add(&totals->files, 1);
}

static int run_warmtree(char **paths, int n_paths)
{
	struct totals totals = {0};
	struct walk walk;
	bool failed;

	walk_collect(&walk, paths, n_paths, WALK_BY_INODE);
	walk_visit(&walk, THREADS, warm_file, &totals);
	printf("files=%llu pages_read=%llu\n", totals.files, totals.pages);
	failed = walk.unreadable || totals.failed;
	walk_free(&walk);
	return failed ? 2 : 0;
}

struct pattern {
	uint64_t every;       /* 1: all */
	uint64_t half_pages;  /* every second piece of so many pages, 0: no */
	uint64_t first, last; /* pages */
};

static bool pattern_wants(const struct pattern *pattern, uint64_t page)
{
	if (page < pattern->first || page > pattern->last || page % pattern->every != 0) {
		return false;
	}
	return pattern->half_pages == 0 || (page / pattern->half_pages) % 2 == 0;
}

static bool parse_pattern(int argc, char **argv, struct pattern *ret)
{
	struct pattern pattern = {.every = 1, .last = UINT64_MAX};
	uint64_t value;
	char *dash;

	if (argc == 1 && !strcmp(argv[0], "--all")) {
		*ret = pattern;
		return true;
	}
	if (argc != 2) {
		return false;
	}
	if (!strcmp(argv[0], "--every") && probe_parse_size(argv[1], &value) && value > 0) {
		pattern.every = value;
	} else if (!strcmp(argv[0], "--half") && probe_parse_size(argv[1], &value)
		   && value >= PROBE_PAGE) {
		pattern.half_pages = value / PROBE_PAGE;
	} else if (!strcmp(argv[0], "--pages") && (dash = strchr(argv[1], '-')) != NULL) {
		pattern.first = strtoull(argv[1], NULL, 10);
		pattern.last = strtoull(dash + 1, NULL, 10);
	} else {
		return false;
	}
	*ret = pattern;
	return true;
}

/* Reads the pages that are wanted; FADV_RANDOM keeps read-ahead from bringing more. Returns 0 or a
 * negative errno. */
static int make_pattern(int fd, uint64_t pages, const struct pattern *pattern)
{
	static char buffer[64 * PROBE_PAGE];
	uint64_t start;

	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	for (uint64_t i = 0; i < pages;) {
		if (!pattern_wants(pattern, i)) {
			i++;
			continue;
		}
		for (start = i; i < pages && i - start < 64 && pattern_wants(pattern, i); i++) {
		}
		if (pread(fd, buffer, (i - start) * PROBE_PAGE, (off_t)(start * PROBE_PAGE)) < 0) {
			return -errno;
		}
	}
	return 0;
}

static int run_warm(const char *path, const struct pattern *pattern)
{
	struct probe_map map;
	struct stat st;
	uint64_t pages, wrong = 0;
	int fd = probe_open(AT_FDCWD, path);
	int r = fd < 0 ? fd : (fstat(fd, &st) < 0 ? -errno : 0);

	if (r == 0) {
		r = (int)probe_evict_fd(fd, (uint64_t)st.st_size);
	}
	if (r >= 0) {
		pages = ((uint64_t)st.st_size + PROBE_PAGE - 1) / PROBE_PAGE;
		r = make_pattern(fd, pages, pattern);
	}
	if (r == 0) {
		r = probe_map_fd(fd, (uint64_t)st.st_size, &map);
	}
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(-r));
		return 2;
	}
	for (uint64_t i = 0; i < pages; i++) {
		wrong += (map.page[i] & 1) != pattern_wants(pattern, i);
	}
	free(map.page);
	close(fd);
	if (wrong) {
		fprintf(stderr, "%s: %llu of %llu pages are not as wanted\n", path,
			(unsigned long long)wrong, (unsigned long long)pages);
		return 1;
	}
	return 0;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: cachemap count|evict [-v] PATH...\n"
		"       cachemap snapshot|warmtree PATH...\n"
		"       cachemap list FILE\n"
		"       cachemap warm FILE --every N | --half SIZE | --pages A-B | --all\n");
	return 2;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";
	struct pattern pattern;
	bool verbose = argc > 2 && !strcmp(argv[2], "-v");
	int skip = verbose ? 3 : 2;

	probe_assert_page_size();
	if (argc <= skip) {
		return usage();
	}
	if (!strcmp(verb, "count")) {
		return run_count(argv + skip, argc - skip, verbose);
	}
	if (!strcmp(verb, "evict")) {
		return run_evict(argv + skip, argc - skip, verbose);
	}
	if (!strcmp(verb, "snapshot")) {
		return run_snapshot(argv + 2, argc - 2);
	}
	if (!strcmp(verb, "warmtree")) {
		return run_warmtree(argv + 2, argc - 2);
	}
	if (!strcmp(verb, "list") && argc == 3) {
		return run_list(argv[2]);
	}
	if (!strcmp(verb, "warm") && parse_pattern(argc - 3, argv + 3, &pattern)) {
		return run_warm(argv[2], &pattern);
	}
	return usage();
}
