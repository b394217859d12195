/* SPDX-License-Identifier: MIT */
/*
 * Runs a command and watches, from outside, how many dirty bytes pile up meanwhile.
 *
 *   dirtywatch [--bdev /dev/X]... [--group DIRECTORY] [--interval-ms N] [-o FILE] -- COMMAND...
 *
 * Every N ms (5): Dirty + Writeback of /proc/meminfo less what is dirty or under writeback in the
 * page caches of the given block devices themselves (file system metadata, which nobody can pace).
 * With --group: of this memory cgroup's memory.stat instead, so that nobody else's writes count
 * (off by what the kernel collects before it adds it up: half a MiB for a processor). Before the
 * start the idle level is the median of 21 samples. Prints KEY=VALUE, one per line, to FILE or
 * stderr; what a bench needs of time and memory is there too, so that one run gives all figures.
 * Exits as the command did (128 + N for signal N).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "residency_probe.h"

#define MAX_BDEVS    16
#define IDLE_SAMPLES 21

struct watch {
	int stat_fd; /* /proc/meminfo, or a group's memory.stat */
	bool of_group;
	int bdev_fd[MAX_BDEVS];
	unsigned n_bdevs;
	unsigned interval_ms;
};

static volatile sig_atomic_t child_ended;

static void on_child(int number)
{
	(void)number;
	child_ended = 1;
}

static void fail(const char *what)
{
	fprintf(stderr, "dirtywatch: %s: %s\n", what, strerror(errno));
	exit(125);
}

/* Version 1 says total_dirty, version 2 file_dirty. */
static int64_t group_bytes(const char *text)
{
	const char *dirty = strstr(text, "_dirty "), *writeback = strstr(text, "_writeback ");

	return (dirty ? strtoll(dirty + strlen("_dirty "), NULL, 10) : 0)
	       + (writeback ? strtoll(writeback + strlen("_writeback "), NULL, 10) : 0);
}

static int64_t meminfo_kib(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoll(at + strlen(key), NULL, 10) : 0;
}

/* Can be below zero for a moment: the two views are not taken at the same instant. */
static int64_t sample_bytes(const struct watch *watch)
{
	struct probe_count count;
	char text[8192];
	ssize_t n = pread(watch->stat_fd, text, sizeof(text) - 1, 0);
	int64_t bytes;

	if (n < 0) {
		fail("sampling");
	}
	text[n] = '\0';
	bytes = watch->of_group
			? group_bytes(text)
			: (meminfo_kib(text, "\nDirty:") + meminfo_kib(text, "\nWriteback:"))
				  * 1024;
	for (unsigned i = 0; i < watch->n_bdevs; i++) {
		if (probe_cachestat_fd(watch->bdev_fd[i], &count) == 0) {
			bytes -= (int64_t)((count.dirty + count.writeback) * PROBE_PAGE);
		}
	}
	return bytes;
}

static int compare_samples(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return (a > b) - (a < b);
}

static void pause_ms(unsigned ms)
{
	struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000L};

	nanosleep(&wait, NULL);
}

static int64_t idle_bytes(const struct watch *watch)
{
	int64_t samples[IDLE_SAMPLES];

	for (unsigned i = 0; i < IDLE_SAMPLES; i++) {
		samples[i] = sample_bytes(watch);
		pause_ms(watch->interval_ms);
	}
	qsort(samples, IDLE_SAMPLES, sizeof(samples[0]), compare_samples);
	return samples[IDLE_SAMPLES / 2];
}

static double seconds_since(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - from->tv_sec) + (double)(now.tv_nsec - from->tv_nsec) / 1e9;
}

static double timeval_seconds(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

static int parse_options(int argc, char **argv, struct watch *watch, FILE **ret_out)
{
	int i = 1;

	for (; i < argc && strcmp(argv[i], "--") != 0; i += 2) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (!value) {
			return 0;
		}
		if (!strcmp(argv[i], "--bdev") && watch->n_bdevs < MAX_BDEVS) {
			int fd = open(value, O_RDONLY | O_CLOEXEC);

			if (fd < 0) {
				fail(value);
			}
			watch->bdev_fd[watch->n_bdevs++] = fd;
		} else if (!strcmp(argv[i], "--group")) {
			char path[4096];

			snprintf(path, sizeof(path), "%s/memory.stat", value);
			watch->of_group = true;
			watch->stat_fd = open(path, O_RDONLY | O_CLOEXEC);
		} else if (!strcmp(argv[i], "--interval-ms") && atoi(value) > 0) {
			watch->interval_ms = (unsigned)atoi(value);
		} else if (!strcmp(argv[i], "-o")) {
			*ret_out = fopen(value, "we");
			if (!*ret_out) {
				fail(value);
			}
		} else {
			return 0;
		}
	}
	return i + 1;
}

static pid_t start(char **command)
{
	pid_t pid = fork();

	if (pid < 0) {
		fail("fork");
	}
	if (pid == 0) {
		execvp(command[0], command);
		fprintf(stderr, "dirtywatch: %s: %s\n", command[0], strerror(errno));
		_exit(127);
	}
	return pid;
}

int main(int argc, char **argv)
{
	struct watch watch = {.interval_ms = 5};
	FILE *out = stderr;
	int command = parse_options(argc, argv, &watch, &out);
	int64_t idle, now, peak = INT64_MIN;
	unsigned long samples = 0;
	struct timespec begin;
	struct rusage usage;
	double elapsed;
	int status, code;
	pid_t pid;

	probe_assert_page_size();
	if (command == 0 || command >= argc) {
		fprintf(stderr, "usage: dirtywatch [--bdev DEVICE]... [--group DIRECTORY] "
				"[--interval-ms N] [-o FILE] "
				"-- COMMAND...\n");
		return 125;
	}
	if (!watch.of_group) {
		watch.stat_fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	}
	if (watch.stat_fd < 0) {
		fail("/proc/meminfo or memory.stat");
	}
	idle = idle_bytes(&watch);
	/* SIGCHLD cuts the pause short, so the elapsed time is not rounded up to the interval. */
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP},
		NULL);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	pid = start(argv + command);
	/* Ctrl-C is for the command; it is reported by its exit. */
	signal(SIGINT, SIG_IGN);
	while (!child_ended) {
		now = sample_bytes(&watch);
		peak = now > peak ? now : peak;
		samples++;
		pause_ms(watch.interval_ms);
	}
	elapsed = seconds_since(&begin);
	now = sample_bytes(&watch);
	peak = now > peak ? now : peak;
	while (wait4(pid, &status, 0, &usage) < 0) {
		if (errno != EINTR) {
			fail("wait4");
		}
	}
	code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	fprintf(out, "exit=%d\nelapsed_s=%.3f\nuser_s=%.3f\nsys_s=%.3f\nmax_rss_kib=%ld\n", code,
		elapsed, timeval_seconds(&usage.ru_utime), timeval_seconds(&usage.ru_stime),
		usage.ru_maxrss);
	fprintf(out, "idle_mib=%.1f\npeak_above_idle_mib=%.1f\nsamples=%lu\n",
		(double)idle / 1048576, (double)(peak - idle) / 1048576, samples);
	fprintf(out, "voluntary_switches=%ld\ninvoluntary_switches=%ld\n", usage.ru_nvcsw,
		usage.ru_nivcsw);
	fclose(out);
	return code;
}
