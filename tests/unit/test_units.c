/* SPDX-License-Identifier: MIT */
/* Sizes and numbers, with the values that rsync 3.5.0 gives (--max-size, --stats with --no-h, -h,
 * -hh). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/units.h"

static void sizes_parse_as_in_rsync(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{"0", 0},
		{"10", 10},
		{"1b", 1},
		{"1B", 1},
		{"10K", 10240},
		{"10k", 10240},
		{"10KiB", 10240},
		{"10kib", 10240},
		{"10KB", 10000},
		{"10kb", 10000},
		{"1.5K", 1536},
		{"1.5KB", 1500},
		{".5K", 512},
		{"5.K", 5120},
		{"1.999", 1},
		{"1M", 1048576},
		{"1m", 1048576},
		{"1MB", 1000000},
		{"1G", 1073741824},
		{"1T", 1099511627776},
		{"1P", 1125899906842624},
		{"8191P", 9222246136947933184u},
		{"1K+1", 1025},
		{"1K-1", 1023},
		{"1kB-1", 999},
		{"1b+1", 2},
		{"5+1", 6},
		{"9007199254740993", 9007199254740993},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t bytes = 77;

		print_message("%s\n", cases[i].text);
		assert_int_equal(tt_units_parse_size(cases[i].text, 'b', &bytes), 0);
		assert_int_equal(bytes, cases[i].bytes);
	}
}

static void sizes_without_suffix_take_the_default(void **state)
{
	uint64_t bytes;

	(void)state;
	assert_int_equal(tt_units_parse_size("3", 'K', &bytes), 0);
	assert_int_equal(bytes, 3072);
	assert_int_equal(tt_units_parse_size("3+1", 'M', &bytes), 0);
	assert_int_equal(bytes, 3 * 1048576 + 1);
	assert_int_equal(tt_units_parse_size("3b", 'M', &bytes), 0);
	assert_int_equal(bytes, 3);
}

static void what_is_no_size_is_refused(void **state)
{
	static const char *const invalid[] = {"", "K", "foo", "-1", "+1", "1+2", "1E", "1X", "1Ki",
		"1KiX", "1,5", "1e3", " 1", "1 ", "0x10", "1.2.3K", ".", "1K+1x", "1K+", "1KB+2"};
	static const char *const too_large[] = {"8192P", "9999999999999P", "18446744073709551615",
		"9223372036854775807", "9223372036854775808", "0-1"};

	(void)state;
	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
		uint64_t bytes = 77;

		print_message("'%s'\n", invalid[i]);
		assert_int_equal(tt_units_parse_size(invalid[i], 'b', &bytes), -EINVAL);
		assert_int_equal(bytes, 77);
	}
	for (size_t i = 0; i < sizeof(too_large) / sizeof(too_large[0]); i++) {
		uint64_t bytes = 77;

		print_message("'%s'\n", too_large[i]);
		assert_int_equal(tt_units_parse_size(too_large[i], 'b', &bytes), -ERANGE);
		assert_int_equal(bytes, 77);
	}
}

static void numbers_stay_in_their_range(void **state)
{
	int64_t number = 7;

	(void)state;
	assert_int_equal(tt_units_parse_number("16", 1, 64, &number), 0);
	assert_int_equal(number, 16);
	assert_int_equal(tt_units_parse_number("-3", -5, 5, &number), 0);
	assert_int_equal(number, -3);
	number = 7;
	assert_int_equal(tt_units_parse_number("0", 1, 64, &number), -ERANGE);
	assert_int_equal(tt_units_parse_number("65", 1, 64, &number), -ERANGE);
	assert_int_equal(
		tt_units_parse_number("99999999999999999999", 1, INT64_MAX, &number), -ERANGE);
	assert_int_equal(tt_units_parse_number("", 1, 64, &number), -EINVAL);
	assert_int_equal(tt_units_parse_number(" 4", 1, 64, &number), -EINVAL);
	assert_int_equal(tt_units_parse_number("4x", 1, 64, &number), -EINVAL);
	assert_int_equal(tt_units_parse_number("4.0", 1, 64, &number), -EINVAL);
	assert_int_equal(tt_units_parse_number("-", -5, 5, &number), -EINVAL);
	assert_int_equal(number, 7);
}

static void numbers_format_as_in_rsync(void **state)
{
	static const struct {
		uint64_t number;
		const char *level[4];
	} cases[] = {
		{0, {"0", "0", "0", "0"}},
		{999, {"999", "999", "999", "999"}},
		{1000, {"1000", "1,000", "1.00K", "1,000"}},
		{1023, {"1023", "1,023", "1.02K", "1,023"}},
		{1024, {"1024", "1,024", "1.02K", "1.00K"}},
		{9999, {"9999", "9,999", "10.00K", "9.76K"}},
		{99999, {"99999", "99,999", "100.00K", "97.66K"}},
		{999999, {"999999", "999,999", "1000.00K", "976.56K"}},
		{1000000, {"1000000", "1,000,000", "1.00M", "976.56K"}},
		{1048575, {"1048575", "1,048,575", "1.05M", "1024.00K"}},
		{1500000000, {"1500000000", "1,500,000,000", "1.50G", "1.40G"}},
		{UINT64_MAX, {"18446744073709551615", "18,446,744,073,709,551,615", "18446.74P",
				     "16384.00P"}},
	};
	char buffer[40];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int level = 0; level < 4; level++)
			assert_string_equal(
				tt_units_format(cases[i].number, level, buffer, sizeof(buffer)),
				cases[i].level[level]);
	assert_string_equal(tt_units_format(1234567, 1, buffer, 6), "1,23");
	assert_string_equal(tt_units_format(1234567, 0, buffer, 4), "123");
}

static void rates_have_two_decimals(void **state)
{
	char buffer[40];

	(void)state;
	assert_string_equal(tt_units_format_double(1514, 1, buffer, sizeof(buffer)), "1,514.00");
	assert_string_equal(
		tt_units_format_double(2471578, 0, buffer, sizeof(buffer)), "2471578.00");
	assert_string_equal(tt_units_format_double(2471522, 2, buffer, sizeof(buffer)), "2.47M");
	assert_string_equal(tt_units_format_double(2471522, 3, buffer, sizeof(buffer)), "2.36M");
	assert_string_equal(tt_units_format_double(876, 3, buffer, sizeof(buffer)), "876.00");
	assert_string_equal(tt_units_format_double(0.078, 1, buffer, sizeof(buffer)), "0.08");
	assert_string_equal(
		tt_units_format_double(396825.4, 1, buffer, sizeof(buffer)), "396,825.40");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_parse_as_in_rsync),
		cmocka_unit_test(sizes_without_suffix_take_the_default),
		cmocka_unit_test(what_is_no_size_is_refused),
		cmocka_unit_test(numbers_stay_in_their_range),
		cmocka_unit_test(numbers_format_as_in_rsync),
		cmocka_unit_test(rates_have_two_decimals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
