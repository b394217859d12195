/* SPDX-License-Identifier: MIT */
/*
 * What is resident of a file that replaced another: what was of the other, and nothing else.
 */
#include "cache/neutral.h"
#include "check.h"
#include "sample.h"
#include "scratch.h"

struct fixture {
	struct scratch scratch;
	struct tt_neutral_fs fs;
	struct tt_neutral_stats stats;
	struct tt_neutral_old old;
	int old_fd, new_fd;
	uint64_t old_size, new_size;
};

static struct fixture f;

static int set_up(void **state)
{
	(void)state;
	memset(&f, 0, sizeof f);
	scratch_open(&f.scratch);
	f.fs.method = tt_residency_method(f.scratch.fd);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tt_neutral_old_deinit(&f.old);
	(void)close(f.old_fd);
	(void)close(f.new_fd);
	scratch_close(&f.scratch);
	return 0;
}

static void make(uint64_t old_size, uint64_t new_size)
{
	f.old_size = old_size;
	f.new_size = new_size;
	f.old_fd = sample_new(&f.scratch, "old", old_size);
	f.new_fd = sample_open(&f.scratch, "new");
	sample_write(f.new_fd, 0, new_size);
	assert_int_equal(fdatasync(f.new_fd), 0);
	assert_int_equal(sample_count_resident(f.new_fd), (new_size + 4095) / 4096);
}

static void look(void)
{
	assert_int_equal(tt_neutral_old_look(&f.old, f.old_fd, f.old_size, &f.fs, &f.stats), 0);
}

static void test_what_replaced_nothing_goes(void **state)
{
	(void)state;
	make(0, 3 * SAMPLE_MIB + 1);
	tt_neutral_written(f.new_fd, f.new_size, NULL, &f.fs, NULL, &f.stats);
	assert_int_equal(sample_count_resident(f.new_fd), 0);
	assert_int_equal(f.stats.left, 0);
	assert_int_equal(f.stats.dropped, 3 * 256 + 1);
}

static void test_what_replaced_a_cold_file_goes(void **state)
{
	(void)state;
	make(SAMPLE_MIB, SAMPLE_MIB);
	look();
	assert_int_equal(f.old.resident_pages, 0);
	tt_neutral_written(f.new_fd, f.new_size, &f.old, &f.fs, NULL, &f.stats);
	assert_int_equal(sample_count_resident(f.new_fd), 0);
}

static void test_what_replaced_a_hot_file_stays_hot(void **state)
{
	(void)state;
	make(SAMPLE_MIB, SAMPLE_MIB / 2);
	sample_touch_all(f.old_fd, f.old_size);
	look();
	assert_null(f.old.bits);
	tt_neutral_written(f.new_fd, f.new_size, &f.old, &f.fs, NULL, &f.stats);
	assert_int_equal(sample_count_resident(f.new_fd), 128);
	assert_int_equal(f.stats.kept_hot, 128);
	assert_int_equal(f.stats.found_resident, 256);
}

static void test_the_part_beyond_the_old_end_goes(void **state)
{
	(void)state;
	make(64 * SAMPLE_PAGE, 640 * SAMPLE_PAGE);
	sample_touch_all(f.old_fd, f.old_size);
	look();
	tt_neutral_written(f.new_fd, f.new_size, &f.old, &f.fs, NULL, &f.stats);
	for (uint64_t page = 0; page < 640; page++)
		assert_int_equal(sample_is_resident(f.new_fd, page), page < 64);
	assert_int_equal(f.stats.kept_hot, 64);
}

static void test_the_same_pages_are_hot_afterwards(void **state)
{
	(void)state;
	make(1000 * SAMPLE_PAGE, 900 * SAMPLE_PAGE - 5);
	for (uint64_t page = 0; page < 1000; page++) {
		if (page % 37 < 2 || page > 890)
			sample_touch(f.old_fd, page);
	}
	look();
	assert_non_null(f.old.bits);
	tt_neutral_written(f.new_fd, f.new_size, &f.old, &f.fs, NULL, &f.stats);
	for (uint64_t page = 0; page < 900; page++)
		assert_int_equal(sample_is_resident(f.new_fd, page), page % 37 < 2 || page > 890);
	assert_int_equal(f.stats.kept_hot, sample_count_resident(f.new_fd));
	assert_int_equal(f.stats.left, 0);
}

static void test_no_more_is_kept_than_the_budget(void **state)
{
	_Atomic int64_t budget = 100;

	(void)state;
	make(64 * SAMPLE_PAGE, 64 * SAMPLE_PAGE);
	sample_touch_all(f.old_fd, f.old_size);
	look();
	tt_neutral_written(f.new_fd, f.new_size, &f.old, &f.fs, &budget, &f.stats);
	assert_int_equal(budget, 36);
	assert_int_equal(sample_count_resident(f.new_fd), 64);
	/* The next would take more than is left: not a page of it, and the budget is as it was. */
	tt_neutral_written(f.new_fd, f.new_size, &f.old, &f.fs, &budget, &f.stats);
	assert_int_equal(budget, 36);
	assert_int_equal(sample_count_resident(f.new_fd), 0);
}

/* Once in four times the moment is neither over before the drop nor longer than the patience. */
static void test_what_is_held_for_a_moment_goes_all_the_same(void **state)
{
	bool went = false;

	(void)state;
	make(0, 64 * SAMPLE_PAGE);
	for (unsigned i = 0; i < 4 && !went; i++) {
		struct sample_hold hold;

		memset(&f.stats, 0, sizeof f.stats);
		sample_touch_all(f.new_fd, f.new_size);
		sample_hold_pages(&hold, f.new_fd, 5000000);
		tt_neutral_written(f.new_fd, f.new_size, NULL, &f.fs, NULL, &f.stats);
		sample_hold_end(&hold);
		went = sample_count_resident(f.new_fd) == 0 && f.stats.left == 0
		       && f.stats.not_dropped > 0;
	}
	assert_true(went);
}

static void test_dirty_pages_are_counted_as_left(void **state)
{
	(void)state;
	make(0, 16 * SAMPLE_PAGE);
	sample_write(f.new_fd, 0, SAMPLE_PAGE);
	tt_neutral_written(f.new_fd, f.new_size, NULL, &f.fs, NULL, &f.stats);
	assert_int_equal(f.stats.left, sample_count_resident(f.new_fd));
	assert_true(f.stats.left >= 1);
}

static void test_an_empty_file_is_no_trouble(void **state)
{
	(void)state;
	make(0, 0);
	look();
	tt_neutral_written(f.new_fd, 0, &f.old, &f.fs, NULL, &f.stats);
	assert_int_equal(f.stats.left, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_replaced_nothing_goes),
		TEST(test_what_replaced_a_cold_file_goes),
		TEST(test_what_replaced_a_hot_file_stays_hot),
		TEST(test_the_part_beyond_the_old_end_goes),
		TEST(test_the_same_pages_are_hot_afterwards),
		TEST(test_no_more_is_kept_than_the_budget),
		TEST(test_what_is_held_for_a_moment_goes_all_the_same),
		TEST(test_dirty_pages_are_counted_as_left),
		TEST(test_an_empty_file_is_no_trouble),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
