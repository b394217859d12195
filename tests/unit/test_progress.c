/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/progress.h"

static const struct tt_engine_progress half = {
	.files_done = 1234,
	.files_known = 5678,
	.bytes_done = 500000000,
	.bytes_known = 1000000000,
	.listing_complete = true,
	.elapsed_ns = 5000000000,
};

static const char *format(const struct tt_engine_progress *now, unsigned columns)
{
	static char line[200];
	struct tt_progress progress;

	tt_progress_init(&progress, 1);
	return tt_progress_format(&progress, now, columns, line, sizeof(line));
}

static void a_line_has_share_rate_remaining_time_and_files(void **state)
{
	(void)state;
	assert_string_equal(format(&half, 79),
		" 50%  100.00MB/s  ETA 0:00:05  1,234 of 5,678 files  500.00MB of 1.00GB");
}

static void no_share_is_invented_before_everything_is_listed(void **state)
{
	struct tt_engine_progress now = half;

	(void)state;
	now.listing_complete = false;
	assert_string_equal(format(&now, 79),
		"100.00MB/s  for 0:00:05  1,234 of 5,678+ files  500.00MB of 1.00GB+");
}

static void a_line_fits_any_width(void **state)
{
	(void)state;
	for (unsigned columns = 0; columns < 100; columns++)
		assert_true(strlen(format(&half, columns)) <= columns);
	assert_string_equal(format(&half, 40), " 50%  100.00MB/s  ETA 0:00:05");
}

static void the_rate_is_that_of_the_last_seconds(void **state)
{
	struct tt_engine_progress now = half;
	struct tt_progress progress;
	char line[200];

	(void)state;
	tt_progress_init(&progress, 1);
	/* From 100 MB/s to 10 MB/s: after five seconds only the new pace is to be seen. */
	for (int i = 0; i <= TT_PROGRESS_SAMPLES; i++) {
		tt_progress_format(&progress, &now, 79, line, sizeof(line));
		now.elapsed_ns += 200000000;
		now.bytes_done += 2000000;
	}
	assert_non_null(strstr(line, "  10.00MB/s  "));
}

static void nothing_to_do_is_no_division_by_zero(void **state)
{
	const struct tt_engine_progress nothing = {.listing_complete = true};
	struct tt_progress progress;
	char line[200];

	(void)state;
	assert_string_equal(format(&nothing, 79), "0.00B/s  for 0:00:00  0 of 0 files  0B of 0B");
	tt_progress_init(&progress, 1);
	assert_string_equal(tt_progress_format_total(&progress, &nothing, line, sizeof(line)),
		"0 files  0B  0.00B/s  0:00:00");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_share_rate_remaining_time_and_files),
		cmocka_unit_test(no_share_is_invented_before_everything_is_listed),
		cmocka_unit_test(a_line_fits_any_width),
		cmocka_unit_test(the_rate_is_that_of_the_last_seconds),
		cmocka_unit_test(nothing_to_do_is_no_division_by_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
