/* SPDX-License-Identifier: MIT */
/*
 * What is resident of a file that was written in place: what was before, and nothing else.
 */
#include "cache/neutral.h"
#include "check.h"
#include "sample.h"
#include "scratch.h"

enum {
	PAGES = 4000
};

struct fixture {
	struct scratch scratch;
	struct tt_neutral_fs fs;
	struct tt_neutral_stats stats;
	struct tt_neutral_old old;
	int fd;
};

static struct fixture f;

static int set_up(void **state)
{
	(void)state;
	memset(&f, 0, sizeof f);
	scratch_open(&f.scratch);
	f.fs.method = tt_residency_method(f.scratch.fd);
	f.fd = sample_new(&f.scratch, "file", (uint64_t)PAGES * SAMPLE_PAGE);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tt_neutral_old_deinit(&f.old);
	(void)close(f.fd);
	scratch_close(&f.scratch);
	return 0;
}

static bool some(uint64_t page)
{
	return page % 37 < 2 || (page > 1000 && page < 1600);
}

static void look_at_some(void)
{
	for (uint64_t page = 0; page < PAGES; page++) {
		if (some(page))
			sample_touch(f.fd, page);
	}
	assert_int_equal(
		tt_neutral_old_look(&f.old, f.fd, (uint64_t)PAGES * SAMPLE_PAGE, &f.fs, &f.stats),
		0);
	assert_non_null(f.old.bits);
}

/* In pieces of a MiB, as the copy writes. */
static void overwrite(uint64_t from, uint64_t size)
{
	sample_write(f.fd, from, size - from);
	assert_int_equal(fdatasync(f.fd), 0);
}

static void test_what_was_not_there_goes_and_the_rest_stays(void **state)
{
	const uint64_t size = (uint64_t)PAGES * SAMPLE_PAGE;

	(void)state;
	look_at_some();
	overwrite(0, size);
	assert_int_equal(sample_count_resident(f.fd), PAGES);
	tt_neutral_updated(f.fd, 0, size, &f.old, &f.fs, &f.stats);
	for (uint64_t page = 0; page < PAGES; page++)
		assert_int_equal(sample_is_resident(f.fd, page), some(page));
	assert_int_equal(f.stats.left, 0);
	assert_int_equal(f.stats.kept_hot, sample_count_resident(f.fd));
}

static void test_a_window_goes_in_the_same_way(void **state)
{
	const uint64_t from = 1 * SAMPLE_MIB, to = 5 * SAMPLE_MIB;

	(void)state;
	look_at_some();
	overwrite(0, (uint64_t)PAGES * SAMPLE_PAGE);
	tt_neutral_updated_window(f.fd, from, to, &f.old);
	for (uint64_t page = from / SAMPLE_PAGE; page < to / SAMPLE_PAGE; page++)
		assert_int_equal(sample_is_resident(f.fd, page), some(page));
	assert_true(sample_is_resident(f.fd, from / SAMPLE_PAGE - 1));
	assert_true(sample_is_resident(f.fd, to / SAMPLE_PAGE));
}

static void test_a_cold_file_becomes_cold(void **state)
{
	const uint64_t size = 999 * SAMPLE_PAGE + 17;

	(void)state;
	assert_int_equal(
		tt_neutral_old_look(&f.old, f.fd, (uint64_t)PAGES * SAMPLE_PAGE, &f.fs, &f.stats),
		0);
	overwrite(0, size);
	assert_int_equal(ftruncate(f.fd, (off_t)size), 0);
	assert_int_equal(fdatasync(f.fd), 0);
	tt_neutral_updated(f.fd, 0, size, &f.old, &f.fs, &f.stats);
	assert_int_equal(sample_count_resident(f.fd), 0);
	assert_int_equal(f.stats.left, 0);
}

static void test_a_hot_file_stays_hot_as_far_as_it_went(void **state)
{
	const uint64_t size = 2 * (uint64_t)PAGES * SAMPLE_PAGE;

	(void)state;
	sample_touch_all(f.fd, size / 2);
	assert_int_equal(tt_neutral_old_look(&f.old, f.fd, size / 2, &f.fs, &f.stats), 0);
	assert_null(f.old.bits);
	overwrite(0, size);
	tt_neutral_updated(f.fd, 0, size, &f.old, &f.fs, &f.stats);
	assert_int_equal(sample_count_resident(f.fd), PAGES);
	assert_true(sample_is_resident(f.fd, PAGES - 1));
	assert_int_equal(f.stats.kept_hot, PAGES);
}

/* Others may have brought them meanwhile. */
static void test_what_lies_before_the_start_is_not_touched(void **state)
{
	const uint64_t size = (uint64_t)PAGES * SAMPLE_PAGE, start = 700 * SAMPLE_PAGE + 5;

	(void)state;
	assert_int_equal(tt_neutral_old_look(&f.old, f.fd, start, &f.fs, &f.stats), 0);
	sample_touch(f.fd, 100);
	overwrite(start, size);
	tt_neutral_updated(f.fd, start, size, &f.old, &f.fs, &f.stats);
	assert_true(sample_is_resident(f.fd, 100));
	assert_int_equal(sample_count_resident(f.fd), 1);
}

static void test_pages_below_a_hole_are_read_back(void **state)
{
	const uint64_t size = (uint64_t)PAGES * SAMPLE_PAGE;

	(void)state;
	look_at_some();
	assert_int_equal(
		fallocate(f.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 8 * SAMPLE_MIB), 0);
	assert_false(sample_is_resident(f.fd, 37));
	tt_neutral_updated(f.fd, 0, size, &f.old, &f.fs, &f.stats);
	for (uint64_t page = 0; page < PAGES; page++)
		assert_int_equal(sample_is_resident(f.fd, page), some(page));
	assert_int_equal(f.stats.left, 0);
}

/* Once in four times the moment is neither over before the drop nor longer than the patience. */
static void test_what_is_held_for_a_moment_goes_all_the_same(void **state)
{
	const uint64_t size = (uint64_t)PAGES * SAMPLE_PAGE;
	bool went = false;

	(void)state;
	assert_int_equal(tt_neutral_old_look(&f.old, f.fd, size, &f.fs, &f.stats), 0);
	for (unsigned i = 0; i < 4 && !went; i++) {
		struct sample_hold hold;

		memset(&f.stats, 0, sizeof f.stats);
		overwrite(0, size);
		sample_hold_pages(&hold, f.fd, 5000000);
		tt_neutral_updated(f.fd, 0, size, &f.old, &f.fs, &f.stats);
		sample_hold_end(&hold);
		went = sample_count_resident(f.fd) == 0 && f.stats.left == 0
		       && f.stats.not_dropped > 0;
	}
	assert_true(went);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_was_not_there_goes_and_the_rest_stays),
		TEST(test_a_window_goes_in_the_same_way),
		TEST(test_a_cold_file_becomes_cold),
		TEST(test_a_hot_file_stays_hot_as_far_as_it_went),
		TEST(test_what_lies_before_the_start_is_not_touched),
		TEST(test_pages_below_a_hole_are_read_back),
		TEST(test_what_is_held_for_a_moment_goes_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
