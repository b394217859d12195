/* SPDX-License-Identifier: MIT */
/*
 * Runs a command for which some facilities of the kernel do not exist or are forbidden, as on an
 * old kernel or in a container.
 *
 *   denycalls [--error EPERM|ENOSYS|EOPNOTSUPP|EINVAL] FACILITY[,FACILITY...] COMMAND...
 *   denycalls --list
 *
 * A facility is one or more system calls, or a call with certain flags (a seccomp filter sees the
 * arguments, not what they point at); they answer the error (EPERM). "all" is every facility that
 * some tiptoe might do without, "docker" what docker's default profile denies of it.
 *
 * What goes through io_uring is not seen by seccomp: deny that too. An old kernel does not refuse
 * a bit in statx's mask, it ignores it; a filter can only refuse the call.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/fiemap.h>
#include <linux/filter.h>
#include <linux/fs.h>
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
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

#define MOST_INSTRUCTIONS 1024
#define OPEN_TMPFILE      020000000 /* without O_DIRECTORY, which O_TMPFILE includes */
#define NEW_STATX_MASK    0x3f000u  /* STATX_MNT_ID (5.8) to STATX_DIO_READ_ALIGN (6.14) */
#define ANY_BIT           0xffffffffu
#define LOW_WORD(field)                                  \
	((uint32_t)(offsetof(struct seccomp_data, field) \
		    + (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 4)))

enum when {
	ALWAYS,
	WITH_BITS, /* an argument has one of these bits */
	WITH_VALUE /* an argument is this */
};

struct rule {
	const char *facility;
	uint32_t call;
	enum when when;
	unsigned argument;
	uint32_t value;
	bool docker; /* its default profile (2024) denies it */
};

static const struct rule rules[] = {
	{"io_uring", SYS_io_uring_setup, ALWAYS, 0, 0, true},
	{"io_uring", SYS_io_uring_enter, ALWAYS, 0, 0, true},
	{"io_uring", SYS_io_uring_register, ALWAYS, 0, 0, true},
	{"io_uring_enter", SYS_io_uring_enter, ALWAYS, 0, 0, true},
	{"io_uring_register", SYS_io_uring_register, ALWAYS, 0, 0, true},
	{"cachestat", SYS_cachestat, ALWAYS, 0, 0, false},
	{"mincore", SYS_mincore, ALWAYS, 0, 0, false},
	{"fadvise", SYS_fadvise64, ALWAYS, 0, 0, false},
	{"sync_file_range", SYS_sync_file_range, ALWAYS, 0, 0, false},
	{"openat2", SYS_openat2, ALWAYS, 0, 0, false},
	{"statx", SYS_statx, ALWAYS, 0, 0, false},
	{"statx_masks", SYS_statx, WITH_BITS, 3, NEW_STATX_MASK, false},
	{"rwf_flags", SYS_preadv2, WITH_BITS, 5, ANY_BIT, false},
	{"rwf_flags", SYS_pwritev2, WITH_BITS, 5, ANY_BIT, false},
	{"copy_file_range", SYS_copy_file_range, ALWAYS, 0, 0, false},
	{"renameat2", SYS_renameat2, ALWAYS, 0, 0, false},
	{"tmpfile", SYS_openat, WITH_BITS, 2, OPEN_TMPFILE, false},
	{"name_to_handle", SYS_name_to_handle_at, ALWAYS, 0, 0, true},
	{"name_to_handle", SYS_open_by_handle_at, ALWAYS, 0, 0, true},
	{"ioctls", SYS_ioctl, WITH_VALUE, 1, FICLONE, false},
	{"ioctls", SYS_ioctl, WITH_VALUE, 1, FICLONERANGE, false},
	{"ioctls", SYS_ioctl, WITH_VALUE, 1, FS_IOC_FIEMAP, false},
	{"ioctls", SYS_ioctl, WITH_VALUE, 1, FS_IOC_GETFLAGS, false},
	{"ioctls", SYS_ioctl, WITH_VALUE, 1, FS_IOC_SETFLAGS, false},
	{"close_range", SYS_close_range, ALWAYS, 0, 0, false},
	{"fallocate", SYS_fallocate, ALWAYS, 0, 0, false},
	{"faccessat2", SYS_faccessat2, ALWAYS, 0, 0, false},
	{"fchmodat2", SYS_fchmodat2, ALWAYS, 0, 0, false},
	{"flock", SYS_flock, ALWAYS, 0, 0, false},
	{"getrandom", SYS_getrandom, ALWAYS, 0, 0, false},
};

enum {
	RULES = sizeof(rules) / sizeof(rules[0])
};

static const struct {
	const char *name;
	int number;
} errors[] = {{"EPERM", EPERM}, {"ENOSYS", ENOSYS}, {"EOPNOTSUPP", EOPNOTSUPP}, {"EINVAL", EINVAL}};

static struct sock_filter program[MOST_INSTRUCTIONS];
static unsigned short length;

static void add(uint16_t code, uint8_t when_true, uint8_t when_false, uint32_t value)
{
	program[length++] = (struct sock_filter)BPF_JUMP(code, value, when_true, when_false);
}

static void deny(const struct rule *rule, int error)
{
	bool looks = rule->when != ALWAYS;

	add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
	add(BPF_JMP | BPF_JEQ | BPF_K, 0, looks ? 3 : 1, rule->call);
	if (looks) {
		add(BPF_LD | BPF_W | BPF_ABS, 0, 0, LOW_WORD(args[rule->argument]));
		add(BPF_JMP | (rule->when == WITH_BITS ? BPF_JSET : BPF_JEQ) | BPF_K, 0, 1,
			rule->value);
	}
	add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | (uint32_t)error);
}

/* Returns whether there is such a facility. */
static bool deny_facility(const char *name, int error)
{
	bool all = !strcmp(name, "all"), docker = !strcmp(name, "docker"), found = false;

	for (unsigned i = 0; i < RULES && length < MOST_INSTRUCTIONS - 8; i++) {
		if (all || (docker && rules[i].docker) || !strcmp(rules[i].facility, name)) {
			deny(&rules[i], error);
			found = true;
		}
	}
	return found;
}

static int usage(void)
{
	fprintf(stderr, "usage: denycalls [--error EPERM|ENOSYS|EOPNOTSUPP|EINVAL] "
			"FACILITY[,FACILITY...] COMMAND...\n       denycalls --list\n");
	return 125;
}

static int list(void)
{
	for (unsigned i = 0; i < RULES; i++) {
		if (i == 0 || strcmp(rules[i].facility, rules[i - 1].facility) != 0) {
			puts(rules[i].facility);
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sock_fprog filter;
	int error = EPERM, i = 1;

	if (argc == 2 && !strcmp(argv[1], "--list")) {
		return list();
	}
	if (argc > 2 && !strcmp(argv[1], "--error")) {
		error = 0;
		for (unsigned e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
			if (!strcmp(argv[2], errors[e].name)) {
				error = errors[e].number;
			}
		}
		i = 3;
	}
	if (argc - i < 2 || error == 0) {
		return usage();
	}
	for (char *name = strtok(argv[i], ","); name; name = strtok(NULL, ",")) {
		if (!deny_facility(name, error)) {
			fprintf(stderr, "denycalls: %s: no such facility\n", name);
			return 125;
		}
	}
	add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
	filter = (struct sock_fprog){.len = length, .filter = program};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
		|| prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0) {
		fprintf(stderr, "denycalls: seccomp: %s\n", strerror(errno));
		return 125;
	}
	execvp(argv[i + 1], argv + i + 1);
	fprintf(stderr, "denycalls: %s: %s\n", argv[i + 1], strerror(errno));
	return 127;
}
