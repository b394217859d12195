/* SPDX-License-Identifier: MIT */
/*
 * The same preallocated space in the copy as in the source. What whole files look like afterwards
 * on three file systems is in tests/neutrality/holes.bats.
 */
#include <errno.h>

#include "check.h"
#include "copy/unwritten.h"
#include "sample.h"
#include "scratch.h"

static struct scratch scratch;
static int from, to;

static int set_up(void **state)
{
	(void)state;
	scratch_open(&scratch);
	from = sample_open(&scratch, "from");
	to = sample_open(&scratch, "to");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)close(from);
	(void)close(to);
	scratch_close(&scratch);
	return 0;
}

static void allocate(uint64_t offset, uint64_t bytes)
{
	assert_int_equal(fallocate(from, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes), 0);
}

static struct stat look(int fd)
{
	struct stat st;

	assert_int_equal(fsync(fd), 0);
	assert_int_equal(fstat(fd, &st), 0);
	return st;
}

static void test_space_in_holes_is_allocated(void **state)
{
	(void)state;
	allocate(SAMPLE_MIB, 2 * SAMPLE_MIB);
	assert_int_equal(ftruncate(from, 8 * SAMPLE_MIB), 0);
	assert_int_equal(ftruncate(to, 8 * SAMPLE_MIB), 0);
	struct stat before = look(from);

	assert_int_equal(tt_unwritten_copy(from, to, &before, true), 0);
	struct stat after = look(to);

	assert_int_equal(after.st_blocks, before.st_blocks);
	assert_int_equal(after.st_size, before.st_size);
}

static void test_space_behind_the_end_is_allocated(void **state)
{
	(void)state;
	sample_write(from, 0, 100000);
	sample_write(to, 0, 100000);
	allocate(0, SAMPLE_MIB);
	struct stat before = look(from);

	assert_int_equal(tt_unwritten_copy(from, to, &before, false), 0);
	struct stat after = look(to);

	assert_int_equal(after.st_blocks, before.st_blocks);
	assert_int_equal(after.st_size, 100000);
	assert_true(sample_is(to, 0, 100000));
}

/* An unwritten extent whose data is in the page cache only is told as unwritten. */
static void test_what_has_data_keeps_it(void **state)
{
	(void)state;
	allocate(0, SAMPLE_MIB);
	sample_write(from, 0, SAMPLE_MIB);
	sample_write(to, 0, SAMPLE_MIB);
	struct stat before;

	assert_int_equal(fstat(from, &before), 0);
	assert_int_equal(tt_unwritten_copy(from, to, &before, true), 0);
	assert_true(sample_is(to, 0, SAMPLE_MIB));
	assert_int_equal(look(to).st_size, SAMPLE_MIB);
}

static void test_a_plain_file_is_not_asked(void **state)
{
	(void)state;
	sample_write(from, 0, 100000);
	struct stat before = look(from);

	/* A descriptor that could not be asked. */
	assert_int_equal(tt_unwritten_copy(-1, -1, &before, false), 0);
}

/* A full disk is an error, a file system that cannot allocate is none. */
static void test_only_some_errors_are_errors(void **state)
{
	(void)state;
	allocate(0, SAMPLE_MIB);
	assert_int_equal(ftruncate(from, SAMPLE_MIB), 0);
	struct stat before = look(from);
	int other = open("/proc/self/comm", O_RDWR | O_CLOEXEC);

	assert_true(other >= 0);
	int r = tt_unwritten_copy(from, other, &before, true);

	assert_int_equal(r, 0);
	(void)close(other);
	other = openat(scratch.fd, "to", O_RDONLY | O_CLOEXEC);
	assert_int_equal(tt_unwritten_copy(from, other, &before, true), -EBADF);
	(void)close(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_space_in_holes_is_allocated),
		TEST(test_space_behind_the_end_is_allocated),
		TEST(test_what_has_data_keeps_it),
		TEST(test_a_plain_file_is_not_asked),
		TEST(test_only_some_errors_are_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
