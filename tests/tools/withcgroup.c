/* SPDX-License-Identifier: MIT */
/*
 * Runs a command in a memory cgroup of its own, and removes the group afterwards.
 *
 *   withcgroup [--stat FILE] NAME LIMIT -- COMMAND...
 *
 * NAME is made below the memory controller (version 1, or the unified hierarchy if it has the
 * controller); LIMIT as 512M. --stat keeps the group's memory.stat as it was at the end. The
 * command finds the group's directory in $TIPTOE_CGROUP. Exits as the command did; 77 without a
 * memory controller or the right to use it, 125 for other trouble.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "residency_probe.h"

#define PATH_SIZE 4096

static bool write_text(const char *dir, const char *file, const char *text)
{
	char path[PATH_SIZE];
	bool written;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0) {
		return false;
	}
	written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return written;
}

static bool unified_has_memory(void)
{
	char text[512] = "";
	FILE *file = fopen("/sys/fs/cgroup/cgroup.controllers", "re");
	bool has;

	if (!file) {
		return false;
	}
	has = fgets(text, sizeof(text), file) && strstr(text, "memory");
	fclose(file);
	return has;
}

/* Returns 0, or the exit code. */
static int make_group(const char *name, uint64_t limit, char *ret_dir)
{
	bool version1 = access("/sys/fs/cgroup/memory/memory.limit_in_bytes", F_OK) == 0;
	char text[32];

	if (!version1 && !unified_has_memory()) {
		fprintf(stderr, "withcgroup: no memory controller\n");
		return 77;
	}
	if (!version1) {
		write_text("/sys/fs/cgroup", "cgroup.subtree_control", "+memory");
	}
	snprintf(ret_dir, PATH_SIZE, "/sys/fs/cgroup/%s%s", version1 ? "memory/" : "", name);
	/* A left over group of a killed run is empty, or it is none of ours. */
	rmdir(ret_dir);
	if (mkdir(ret_dir, 0755) < 0) {
		int code = errno == EACCES || errno == EPERM || errno == EROFS ? 77 : 125;

		fprintf(stderr, "withcgroup: %s: %s\n", ret_dir, strerror(errno));
		return code;
	}
	snprintf(text, sizeof(text), "%llu", (unsigned long long)limit);
	if (!write_text(ret_dir, version1 ? "memory.limit_in_bytes" : "memory.max", text)) {
		fprintf(stderr, "withcgroup: limit %s: %s\n", text, strerror(errno));
		rmdir(ret_dir);
		return 125;
	}
	return 0;
}

static void keep_stat(const char *dir, const char *target)
{
	char path[PATH_SIZE], line[256];
	FILE *in, *out;

	snprintf(path, sizeof(path), "%.*s/memory.stat", PATH_SIZE - 16, dir);
	in = fopen(path, "re");
	out = fopen(target, "we");
	while (in && out && fgets(line, sizeof(line), in)) {
		fputs(line, out);
	}
	if (in) {
		fclose(in);
	}
	if (out) {
		fclose(out);
	}
}

static bool remove_group(const char *dir)
{
	/* Ended processes leave the group a moment later. */
	for (int attempt = 0; attempt < 100; attempt++) {
		if (rmdir(dir) == 0) {
			return true;
		}
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	}
	fprintf(stderr, "withcgroup: removing %s: %s\n", dir, strerror(errno));
	return false;
}

int main(int argc, char **argv)
{
	const char *stat_file = NULL;
	char dir[PATH_SIZE];
	uint64_t limit;
	int i = 1, r, status;
	pid_t pid;

	if (argc > 2 && !strcmp(argv[1], "--stat")) {
		stat_file = argv[2];
		i = 3;
	}
	if (argc - i < 4 || strcmp(argv[i + 2], "--") != 0 || strchr(argv[i], '/')
		|| !probe_parse_size(argv[i + 1], &limit)) {
		fprintf(stderr, "usage: withcgroup [--stat FILE] NAME LIMIT -- COMMAND...\n");
		return 125;
	}
	r = make_group(argv[i], limit, dir);
	if (r != 0) {
		return r;
	}
	pid = fork();
	if (pid == 0) {
		setenv("TIPTOE_CGROUP", dir, 1);
		if (!write_text(dir, "cgroup.procs", "0")) {
			fprintf(stderr, "withcgroup: joining %s: %s\n", dir, strerror(errno));
			_exit(125);
		}
		execvp(argv[i + 3], argv + i + 3);
		fprintf(stderr, "withcgroup: %s: %s\n", argv[i + 3], strerror(errno));
		_exit(127);
	}
	/* Ctrl-C is for the command; the group is still to be removed. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	if (stat_file) {
		keep_stat(dir, stat_file);
	}
	if (!remove_group(dir) || pid < 0) {
		return 125;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
