/* SPDX-License-Identifier: MIT */
/*
 * See residency.h. The system call numbers are the same on all architectures for calls this new.
 */
#include "sys/residency.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "sys/facility.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

struct cachestat_range {
	uint64_t off, len;
};

struct cachestat_result {
	uint64_t nr_cache, nr_dirty, nr_writeback, nr_evicted, nr_recently_evicted;
};

static int residency_cachestat(
	int fd, uint64_t offset, uint64_t length, struct cachestat_result *ret)
{
	struct cachestat_range range = {.off = offset, .len = length};

	if (syscall(SYS_cachestat, fd, &range, ret, 0) < 0)
		return -errno;
	return 0;
}

static bool residency_have_cachestat(void)
{
	static _Atomic bool asked;

	if (!atomic_load_explicit(&asked, memory_order_relaxed)) {
		struct cachestat_result result;
		/* EBADF means that the call exists. A seccomp filter may answer EPERM or ENOSYS. */
		int r = residency_cachestat(-1, 0, 0, &result);

		if (r != -EBADF)
			tt_facility_refuse(TT_FACILITY_CACHESTAT, r);
		atomic_store_explicit(&asked, true, memory_order_relaxed);
	}
	return !tt_facility_is_refused(TT_FACILITY_CACHESTAT);
}

enum tt_residency_method tt_residency_method(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) == 0) {
		switch ((unsigned long)fs.f_type) {
		case TMPFS_MAGIC:
		case RAMFS_MAGIC:
		case PROC_SUPER_MAGIC:
		case SYSFS_MAGIC:
			return TT_RESIDENCY_NONE;
		case OVERLAYFS_SUPER_MAGIC:
			return TT_RESIDENCY_MINCORE;
		default:
			break;
		}
	}
	return residency_have_cachestat() ? TT_RESIDENCY_CACHESTAT : TT_RESIDENCY_MINCORE;
}

size_t tt_residency_page_bytes(void)
{
	static _Atomic size_t known;
	size_t bytes = atomic_load_explicit(&known, memory_order_relaxed);

	if (bytes == 0) {
		bytes = (size_t)sysconf(_SC_PAGESIZE);
		atomic_store_explicit(&known, bytes, memory_order_relaxed);
	}
	return bytes;
}

size_t tt_residency_folio_bytes(void)
{
	static _Atomic size_t known;
	size_t bytes = atomic_load_explicit(&known, memory_order_relaxed);

	if (bytes == 0) {
		FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "re");

		if (!file || fscanf(file, "%zu", &bytes) != 1 || bytes < (2u << 20)
			|| bytes > (1u << 30))
			bytes = 2u << 20;
		if (file)
			fclose(file);
		atomic_store_explicit(&known, bytes, memory_order_relaxed);
	}
	return bytes;
}

/* mincore tells everybody else that all is resident (Linux 5.2, mm/mincore.c can_do_mincore): it is
 * for the file's owner, CAP_FOWNER over him, and those who may write to it. O_NOATIME is permitted
 * to the owner and to CAP_FOWNER by the same function (inode_owner_or_capable), so asking for it is
 * the question, also in a user namespace, where user ids do not tell (nobody's are everybody's) and
 * root may have no capability. */
static bool residency_may_mincore(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	char path[32];

	if (flags < 0)
		return false;
	if ((flags & O_NOATIME) || fcntl(fd, F_SETFL, flags | O_NOATIME) == 0)
		return true;
	if (faccessat(fd, "", W_OK, AT_EACCESS | AT_EMPTY_PATH) == 0) /* 5.8 */
		return true;
	if (errno == EACCES || errno == EROFS)
		return false;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return access(path, W_OK) == 0;
}

/* One vector of mincore: at most 4096 pages. */
static int residency_mincore(int fd, uint64_t offset, uint64_t pages, unsigned char *ret_vector)
{
	const size_t bytes = pages * tt_residency_page_bytes();
	void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)offset);

	if (map == MAP_FAILED)
		return -errno;
	int r = mincore(map, bytes, ret_vector) < 0 ? -errno : 0;

	/* mincore has no permission to refuse: it lies instead. */
	if (tt_facility_may_be_refusal(r))
		tt_facility_refuse(TT_FACILITY_MINCORE, r);
	munmap(map, bytes);
	return r;
}

static int residency_map_mincore(int fd, uint64_t offset, uint64_t pages, uint64_t *ret_bits)
{
	const size_t page = tt_residency_page_bytes();
	unsigned char vector[4096];

	if (tt_facility_is_refused(TT_FACILITY_MINCORE))
		return tt_facility_refusal(TT_FACILITY_MINCORE);
	memset(ret_bits, 0, (pages + 63) / 64 * sizeof *ret_bits);
	for (uint64_t done = 0; done < pages;) {
		uint64_t count = pages - done < sizeof vector ? pages - done : sizeof vector;
		int r = residency_mincore(fd, offset + done * page, count, vector);

		if (r < 0)
			return r;
		for (uint64_t i = 0; i < count; i++) {
			if (vector[i] & 1)
				ret_bits[(done + i) / 64] |= UINT64_C(1) << ((done + i) % 64);
		}
		done += count;
	}
	return 0;
}

/* Counts by mincore in pieces, so that a huge sparse file does not need a huge vector. */
static int residency_count_mincore(
	int fd, uint64_t offset, uint64_t length, struct tt_residency *ret)
{
	const uint64_t page = tt_residency_page_bytes(), piece_pages = 8192;
	uint64_t bits[8192 / 64];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = (struct tt_residency){0};
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return 0;
	if (!residency_may_mincore(fd))
		return -EPERM;
	uint64_t end = length == 0 || offset + length > (uint64_t)st.st_size ? (uint64_t)st.st_size
									     : offset + length;

	for (uint64_t at = offset / page * page; at < end; at += piece_pages * page) {
		uint64_t pages = (end - at + page - 1) / page;

		if (pages > piece_pages)
			pages = piece_pages;
		int r = residency_map_mincore(fd, at, pages, bits);

		if (r < 0)
			return r;
		for (uint64_t i = 0; i < (pages + 63) / 64; i++)
			ret->resident_pages += (uint64_t)__builtin_popcountll(bits[i]);
	}
	return 0;
}

int tt_residency_count(int fd, enum tt_residency_method method, uint64_t offset, uint64_t length,
	struct tt_residency *ret)
{
	struct cachestat_result result;

	switch (method) {
	case TT_RESIDENCY_NONE:
		*ret = (struct tt_residency){0};
		return 0;
	case TT_RESIDENCY_MINCORE:
		return residency_count_mincore(fd, offset, length, ret);
	case TT_RESIDENCY_CACHESTAT:
		break;
	}
	int r = residency_cachestat(fd, offset, length, &result);

	if (r < 0)
		return r;
	ret->resident_pages = result.nr_cache;
	ret->dirty_pages = result.nr_dirty;
	ret->writeback_pages = result.nr_writeback;
	return 0;
}

/* A number of /proc/sys/vm, in seconds, or -1. */
static int64_t residency_vm_seconds(const char *name)
{
	char path[64];
	long centiseconds = -1;

	snprintf(path, sizeof path, "/proc/sys/vm/%s", name);
	FILE *file = fopen(path, "re");

	if (!file)
		return -1;
	if (fscanf(file, "%ld", &centiseconds) != 1)
		centiseconds = -1;
	fclose(file);
	return centiseconds < 0 ? -1 : (centiseconds + 99) / 100;
}

/* How long pages stay dirty at most: until they are old enough, until the flusher comes by next
 * (0: it never does), and until it is done, for which there is no limit but this guess. -1: for
 * ever. */
static int64_t residency_dirty_seconds(void)
{
	static _Atomic int64_t known; /* 0: not asked yet */
	int64_t seconds = atomic_load_explicit(&known, memory_order_relaxed);

	if (seconds == 0) {
		int64_t expire = residency_vm_seconds("dirty_expire_centisecs");
		int64_t interval = residency_vm_seconds("dirty_writeback_centisecs");

		seconds = expire < 0 || interval <= 0 ? -1 : expire + interval + 30;
		if (seconds > 0 && seconds < 60)
			seconds = 60;
		atomic_store_explicit(&known, seconds, memory_order_relaxed);
	}
	return seconds;
}

bool tt_residency_may_be_dirty(int fd, enum tt_residency_method method, const struct stat *st,
	uint64_t offset, uint64_t length)
{
	struct tt_residency count;
	struct timespec now;

	if (method == TT_RESIDENCY_NONE)
		return false;
	if (method == TT_RESIDENCY_CACHESTAT
		&& tt_residency_count(fd, method, offset, length, &count) == 0)
		return count.dirty_pages > 0 || count.writeback_pages > 0;
	int64_t limit = residency_dirty_seconds();

	/* The first write to a clean page, through a mapping too, sets mtime and ctime; ctime
	 * cannot be set back (but a clock can: the later of the two counts). */
	if (limit < 0 || clock_gettime(CLOCK_REALTIME, &now) < 0)
		return true;
	return now.tv_sec - st->st_ctim.tv_sec <= limit || now.tv_sec - st->st_mtim.tv_sec <= limit;
}

/* The same by counting halves until each is full or empty. */
static int residency_map_cachestat(
	int fd, uint64_t offset, uint64_t first, uint64_t pages, uint64_t *ret_bits)
{
	const size_t page = tt_residency_page_bytes();
	struct cachestat_result result;

	if (pages == 0)
		return 0;
	int r = residency_cachestat(fd, offset + first * page, pages * page, &result);

	if (r < 0 || result.nr_cache == 0)
		return r;
	if (result.nr_cache < pages) {
		r = residency_map_cachestat(fd, offset, first, pages / 2, ret_bits);
		return r < 0 ? r
			     : residency_map_cachestat(
				     fd, offset, first + pages / 2, pages - pages / 2, ret_bits);
	}
	for (uint64_t i = first; i < first + pages; i++)
		ret_bits[i / 64] |= UINT64_C(1) << (i % 64);
	return 0;
}

int tt_residency_map(int fd, uint64_t offset, uint64_t pages, uint64_t *ret_bits)
{
	int r = residency_may_mincore(fd) ? residency_map_mincore(fd, offset, pages, ret_bits)
					  : -EPERM;

	if (r == 0 || tt_residency_method(fd) != TT_RESIDENCY_CACHESTAT)
		return r;
	memset(ret_bits, 0, (pages + 63) / 64 * sizeof *ret_bits);
	return residency_map_cachestat(fd, offset, 0, pages, ret_bits);
}

int tt_residency_drop(int fd, uint64_t offset, uint64_t length)
{
	int r = tt_facility_refusal(TT_FACILITY_FADVISE);

	if (r < 0)
		return r;
	r = -posix_fadvise(fd, (off_t)offset, (off_t)length, POSIX_FADV_DONTNEED);
	if (tt_facility_may_be_refusal(r))
		tt_facility_refuse(TT_FACILITY_FADVISE, r);
	return r;
}
