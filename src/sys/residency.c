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
	static _Atomic int known; /* 0 unknown, 1 yes, 2 no */
	int state = atomic_load_explicit(&known, memory_order_relaxed);

	if (state == 0) {
		struct cachestat_result result;
		/* EBADF means that the call exists. A seccomp filter may answer EPERM or ENOSYS. */
		int r = residency_cachestat(-1, 0, 0, &result);

		state = r == -EBADF ? 1 : 2;
		atomic_store_explicit(&known, state, memory_order_relaxed);
	}
	return state == 1;
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

/* mincore tells everybody else that all is resident (Linux 5.2, mm/mincore.c can_do_mincore). */
static bool residency_may_mincore(int fd, const struct stat *st)
{
	if (st->st_uid == geteuid() || geteuid() == 0)
		return true;
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return access(path, W_OK) == 0;
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
	if (!residency_may_mincore(fd, &st))
		return -EPERM;
	uint64_t end = length == 0 || offset + length > (uint64_t)st.st_size ? (uint64_t)st.st_size
									     : offset + length;

	for (uint64_t at = offset / page * page; at < end; at += piece_pages * page) {
		uint64_t pages = (end - at + page - 1) / page;

		if (pages > piece_pages)
			pages = piece_pages;
		int r = tt_residency_map(fd, at, pages, bits);

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
	 * cannot be set back. */
	if (limit < 0 || clock_gettime(CLOCK_REALTIME, &now) < 0)
		return true;
	return now.tv_sec - st->st_ctim.tv_sec <= limit;
}

int tt_residency_map(int fd, uint64_t offset, uint64_t pages, uint64_t *ret_bits)
{
	const size_t page = tt_residency_page_bytes();
	unsigned char vector[4096];

	memset(ret_bits, 0, (pages + 63) / 64 * sizeof *ret_bits);
	for (uint64_t done = 0; done < pages;) {
		uint64_t count = pages - done < sizeof vector ? pages - done : sizeof vector;
		void *map = mmap(NULL, count * page, PROT_READ, MAP_SHARED, fd,
			(off_t)(offset + done * page));

		if (map == MAP_FAILED)
			return -errno;
		int r = mincore(map, count * page, vector) < 0 ? -errno : 0;

		munmap(map, count * page);
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

int tt_residency_drop(int fd, uint64_t offset, uint64_t length)
{
	return -posix_fadvise(fd, (off_t)offset, (off_t)length, POSIX_FADV_DONTNEED);
}
