/* SPDX-License-Identifier: MIT */
/*
 * Unwritten extents, made on the scratch directory's file system, which must have them (ext4, xfs,
 * btrfs).
 */
#include <errno.h>

#include "check.h"
#include "sample.h"
#include "scratch.h"
#include "sys/fiemap.h"

struct part {
	uint64_t offset, bytes;
};

static struct scratch scratch;
static int fd;

static int set_up(void **state)
{
	(void)state;
	scratch_open(&scratch);
	fd = sample_open(&scratch, "file");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)close(fd);
	scratch_close(&scratch);
	return 0;
}

static void allocate(uint64_t offset, uint64_t bytes)
{
	assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes), 0);
}

static void expect(const struct part *parts, unsigned count)
{
	struct tt_fiemap map;
	uint64_t offset, bytes;

	tt_fiemap_init(&map, fd);
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(tt_fiemap_next_unwritten(&map, &offset, &bytes), 1);
		assert_int_equal(offset, parts[i].offset);
		assert_int_equal(bytes, parts[i].bytes);
	}
	assert_int_equal(tt_fiemap_next_unwritten(&map, &offset, &bytes), 0);
	assert_int_equal(tt_fiemap_next_unwritten(&map, &offset, &bytes), 0);
}

static void test_an_empty_file_has_none(void **state)
{
	(void)state;
	expect(NULL, 0);
}

static void test_data_and_holes_are_none(void **state)
{
	(void)state;
	sample_write(fd, 0, 65536);
	sample_write(fd, SAMPLE_MIB, 65536);
	assert_int_equal(ftruncate(fd, 4 * SAMPLE_MIB), 0);
	expect(NULL, 0);
	assert_int_equal(fsync(fd), 0);
	expect(NULL, 0);
}

static void test_between_data_and_behind_the_end(void **state)
{
	const struct part parts[] = {{65536, 65536}, {262144, 65536}, {4 * SAMPLE_MIB, 131072}};

	(void)state;
	sample_write(fd, 0, 65536);
	allocate(65536, 65536);
	allocate(262144, 65536);
	assert_int_equal(ftruncate(fd, SAMPLE_MIB), 0);
	allocate(4 * SAMPLE_MIB, 65536);
	allocate(4 * SAMPLE_MIB + 65536, 65536); /* one run with the one before */
	assert_int_equal(fsync(fd), 0);
	expect(parts, 3);
}

/* More than ext4 puts into one unwritten extent (32767 blocks). */
static void test_neighbours_are_one_run(void **state)
{
	const struct part parts[] = {{0, 300 * SAMPLE_MIB}};

	(void)state;
	allocate(0, 300 * SAMPLE_MIB);
	expect(parts, 1);
}

static void test_more_than_one_fetch(void **state)
{
	struct part parts[200];

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		parts[i] = (struct part){i * UINT64_C(16384), 8192};
		allocate(parts[i].offset, parts[i].bytes);
	}
	expect(parts, 200);
}

static void test_a_file_system_that_cannot_tell(void **state)
{
	int other = open("/proc/version", O_RDONLY | O_CLOEXEC);
	struct tt_fiemap map;
	uint64_t offset, bytes;

	(void)state;
	tt_fiemap_init(&map, other);
	int r = tt_fiemap_next_unwritten(&map, &offset, &bytes);

	assert_true(r == -EOPNOTSUPP || r == -ENOTTY);
	(void)close(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_empty_file_has_none),
		TEST(test_data_and_holes_are_none),
		TEST(test_between_data_and_behind_the_end),
		TEST(test_neighbours_are_one_run),
		TEST(test_more_than_one_fetch),
		TEST(test_a_file_system_that_cannot_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
