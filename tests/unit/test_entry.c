/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "tree/entry.h"

/* The order in which `rsync -ai --list-only` names these, sources created with mkdir and touch. */
static const struct tt_entry in_order[] = {
	{.name = "A", .mode = S_IFREG},
	{.name = "a", .mode = S_IFREG},
	{.name = "a b", .mode = S_IFREG},
	{.name = "a.c", .mode = S_IFLNK},
	{.name = "ab", .mode = S_IFIFO},
	{.name = "z", .mode = S_IFREG},
	{.name = "\xc3\xa4", .mode = S_IFREG},
	{.name = "B", .mode = S_IFDIR},
	{.name = "d d", .mode = S_IFDIR},
	{.name = "d-", .mode = S_IFDIR},
	{.name = "d.e", .mode = S_IFDIR},
	{.name = "d", .mode = S_IFDIR},
	{.name = "d0", .mode = S_IFDIR},
	{.name = "\xc3\xb6", .mode = S_IFDIR},
};

static void test_order_is_rsyncs(void **state)
{
	const size_t count = sizeof(in_order) / sizeof(in_order[0]);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < count; j++) {
			int want = i < j ? -1 : i > j;
			assert_int_equal(tt_entry_compare(&in_order[i], &in_order[j]), want);
		}
	}
}

static void test_statx_is_taken_over(void **state)
{
	char path[] = "/tmp/tt-entry-XXXXXX";
	int fd = mkstemp(path);
	struct statx stx;
	struct stat st;
	struct tt_entry entry = {.name = path, .twin = 7, .layer = 3, .flags = 0xff};

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx), 0);
	assert_int_equal(fstat(fd, &st), 0);
	tt_entry_set(&entry, &stx);
	assert_int_equal(entry.size_bytes, 1 << 20);
	assert_int_equal(entry.mtime_sec, st.st_mtim.tv_sec);
	assert_int_equal(entry.mtime_nsec, st.st_mtim.tv_nsec);
	assert_int_equal(entry.mode, st.st_mode);
	assert_int_equal(entry.ino, st.st_ino);
	assert_int_equal(entry.nlink, 1);
	assert_int_equal(entry.uid, getuid());
	assert_int_equal(entry.gid, st.st_gid);
	assert_int_equal(entry.twin, 7);
	assert_int_equal(entry.layer, 3);
	assert_int_equal(entry.flags, TT_ENTRY_SPARSE);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(write(fd, "data", 4), 4);
	assert_int_equal(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx), 0);
	tt_entry_set(&entry, &stx);
	assert_int_equal(entry.flags, 0);
	(void)close(fd);
	(void)unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_is_rsyncs),
		cmocka_unit_test(test_statx_is_taken_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
