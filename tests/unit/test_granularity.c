/* SPDX-License-Identifier: MIT */
/*
 * Cutting and comparing; and that trying agrees with what the file system then keeps.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "check.h"
#include "scratch.h"
#include "sys/granularity.h"
#include "sys/temporary.h"

static const uint64_t second = TT_GRANULARITY_SECOND_NS;

static void test_both_times_are_cut(void **state)
{
	(void)state;
	assert_int_equal(tt_granularity_compare(1, 5, 1, 5, 1), 0);
	assert_int_equal(tt_granularity_compare(1, 5, 1, 5, 2), -1);
	assert_int_equal(tt_granularity_compare(100, 5, 199, 5, 100), 0);
	assert_int_equal(tt_granularity_compare(100, 5, 200, 5, 199), 1);
	assert_int_equal(tt_granularity_compare(second, 5, 999999999, 5, 0), 0);
	assert_int_equal(tt_granularity_compare(2 * second, 5, 9, 4, 0), 0);
	assert_int_equal(tt_granularity_compare(2 * second, 6, 0, 5, 999999999), 1);
	/* Unknown: whole seconds. */
	assert_int_equal(tt_granularity_compare(0, 5, 999999999, 5, 0), 0);
	assert_int_equal(tt_granularity_compare(0, 5, 999999999, 6, 0), -1);
}

static void test_times_before_1970_are_cut_downwards_too(void **state)
{
	(void)state;
	assert_int_equal(tt_granularity_compare(2 * second, -1, 0, -2, 0), 0);
	assert_int_equal(tt_granularity_compare(2 * second, -1, 0, 0, 0), -1);
	assert_int_equal(tt_granularity_compare(2 * second, -3, 0, -2, 0), -1);
}

static void test_what_was_tried_is_what_is_kept(void **state)
{
	const struct timespec times[2] = {
		{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1600000001, .tv_nsec = 987654321}};
	struct scratch scratch;
	uint64_t ns = 0;
	struct stat st;

	(void)state;
	scratch_open(&scratch);
	int fd = tt_temporary_open(scratch.fd, NULL);

	assert_true(fd >= 0);
	assert_int_equal(tt_granularity_try(fd, &ns), 0);
	assert_true(ns > 0);
	assert_int_equal(futimens(fd, times), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(tt_granularity_compare(ns, st.st_mtim.tv_sec, (uint32_t)st.st_mtim.tv_nsec,
				 1600000001, 987654321),
		0);
	(void)close(fd);
	assert_int_equal(scratch_count(&scratch), 0);
	scratch_close(&scratch);
}

static void test_types_that_are_known_to_be_coarse(void **state)
{
	int fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(tt_granularity_guess("vfat", fd), 2 * second);
	assert_int_equal(tt_granularity_guess("exfat", fd), 2 * second);
	assert_int_equal(tt_granularity_guess("fuse.sshfs", fd), 0);
	assert_int_equal(tt_granularity_guess("", fd), 0);
	(void)close(fd);
}

static void test_where_it_is_not_known_a_fraction_says_that_there_are_fractions(void **state)
{
	(void)state;
	assert_int_equal(tt_granularity_compare(0, 5, 0, 5, 7), 0);
	assert_int_equal(tt_granularity_compare(0, 5, 7, 5, 0), 0);
	assert_true(tt_granularity_compare(0, 5, 7, 5, 8) < 0);
	assert_true(tt_granularity_compare(0, 5, 8, 5, 7) > 0);
	assert_true(tt_granularity_compare(0, 5, 8, 6, 0) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_times_are_cut),
		cmocka_unit_test(test_times_before_1970_are_cut_downwards_too),
		cmocka_unit_test(test_what_was_tried_is_what_is_kept),
		cmocka_unit_test(
			test_where_it_is_not_known_a_fraction_says_that_there_are_fractions),
		cmocka_unit_test(test_types_that_are_known_to_be_coarse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
