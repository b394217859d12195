/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "check.h"
#include "sys/facility.h"

static void test_what_was_not_tried_is_not_refused(void **state)
{
	char line[256];

	(void)state;
	for (int i = 0; i < TT_FACILITY_COUNT; i++) {
		assert_false(tt_facility_is_refused((enum tt_facility)i));
		assert_false(tt_facility_describe((enum tt_facility)i, line, sizeof line));
	}
}

static void test_the_first_refusal_stays(void **state)
{
	char line[256];

	(void)state;
	tt_facility_refuse(TT_FACILITY_STATX, -EPERM);
	tt_facility_refuse(TT_FACILITY_STATX, -ENOSYS);
	assert_true(tt_facility_is_refused(TT_FACILITY_STATX));
	assert_int_equal(tt_facility_refusal(TT_FACILITY_STATX), -EPERM);
	assert_true(tt_facility_describe(TT_FACILITY_STATX, line, sizeof line));
	assert_string_equal(
		line, "statx is not available (Operation not permitted): fstatat does its work");
	assert_false(tt_facility_is_refused(TT_FACILITY_OPENAT2));
}

static void test_each_has_words(void **state)
{
	char line[256];

	(void)state;
	for (int i = 0; i < TT_FACILITY_COUNT; i++) {
		tt_facility_refuse((enum tt_facility)i, -ENOSYS);
		assert_true(tt_facility_describe((enum tt_facility)i, line, sizeof line));
		assert_null(strstr(line, "(null)"));
		assert_true(strlen(line) < 160);
	}
}

static void test_only_two_errors_may_be_refusals(void **state)
{
	(void)state;
	assert_true(tt_facility_may_be_refusal(-ENOSYS));
	assert_true(tt_facility_may_be_refusal(-EPERM));
	assert_false(tt_facility_may_be_refusal(0));
	assert_false(tt_facility_may_be_refusal(-EACCES));
	assert_false(tt_facility_may_be_refusal(-EINVAL));
	assert_false(tt_facility_may_be_refusal(ENOSYS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_not_tried_is_not_refused),
		cmocka_unit_test(test_the_first_refusal_stays),
		cmocka_unit_test(test_each_has_words),
		cmocka_unit_test(test_only_two_errors_may_be_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
