/* SPDX-License-Identifier: MIT */
/*
 * One case for each rule of the game; tests/differential/filter_random.py compares with rsync at
 * random.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tree/filter.h"

/* The one pattern excludes the path; a path that ends in '/' is a directory. */
static bool excludes(const char *pattern, const char *path)
{
	struct tt_filter *filter = NULL;
	char copy[256];
	size_t length = strlen(path);
	bool is_dir = path[length - 1] == '/', excluded;

	memcpy(copy, path, length + 1);
	if (is_dir)
		copy[length - 1] = '\0';
	assert_int_equal(tt_filter_new(&filter), 0);
	assert_int_equal(tt_filter_add(filter, false, pattern), 0);
	excluded = tt_filter_is_excluded(filter, copy, is_dir);
	tt_filter_free(filter);
	return excluded;
}

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool excluded;
	} cases[] = {
		{"a", "a", true},
		{"a", "d/a", true},
		{"a", "ab", false},
		{"/a", "a", true},
		{"/a", "d/a", false},
		{"a/", "a/", true},
		{"a/", "a", false},
		{"*", ".x", true},
		{"a*", "d/abc", true},
		{"d/*", "d/a", true},
		{"d/*", "e/d/a", true},
		{"d/*", "d/a/b", false},
		{"d/**", "d/a/b", true},
		{"d/**", "d/", false},
		{"d/***", "d/", true},
		{"d/***", "d", false},
		{"d/***", "d/a/b", true},
		{"**/a", "a", true},
		{"**/a", "b/c/a", true},
		{"/a**c", "a/b/c", true},
		{"a*c", "a/c", false},
		{"a?c", "a/c", false},
		{"a[/]c", "a/c", false},
		{"[a-c]x", "bx", true},
		{"[!a-c]x", "bx", false},
		{"[^a-c]x", "dx", true},
		{"[]x]", "]", true},
		{"[[:digit:]]", "7", true},
		{"[[:digit:]]", "x", false},
		{"[a", "a", false},
		{"[b-a]", "b", true},
		{"a\\b", "a\\b", true},
		{"\\a", "a", false},
		{"\\**", "*b", true},
		{"\\**", "ab", false},
		{"/", "a/", false},
		{"", "a", false},
		{"+ a", "a", false},
		{"- a", "a", true},
		{"+a", "+a", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (excludes(cases[i].pattern, cases[i].path) != cases[i].excluded)
			fail_msg("\"%s\" on \"%s\"", cases[i].pattern, cases[i].path);
	}
}

static void test_the_first_match_wins(void **state)
{
	struct tt_filter *filter = NULL;

	(void)state;
	assert_int_equal(tt_filter_new(&filter), 0);
	assert_true(tt_filter_is_empty(filter));
	assert_false(tt_filter_is_excluded(filter, "a", false));
	assert_int_equal(tt_filter_add(filter, true, "*.c"), 0);
	assert_int_equal(tt_filter_add(filter, true, "*/"), 0);
	assert_int_equal(tt_filter_add(filter, false, "*"), 0);
	assert_false(tt_filter_is_empty(filter));
	assert_false(tt_filter_is_excluded(filter, "d/x.c", false));
	assert_false(tt_filter_is_excluded(filter, "d", true));
	assert_true(tt_filter_is_excluded(filter, "d", false));
	assert_int_equal(tt_filter_add(filter, false, "!"), 0);
	assert_true(tt_filter_is_empty(filter));
	tt_filter_free(filter);
	tt_filter_free(NULL);
	assert_true(tt_filter_is_empty(NULL));
	assert_false(tt_filter_is_excluded(NULL, "a", false));
}

static void test_a_rule_without_a_pattern_is_refused(void **state)
{
	struct tt_filter *filter = NULL;

	(void)state;
	assert_int_equal(tt_filter_new(&filter), 0);
	assert_int_equal(tt_filter_add(filter, false, "+ "), -EINVAL);
	assert_int_equal(tt_filter_add(filter, true, "- "), -EINVAL);
	tt_filter_free(filter);
}

static void test_no_pattern_takes_forever(void **state)
{
	char path[4096];
	struct tt_filter *filter = NULL;

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(tt_filter_new(&filter), 0);
	assert_int_equal(tt_filter_add(filter, false, "a*a*a*a*a*a*a*a*a*a*a*b"), 0);
	assert_int_equal(tt_filter_add(filter, false, "**a**a**a**a**a**a**a**a**a**a**a**b"), 0);
	assert_false(tt_filter_is_excluded(filter, path, false));
	tt_filter_free(filter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_the_first_match_wins),
		cmocka_unit_test(test_a_rule_without_a_pattern_is_refused),
		cmocka_unit_test(test_no_pattern_takes_forever),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
