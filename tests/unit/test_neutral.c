/* SPDX-License-Identifier: MIT */
/*
 * The reader, held against the set of resident pages before and after. Files are read as the copy
 * reads them: ahead, pread, passed.
 */
#include <errno.h>
#include <sys/wait.h>
#include <time.h>

#include "cache/neutral.h"
#include "check.h"
#include "sample.h"
#include "scratch.h"
#include "sys/fd.h"

struct fixture {
	struct scratch scratch;
	struct tt_neutral_fs fs;
	struct tt_neutral_stats stats;
	int fd;
	uint64_t size;
};

static struct fixture f;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int set_up(void **state)
{
	(void)state;
	memset(&f, 0, sizeof f);
	scratch_open(&f.scratch);
	f.fs.method = tt_residency_method(f.scratch.fd);
	f.fs.dontcache_read = true;
	f.stats.start_ns = now_ns() - UINT64_C(60000000000); /* drops that fail are not too dear */
	f.fd = -1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (f.fd >= 0)
		(void)close(f.fd);
	scratch_close(&f.scratch);
	return 0;
}

/* Resident pages vanish by themselves on machines where DAMON is at work: some of 9,000 within a
 * second, one time in ten, without any reader (measured). What must be exact must come out so once
 * in four times. */
static void hold(bool (*body)(void))
{
	for (unsigned i = 0; i < 4; i++) {
		memset(&f.stats, 0, sizeof f.stats);
		f.stats.start_ns = now_ns() - UINT64_C(60000000000);
		if (body())
			return;
	}
	fail_msg("not once in four times");
}

static void make(uint64_t size)
{
	if (f.fd >= 0)
		(void)close(f.fd);
	f.size = size;
	f.fd = sample_new(&f.scratch, "file", size);
}

/* Reads [from, to) in pieces. */
static void read_part(struct tt_neutral_reader *reader, uint64_t from, uint64_t to)
{
	const size_t piece = 1 << 20;
	char *buffer = malloc(piece);

	assert_non_null(buffer);
	for (uint64_t at = from; at < to;) {
		tt_neutral_reader_ahead(reader, at);
		ssize_t n = pread(reader->fd, buffer, to - at < piece ? to - at : piece, (off_t)at);

		assert_true(n > 0);
		at += (uint64_t)n;
		tt_neutral_reader_passed(reader, at);
	}
	free(buffer);
}

static void read_all(enum tt_cache_mode mode)
{
	struct tt_neutral_reader reader;

	tt_neutral_reader_begin(&reader, f.fd, f.size, mode, &f.fs, &f.stats);
	read_part(&reader, 0, f.size);
	tt_neutral_reader_end(&reader);
}

static void test_a_cold_file_stays_cold(void **state)
{
	static const uint64_t sizes[] = {
		1, 4095, 4096, 4097, 100000, SAMPLE_MIB, 9 * SAMPLE_MIB + 5, 70 * SAMPLE_MIB};

	(void)state;
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		make(sizes[i]);
		read_all(TT_CACHE_LEAVE);
		assert_int_equal(sample_count_resident(f.fd), 0);
	}
	assert_int_equal(f.stats.found_resident, 0);
	assert_int_equal(f.stats.left, 0);
	assert_true(f.stats.dropped > 0);
}

static bool hot_file_stays_hot(void)
{
	make(40 * SAMPLE_MIB);
	sample_touch_all(f.fd, f.size);
	read_all(TT_CACHE_LEAVE);
	return sample_count_resident(f.fd) == f.size / SAMPLE_PAGE
	       && f.stats.found_resident == f.size / SAMPLE_PAGE && f.stats.dropped == 0;
}

static void test_a_hot_file_stays_hot(void **state)
{
	(void)state;
	hold(hot_file_stays_hot);
}

static bool resident_is(bool (*wanted)(uint64_t page))
{
	for (uint64_t page = 0; page < (f.size + SAMPLE_PAGE - 1) / SAMPLE_PAGE; page++) {
		if (sample_is_resident(f.fd, page) != wanted(page))
			return false;
	}
	return true;
}

static void touch(bool (*wanted)(uint64_t page))
{
	for (uint64_t page = 0; page < (f.size + SAMPLE_PAGE - 1) / SAMPLE_PAGE; page++) {
		if (wanted(page))
			sample_touch(f.fd, page);
	}
}

static bool every_hundredth(uint64_t page)
{
	return page % 100 == 7;
}

static bool single_pages_stay(void)
{
	make(36 * SAMPLE_MIB - 100);
	touch(every_hundredth);
	read_all(TT_CACHE_LEAVE);
	return resident_is(every_hundredth) && f.stats.left == 0;
}

static void test_single_hot_pages_stay_and_no_others(void **state)
{
	(void)state;
	hold(single_pages_stay);
}

static void test_the_first_and_the_last_page_may_be_the_hot_ones(void **state)
{
	(void)state;
	make(5 * SAMPLE_PAGE + 1);
	sample_touch(f.fd, 0);
	sample_touch(f.fd, 5);
	read_all(TT_CACHE_LEAVE);
	assert_int_equal(sample_count_resident(f.fd), 2);
	assert_true(sample_is_resident(f.fd, 0));
	assert_true(sample_is_resident(f.fd, 5));
}

static bool every_second_half_folio(uint64_t page)
{
	return page / 256 % 2 == 0;
}

static bool half_folios_stay(void)
{
	make(70 * SAMPLE_MIB);
	touch(every_second_half_folio);
	read_all(TT_CACHE_LEAVE);
	return resident_is(every_second_half_folio);
}

static void test_every_second_half_folio(void **state)
{
	(void)state;
	hold(half_folios_stay);
}

/* Only as much as the trailing window and read-ahead hold, at any moment. */
static void test_little_is_resident_while_a_large_file_is_read(void **state)
{
	struct tt_neutral_reader reader;
	uint64_t most = 0;

	(void)state;
	make(100 * SAMPLE_MIB);
	tt_neutral_reader_begin(&reader, f.fd, f.size, TT_CACHE_LEAVE, &f.fs, &f.stats);
	for (uint64_t at = 0; at < f.size; at += 4 * SAMPLE_MIB) {
		read_part(&reader, at, at + 4 * SAMPLE_MIB);
		uint64_t resident = sample_count_resident(f.fd);

		most = resident > most ? resident : most;
	}
	tt_neutral_reader_end(&reader);
	assert_int_equal(sample_count_resident(f.fd), 0);
	assert_in_range(most, 1, 32 * SAMPLE_MIB / SAMPLE_PAGE);
}

/* Somebody is writing: his dirty pages are neither flushed nor dropped; what is clean goes. */
static void test_dirty_pages_of_others_are_not_flushed(void **state)
{
	struct tt_residency count;

	(void)state;
	make(4 * SAMPLE_MIB);
	int writer = openat(f.scratch.fd, "file", O_RDWR | O_CLOEXEC);

	sample_write(writer, SAMPLE_MIB, 3 * SAMPLE_PAGE);
	read_all(TT_CACHE_LEAVE);
	assert_int_equal(tt_residency_count(f.fd, f.fs.method, 0, 0, &count), 0);
	assert_int_equal(count.dirty_pages, 3);
	assert_int_equal(count.writeback_pages, 0);
	assert_int_equal(count.resident_pages, 3);
	(void)close(writer);
}

static void test_pages_that_become_dirty_meanwhile_are_not_flushed(void **state)
{
	struct tt_neutral_reader reader;
	struct tt_residency count;

	(void)state;
	make(2 * SAMPLE_MIB);
	tt_neutral_reader_begin(&reader, f.fd, f.size, TT_CACHE_LEAVE, &f.fs, &f.stats);
	read_part(&reader, 0, f.size);
	sample_write(f.fd, 10 * SAMPLE_PAGE, SAMPLE_PAGE);
	tt_neutral_reader_end(&reader);
	assert_int_equal(tt_residency_count(f.fd, f.fs.method, 0, 0, &count), 0);
	assert_int_equal(count.dirty_pages, 1);
	assert_true(count.resident_pages <= 16); /* the smallest piece that is looked at */
}

/* A page that somebody maps does not go, and the count says so. */
static void test_what_would_not_go_is_counted(void **state)
{
	struct tt_neutral_reader reader;

	(void)state;
	make(64 * SAMPLE_PAGE);
	tt_neutral_reader_begin(&reader, f.fd, f.size, TT_CACHE_LEAVE, &f.fs, &f.stats);
	read_part(&reader, 0, f.size);
	volatile char *map = mmap(NULL, SAMPLE_PAGE, PROT_READ, MAP_SHARED, f.fd, 0);

	assert_true(map != MAP_FAILED);
	(void)map[0];
	tt_neutral_reader_end(&reader);
	assert_true(sample_count_resident(f.fd) >= 1);
	assert_int_equal(f.stats.left, sample_count_resident(f.fd));
	assert_true(f.stats.not_dropped > 0);
	munmap((void *)map, SAMPLE_PAGE);
}

static bool held_pages_go(void)
{
	struct tt_neutral_reader reader;
	struct sample_hold hold_of;

	make(64 * SAMPLE_PAGE);
	tt_neutral_reader_begin(&reader, f.fd, f.size, TT_CACHE_LEAVE, &f.fs, &f.stats);
	read_part(&reader, 0, f.size);
	sample_hold_pages(&hold_of, f.fd, 5000000);
	tt_neutral_reader_end(&reader);
	sample_hold_end(&hold_of);
	return sample_count_resident(f.fd) == 0 && f.stats.left == 0 && f.stats.not_dropped > 0;
}

/* Once in four times the moment is neither over before the drop nor longer than the patience. */
static void test_what_is_held_for_a_moment_goes_all_the_same(void **state)
{
	(void)state;
	hold(held_pages_go);
}

static bool every_third_of_the_first(uint64_t page)
{
	return page < 1024 && page % 3 == 0;
}

static bool data_before_a_hole_stays(void)
{
	struct tt_neutral_reader reader;

	make(4 * SAMPLE_MIB);
	f.size = 400 * SAMPLE_MIB;
	sample_write(f.fd, f.size - SAMPLE_MIB, SAMPLE_MIB);
	sample_make_cold(f.fd);
	touch(every_third_of_the_first);
	tt_neutral_reader_begin(&reader, f.fd, f.size, TT_CACHE_LEAVE, &f.fs, &f.stats);
	read_part(&reader, 0, 4 * SAMPLE_MIB);
	read_part(&reader, f.size - SAMPLE_MIB, f.size);
	tt_neutral_reader_end(&reader);
	return resident_is(every_third_of_the_first);
}

/* A hole of many segments is skipped: what was found before it still holds. */
static void test_hot_data_before_a_long_hole_stays_hot(void **state)
{
	(void)state;
	hold(data_before_a_hole_stays);
}

static void test_drop_mode_drops_the_hot_too(void **state)
{
	(void)state;
	make(3 * SAMPLE_MIB);
	sample_touch_all(f.fd, f.size);
	read_all(TT_CACHE_DROP);
	assert_int_equal(sample_count_resident(f.fd), 0);
	assert_int_equal(f.stats.found_resident, f.size / SAMPLE_PAGE);
}

static void test_keep_mode_does_nothing(void **state)
{
	(void)state;
	make(3 * SAMPLE_MIB);
	read_all(TT_CACHE_KEEP);
	assert_int_equal(sample_count_resident(f.fd), f.size / SAMPLE_PAGE);
	assert_int_equal(f.stats.dropped, 0);
}

/* Who may not know reads with RWF_DONTCACHE; refused, he leaves everything. */
static void test_unknown_residency_is_never_dropped_blindly(void **state)
{
	struct tt_neutral_reader reader;
	int status;

	(void)state;
	if (geteuid() != 0)
		skip();
	make(SAMPLE_MIB);
	sample_touch_all(f.fd, f.size);
	pid_t child = fork();

	if (child == 0) {
		char path[64];

		(void)snprintf(path, sizeof path, "/proc/self/fd/%d", f.fd);
		f.fd = open(path, O_RDONLY | O_CLOEXEC);
		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(1);
		tt_neutral_reader_begin(&reader, f.fd, f.size, TT_CACHE_LEAVE, &f.fs, &f.stats);
		if (tt_neutral_reader_flags(&reader) != TT_FD_DONTCACHE)
			_exit(2);
		tt_neutral_reader_refused(&reader);
		if (tt_neutral_reader_flags(&reader) != 0 || f.fs.dontcache_read
			|| f.stats.files_unknown != 1)
			_exit(3);
		read_part(&reader, 0, f.size);
		tt_neutral_reader_end(&reader);
		/* The next file is not tried. */
		tt_neutral_reader_begin(&reader, f.fd, f.size, TT_CACHE_LEAVE, &f.fs, &f.stats);
		if (tt_neutral_reader_flags(&reader) != 0 || f.stats.files_unknown != 2)
			_exit(4);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(sample_count_resident(f.fd), f.size / SAMPLE_PAGE);
}

static void test_a_file_system_without_a_cache_is_left_alone(void **state)
{
	struct tt_neutral_reader reader;

	(void)state;
	make(SAMPLE_PAGE);
	f.fs.method = TT_RESIDENCY_NONE;
	tt_neutral_reader_begin(&reader, f.fd, f.size, TT_CACHE_LEAVE, &f.fs, &f.stats);
	assert_false(reader.active);
	tt_neutral_reader_passed(&reader, f.size);
	tt_neutral_reader_end(&reader);
}

static void test_statistics_add_up(void **state)
{
	struct tt_neutral_stats sum = {.dropped = 1, .left = 2};
	const struct tt_neutral_stats more = {.found_resident = 1,
		.dropped = 2,
		.not_dropped = 3,
		.left = 4,
		.kept_hot = 5,
		.files_unknown = 6,
		.failed_drop_ns = 7};

	(void)state;
	tt_neutral_stats_add(&sum, &more);
	assert_int_equal(sum.found_resident, 1);
	assert_int_equal(sum.dropped, 3);
	assert_int_equal(sum.not_dropped, 3);
	assert_int_equal(sum.left, 6);
	assert_int_equal(sum.kept_hot, 5);
	assert_int_equal(sum.files_unknown, 6);
	assert_int_equal(sum.failed_drop_ns, 7);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_cold_file_stays_cold),
		TEST(test_a_hot_file_stays_hot),
		TEST(test_single_hot_pages_stay_and_no_others),
		TEST(test_the_first_and_the_last_page_may_be_the_hot_ones),
		TEST(test_every_second_half_folio),
		TEST(test_little_is_resident_while_a_large_file_is_read),
		TEST(test_dirty_pages_of_others_are_not_flushed),
		TEST(test_pages_that_become_dirty_meanwhile_are_not_flushed),
		TEST(test_what_would_not_go_is_counted),
		TEST(test_what_is_held_for_a_moment_goes_all_the_same),
		TEST(test_hot_data_before_a_long_hole_stays_hot),
		TEST(test_drop_mode_drops_the_hot_too),
		TEST(test_keep_mode_does_nothing),
		TEST(test_unknown_residency_is_never_dropped_blindly),
		TEST(test_a_file_system_without_a_cache_is_left_alone),
		TEST(test_statistics_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
