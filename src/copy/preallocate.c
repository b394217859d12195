/* SPDX-License-Identifier: MIT */
/*
 * See preallocate.h. ext4 keeps what it got before the disk was full (fs/ext4/extents.c,
 * ext4_alloc_file_blocks(), Linux 6.18).
 */
#include "copy/preallocate.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "copy/extents.h"
#include "sys/fd.h"

/* More than our own dirty bytes, and than what ext4 keeps for itself: a fiftieth, at most 4096
 * clusters (fs/ext4/super.c, ext4_calculate_resv_clusters()). */
#define PREALLOCATE_SPARE_BYTES (UINT64_C(64) << 20)
#define PREALLOCATE_SPARE_PART  32

/* Whether so much is free at all. What fallocate(2) finds out by taking everything there is, others
 * would find out, too. */
static bool preallocate_has_room(int fd, uint64_t bytes, bool spare)
{
	struct statvfs fs;

	if (fstatvfs(fd, &fs) < 0 || fs.f_frsize == 0)
		return true;
	uint64_t most = PREALLOCATE_SPARE_BYTES / fs.f_frsize;
	uint64_t part = fs.f_blocks / PREALLOCATE_SPARE_PART;
	uint64_t left = !spare ? 0 : part < most ? part : most;

	return bytes / fs.f_frsize + left <= fs.f_bfree;
}

static void preallocate_lock(pthread_mutex_t *lock)
{
	if (lock)
		pthread_mutex_lock(lock);
}

static void preallocate_unlock(pthread_mutex_t *lock)
{
	if (lock)
		pthread_mutex_unlock(lock);
}

/* What lies behind `from_bytes` becomes a hole. Not by punching: ext4 punches nothing behind the
 * end (fs/ext4/inode.c, ext4_punch_hole()). */
static void preallocate_give_back(int fd, uint64_t from_bytes)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return;
	if ((uint64_t)st.st_size > from_bytes)
		(void)!ftruncate(fd, (off_t)from_bytes);
	(void)!ftruncate(fd, st.st_size);
}

int tt_preallocate_ahead(
	int fd, uint64_t from_bytes, uint64_t size_bytes, bool holes, pthread_mutex_t *lock)
{
	int r = -ENOSPC;

	if (from_bytes >= size_bytes)
		return 0;
	uint64_t bytes = size_bytes - from_bytes;

	preallocate_lock(lock);
	if (preallocate_has_room(fd, bytes, holes)) {
		r = tt_fd_allocate(fd, FALLOC_FL_KEEP_SIZE, from_bytes, bytes);
		if (r < 0 && r != -EOPNOTSUPP)
			preallocate_give_back(fd, from_bytes);
	}
	preallocate_unlock(lock);
	return r;
}

static void preallocate_punch(int fd, uint64_t from, uint64_t to)
{
	if (from < to)
		(void)tt_fd_allocate(
			fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, to - from);
}

static void preallocate_punch_again(
	int from_fd, int to_fd, uint64_t start_bytes, uint64_t size_bytes)
{
	const uint64_t whole = UINT64_C(1) << 62;
	struct tt_extents extents;
	uint64_t offset, bytes, end = start_bytes;
	int r;

	tt_extents_init(&extents, from_fd, size_bytes, true);
	tt_extents_start(&extents, start_bytes);
	while ((r = tt_extents_next(&extents, whole, &offset, &bytes)) > 0) {
		preallocate_punch(to_fd, end, offset);
		end = offset + bytes;
	}
	if (r == 0)
		preallocate_punch(to_fd, end, size_bytes);
}

int tt_preallocate_holes(
	int from_fd, int to_fd, uint64_t start_bytes, uint64_t size_bytes, pthread_mutex_t *lock)
{
	struct stat st;
	int r = fstat(to_fd, &st) < 0 ? -errno : 0;

	if (r < 0 || size_bytes == 0)
		return r;
	uint64_t has = (uint64_t)st.st_blocks * 512;

	preallocate_lock(lock);
	if (has < size_bytes && !preallocate_has_room(to_fd, size_bytes - has, true)) {
		r = -ENOSPC;
	} else {
		r = tt_fd_allocate(to_fd, FALLOC_FL_KEEP_SIZE, 0, size_bytes);
		if (r < 0 && r != -EOPNOTSUPP)
			preallocate_punch_again(from_fd, to_fd, start_bytes, size_bytes);
	}
	preallocate_unlock(lock);
	return r;
}
