/* SPDX-License-Identifier: MIT */
/* The language of --chmod. All modes under many items, against rsync itself:
 * tests/differential/modes.bats. */
#include <errno.h>
#include <sys/stat.h>

#include "check.h"
#include "tree/modes.h"

struct modes_case {
	const char *text;
	uint32_t before, after;
};

static void check(const struct modes_case *c)
{
	struct tt_modes *modes = NULL;

	if (tt_modes_add(&modes, c->text) != 0)
		fail_msg("%s: does not parse", c->text);
	uint32_t after = tt_modes_apply(modes, c->before, 022);

	if (after != c->after)
		fail_msg("%s: %06o becomes %06o, not %06o", c->text, c->before, after, c->after);
	tt_modes_free(modes);
}

static void items_change_what_they_name(void **state)
{
	static const struct modes_case cases[] = {
		{"u+x", S_IFREG | 0644, S_IFREG | 0744},
		{"go-r", S_IFREG | 0644, S_IFREG | 0600},
		{"a=rx", S_IFREG | 0600, S_IFREG | 0555},
		{"ug=rw,o=", S_IFREG | 0777, S_IFREG | 0660},
		{"640", S_IFREG | 04755, S_IFREG | 0640},
		{"D2775,F664", S_IFREG | 0700, S_IFREG | 0664},
		{"D2775,F664", S_IFDIR | 0700, S_IFDIR | 02775},
		{"Fo-w", S_IFIFO | 0666, S_IFIFO | 0664},
		{"u+s,g+s,+t", S_IFREG | 0755, S_IFREG | 07755},
		{"g=u", S_IFREG | 0751, S_IFREG | 0771},
		{"g-o", S_IFREG | 0775, S_IFREG | 0725},
		{"g=o", S_IFREG | 02754, S_IFREG | 0744},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		check(&cases[i]);
}

static void a_large_x_is_for_directories_and_what_can_be_executed(void **state)
{
	static const struct modes_case cases[] = {
		{"a+X", S_IFREG | 0644, S_IFREG | 0644},
		{"a+X", S_IFREG | 0744, S_IFREG | 0755},
		{"a+X", S_IFDIR | 0600, S_IFDIR | 0711},
		/* What the source could do counts, not what an item before has made of it. */
		{"a-x,a+X", S_IFREG | 0700, S_IFREG | 0711},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		check(&cases[i]);
}

static void without_a_class_the_umask_counts(void **state)
{
	static const struct modes_case cases[] = {
		{"+w", S_IFREG | 0444, S_IFREG | 0644},
		{"a+w", S_IFREG | 0444, S_IFREG | 0666},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		check(&cases[i]);
}

static void more_options_add_items(void **state)
{
	struct tt_modes *modes = NULL;

	(void)state;
	assert_int_equal(tt_modes_add(&modes, "u=rwx"), 0);
	assert_int_equal(tt_modes_add(&modes, "g=u,o=g"), 0);
	assert_int_equal(tt_modes_apply(modes, S_IFREG, 022), S_IFREG | 0777);
	/* What does not parse changes nothing. */
	assert_int_equal(tt_modes_add(&modes, "a=,u*x"), -EINVAL);
	assert_int_equal(tt_modes_apply(modes, S_IFREG, 022), S_IFREG | 0777);
	tt_modes_free(modes);
}

static void what_is_no_mode_is_refused(void **state)
{
	static const char *const bad[] = {
		"", "u", "rw", "u+q", "8", "u+x,", ",u+x", "g=ur", "10000", "u+7", "D", "X+r"};
	struct tt_modes *modes = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (tt_modes_add(&modes, bad[i]) != -EINVAL)
			fail_msg("\"%s\" is taken for a mode", bad[i]);
		assert_null(modes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_change_what_they_name),
		cmocka_unit_test(a_large_x_is_for_directories_and_what_can_be_executed),
		cmocka_unit_test(without_a_class_the_umask_counts),
		cmocka_unit_test(more_options_add_items),
		cmocka_unit_test(what_is_no_mode_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
