/* SPDX-License-Identifier: MIT */
/*
 * See probereads.h. Which mechanism it is cache/neutral says, with the code that chooses for a run.
 */
#include "cli/probereads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/neutral.h"
#include "sys/fd.h"
#include "sys/temporary.h"
#include "tree/listing.h"

enum {
	READS_SAMPLE_BYTES = 256 << 10,
	READS_ENOUGH_BYTES = 64 << 10, /* such a file lies in blocks of its own */
	READS_MOST_INLINE_BYTES = 32 << 10,
	READS_LEAST_INLINE_BYTES = 512,
	READS_MOST_LOOKS = 256, /* at names, for a regular file */
	READS_MOST_DEPTH = 6,
};

/* ---- a file to ask ---- */

struct reads_search {
	dev_t dev;
	unsigned looks;
	int fd; /* the largest so far, -1: none; owned */
	off_t bytes;
};

/* Looks at the directory's files, and opens the largest only: with FUSE that may empty its cache.
 */
static void reads_look(struct reads_search *search, int dir_fd, const struct tt_listing *names)
{
	const char *best = NULL;
	off_t most = search->bytes;
	struct stat st;

	for (unsigned i = 0;
		i < names->count && search->looks < READS_MOST_LOOKS && most < READS_ENOUGH_BYTES;
		i++) {
		const struct tt_entry *entry = &names->entries[i];

		if (!S_ISREG(entry->mode))
			continue;
		search->looks++;
		if (fstatat(dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0
			|| !S_ISREG(st.st_mode) || st.st_dev != search->dev || st.st_size <= most
			|| faccessat(dir_fd, entry->name, R_OK, AT_EACCESS) < 0)
			continue;
		most = st.st_size;
		best = entry->name;
	}
	int fd = best ? tt_fd_open_read(dir_fd, best) : -1;

	if (fd < 0)
		return;
	tt_fd_close(search->fd);
	search->fd = fd;
	search->bytes = most;
}

/* Files of a directory before what is below it. */
static void reads_search(struct reads_search *search, int dir_fd, unsigned depth)
{
	struct tt_listing names = {0};
	struct stat st;
	TT_FD_AUTO own = tt_fd_open_dir(dir_fd, "."); /* it has a place in the directory */

	if (own < 0 || fstat(own, &st) < 0 || st.st_dev != search->dev)
		return;
	(void)tt_listing_read_names(&names, own);
	reads_look(search, own, &names);
	for (unsigned i = 0;
		i < names.count && depth < READS_MOST_DEPTH && search->looks < READS_MOST_LOOKS
		&& search->bytes < READS_ENOUGH_BYTES;
		i++) {
		const struct tt_entry *entry = &names.entries[i];
		TT_FD_AUTO child = S_ISDIR(entry->mode) ? tt_fd_open_dir(own, entry->name) : -1;

		search->looks++;
		if (child >= 0)
			reads_search(search, child, depth + 1);
	}
	tt_listing_deinit(&names);
}

static int reads_find(int dir_fd)
{
	struct reads_search search = {.fd = -1};
	struct stat st;

	if (fstat(dir_fd, &st) < 0)
		return -errno;
	search.dev = st.st_dev;
	reads_search(&search, dir_fd, 0);
	return search.fd < 0 ? -ENOENT : search.fd;
}

/* Content that is on the disk, and not in the cache. */
static int reads_write(int fd, const char *data, size_t bytes)
{
	if (ftruncate(fd, 0) < 0)
		return -errno;
	int r = tt_fd_pwrite_all(fd, data, bytes, 0, 0);

	if (r == 0 && fdatasync(fd) < 0)
		r = -errno;
	tt_residency_drop(fd, 0, 0);
	return r;
}

/* ---- asking ---- */

static struct tt_mechanism_cell reads_cell(
	uint64_t from_bytes, uint64_t to_bytes, const struct tt_mechanism *mechanism)
{
	return (struct tt_mechanism_cell){from_bytes, to_bytes, mechanism};
}

/* Small files may lie where O_DIRECT does not reach (btrfs keeps 2048 bytes where the inode is):
 * looks for the largest of these. */
static void reads_try_small(
	int fd, const char *data, struct tt_neutral_fs *fs, struct tt_probereads *reads)
{
	const struct tt_mechanism *large = reads->other[0].mechanism;

	if (large->kind != TT_MECHANISM_DIRECT)
		return;
	for (uint64_t bytes = READS_MOST_INLINE_BYTES; bytes >= READS_LEAST_INLINE_BYTES;
		bytes /= 2) {
		if (reads_write(fd, data, bytes) < 0)
			return;
		const struct tt_mechanism *small = tt_neutral_foresee(fd, bytes, false, fs);

		if (small != large) {
			reads->other[0] = reads_cell(0, bytes, small);
			reads->other[1] = reads_cell(bytes + 1, UINT64_MAX, large);
			reads->other_count = 2;
			return;
		}
	}
}

/* Whether one is told of the pages of one's own files: a sandbox may forbid both ways to ask. */
static bool reads_is_told(int fd, const struct tt_neutral_fs *fs)
{
	struct tt_residency count;

	return tt_residency_count(fd, fs->method, 0, 0, &count) == 0;
}

static void reads_ask(int fd, bool ours, const char *data, struct tt_probereads *reads)
{
	struct tt_neutral_fs fs = {.method = tt_residency_method(fd), .dontcache_read = true};
	const bool told = !ours || reads_is_told(fd, &fs);
	struct stat st;
	uint64_t bytes = fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 1;

	tt_direct_ask(fd, &reads->direct);
	reads->own[0] = reads_cell(0, UINT64_MAX, tt_neutral_foresee(fd, bytes, told, &fs));
	reads->other[0] = reads_cell(0, UINT64_MAX,
		tt_neutral_foresee(fd, bytes, told && tt_fd_overrides_owners(), &fs));
	reads->own_count = reads->other_count = 1;
	if (ours)
		reads_try_small(fd, data, &fs, reads);
	reads->dontcache_refused = !fs.dontcache_read;
}

int tt_probereads_try(int dir_fd, struct tt_probereads *ret_reads)
{
	TT_FD_AUTO fd = tt_temporary_open(dir_fd, NULL);
	char *data = malloc(READS_SAMPLE_BYTES);

	*ret_reads = (struct tt_probereads){0};
	if (!data)
		return -ENOMEM;
	memset(data, 0x5a, READS_SAMPLE_BYTES);
	const bool no_cache = tt_residency_method(dir_fd) == TT_RESIDENCY_NONE;
	bool ours = fd >= 0 && reads_write(fd, data, READS_SAMPLE_BYTES) == 0;

	if (!ours) {
		tt_fd_close(fd);
		fd = no_cache ? -1 : reads_find(dir_fd);
	}
	ret_reads->seen = fd >= 0 || no_cache;
	/* Without any file the directory answers: it knows no more than the type. */
	reads_ask(fd >= 0 ? fd : dir_fd, ours, data, ret_reads);
	free(data);
	return 0;
}
