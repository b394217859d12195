/* SPDX-License-Identifier: MIT */
/*
 * See granularity.h.
 *
 * The kernel cuts a time when it is set, in memory too (timestamp_truncate() in fs/inode.c since
 * Linux 5.4, fat_truncate_time() in fs/fat/misc.c), so what fstat says at once is what the disk
 * will hold.
 */
#include "sys/granularity.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* What exists: most; NTFS and SMB; UDF; exFAT's hundredths; ext3 and HFS+; FAT. */
static const uint64_t granularity_known[] = {
	1, 100, 1000, 1000000, 10000000, TT_GRANULARITY_SECOND_NS, 2 * TT_GRANULARITY_SECOND_NS};

enum {
	GRANULARITY_COUNT = sizeof granularity_known / sizeof *granularity_known
};

static int64_t granularity_floor(int64_t value, int64_t unit)
{
	int64_t rest = value % unit;

	return value - (rest < 0 ? rest + unit : rest);
}

static int granularity_order(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

int tt_granularity_compare(
	uint64_t granularity_ns, int64_t a_sec, uint32_t a_nsec, int64_t b_sec, uint32_t b_nsec)
{
	if (granularity_ns >= TT_GRANULARITY_SECOND_NS) {
		int64_t unit = (int64_t)(granularity_ns / TT_GRANULARITY_SECOND_NS);

		return granularity_order(
			granularity_floor(a_sec, unit), granularity_floor(b_sec, unit));
	}
	if (a_sec != b_sec)
		return granularity_order(a_sec, b_sec);
	if (granularity_ns == 0) /* two that have a fraction can be told apart by it */
		return a_nsec == 0 || b_nsec == 0 ? 0 : granularity_order(a_nsec, b_nsec);
	return granularity_order(
		(int64_t)(a_nsec / granularity_ns), (int64_t)(b_nsec / granularity_ns));
}

/* Whether `got` is `set`, cut to the unit and no finer. */
static bool granularity_explains(
	uint64_t unit, const struct timespec *set, const struct timespec *got)
{
	if (unit >= TT_GRANULARITY_SECOND_NS)
		return got->tv_nsec == 0
		       && got->tv_sec
				  == granularity_floor(
					  set->tv_sec, (int64_t)(unit / TT_GRANULARITY_SECOND_NS));
	return got->tv_sec == set->tv_sec && got->tv_nsec == set->tv_nsec / (long)unit * (long)unit;
}

int tt_granularity_try(int fd, uint64_t *ret_ns)
{
	/* No unit of the table divides it. */
	const struct timespec odd = {.tv_sec = 1500000001, .tv_nsec = 123456789};
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, odd};
	struct stat st;

	if (futimens(fd, times) < 0 || fstat(fd, &st) < 0)
		return -errno;
	for (unsigned i = 0; i < GRANULARITY_COUNT; i++) {
		if (granularity_explains(granularity_known[i], &odd, &st.st_mtim)) {
			*ret_ns = granularity_known[i];
			return 0;
		}
	}
	return -ERANGE;
}

uint64_t tt_granularity_guess(const char *fs_type, int fd)
{
	static const struct {
		const char *type;
		uint64_t ns;
	} types[] = {
		{"vfat", 2 * TT_GRANULARITY_SECOND_NS},
		{"msdos", 2 * TT_GRANULARITY_SECOND_NS},
		{"exfat", 2 * TT_GRANULARITY_SECOND_NS},
		{"hfs", TT_GRANULARITY_SECOND_NS},
		{"hfsplus", TT_GRANULARITY_SECOND_NS},
		{"minix", TT_GRANULARITY_SECOND_NS},
		{"ufs", TT_GRANULARITY_SECOND_NS},
		{"ntfs", 100},
		{"ntfs3", 100},
		{"cifs", 100},
		{"smb3", 100},
	};
	struct stat st;

	for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
		if (strcmp(fs_type, types[i].type) == 0)
			return types[i].ns;
	}
	/* Whoever serves it decides. */
	if (fs_type[0] == '\0' || strncmp(fs_type, "fuse", 4) == 0)
		return 0;
	/* Nobody can set this one, and the kernel gives it a fraction where there is room: ext4
	 * with small inodes has none. */
	if (fstat(fd, &st) == 0 && st.st_ctim.tv_nsec == 0)
		return TT_GRANULARITY_SECOND_NS;
	return 1;
}
