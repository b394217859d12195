/* SPDX-License-Identifier: MIT */
/*
 * Space for a whole file or for nothing of it. A disk that is full in the middle is in
 * tests/neutrality/holes.bats.
 */
#include <errno.h>

#include "check.h"
#include "copy/preallocate.h"
#include "sample.h"
#include "scratch.h"

#define MIB SAMPLE_MIB
#define TOO_BIG                                                                           \
	(UINT64_C(1) << 42) /* more than any disk here has, less than ext4's longest file \
			     */

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

static uint64_t blocks(int fd)
{
	struct stat st;

	assert_int_equal(fsync(fd), 0);
	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void test_space_comes_ahead_and_the_length_stays(void **state)
{
	struct stat st;

	(void)state;
	sample_write(to, 0, 10000);
	assert_int_equal(tt_preallocate_ahead(to, 10000, 3 * MIB, true, NULL), 0);
	assert_true(blocks(to) >= 3 * MIB);
	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, 10000);
	assert_true(sample_is(to, 0, 10000));
	/* There is nothing behind it. */
	assert_int_equal(tt_preallocate_ahead(to, 4 * MIB, 3 * MIB, true, NULL), 0);
}

static void test_without_room_nothing_is_taken(void **state)
{
	(void)state;
	sample_write(to, 0, MIB);
	uint64_t before = blocks(to);

	assert_int_equal(tt_preallocate_ahead(to, MIB, TOO_BIG, true, NULL), -ENOSPC);
	assert_int_equal(blocks(to), before);
	assert_int_equal(ftruncate(to, TOO_BIG), 0);
	assert_int_equal(tt_preallocate_holes(from, to, 0, TOO_BIG, NULL), -ENOSPC);
	assert_int_equal(blocks(to), before);
	assert_true(sample_is(to, 0, MIB));
}

static void test_holes_are_filled_and_read_as_zeros(void **state)
{
	unsigned char byte = 1;

	(void)state;
	sample_write(to, 0, MIB);
	assert_int_equal(ftruncate(to, 4 * MIB), 0);
	sample_write(to, 5 * MIB, 1000);
	assert_int_equal(tt_preallocate_holes(from, to, 0, 5 * MIB + 1000, NULL), 0);
	assert_true(blocks(to) >= 5 * MIB + 1000);
	assert_true(sample_is(to, 0, MIB));
	assert_true(sample_is(to, 5 * MIB, 1000));
	assert_int_equal(pread(to, &byte, 1, 3 * MIB), 1);
	assert_int_equal(byte, 0);
}

static void test_an_error_is_passed_up(void **state)
{
	(void)state;
	int other = openat(scratch.fd, "to", O_RDONLY | O_CLOEXEC);

	assert_true(other >= 0);
	assert_int_equal(tt_preallocate_ahead(other, 0, MIB, true, NULL), -EBADF);
	assert_int_equal(tt_preallocate_holes(from, other, 0, MIB, NULL), -EBADF);
	(void)close(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_space_comes_ahead_and_the_length_stays),
		TEST(test_without_room_nothing_is_taken),
		TEST(test_holes_are_filled_and_read_as_zeros),
		TEST(test_an_error_is_passed_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
