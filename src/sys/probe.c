/* SPDX-License-Identifier: MIT */
/*
 * See probe.h. One unnamed file, a handful of system calls per question; each answer rests on what
 * cachestat (or, where that does not know, mincore) says afterwards. When nobody can count, an
 * operation that the kernel accepts is not assumed to work.
 */
#include "sys/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sys/facility.h"
#include "sys/fd.h"
#include "sys/granularity.h"
#include "sys/residency.h"
#include "sys/ring.h"
#include "sys/temporary.h"

#define PROBE_BYTES (256u << 10)

static bool probe_count(int fd, enum tt_residency_method method, struct tt_residency *ret)
{
	return tt_residency_count(fd, method, 0, 0, ret) == 0;
}

/* RWF_DONTCACHE drops at the end of writeback, which for some file systems a kernel worker handles
 * a moment later. */
static bool probe_becomes_empty(int fd, enum tt_residency_method method)
{
	struct tt_residency count;

	for (unsigned i = 0; i < 50; i++) {
		if (!probe_count(fd, method, &count))
			return false;
		if (count.resident_pages == 0)
			return true;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return false;
}

static int probe_write(int fd, const char *data, int rwf_flags)
{
	return tt_fd_pwrite_all(fd, data, PROBE_BYTES, 0, rwf_flags);
}

static int probe_wait(int fd)
{
	unsigned flags =
		SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;

	return sync_file_range(fd, 0, 0, flags) < 0 ? -errno : 0;
}

static enum tt_probe_answer probe_answer(bool yes)
{
	return yes ? TT_PROBE_YES : TT_PROBE_NO;
}

static bool probe_is_empty(int fd, enum tt_residency_method method, bool *ret_known)
{
	struct tt_residency count = {0};

	tt_residency_drop(fd, 0, 0);
	*ret_known = probe_count(fd, method, &count);
	return *ret_known && count.resident_pages == 0;
}

/* Whether the data that was just written gets to the disk by sync_file_range. cachestat sees it; if
 * that is missing, DONTNEED does: it removes nothing that is still dirty. */
static void probe_sync(
	int fd, enum tt_residency_method method, bool counted, struct tt_probe *probe)
{
	struct tt_residency count = {0};
	bool known = false;
	bool seen = counted || (probe_count(fd, method, &count) && count.resident_pages > 0);
	int r = probe_wait(fd);

	if (r < 0) {
		if (tt_facility_may_be_refusal(r))
			tt_facility_refuse(TT_FACILITY_SYNC_FILE_RANGE, r);
		probe->sync_file_range = TT_PROBE_NO;
	} else if (counted) {
		probe->sync_file_range =
			probe_answer(probe_count(fd, TT_RESIDENCY_CACHESTAT, &count)
				     && count.dirty_pages + count.writeback_pages == 0);
	} else if (seen && probe_is_empty(fd, method, &known)) {
		probe->sync_file_range = probe->drop_clean = TT_PROBE_YES;
	} else if (known && fdatasync(fd) == 0) {
		/* With the data on the disk it must go, or nothing is known: overlayfs, whose
		 * descriptors have an empty mapping of their own, writes nothing back. */
		probe->drop_clean = probe_answer(probe_is_empty(fd, method, &known));
		if (probe->drop_clean == TT_PROBE_YES)
			probe->sync_file_range = TT_PROBE_NO;
	}
}

/* cachestat sees what was just written; sync_file_range cleans it; DONTNEED removes it. */
static void probe_basics(
	int fd, enum tt_residency_method method, const char *data, struct tt_probe *probe)
{
	struct tt_residency count = {0};
	bool known;

	if (probe_write(fd, data, 0) < 0)
		return;
	bool counted = probe_count(fd, TT_RESIDENCY_CACHESTAT, &count);

	probe->cachestat = probe_answer(counted && count.resident_pages > 0);
	if (method == TT_RESIDENCY_NONE) {
		probe->sync_file_range = probe->drop_clean = TT_PROBE_NO;
		return;
	}
	if (probe->cachestat == TT_PROBE_NO)
		probe_sync(fd, TT_RESIDENCY_MINCORE, false, probe);
	else if (count.dirty_pages + count.writeback_pages > 0)
		probe_sync(fd, method, true, probe);
	if (probe->drop_clean != TT_PROBE_UNKNOWN
		|| (probe->sync_file_range != TT_PROBE_YES && fdatasync(fd) < 0))
		return;
	bool empty = probe_is_empty(
		fd, probe->cachestat == TT_PROBE_NO ? TT_RESIDENCY_MINCORE : method, &known);

	if (known)
		probe->drop_clean = probe_answer(empty);
}

/* Drops while writeback is in flight, and looks when it has ended. */
static void probe_writeback(int fd, const char *data, struct tt_probe *probe)
{
	struct tt_residency count;

	if (probe->sync_file_range != TT_PROBE_YES || probe->drop_clean != TT_PROBE_YES
		|| probe_write(fd, data, 0) < 0)
		return;
	if (sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE) < 0
		|| !probe_count(fd, TT_RESIDENCY_CACHESTAT, &count))
		return;
	if (count.writeback_pages == 0) /* the disk was faster than the question */
		return;
	tt_residency_drop(fd, 0, 0);
	if (sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE) < 0
		|| !probe_count(fd, TT_RESIDENCY_CACHESTAT, &count))
		return;
	probe->drop_writeback = probe_answer(count.resident_pages == 0);
	tt_residency_drop(fd, 0, 0);
}

static enum tt_probe_answer probe_dontcache_write(
	int fd, enum tt_residency_method method, const char *data)
{
	int r = probe_write(fd, data, TT_FD_DONTCACHE);

	if (r == -EOPNOTSUPP || r == -EINVAL)
		return TT_PROBE_NO;
	if (r < 0 || probe_wait(fd) < 0)
		return TT_PROBE_UNKNOWN;
	return probe_answer(probe_becomes_empty(fd, method));
}

static void probe_dontcache(
	int fd, enum tt_residency_method method, char *data, bool whole, struct tt_probe *probe)
{
	if (ftruncate(fd, 0) < 0)
		return;
	probe->dontcache_write = probe_dontcache_write(fd, method, data);
	if (!whole)
		return;
	tt_residency_drop(fd, 0, 0);
	probe->dontcache_overwrite = probe_dontcache_write(fd, method, data);
	if (fdatasync(fd) < 0)
		return;
	tt_residency_drop(fd, 0, 0);
	ssize_t n = tt_fd_pread(fd, data, PROBE_BYTES, 0, TT_FD_DONTCACHE);

	if (n == -EOPNOTSUPP || n == -EINVAL)
		probe->dontcache_read = TT_PROBE_NO;
	else if (n > 0)
		probe->dontcache_read = probe_answer(probe_becomes_empty(fd, method));
}

static void probe_ring(struct tt_probe *probe)
{
	const struct tt_ring_config config = {.depth = 2, .workers = 1};
	struct tt_ring *ring;

	if (tt_ring_new(&config, &ring, &probe->ring_error) < 0)
		return;
	probe->ring = probe_answer(!tt_ring_is_twin(ring));
	tt_ring_free(ring);
}

static int probe_file_system(int dir_fd, bool whole, struct tt_probe *probe)
{
	TT_FD_AUTO fd = tt_temporary_open(dir_fd, &probe->unnamed_error);

	if (fd < 0) {
		probe->tmpfile_error = fd;
		/* No experiment, but whoever refuses a call refuses it for any descriptor. */
		(void)tt_residency_method(dir_fd);
		if (tt_facility_is_refused(TT_FACILITY_CACHESTAT))
			probe->cachestat = TT_PROBE_NO;
		if (sync_file_range(-1, 0, 0, 0) < 0 && errno != EBADF) {
			tt_facility_refuse(TT_FACILITY_SYNC_FILE_RANGE, -errno);
			probe->sync_file_range = TT_PROBE_NO;
		}
		return 0;
	}
	probe->time_error = tt_granularity_try(fd, &probe->time_granularity_ns);
	enum tt_residency_method method = tt_residency_method(fd);
	char *data = malloc(PROBE_BYTES);

	if (!data)
		return -ENOMEM;
	tt_direct_ask(fd, &probe->direct);
	memset(data, 0x5a, PROBE_BYTES);
	probe_basics(fd, method, data, probe);
	if (method == TT_RESIDENCY_NONE) {
		probe->dontcache_read = probe->dontcache_write = probe->dontcache_overwrite =
			TT_PROBE_NO;
	} else {
		if (whole)
			probe_writeback(fd, data, probe);
		probe_dontcache(fd, method, data, whole, probe);
	}
	free(data);
	return 0;
}

int tt_probe_run(int dir_fd, struct tt_probe *ret_probe)
{
	*ret_probe = (struct tt_probe){0};
	probe_ring(ret_probe);
	return probe_file_system(dir_fd, true, ret_probe);
}

int tt_probe_run_quick(int dir_fd, struct tt_probe *ret_probe)
{
	*ret_probe = (struct tt_probe){0};
	return probe_file_system(dir_fd, false, ret_probe);
}
