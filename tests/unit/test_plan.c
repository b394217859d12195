/* SPDX-License-Identifier: MIT */
/*
 * The plan against what rsync said: plan_cases.h holds pairs of states and the itemised lines of
 * real runs over them. Then a few rules that a line does not show.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "sync/plan.h"
#include "tree/entry.h"

enum {
	PAIRS_MAX = 320
};

struct plan_pair {
	struct tt_entry wanted, existing;
	bool has_existing, same_data, same_link;
};

struct plan_run {
	const char *command;
	struct tt_plan_policy policy;
	const char *items[PAIRS_MAX]; /* one for each pair; "" where rsync printed nothing, "skip"
					 for a non-regular file */
};

#include "plan_cases.h"

enum {
	PAIRS = sizeof(plan_pairs) / sizeof(plan_pairs[0])
};
_Static_assert(PAIRS <= (size_t)PAIRS_MAX, "a run has room for all pairs");

static char type_letter(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return 'f';
	case S_IFDIR:
		return 'd';
	case S_IFLNK:
		return 'L';
	case S_IFCHR:
	case S_IFBLK:
		return 'D';
	default:
		return 'S';
	}
}

/* The line as `rsync -ii` writes it. */
static void as_line(const struct tt_plan_action *action, uint32_t mode, char line[12])
{
	static const struct {
		uint32_t bit;
		int column;
		char letter;
	} columns[] = {
		{TT_ITEM_CHECKSUM, 2, 'c'},
		{TT_ITEM_SIZE, 3, 's'},
		{TT_ITEM_TIME, 4, 't'},
		{TT_ITEM_TIME_NOW, 4, 'T'},
		{TT_ITEM_PERMS, 5, 'p'},
		{TT_ITEM_OWNER, 6, 'o'},
		{TT_ITEM_GROUP, 7, 'g'},
	};
	uint32_t item = action->item;
	bool any = false;

	memset(line, 0, 12);
	if (action->kind == TT_PLAN_SKIP || action->kind == TT_PLAN_SKIP_DIR
		|| action->kind == TT_PLAN_SKIP_LONG)
		return;
	if (action->kind == TT_PLAN_SKIP_NONREG) {
		(void)strcpy(line, "skip");
		return;
	}
	(void)strcpy(line, "...........");
	line[0] = item & TT_ITEM_TRANSFER ? '>' : item & TT_ITEM_LOCAL ? 'c' : '.';
	line[1] = type_letter(mode);
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		if (item & columns[i].bit) {
			line[columns[i].column] = columns[i].letter;
			any = true;
		}
	}
	if (item & TT_ITEM_NEW)
		memset(line + 2, '+', 9);
	else if (!any && line[0] != '>')
		memset(line + 2, ' ', 9);
}

/* The kind has to go with the line. */
static bool kind_fits(const struct tt_plan_action *action, uint32_t mode)
{
	uint32_t item = action->item;

	switch (action->kind) {
	case TT_PLAN_KEEP:
		return item == 0;
	case TT_PLAN_ATTRIBUTES:
		/* Without any: the fraction of a second under -c, which has no letter. */
		return !(item & (TT_ITEM_TRANSFER | TT_ITEM_NEW)) && !S_ISDIR(mode)
		       && (item || S_ISREG(mode));
	case TT_PLAN_COPY:
		return (item & TT_ITEM_TRANSFER) && S_ISREG(mode);
	case TT_PLAN_SYMLINK:
		return (item & TT_ITEM_LOCAL) && S_ISLNK(mode);
	case TT_PLAN_NODE:
		return (item & TT_ITEM_LOCAL) && !S_ISLNK(mode) && !S_ISREG(mode) && !S_ISDIR(mode);
	case TT_PLAN_DIRECTORY:
		return S_ISDIR(mode);
	case TT_PLAN_SKIP:
	case TT_PLAN_SKIP_NONREG:
	case TT_PLAN_SKIP_DIR:
	case TT_PLAN_SKIP_LONG:
		return item == 0 && !action->make_way;
	}
	return false;
}

/* The one meant difference: rsync leaves a block device where a character device of the same number
 * is wanted, and the other way round. */
static bool rsync_is_wrong(const struct plan_pair *pair)
{
	uint32_t a = pair->wanted.mode & S_IFMT, b = pair->existing.mode & S_IFMT;

	return (a == S_IFCHR && b == S_IFBLK) || (a == S_IFBLK && b == S_IFCHR);
}

static void print_pair(const struct plan_pair *pair)
{
	const struct tt_entry *sides[] = {&pair->wanted, &pair->existing};

	for (int i = 0; i < 1 + pair->has_existing; i++) {
		print_message("    %s mode %06o size %llu mtime %lld uid %u gid %u rdev %u:%u data "
			      "%d link %d\n",
			i ? "dst" : "src", sides[i]->mode, (unsigned long long)sides[i]->size_bytes,
			(long long)sides[i]->mtime_sec, sides[i]->uid, sides[i]->gid,
			sides[i]->rdev_major, sides[i]->rdev_minor, pair->same_data,
			pair->same_link);
	}
}

static void test_lines_are_those_of_rsync(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (size_t r = 0; r < sizeof(plan_runs) / sizeof(plan_runs[0]); r++) {
		for (size_t i = 0; i < PAIRS; i++) {
			const struct plan_pair *pair = &plan_pairs[i];
			struct tt_entry wanted = pair->wanted;
			struct tt_plan_action action;
			char line[12];

			if (pair->has_existing && rsync_is_wrong(pair))
				continue;
			wanted.flags |= pair->same_data ? TT_ENTRY_SAME_DATA : 0;
			wanted.flags |= pair->same_link ? TT_ENTRY_SAME_LINK : 0;
			/* The ordinary user of the capture is in group 1000 only. */
			if (!plan_runs[r].policy.is_super && wanted.gid != 1000)
				wanted.flags |= TT_ENTRY_SKIP_GROUP;
			tt_plan_entry(&plan_runs[r].policy, &wanted,
				pair->has_existing ? &pair->existing : NULL, &action);
			as_line(&action, wanted.mode, line);
			if (strcmp(line, plan_runs[r].items[i]) != 0
				|| !kind_fits(&action, wanted.mode)) {
				print_message("%s: pair %zu: \"%s\", rsync \"%s\", kind %d\n",
					plan_runs[r].command, i, line, plan_runs[r].items[i],
					(int)action.kind);
				print_pair(pair);
				wrong++;
			}
		}
	}
	assert_int_equal(wrong, 0);
}

static const struct tt_plan_policy archive = {
	.recursive = true,
	.links = true,
	.perms = true,
	.times = true,
	.owner = true,
	.group = true,
	.devices = true,
	.specials = true,
	.is_super = true,
};

static void test_another_type_makes_way(void **state)
{
	const struct tt_entry file = {.mode = S_IFREG | 0644}, dir = {.mode = S_IFDIR | 0755};
	struct tt_plan_action action;

	(void)state;
	tt_plan_entry(&archive, &file, &dir, &action);
	assert_int_equal(action.kind, TT_PLAN_COPY);
	assert_true(action.make_way);
	assert_false(action.exists);
	tt_plan_entry(&archive, &dir, &file, &action);
	assert_int_equal(action.kind, TT_PLAN_DIRECTORY);
	assert_true(action.make_way);
	tt_plan_entry(&archive, &file, &file, &action);
	assert_false(action.make_way);
	assert_true(action.exists);
	tt_plan_entry(&archive, &file, NULL, &action);
	assert_false(action.make_way);
	assert_false(action.exists);
}

static void test_a_device_of_the_other_kind_is_made_anew(void **state)
{
	const struct tt_entry chr = {.mode = S_IFCHR | 0644, .rdev_major = 1, .rdev_minor = 3};
	const struct tt_entry blk = {.mode = S_IFBLK | 0644, .rdev_major = 1, .rdev_minor = 3};
	struct tt_plan_action action;

	(void)state;
	tt_plan_entry(&archive, &chr, &blk, &action);
	assert_int_equal(action.kind, TT_PLAN_NODE);
	assert_int_equal(action.item, TT_ITEM_LOCAL | TT_ITEM_CHECKSUM);
	assert_true(action.make_way);
}

static void test_a_directory_without_recursion_is_skipped(void **state)
{
	const struct tt_entry dir = {.mode = S_IFDIR | 0755};
	struct tt_plan_policy policy = archive;
	struct tt_plan_action action;

	(void)state;
	policy.recursive = false;
	tt_plan_entry(&policy, &dir, NULL, &action);
	assert_int_equal(action.kind, TT_PLAN_SKIP_DIR);
	assert_int_equal(action.item, 0);
}

static void test_sizes_have_limits(void **state)
{
	const struct tt_entry file = {.mode = S_IFREG | 0644, .size_bytes = 1000},
			      link = {.mode = S_IFLNK | 0777, .size_bytes = 1000};
	struct tt_plan_policy policy = archive;
	struct tt_plan_action action;

	(void)state;
	policy.has_max_size = true;
	policy.max_size_bytes = 999;
	tt_plan_entry(&policy, &file, NULL, &action);
	assert_int_equal(action.kind, TT_PLAN_SKIP);
	assert_int_equal(action.item, TT_ITEM_OVER_SIZE);
	tt_plan_entry(&policy, &link, NULL, &action);
	assert_int_equal(action.kind, TT_PLAN_SYMLINK);
	policy.max_size_bytes = 1000;
	tt_plan_entry(&policy, &file, NULL, &action);
	assert_int_equal(action.kind, TT_PLAN_COPY);
	policy.min_size_bytes = 1001;
	tt_plan_entry(&policy, &file, NULL, &action);
	assert_int_equal(action.kind, TT_PLAN_SKIP);
	assert_int_equal(action.item, TT_ITEM_UNDER_SIZE);
}

static void test_a_window_is_of_whole_seconds(void **state)
{
	const struct tt_entry wanted = {.mode = S_IFREG | 0644, .mtime_sec = 100, .mtime_nsec = 1};
	struct tt_entry existing = {.mode = S_IFREG | 0644, .mtime_sec = 102, .mtime_nsec = 9};
	struct tt_plan_policy policy = archive;
	struct tt_plan_action action;

	(void)state;
	policy.has_window = true;
	policy.window_sec = 2;
	tt_plan_entry(&policy, &wanted, &existing, &action);
	assert_int_equal(action.kind, TT_PLAN_KEEP);
	policy.window_sec = 1;
	tt_plan_entry(&policy, &wanted, &existing, &action);
	assert_int_equal(action.kind, TT_PLAN_COPY);
	assert_int_equal(action.item, TT_ITEM_TRANSFER | TT_ITEM_TIME);
	/* -u: less than the window newer is not newer. */
	existing.mtime_sec = 99;
	policy.update = true;
	policy.window_sec = 2;
	tt_plan_entry(&policy, &wanted, &existing, &action);
	assert_int_equal(action.kind, TT_PLAN_SKIP);
	existing.mtime_sec = 97;
	tt_plan_entry(&policy, &wanted, &existing, &action);
	assert_int_equal(action.kind, TT_PLAN_COPY);
}

static void test_times_that_are_left_out_are_no_difference(void **state)
{
	const struct tt_entry dir = {.mode = S_IFDIR | 0755, .mtime_sec = 1},
			      old_dir = {.mode = S_IFDIR | 0755, .mtime_sec = 2},
			      link = {.mode = S_IFLNK | 0777, .mtime_sec = 1},
			      old_link = {.mode = S_IFLNK | 0777, .mtime_sec = 2};
	struct tt_plan_policy policy = archive;
	struct tt_plan_action action;

	(void)state;
	policy.omit_dir_times = policy.omit_link_times = true;
	tt_plan_entry(&policy, &dir, &old_dir, &action);
	assert_int_equal(action.item, 0);
	tt_plan_entry(&policy, &link, &old_link, &action);
	assert_int_equal(action.kind, TT_PLAN_SYMLINK);
	assert_int_equal(action.item, TT_ITEM_LOCAL | TT_ITEM_CHECKSUM | TT_ITEM_TIME);
}

static void test_the_right_to_execute_and_the_time_of_access(void **state)
{
	const struct tt_entry wanted = {.mode = S_IFREG | 0744, .atime_sec = 1, .atime_nsec = 7};
	struct tt_entry existing = {.mode = S_IFREG | 0600, .atime_sec = 1};
	struct tt_plan_policy policy = {.recursive = true, .executability = true, .atimes = true};
	struct tt_plan_action action;

	(void)state;
	tt_plan_entry(&policy, &wanted, &existing, &action);
	assert_int_equal(action.kind, TT_PLAN_ATTRIBUTES);
	assert_int_equal(action.item, TT_ITEM_PERMS);
	existing.mode = S_IFREG | 0610;
	tt_plan_entry(&policy, &wanted, &existing, &action);
	assert_int_equal(action.kind, TT_PLAN_KEEP);
	existing.atime_sec = 2;
	tt_plan_entry(&policy, &wanted, &existing, &action);
	assert_int_equal(action.kind, TT_PLAN_ATTRIBUTES);
	assert_int_equal(action.item, TT_ITEM_ATIME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_are_those_of_rsync),
		cmocka_unit_test(test_another_type_makes_way),
		cmocka_unit_test(test_a_device_of_the_other_kind_is_made_anew),
		cmocka_unit_test(test_a_directory_without_recursion_is_skipped),
		cmocka_unit_test(test_sizes_have_limits),
		cmocka_unit_test(test_a_window_is_of_whole_seconds),
		cmocka_unit_test(test_times_that_are_left_out_are_no_difference),
		cmocka_unit_test(test_the_right_to_execute_and_the_time_of_access),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
