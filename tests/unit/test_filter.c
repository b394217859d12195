/* SPDX-License-Identifier: MIT */
/*
 * One case for each rule of the game, and what is said of rules that do not parse;
 * tests/differential/filter_random.py compares with rsync at random.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rules.h"

/* The one pattern excludes the path; a path that ends in '/' is a directory. */
static bool excludes(const char *pattern, const char *path)
{
	struct tt_filter *filter = new_filter();
	bool excluded;

	add(filter, TT_FILTER_EXCLUDE, pattern);
	excluded = hides(filter, path);
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
	struct tt_filter *filter = new_filter();

	(void)state;
	assert_true(tt_filter_is_empty(filter));
	assert_false(hides(filter, "a"));
	add(filter, TT_FILTER_INCLUDE, "*.c");
	add(filter, TT_FILTER_INCLUDE, "*/");
	add(filter, TT_FILTER_EXCLUDE, "*");
	assert_false(tt_filter_is_empty(filter));
	assert_false(hides(filter, "d/x.c"));
	assert_false(hides(filter, "d/"));
	assert_true(hides(filter, "d"));
	add(filter, TT_FILTER_EXCLUDE, "!");
	assert_true(tt_filter_is_empty(filter));
	tt_filter_free(filter);
	tt_filter_free(NULL);
	assert_true(tt_filter_is_empty(NULL));
	assert_false(tt_filter_dir_excludes(NULL, "a", false, false));
}

static void test_rules_have_sides(void **state)
{
	static const struct {
		const char *rules;
		bool hides, protects, deleting, excluded_go;
	} cases[] = {
		{"- x", true, true, true, false},
		{"H x", true, false, false, false},
		{"P x", false, true, true, true},
		{"-s x", true, false, false, false},
		{"-r x", false, true, true, true},
		{"-sr x", true, true, true, true},
		{"-p x", true, true, false, false},
		{"Pp x", false, true, false, true},
		{"S x\n- *", false, true, true, false},
		{"R x\n- *", true, false, false, false},
		{"-! y", true, true, true, false},
		{"-x x", false, false, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tt_filter *filter = new_filter();
		char rules[100], *rest = NULL;

		strcpy(rules, cases[i].rules);
		for (char *rule = strtok_r(rules, "\n", &rest); rule;
			rule = strtok_r(NULL, "\n", &rest))
			add(filter, TT_FILTER_RULE, rule);
		if (hides(filter, "x") != cases[i].hides
			|| protects(filter, "x", false) != cases[i].protects
			|| protects(filter, "x", true) != cases[i].deleting)
			fail_msg("%s", cases[i].rules);
		tt_filter_set_delete_excluded(filter, true);
		if (hides(filter, "x") != cases[i].hides
			|| protects(filter, "x", false) != cases[i].excluded_go)
			fail_msg("%s with --delete-excluded", cases[i].rules);
		tt_filter_free(filter);
	}
}

static void test_what_does_not_parse_is_named(void **state)
{
	static const struct {
		enum tt_filter_kind kind;
		const char *text, *said;
	} cases[] = {
		{TT_FILTER_EXCLUDE, "+ ", "\"+ \": its pattern or file is missing"},
		{TT_FILTER_INCLUDE, "- ", "\"- \""},
		{TT_FILTER_RULE, "x a", "\"x a\": a rule begins with"},
		{TT_FILTER_RULE, "excluded a", "\"excluded a\""},
		{TT_FILTER_RULE, "-n a", "\"-n a\": 'n' is no modifier"},
		{TT_FILTER_RULE, "Hs a", "'s' is no modifier"},
		{TT_FILTER_RULE, "! a", "nothing can stand behind"},
		{TT_FILTER_RULE, ":", "missing"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tt_filter *filter = new_filter();
		struct tt_filter_error error = {.is_file = true};

		assert_int_equal(
			tt_filter_add(filter, cases[i].kind, cases[i].text, &error), -EINVAL);
		assert_false(error.is_file);
		if (!strstr(error.text, cases[i].said))
			fail_msg("%s: %s", cases[i].text, error.text);
		tt_filter_free(filter);
	}
}

static void test_files(void **state)
{
	struct tt_filter *filter = new_filter();
	struct tt_filter_error error;
	struct scratch scratch;
	char path[300];

	(void)state;
	scratch_open(&scratch);
	snprintf(path, sizeof(path), "%s/rules", scratch.path);
	scratch_write(&scratch, "rules", "# a comment\r\n; another\r\n\r\n+ ab\r\na*\r\n#b\nlast");
	add(filter, TT_FILTER_EXCLUDE_FROM, path);
	assert_false(hides(filter, "ab"));
	assert_true(hides(filter, "abc"));
	assert_true(hides(filter, "last"));
	assert_false(hides(filter, "#b"));
	assert_false(hides(filter, "; another"));
	tt_filter_free(filter);

	filter = new_filter();
	scratch_write(&scratch, "rules", "- ok\n\nnonsense\n");
	snprintf(path, sizeof(path), "merge %s/rules", scratch.path);
	assert_int_equal(tt_filter_add(filter, TT_FILTER_RULE, path, &error), -EINVAL);
	assert_non_null(strstr(error.text, "\"nonsense\" in /"));
	assert_non_null(strstr(error.text, "/rules, line 3: "));
	scratch_write(&scratch, "rules", "a\n b");
	snprintf(path, sizeof(path), ".w- %s/rules", scratch.path);
	add(filter, TT_FILTER_RULE, path);
	assert_true(hides(filter, "b"));
	assert_int_equal(
		tt_filter_add(filter, TT_FILTER_EXCLUDE_FROM, "/nowhere/at/all", &error), -ENOENT);
	assert_true(error.is_file);
	assert_non_null(strstr(error.text, "/nowhere/at/all"));
	tt_filter_free(filter);

	/* Another filter, with NULs: a line is no end, and the file names itself. */
	filter = new_filter();
	tt_filter_set_from0(filter, true);
	int fd = openat(scratch.fd, "nul", O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, "a\nb\0c", 5), 5);
	close(fd);
	snprintf(path, sizeof(path), "%s/nul", scratch.path);
	add(filter, TT_FILTER_EXCLUDE_FROM, path);
	assert_true(hides(filter, "a\nb"));
	assert_true(hides(filter, "c"));
	assert_false(hides(filter, "a"));
	tt_filter_set_from0(filter, false);
	snprintf(path, sizeof(path), ". %s/rules", scratch.path);
	scratch_write(&scratch, "rules", path);
	assert_int_equal(tt_filter_add(filter, TT_FILTER_RULE, path, &error), -ELOOP);
	tt_filter_free(filter);
	scratch_close(&scratch);
}

static void test_cvs(void **state)
{
	struct tt_filter *filter = new_filter();
	struct scratch scratch;

	(void)state;
	scratch_open(&scratch);
	scratch_write(&scratch, ".cvsignore", "fromhome ! after");
	setenv("HOME", scratch.path, 1);
	setenv("CVSIGNORE", "one two", 1);
	add(filter, TT_FILTER_INCLUDE, "keep.o");
	add(filter, TT_FILTER_RULE, "-C");
	assert_true(hides(filter, "after"));
	assert_true(hides(filter, "two"));
	assert_false(hides(filter, "fromhome"));
	assert_false(hides(filter, "x.o")); /* the file has cleared the list */
	tt_filter_free(filter);
	scratch_write(&scratch, ".cvsignore", "fromhome\n");
	filter = new_filter();
	add(filter, TT_FILTER_INCLUDE, "keep.o");
	add(filter, TT_FILTER_RULE, "-C");
	assert_true(hides(filter, "x.o"));
	assert_false(hides(filter, "keep.o"));
	assert_true(hides(filter, ".git/"));
	assert_false(hides(filter, ".git"));
	assert_true(protects(filter, "x.o", false));
	assert_false(protects(filter, "x.o", true)); /* perishable */
	assert_true(protects(filter, "fromhome", true));
	tt_filter_free(filter);
	unsetenv("CVSIGNORE");
	scratch_close(&scratch);
}

static void test_absolute_rules(void **state)
{
	struct tt_filter *filter = new_filter();

	(void)state;
	add(filter, TT_FILTER_RULE, "-/ /top/of/it/a");
	add(filter, TT_FILTER_RULE, "-/ it/b");
	add(filter, TT_FILTER_RULE, "-/ /b");
	assert_true(hides(filter, "a"));
	assert_true(hides(filter, "b"));
	assert_false(hides(filter, "d/a"));
	assert_false(hides(filter, "d/b"));
	tt_filter_free(filter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_the_first_match_wins),
		cmocka_unit_test(test_rules_have_sides),
		cmocka_unit_test(test_what_does_not_parse_is_named),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_cvs),
		cmocka_unit_test(test_absolute_rules),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
