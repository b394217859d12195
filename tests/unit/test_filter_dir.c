/* SPDX-License-Identifier: MIT */
/*
 * Rules from files in a tree. The tree is a flat scratch directory: what it is called in the
 * transfer is up to the test.
 */
#include <errno.h>
#include <sys/stat.h>

#include "rules.h"

static struct scratch scratch;

/* Enters the scratch directory as `path` of the transfer. */
static int enter(struct tt_filter_dir *above, const char *path, struct tt_filter_error *error,
	struct tt_filter_dir **ret_rules)
{
	const struct tt_filter_place place = {.reader = plain_reader,
		.dir_fd = scratch.fd,
		.path = path,
		.tree_fd = scratch.fd,
		.tree_path = path};

	return tt_filter_dir_enter(above, &place, error, ret_rules);
}

static struct tt_filter_dir *enter_well(struct tt_filter_dir *above, const char *path)
{
	struct tt_filter_dir *rules = NULL;
	struct tt_filter_error error;
	int r = enter(above, path, &error, &rules);

	if (r != 0)
		fail_msg("%s: %d, %s", path, r, error.text);
	return rules;
}

/* The rules of the command line, one. */
static struct tt_filter_dir *begin(struct tt_filter **ret_filter, const char *rule)
{
	struct tt_filter_dir *rules = NULL;

	*ret_filter = new_filter();
	add(*ret_filter, TT_FILTER_RULE, rule);
	assert_int_equal(tt_filter_dir_new(*ret_filter, TT_FILTER_SOURCE, "/top", &rules), 0);
	return rules;
}

static void test_rules_are_inherited_and_the_newest_come_first(void **state)
{
	struct tt_filter *filter;
	struct tt_filter_dir *top = begin(&filter, ": .r");

	(void)state;
	scratch_open(&scratch);
	scratch_write(&scratch, ".r", "- a\n- /b\n- c/d\n");
	struct tt_filter_dir *upper = enter_well(top, "u");

	assert_true(excluded_by(upper, "u/a", false));
	assert_true(excluded_by(upper, "u/b", false));
	assert_true(excluded_by(upper, "u/x/a", false));
	assert_false(excluded_by(upper, "u/x/b", false)); /* anchored where the file is */
	assert_true(excluded_by(upper, "u/x/c/d", false));
	assert_false(excluded_by(top, "a", false));
	scratch_write(&scratch, ".r", "+ a\n- e\n");
	struct tt_filter_dir *lower = enter_well(upper, "u/l");

	assert_false(excluded_by(lower, "u/l/a", false));
	assert_true(excluded_by(lower, "u/l/e", false));
	assert_true(excluded_by(lower, "u/l/c/d", false));
	assert_true(excluded_by(upper, "u/a", false)); /* as before */
	scratch_write(&scratch, ".r", "!\n- f\n");
	struct tt_filter_dir *cleared = enter_well(lower, "u/l/m");

	assert_false(excluded_by(cleared, "u/l/m/e", false));
	assert_true(excluded_by(cleared, "u/l/m/f", false));
	/* The lower ones keep alive what they end in. */
	tt_filter_dir_release(upper);
	tt_filter_dir_release(top);
	assert_true(excluded_by(lower, "u/l/c/d", false));
	tt_filter_dir_release(lower);
	tt_filter_dir_release(cleared);
	tt_filter_free(filter);
	scratch_close(&scratch);
}

static void test_a_directory_without_a_file_shares(void **state)
{
	struct tt_filter *filter;
	struct tt_filter_dir *top = begin(&filter, ": .r");

	(void)state;
	scratch_open(&scratch);
	struct tt_filter_dir *rules = enter_well(top, "");

	scratch_write(&scratch, ".r", "- a\n");
	struct tt_filter_dir *upper = enter_well(rules, "u");

	assert_int_equal(unlinkat(scratch.fd, ".r", 0), 0);
	struct tt_filter_dir *lower = enter_well(upper, "u/l");

	assert_ptr_equal(lower, upper);
	tt_filter_dir_release(lower);
	tt_filter_dir_release(upper);
	tt_filter_dir_release(rules);
	tt_filter_dir_release(top);
	tt_filter_free(filter);
	scratch_close(&scratch);
}

static void test_n_is_not_inherited_and_e_leaves_itself_out(void **state)
{
	struct tt_filter *filter;
	struct tt_filter_dir *top = begin(&filter, ":en .r");

	(void)state;
	scratch_open(&scratch);
	scratch_write(&scratch, ".r", "- a\n");
	struct tt_filter_dir *upper = enter_well(top, "u");

	assert_true(excluded_by(upper, "u/a", false));
	assert_true(excluded_by(upper, "u/.r", false));
	assert_int_equal(unlinkat(scratch.fd, ".r", 0), 0);
	struct tt_filter_dir *lower = enter_well(upper, "u/l");

	assert_false(excluded_by(lower, "u/l/a", false));
	assert_true(excluded_by(lower, "u/l/.r", false));
	tt_filter_dir_release(lower);
	tt_filter_dir_release(upper);
	tt_filter_dir_release(top);
	tt_filter_free(filter);
	scratch_close(&scratch);
}

static void test_files_name_files(void **state)
{
	struct tt_filter *filter;
	struct tt_filter_dir *top = begin(&filter, ": .r");

	(void)state;
	scratch_open(&scratch);
	scratch_write(&scratch, ".r", ": .more\n- z\n. once\n");
	scratch_write(&scratch, ".more", "+ z\n- m\n");
	scratch_write(&scratch, "once", "- o\n- /p\n");
	struct tt_filter_dir *upper = enter_well(top, "u");

	assert_false(excluded_by(upper, "u/z", false));
	assert_true(excluded_by(upper, "u/m", false));
	assert_true(excluded_by(upper, "u/o", false));
	scratch_write(&scratch, ".more", "- n\n");
	assert_int_equal(unlinkat(scratch.fd, ".r", 0), 0);
	struct tt_filter_dir *lower = enter_well(upper, "u/l");

	assert_true(excluded_by(lower, "u/l/n", false));
	assert_true(excluded_by(lower, "u/l/m", false));
	assert_false(excluded_by(upper, "u/n", false));
	tt_filter_dir_release(lower);
	tt_filter_dir_release(upper);
	tt_filter_dir_release(top);
	tt_filter_free(filter);
	scratch_close(&scratch);
}

static void test_nothing_leads_out_of_the_tree(void **state)
{
	static const char *const outside[] = {". /etc/hostname\n", ". ../x\n", ". a/../../x\n"};
	struct tt_filter_dir *rules = NULL, *top;
	struct tt_filter_error error;
	struct tt_filter *filter;

	(void)state;
	scratch_open(&scratch);
	top = begin(&filter, ": .r");
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
		scratch_write(&scratch, ".r", outside[i]);
		assert_int_equal(enter(top, "", &error, &rules), -EXDEV);
		assert_true(error.is_file);
		assert_non_null(strstr(error.text, "outside of the tree"));
		assert_non_null(strstr(error.text, ".r, line 1"));
	}
	assert_int_equal(unlinkat(scratch.fd, ".r", 0), 0);
	/* A link that stays inside is followed, one that leads out is an error. */
	scratch_write(&scratch, "real", "- a\n");
	assert_int_equal(symlinkat("real", scratch.fd, ".r"), 0);
	rules = enter_well(top, "");
	assert_true(excluded_by(rules, "a", false));
	tt_filter_dir_release(rules);
	assert_int_equal(unlinkat(scratch.fd, ".r", 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", scratch.fd, ".r"), 0);
	assert_int_equal(enter(top, "", &error, &rules), 1);
	assert_true(error.is_file);
	assert_non_null(strstr(error.text, "leads out"));
	tt_filter_dir_release(rules);
	/* What is no file is nobody's rules, and nobody waits for a fifo. */
	assert_int_equal(unlinkat(scratch.fd, ".r", 0), 0);
	assert_int_equal(mkfifoat(scratch.fd, ".r", 0600), 0);
	tt_filter_dir_release(enter_well(top, ""));
	tt_filter_dir_release(top);
	tt_filter_free(filter);
	scratch_close(&scratch);
}

static void test_what_does_not_parse_is_named(void **state)
{
	struct tt_filter_dir *rules = NULL, *top;
	struct tt_filter_error error;
	struct tt_filter *filter;

	(void)state;
	scratch_open(&scratch);
	top = begin(&filter, ": .r");
	scratch_write(&scratch, ".r", "- a\n# b\n- c\nfoo bar\n");
	assert_int_equal(enter(top, "x/y", &error, &rules), -EINVAL);
	assert_false(error.is_file);
	assert_non_null(strstr(error.text, "\"foo bar\" in x/y/.r, line 4: "));
	tt_filter_dir_release(top);
	tt_filter_free(filter);
	/* Two sides. */
	top = begin(&filter, ":s .r");
	scratch_write(&scratch, ".r", "P a\n");
	assert_int_equal(enter(top, "", &error, &rules), -EINVAL);
	assert_non_null(strstr(error.text, "names a side"));
	tt_filter_dir_release(top);
	tt_filter_free(filter);
	scratch_close(&scratch);
}

static void test_directories_above_are_looked_through(void **state)
{
	struct tt_filter *filter = new_filter();
	struct tt_filter_dir *top = NULL;
	char path[300];

	(void)state;
	scratch_open(&scratch);
	scratch_write(&scratch, ".r", "- a\n- /top/b\n");
	assert_int_equal(mkdirat(scratch.fd, "top", 0700), 0);
	snprintf(path, sizeof(path), "dir-merge %s/.r", scratch.path);
	add(filter, TT_FILTER_RULE, path);
	snprintf(path, sizeof(path), "%s/top", scratch.path);
	assert_int_equal(tt_filter_dir_new(filter, TT_FILTER_SOURCE, path, &top), 0);
	struct scratch inner = {.fd = openat(scratch.fd, "top", O_RDONLY | O_DIRECTORY)};
	struct scratch outer = scratch;

	assert_true(inner.fd >= 0);
	scratch = inner;
	struct tt_filter_dir *rules = enter_well(top, "");

	assert_true(excluded_by(rules, "a", false));
	assert_true(excluded_by(rules, "b", false));
	assert_false(excluded_by(rules, "d/b", false));
	assert_true(excluded_by(rules, "d/a", false));
	close(inner.fd);
	scratch = outer;
	tt_filter_dir_release(rules);
	tt_filter_dir_release(top);
	tt_filter_free(filter);
	scratch_close(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules_are_inherited_and_the_newest_come_first),
		cmocka_unit_test(test_a_directory_without_a_file_shares),
		cmocka_unit_test(test_n_is_not_inherited_and_e_leaves_itself_out),
		cmocka_unit_test(test_files_name_files),
		cmocka_unit_test(test_nothing_leads_out_of_the_tree),
		cmocka_unit_test(test_what_does_not_parse_is_named),
		cmocka_unit_test(test_directories_above_are_looked_through),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
