/* SPDX-License-Identifier: MIT */
/* What a command line means for the policies. Messages and refusals: tests/cli/options.bats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/options.h"
#include "cli/optiontable.h"

/* Parses a command line, words separated by spaces. Returns options to be released by the caller.
 */
static struct tt_options parse(const char *line, enum tt_exit expected)
{
	static char words[500], message[TT_OPTIONS_MESSAGE_SIZE];
	char *argv[50] = {(char *)"tiptoe"}, *rest = NULL;
	struct tt_options options;
	int argc = 1;

	snprintf(words, sizeof(words), "%s", line);
	for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	assert_int_equal(tt_options_init(&options), 0);
	enum tt_exit code = tt_options_parse(&options, argc, argv, message);
	if (code != expected)
		fail_msg("%s: code %d, %s", line, (int)code, message);
	assert_int_equal(code == TT_EXIT_OK, message[0] == '\0');
	return options;
}

/* The flags of -rlptgoDHcuIxSnvihq as a text of those that are on. */
static const char *letters(const struct tt_options *o)
{
	static char text[40];
	const struct tt_plan_policy *p = &o->engine.plan;
	const struct {
		char letter;
		bool on;
	} flags[] = {{'r', p->recursive}, {'l', p->links}, {'p', p->perms}, {'t', p->times},
		{'g', p->group}, {'o', p->owner}, {'d', p->devices}, {'s', p->specials},
		{'H', p->hard_links}, {'c', p->checksum}, {'u', p->update}, {'I', p->ignore_times},
		{'x', o->engine.one_file_system}, {'S', o->engine.sparse}, {'n', o->engine.dry_run},
		{'q', o->quiet}};
	size_t used = 0;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (flags[i].on)
			text[used++] = flags[i].letter;
	text[used] = '\0';
	return text;
}

static void letters_mean_what_they_mean_to_rsync(void **state)
{
	static const struct {
		const char *line, *letters;
	} cases[] = {
		{"a b", ""},
		{"-a a b", "rlptgods"},
		{"--archive a b", "rlptgods"},
		{"-aHxS a b", "rlptgodsHxS"},
		{"a -a b -n", "rlptgodsn"},
		{"a b -rlptgoD", "rlptgods"},
		{"-a --no-p a b", "rltgods"},
		{"-a --no-perms a b", "rltgods"},
		{"-a --no-D a b", "rlptgo"},
		{"-a --no-devices a b", "rlptgos"},
		{"-a --no-specials a b", "rlptgod"},
		{"--no-p -a a b", "rlptgods"},
		{"-a --no-o --no-g --owner a b", "rlptods"},
		{"-a --no-r --no-l --no-t a b", "pgods"},
		{"-Hc --no-H --no-c a b", ""},
		{"-D --no-D a b", ""},
		{"-xS --no-x --no-S a b", ""},
		{"-xx --no-x a b", ""},
		{"-rcuI a b", "rcuI"},
		{"-W -q a b", "q"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tt_options options = parse(cases[i].line, TT_EXIT_OK);

		if (strcmp(letters(&options), cases[i].letters) != 0)
			fail_msg("%s: %s instead of %s", cases[i].line, letters(&options),
				cases[i].letters);
		assert_int_equal(options.engine.meta.perms, options.engine.plan.perms);
		assert_int_equal(options.engine.meta.times, options.engine.plan.times);
		assert_int_equal(options.engine.meta.owner, options.engine.plan.owner);
		assert_int_equal(options.engine.meta.group, options.engine.plan.group);
		assert_int_equal(options.operand_count, 2);
		assert_string_equal(options.operands[0], "a");
		assert_string_equal(options.operands[1], "b");
		tt_options_deinit(&options);
	}
}

static void levels_are_counted_and_taken_back(void **state)
{
	struct tt_options options = parse("-avxivi -hh a b", TT_EXIT_OK);

	(void)state;
	assert_int_equal(options.verbose, 2);
	assert_int_equal(options.itemize, 2);
	assert_int_equal(options.human_readable, 3);
	tt_options_deinit(&options);
	options = parse("-vvii --no-v --no-i --no-h --verbose a b", TT_EXIT_OK);
	assert_int_equal(options.verbose, 1);
	assert_int_equal(options.itemize, 0);
	assert_int_equal(options.human_readable, 0);
	tt_options_deinit(&options);
	options = parse("--no-h -h a b", TT_EXIT_OK);
	assert_int_equal(options.human_readable, 1);
	tt_options_deinit(&options);
}

static void deletion_has_one_phase(void **state)
{
	static const struct {
		const char *line;
		enum tt_engine_delete mode;
		enum tt_exit code;
	} cases[] = {
		{"-r a b", TT_DELETE_NONE, TT_EXIT_OK},
		{"-r --delete a b", TT_DELETE_DURING, TT_EXIT_OK},
		{"-r --del a b", TT_DELETE_DURING, TT_EXIT_OK},
		{"-r --delete-during --del a b", TT_DELETE_DURING, TT_EXIT_OK},
		{"-r --delete --delete-before a b", TT_DELETE_BEFORE, TT_EXIT_OK},
		{"-r --delete-after --delete a b", TT_DELETE_AFTER, TT_EXIT_OK},
		{"-r --delete-after --delete-before a b", TT_DELETE_NONE, TT_EXIT_USAGE},
		{"--delete a b", TT_DELETE_NONE, TT_EXIT_USAGE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tt_options options = parse(cases[i].line, cases[i].code);

		assert_int_equal(options.engine.delete_mode, cases[i].mode);
		tt_options_deinit(&options);
	}
}

static void arguments_come_with_or_after_the_option(void **state)
{
	struct tt_options options =
		parse("--cache=drop --dirty-limit 1M --workers=16 a b", TT_EXIT_OK);

	(void)state;
	assert_int_equal(options.engine.cache.mode, TT_CACHE_DROP);
	assert_int_equal(options.engine.cache.dirty_limit_bytes, 1048576);
	assert_int_equal(options.engine.workers, 16);
	assert_null(options.engine.filter);
	tt_options_deinit(&options);
	options = parse("--cache drop --cache keep a --exclude -v b", TT_EXIT_OK);
	assert_int_equal(options.engine.cache.mode, TT_CACHE_KEEP);
	assert_non_null(options.engine.filter);
	assert_int_equal(options.verbose, 0);
	tt_options_deinit(&options);
	options = parse("--cache=direct a b", TT_EXIT_OK);
	assert_int_equal(options.engine.cache.mode, TT_CACHE_DIRECT);
	tt_options_deinit(&options);
	options = parse("--probe /x", TT_EXIT_OK);
	assert_string_equal(options.probe_dir, "/x");
	tt_options_deinit(&options);
}

static void single_entries_are_chosen(void **state)
{
	struct tt_options options =
		parse("-dxxmEOJUU --max-size=1k+1 --min-size=0 -@2 a b", TT_EXIT_OK);

	(void)state;
	assert_true(options.engine.plan.dirs);
	assert_false(options.engine.plan.recursive);
	assert_true(options.engine.one_file_system && options.engine.omit_mounts);
	assert_true(options.engine.prune_empty_dirs);
	assert_true(options.engine.meta.executability && options.engine.meta.omit_dir_times
		    && options.engine.meta.omit_link_times && options.engine.meta.atimes);
	assert_true(options.engine.plan.has_max_size);
	assert_int_equal(options.engine.plan.max_size_bytes, 1025);
	assert_int_equal(options.engine.plan.min_size_bytes, 0);
	assert_true(options.engine.plan.has_window);
	assert_false(options.engine.meta.exact_times);
	assert_int_equal(options.engine.meta.window_sec, 2);
	tt_options_deinit(&options);
	options = parse("-dr -@2 -@ -1 a b", TT_EXIT_OK);
	assert_false(options.engine.plan.dirs);
	assert_false(options.engine.plan.has_window);
	assert_true(options.engine.meta.exact_times);
	tt_options_deinit(&options);
	options = parse("--old-dirs a b", TT_EXIT_OK);
	assert_true(options.engine.plan.recursive);
	assert_non_null(options.engine.filter);
	tt_options_deinit(&options);
	options = parse("--old-dirs --no-d a b", TT_EXIT_OK);
	assert_false(options.engine.plan.recursive || options.engine.plan.dirs);
	tt_options_deinit(&options);
}

static void owners_and_modes_are_changed_on_the_way(void **state)
{
	struct tt_options options =
		parse("--chmod=u+x --chmod go-w --chown=:5 a b --no-super", TT_EXIT_OK);

	(void)state;
	assert_non_null(options.engine.meta.modes);
	assert_null(options.engine.meta.users);
	assert_non_null(options.engine.meta.groups);
	assert_true(options.engine.meta.group && options.engine.plan.group);
	assert_false(options.engine.plan.owner);
	assert_false(options.engine.plan.is_super || options.engine.meta.is_super);
	tt_options_deinit(&options);
	options = parse("--usermap=*:5 --numeric-ids --super a b", TT_EXIT_OK);
	assert_true(options.engine.meta.owner && options.engine.plan.owner);
	assert_true(options.engine.plan.is_super && options.engine.meta.is_super);
	tt_options_deinit(&options);
}

static void after_two_dashes_everything_is_an_operand(void **state)
{
	struct tt_options options = parse("-r -- -v - --bogus", TT_EXIT_OK);

	(void)state;
	assert_int_equal(options.operand_count, 3);
	assert_string_equal(options.operands[0], "-v");
	assert_string_equal(options.operands[1], "-");
	assert_string_equal(options.operands[2], "--bogus");
	assert_int_equal(options.verbose, 0);
	tt_options_deinit(&options);
}

static void a_colon_before_a_slash_is_another_machine(void **state)
{
	static const char *const remote[] = {
		"-a a h:b", "-a h:b a", "-a h::m/x a", "-a u@h:x a", "-a rsync://h/m a"};
	static const char *const local[] = {"-a ./a:b c", "-a /x:y c", "-a a/b:c d", "-a :x c"};

	(void)state;
	for (size_t i = 0; i < sizeof(remote) / sizeof(remote[0]); i++) {
		struct tt_options options = parse(remote[i], TT_EXIT_UNSUPPORTED);
		tt_options_deinit(&options);
	}
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
		struct tt_options options = parse(local[i], TT_EXIT_OK);
		tt_options_deinit(&options);
	}
}

static void the_nearest_name_is_suggested(void **state)
{
	static const struct {
		const char *typed, *meant;
	} cases[] = {{"exclud", "exclude"}, {"exlcude", "exclude"}, {"perm", "perms"},
		{"no-perm", "no-perms"}, {"recursiv", "recursive"}, {"dirtylimit", "dirty-limit"},
		{"del-during", "delete-during"}, {"human", "human-readable"}, {"xyzzy", NULL},
		{"a", NULL}, {"", NULL}, {"no-stats", NULL}};
	char buffer[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *meant = tt_optiontable_suggest(cases[i].typed, buffer);

		if (!meant != !cases[i].meant || (meant && strcmp(meant, cases[i].meant) != 0))
			fail_msg("%s: %s", cases[i].typed, meant ? meant : "nothing");
	}
}

static void no_name_or_letter_is_in_the_table_twice(void **state)
{
	(void)state;
	for (const struct tt_optiontable_row *row = tt_optiontable;
		row->long_name || row->short_name; row++) {
		if (row->long_name)
			assert_ptr_equal(
				tt_optiontable_find_long(row->long_name, strlen(row->long_name)),
				row);
		if (row->short_name)
			assert_ptr_equal(tt_optiontable_find_short(row->short_name), row);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(letters_mean_what_they_mean_to_rsync),
		cmocka_unit_test(levels_are_counted_and_taken_back),
		cmocka_unit_test(deletion_has_one_phase),
		cmocka_unit_test(arguments_come_with_or_after_the_option),
		cmocka_unit_test(single_entries_are_chosen),
		cmocka_unit_test(owners_and_modes_are_changed_on_the_way),
		cmocka_unit_test(after_two_dashes_everything_is_an_operand),
		cmocka_unit_test(a_colon_before_a_slash_is_another_machine),
		cmocka_unit_test(the_nearest_name_is_suggested),
		cmocka_unit_test(no_name_or_letter_is_in_the_table_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
