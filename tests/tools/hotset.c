/* SPDX-License-Identifier: MIT */
/*
 * A program that uses its memory: makes a file, reads it, and reads it again every few seconds
 * until told to stop.
 *
 *   hotset [--cgroup PATH] [--interval S] [--idle] [-o FILE] FILE SIZE
 *
 * --cgroup joins the memory group first (PATH is its directory), so the pages are charged there.
 * --idle reads once and then only waits: the control set that shows what the machine itself takes
 * away. Says "ready" on stdout after the first pass. On SIGTERM or SIGINT writes KEY=VALUE to FILE
 * or stdout: passes, the pages resident before the last pass and the fewest before any, and how
 * long the slowest pass took.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "residency_probe.h"

#define PIECE_BYTES (1UL << 20)

struct statistics {
	unsigned long passes;
	uint64_t pages, resident_last, resident_fewest, resident_end;
	double first_s, slowest_s;
};

static volatile sig_atomic_t stop;

static void on_stop(int number)
{
	(void)number;
	stop = 1;
}

static void fail(const char *what)
{
	fprintf(stderr, "hotset: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void join_cgroup(const char *path)
{
	char procs[4096];
	int fd;

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	fd = open(procs, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1) {
		fail(procs);
	}
	close(fd);
}

/* Not all zeros and not compressible to nothing; cheap. */
static void fill(uint64_t *buffer, uint64_t seed)
{
	for (size_t i = 0; i < PIECE_BYTES / sizeof(*buffer); i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		buffer[i] = seed ^ (seed >> 29);
	}
}

static int open_file(const char *path, uint64_t size, uint64_t *buffer)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOATIME, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		fail(path);
	}
	if ((uint64_t)st.st_size == size) {
		return fd;
	}
	for (uint64_t at = 0; at < size; at += PIECE_BYTES) {
		size_t want = size - at < PIECE_BYTES ? size - at : PIECE_BYTES;

		fill(buffer, at + 1);
		if (pwrite(fd, buffer, want, (off_t)at) != (ssize_t)want) {
			fail(path);
		}
	}
	if (ftruncate(fd, (off_t)size) < 0 || fsync(fd) < 0) {
		fail(path);
	}
	/* The reading below, not this writing, brings it in. */
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	return fd;
}

static uint64_t resident(int fd, uint64_t size)
{
	struct probe_count count = {0};

	if (probe_count_fd(fd, size, &count) < 0) {
		fail("counting pages");
	}
	return count.resident;
}

static double read_all(int fd, void *buffer)
{
	struct timespec from, to;
	off_t at = 0;
	ssize_t n;

	clock_gettime(CLOCK_MONOTONIC, &from);
	while ((n = pread(fd, buffer, PIECE_BYTES, at)) > 0) {
		at += n;
	}
	if (n < 0) {
		fail("reading");
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

static void run(int fd, uint64_t size, unsigned interval_s, bool idle, void *buffer,
	struct statistics *stats)
{
	stats->pages = stats->resident_fewest = (size + PROBE_PAGE - 1) / PROBE_PAGE;
	stats->resident_last = stats->pages;
	stats->first_s = read_all(fd, buffer);
	stats->passes = 1;
	puts("ready");
	fflush(stdout);
	while (!stop) {
		double took;

		/* A signal ends the pause. One that comes just before it costs one interval. */
		nanosleep(&(struct timespec){.tv_sec = interval_s}, NULL);
		stats->resident_last = resident(fd, size);
		if (stats->resident_last < stats->resident_fewest) {
			stats->resident_fewest = stats->resident_last;
		}
		if (idle || stop) {
			continue;
		}
		took = read_all(fd, buffer);
		stats->slowest_s = took > stats->slowest_s ? took : stats->slowest_s;
		stats->passes++;
	}
	stats->resident_end = stats->resident_last;
}

int main(int argc, char **argv)
{
	const char *cgroup = NULL, *output = NULL;
	struct statistics stats = {0};
	unsigned interval_s = 5;
	bool idle = false;
	uint64_t size;
	void *buffer;
	FILE *out;
	int i, fd;

	probe_assert_page_size();
	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--idle")) {
			idle = true;
		} else if (i + 1 < argc && !strcmp(argv[i], "--cgroup")) {
			cgroup = argv[++i];
		} else if (i + 1 < argc && !strcmp(argv[i], "--interval")) {
			interval_s = (unsigned)atoi(argv[++i]);
		} else if (i + 1 < argc && !strcmp(argv[i], "-o")) {
			output = argv[++i];
		} else {
			break;
		}
	}
	if (argc - i != 2 || !probe_parse_size(argv[i + 1], &size) || size == 0
		|| interval_s == 0) {
		fprintf(stderr, "usage: hotset [--cgroup PATH] [--interval S] [--idle] [-o FILE] "
				"FILE SIZE\n");
		return 2;
	}
	if (cgroup) {
		join_cgroup(cgroup);
	}
	sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_stop}, NULL);
	sigaction(SIGINT, &(struct sigaction){.sa_handler = on_stop}, NULL);
	buffer = aligned_alloc(PROBE_PAGE, PIECE_BYTES);
	if (!buffer) {
		fail("buffer");
	}
	fd = open_file(argv[i], size, buffer);
	run(fd, size, interval_s, idle, buffer, &stats);
	out = output ? fopen(output, "we") : stdout;
	if (!out) {
		fail(output);
	}
	fprintf(out, "passes=%lu\npages=%llu\nresident_last=%llu\nresident_fewest=%llu\n",
		stats.passes, (unsigned long long)stats.pages,
		(unsigned long long)stats.resident_end, (unsigned long long)stats.resident_fewest);
	fprintf(out, "first_pass_s=%.3f\nslowest_pass_s=%.3f\n", stats.first_s, stats.slowest_s);
	if (fclose(out) != 0) {
		fail("writing statistics");
	}
	free(buffer);
	close(fd);
	return 0;
}
