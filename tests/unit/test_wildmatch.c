/* SPDX-License-Identifier: MIT */
/*
 * Corners of rsync's wildcards; tests/differential/filter_random.py compares with rsync at random.
 */
#include <stdbool.h>
#include <string.h>

#include "check.h"
#include "tree/wildmatch.h"

static void test_corners(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} cases[] = {
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"**", "", true},
		{"*", "a/b", false},
		{"**", "a/b", true},
		{"a*b*c", "aXbYc", true},
		{"a*b*c", "aXb/c", false},
		{"a**c", "a/b/c", true},
		{"**/c", "a/c", true},
		{"**/c", "c", false},
		{"*/**/c", "a/c", false},
		{"a?", "a", false},
		{"a?b", "a/b", false},
		{"[a-c]", "b", true},
		{"[a-c]", "d", false},
		{"[!a-c]", "d", true},
		{"[^a-c]", "b", false},
		{"[]]", "]", true},
		{"[!]]", "]", false},
		{"[a-]", "-", true},
		{"[-a]", "-", true},
		{"[\\]]", "]", true},
		{"[[:upper:][:digit:]]", "7", true},
		{"[[:upper:][:digit:]]", "x", false},
		{"[[:upper:]x]", "x", true},
		{"[![:space:]]", " ", false},
		{"[[:alpha:]]", "\xe4", false},
		{"[", "[", false},
		{"[a", "a", false},
		{"\\*", "*", true},
		{"\\*", "a", false},
		{"a\\", "a", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (tt_wildmatch(cases[i].pattern, cases[i].text) != cases[i].matches)
			fail_msg("\"%s\" on \"%s\"", cases[i].pattern, cases[i].text);
	}
}

static void test_no_pattern_takes_forever(void **state)
{
	static char text[4096];

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	assert_false(tt_wildmatch("a*a*a*a*a*a*a*a*a*a*a*b", text));
	assert_false(tt_wildmatch("**a**a**a**a**a**a**a**a**a**a**a**b", text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_corners),
		cmocka_unit_test(test_no_pattern_takes_forever),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
