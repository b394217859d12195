/* SPDX-License-Identifier: MIT */
/*
 * Runs a command for which some system calls do not exist or are forbidden, as in a container.
 *
 *   denyuring [--error EPERM|ENOSYS] [--call NAME]... COMMAND...
 *
 * Without --call it is io_uring_setup. NAME: io_uring_setup, cachestat, openat2, statx, preadv2,
 * pwritev2 (these two answer EOPNOTSUPP, whatever --error says, and only when they are given
 * flags), sync_file_range, flock, getrandom.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

#define MOST_CALLS 16
#define LOW_WORD(field)                                  \
	((uint32_t)(offsetof(struct seccomp_data, field) \
		    + (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 4)))

struct call {
	const char *name;
	uint32_t number;
	int flags_argument; /* only when this argument is not 0; -1: always */
};

static const struct call known[] = {
	{"io_uring_setup", SYS_io_uring_setup, -1},
	{"cachestat", SYS_cachestat, -1},
	{"openat2", SYS_openat2, -1},
	{"statx", SYS_statx, -1},
	{"preadv2", SYS_preadv2, 5},
	{"pwritev2", SYS_pwritev2, 5},
	{"sync_file_range", SYS_sync_file_range, -1},
	{"flock", SYS_flock, -1},
	{"getrandom", SYS_getrandom, -1},
};

static struct sock_filter program[8 * MOST_CALLS + 2];
static unsigned short length;

static void add(uint16_t code, uint8_t when_true, uint8_t when_false, uint32_t value)
{
	program[length++] = (struct sock_filter)BPF_JUMP(code, value, when_true, when_false);
}

static void deny(const struct call *call, int error)
{
	bool by_flags = call->flags_argument >= 0;

	add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
	add(BPF_JMP | BPF_JEQ | BPF_K, 0, by_flags ? 3 : 1, call->number);
	if (by_flags) {
		add(BPF_LD | BPF_W | BPF_ABS, 0, 0, LOW_WORD(args[call->flags_argument]));
		add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0);
	}
	add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | (uint32_t)(by_flags ? EOPNOTSUPP : error));
}

static const struct call *find(const char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strcmp(known[i].name, name)) {
			return &known[i];
		}
	}
	return NULL;
}

static int usage(void)
{
	fprintf(stderr, "usage: denyuring [--error EPERM|ENOSYS] [--call NAME]... COMMAND...\n");
	return 125;
}

int main(int argc, char **argv)
{
	const struct call *calls[MOST_CALLS];
	struct sock_fprog filter;
	unsigned count = 0;
	int error = EPERM, i;

	for (i = 1; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2) {
		if (!strcmp(argv[i], "--error")) {
			error = !strcmp(argv[i + 1], "ENOSYS") ? ENOSYS : EPERM;
		} else if (!strcmp(argv[i], "--call") && count < MOST_CALLS && find(argv[i + 1])) {
			calls[count++] = find(argv[i + 1]);
		} else {
			return usage();
		}
	}
	if (i >= argc) {
		return usage();
	}
	if (count == 0) {
		calls[count++] = find("io_uring_setup");
	}
	for (unsigned c = 0; c < count; c++) {
		deny(calls[c], error);
	}
	add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
	filter = (struct sock_fprog){.len = length, .filter = program};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
		|| prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0) {
		fprintf(stderr, "denyuring: seccomp: %s\n", strerror(errno));
		return 125;
	}
	execvp(argv[i], argv + i);
	fprintf(stderr, "denyuring: %s: %s\n", argv[i], strerror(errno));
	return 127;
}
