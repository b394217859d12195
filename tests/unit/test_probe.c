/* SPDX-License-Identifier: MIT */
/*
 * The answers for tmpfs are known; those for the scratch directory's file system are held against
 * what one sees by doing it here.
 */
#include <errno.h>
#include <sys/mount.h>

#include "check.h"
#include "sample.h"
#include "scratch.h"
#include "sys/fd.h"
#include "sys/probe.h"

static bool tmpfs_mount(struct scratch *scratch, const char *options, int *ret_fd)
{
	assert_int_equal(mkdirat(scratch->fd, "mnt", 0755), 0);
	char path[300];

	(void)snprintf(path, sizeof path, "%s/mnt", scratch->path);
	if (mount("tt-unit", path, "tmpfs", 0, options) < 0) {
		scratch_close(scratch);
		return false;
	}
	*ret_fd = openat(scratch->fd, "mnt", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(*ret_fd >= 0);
	return true;
}

static void tmpfs_umount(struct scratch *scratch, int fd)
{
	char path[300];

	(void)close(fd);
	(void)snprintf(path, sizeof path, "%s/mnt", scratch->path);
	assert_int_equal(umount(path), 0);
	scratch_close(scratch);
}

static void test_a_disk_file_system_does_what_is_seen_here(void **state)
{
	struct scratch scratch;
	struct tt_probe probe;

	(void)state;
	scratch_open(&scratch);
	assert_int_equal(tt_probe_run(scratch.fd, &probe), 0);
	assert_int_equal(probe.tmpfile_error, 0);
	assert_int_equal(probe.cachestat, TT_PROBE_YES);
	assert_int_equal(probe.sync_file_range, TT_PROBE_YES);
	assert_int_equal(probe.drop_clean, TT_PROBE_YES);
	assert_int_equal(probe.ring == TT_PROBE_NO, probe.ring_error != 0);

	/* RWF_DONTCACHE: accepted here or not, and the same said. */
	int fd = sample_open(&scratch, "file");
	char block[4096] = "x";
	ssize_t n = tt_fd_pwrite(fd, block, sizeof block, 0, TT_FD_DONTCACHE);

	if (n < 0)
		assert_int_equal(probe.dontcache_write, TT_PROBE_NO);
	else
		assert_int_not_equal(probe.dontcache_write, TT_PROBE_UNKNOWN);
	(void)close(fd);
	scratch_close(&scratch);
}

static void test_the_quick_one_agrees_with_the_whole(void **state)
{
	struct scratch scratch;
	struct tt_probe whole, quick;

	(void)state;
	scratch_open(&scratch);
	assert_int_equal(tt_probe_run(scratch.fd, &whole), 0);
	assert_int_equal(tt_probe_run_quick(scratch.fd, &quick), 0);
	assert_int_equal(quick.cachestat, whole.cachestat);
	assert_int_equal(quick.sync_file_range, whole.sync_file_range);
	assert_int_equal(quick.drop_clean, whole.drop_clean);
	assert_int_equal(quick.dontcache_write, whole.dontcache_write);
	assert_int_equal(quick.ring, TT_PROBE_UNKNOWN);
	scratch_close(&scratch);
}

static void test_it_leaves_neither_name_nor_descriptor(void **state)
{
	struct scratch scratch;
	struct tt_probe probe;

	(void)state;
	scratch_open(&scratch);
	unsigned fds = sample_open_fds();

	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(tt_probe_run(scratch.fd, &probe), 0);
	assert_int_equal(sample_open_fds(), fds);
	assert_int_equal(scratch_count(&scratch), 0);
	scratch_close(&scratch);
}

static void test_tmpfs_has_nothing_to_drop(void **state)
{
	struct scratch scratch;
	struct tt_probe probe;
	int fd;

	(void)state;
	scratch_open(&scratch);
	if (!tmpfs_mount(&scratch, "size=100m", &fd))
		skip();
	assert_int_equal(tt_probe_run(fd, &probe), 0);
	assert_int_equal(probe.tmpfile_error, 0);
	assert_int_equal(probe.sync_file_range, TT_PROBE_NO);
	assert_int_equal(probe.drop_clean, TT_PROBE_NO);
	assert_int_equal(probe.dontcache_read, TT_PROBE_NO);
	assert_int_equal(probe.dontcache_write, TT_PROBE_NO);
	tmpfs_umount(&scratch, fd);
}

static void test_a_nearly_full_disk_is_not_tried(void **state)
{
	struct scratch scratch;
	struct tt_probe probe;
	int fd;

	(void)state;
	scratch_open(&scratch);
	if (!tmpfs_mount(&scratch, "size=32m", &fd))
		skip();
	assert_int_equal(tt_probe_run(fd, &probe), 0);
	assert_int_equal(probe.tmpfile_error, -ENOSPC);
	assert_int_equal(probe.cachestat, TT_PROBE_UNKNOWN);
	assert_int_equal(probe.sync_file_range, TT_PROBE_UNKNOWN);
	assert_int_equal(probe.dontcache_write, TT_PROBE_UNKNOWN);
	tmpfs_umount(&scratch, fd);
}

static void test_where_nothing_can_be_made_all_is_unknown(void **state)
{
	struct tt_probe probe;
	int fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(tt_probe_run_quick(fd, &probe), 0);
	assert_true(probe.tmpfile_error < 0);
	assert_int_equal(probe.cachestat, TT_PROBE_UNKNOWN);
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_disk_file_system_does_what_is_seen_here),
		cmocka_unit_test(test_the_quick_one_agrees_with_the_whole),
		cmocka_unit_test(test_it_leaves_neither_name_nor_descriptor),
		cmocka_unit_test(test_tmpfs_has_nothing_to_drop),
		cmocka_unit_test(test_a_nearly_full_disk_is_not_tried),
		cmocka_unit_test(test_where_nothing_can_be_made_all_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
