/* SPDX-License-Identifier: MIT */
/* Maps of owners and groups, with the names that every Debian has. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "tree/idmap.h"

static uint32_t mapped(enum tt_idmap_kind kind, bool nameless, const char *text, uint32_t id)
{
	struct tt_idmap *map;
	char problem[256] = "";

	if (tt_idmap_new(kind, nameless, text, problem, sizeof problem, &map) != 0)
		fail_msg("%s: %s", text, problem);
	uint32_t to = tt_idmap_get(map, id);

	assert_int_equal(tt_idmap_get(map, id), to); /* as it is remembered */
	tt_idmap_free(map);
	return to;
}

static void the_first_pair_that_fits_counts(void **state)
{
	static const struct {
		const char *text;
		uint32_t id, to;
	} cases[] = {
		{"7:8", 7, 8},
		{"7:8", 9, 9},
		{"0-99:5,7:8", 7, 5},
		{"0-99:5,*:6", 100, 6},
		{"bin:8", 2, 8},
		{"root:8", 0, 8},
		{"b*:8", 2, 8},
		{"b?n:8,*:9", 2, 8},
		{"daemon:8", 2, 2},
		{":8", 4000000, 8},
		{":8", 2, 2},
		{"*:8", 4000000, 8},
		{"b*:8", 4000000, 4000000},
		{"7:bin", 7, 2},
		{"7:root", 7, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint32_t to = mapped(TT_IDMAP_USERS, false, cases[i].text, cases[i].id);

		if (to != cases[i].to)
			fail_msg("%s: %u becomes %u, not %u", cases[i].text, cases[i].id, to,
				cases[i].to);
	}
}

static void groups_have_names_of_their_own(void **state)
{
	(void)state;
	assert_int_equal(mapped(TT_IDMAP_GROUPS, false, "shadow:1", 42), 1);
	assert_int_equal(mapped(TT_IDMAP_GROUPS, false, "1:shadow", 1), 42);
}

static void under_numeric_ids_nobody_has_a_name(void **state)
{
	(void)state;
	assert_int_equal(mapped(TT_IDMAP_USERS, true, "bin:8", 2), 2);
	assert_int_equal(mapped(TT_IDMAP_USERS, true, ":8", 2), 8);
	assert_int_equal(mapped(TT_IDMAP_USERS, true, "*:8", 2), 8);
	assert_int_equal(mapped(TT_IDMAP_USERS, true, "2:8", 2), 8);
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *text, *problem;
	} cases[] = {
		{"7", "no colon in \"7\""},
		{"1:2,x", "no colon in \"x\""},
		{"1-:2", "\"1-\" is neither a number nor a range of numbers"},
		{"1x:2", "\"1x\" is neither a number nor a range of numbers"},
		{"7:", "there is no user \"\""},
		{"7:nosuch-user", "there is no user \"nosuch-user\""},
		{"99999999999:1", "\"99999999999\" is neither a number nor a range of numbers"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tt_idmap *map = NULL;
		char problem[256] = "";

		assert_int_equal(tt_idmap_new(TT_IDMAP_USERS, false, cases[i].text, problem,
					 sizeof problem, &map),
			-EINVAL);
		assert_string_equal(problem, cases[i].problem);
		assert_null(map);
	}
}

static void many_owners_are_remembered(void **state)
{
	struct tt_idmap *map;
	char problem[256];

	(void)state;
	assert_int_equal(
		tt_idmap_new(TT_IDMAP_USERS, true, "100-199:5", problem, sizeof problem, &map), 0);
	for (int round = 0; round < 2; round++)
		for (uint32_t id = 0; id < 300; id++)
			assert_int_equal(tt_idmap_get(map, id), id >= 100 && id < 200 ? 5 : id);
	tt_idmap_free(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_pair_that_fits_counts),
		cmocka_unit_test(groups_have_names_of_their_own),
		cmocka_unit_test(under_numeric_ids_nobody_has_a_name),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(many_owners_are_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
