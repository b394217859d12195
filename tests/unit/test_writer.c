/* SPDX-License-Identifier: MIT */
/*
 * The writer on a pacer that counts: what is charged, what is handed over and when.
 */
#include <errno.h>

#include "cache/pacer.h"
#include "check.h"
#include "copy/writer.h"
#include "fault.h"
#include "sample.h"
#include "scratch.h"
#include "sink.h"

struct fixture {
	struct scratch scratch;
	struct sink sink;
	struct tt_pacer *pacer;
	struct tt_pacer_file file;
	struct tt_writer writer;
	struct tt_writer_hooks hooks;
	unsigned slept;
};

static struct fixture f;

static void before_sleep(void *context)
{
	((struct fixture *)context)->slept++;
}

static void begin(uint64_t budget, uint64_t size)
{
	const struct tt_pacer_config config = {.budget_bytes = budget, .no_uring = true};
	int refusal;

	memset(&f, 0, sizeof f);
	fault_clear();
	scratch_open(&f.scratch);
	sink_init(&f.sink);
	assert_int_equal(tt_pacer_new(&config, &f.pacer, &refusal), 0);
	f.file = (struct tt_pacer_file){
		.fd = sample_open(&f.scratch, "file"), .drop_windows = true, .can_count = true};
	f.hooks = (struct tt_writer_hooks){.before_sleep = before_sleep, .context = &f};
	tt_writer_begin(&f.writer, f.file.fd, size, f.pacer, &f.file, &f.hooks, 0);
}

static struct tt_pacer_stats stats(void)
{
	struct tt_pacer_stats now;

	tt_pacer_stats(f.pacer, &now);
	return now;
}

static void write_part(uint64_t offset, uint64_t bytes)
{
	tt_writer_charge(&f.writer, bytes);
	sample_write(f.file.fd, offset, bytes);
	tt_writer_wrote(&f.writer, offset, bytes);
}

static void end(int verdict)
{
	tt_writer_end(&f.writer);
	assert_int_equal(f.writer.charged_bytes, 0);
	assert_int_equal(sink_verdict(&f.sink, f.pacer, &f.file), verdict);
	assert_int_equal(stats().charged_bytes, 0);
	(void)close(f.file.fd);
	tt_pacer_free(f.pacer);
	sink_deinit(&f.sink);
	scratch_close(&f.scratch);
}

static void test_a_small_file_is_charged_once_and_has_no_windows(void **state)
{
	(void)state;
	begin(16 * SAMPLE_MIB, 100000);
	assert_true(f.writer.whole);
	assert_int_equal(f.file.charged_bytes, 102400);
	write_part(0, 50000);
	write_part(50000, 50000);
	assert_int_equal(stats().charged_bytes, 102400);
	assert_int_equal(f.slept, 0);
	end(0);
}

static void test_small_means_small_for_the_budget(void **state)
{
	(void)state;
	begin(16 * SAMPLE_MIB, 0);
	assert_false(f.writer.whole); /* it may not know its size */
	assert_true(tt_writer_is_whole(f.pacer, SAMPLE_MIB));
	assert_false(tt_writer_is_whole(f.pacer, SAMPLE_MIB + 1));
	end(0);
	begin(256 << 10, 0);
	assert_true(tt_writer_is_whole(f.pacer, 32 << 10));
	assert_false(tt_writer_is_whole(f.pacer, (32 << 10) + 1));
	assert_int_equal(tt_writer_most_bytes(&f.writer), 32 << 10);
	end(0);
}

static void test_windows_are_handed_over_as_they_fill(void **state)
{
	(void)state;
	begin(32 * SAMPLE_MIB, 100 * SAMPLE_MIB);
	uint64_t window = tt_pacer_window_bytes(f.pacer);

	assert_int_equal(window, 8 * SAMPLE_MIB);
	for (uint64_t at = 0; at < window - SAMPLE_MIB; at += SAMPLE_MIB)
		write_part(at, SAMPLE_MIB);
	assert_int_equal(f.writer.window_start_bytes, 0);
	assert_int_equal(f.writer.charged_bytes, 7 * SAMPLE_MIB);
	write_part(window - SAMPLE_MIB, SAMPLE_MIB);
	assert_int_equal(f.writer.window_start_bytes, window);
	assert_int_equal(f.writer.charged_bytes, 0);
	end(0);
}

static void test_a_file_larger_than_the_budget_passes(void **state)
{
	(void)state;
	begin(1 << 20, 20 * SAMPLE_MIB);
	uint64_t most = tt_writer_most_bytes(&f.writer);

	assert_int_equal(most, 128 << 10);
	for (uint64_t at = 0; at < 20 * SAMPLE_MIB; at += most)
		write_part(at, most);
	tt_writer_end(&f.writer);
	assert_true(stats().peak_bytes <= 1 << 20);
	assert_true(sample_is(f.file.fd, 0, 20 * SAMPLE_MIB));
	end(0);
}

static void test_what_is_held_is_handed_over_before_sleeping(void **state)
{
	(void)state;
	begin(1 << 20, 20 * SAMPLE_MIB);
	/* Writeback takes its time: the budget fills. */
	fault_set(&(struct fault_rule){.call = FAULT_SYNC_RANGE, .count = 4, .delay_usec = 200000});
	for (uint64_t at = 0; at < 3 * SAMPLE_MIB; at += 128 << 10)
		write_part(at, 128 << 10);
	assert_true(f.slept > 0);
	assert_true(stats().wait_ns > 0);
	end(0);
}

static void test_a_hole_ends_a_window(void **state)
{
	(void)state;
	begin(32 * SAMPLE_MIB, 100 * SAMPLE_MIB);
	write_part(0, 4096);
	write_part(4096, 4096);
	write_part(50 * SAMPLE_MIB, SAMPLE_MIB);
	assert_int_equal(f.writer.window_start_bytes, 50 * SAMPLE_MIB);
	write_part(99 * SAMPLE_MIB, 100);
	tt_writer_end(&f.writer);
	while (stats().windows < 3)
		usleep(1000);
	assert_int_equal(stats().windows, 3);
	assert_int_equal(sample_count_resident(f.file.fd), 0);
	end(0);
}

static void test_a_charge_that_was_not_used_comes_back(void **state)
{
	(void)state;
	begin(32 * SAMPLE_MIB, 100 * SAMPLE_MIB);
	tt_writer_charge(&f.writer, SAMPLE_MIB);
	tt_writer_charge(&f.writer, SAMPLE_MIB);
	sample_write(f.file.fd, 0, 1000);
	tt_writer_wrote(&f.writer, 0, 1000);
	assert_int_equal(stats().charged_bytes, 2 * SAMPLE_MIB);
	end(0);
}

static void test_pieces_that_are_no_pages_are_paid_for(void **state)
{
	(void)state;
	begin(1 << 20, 2 * SAMPLE_MIB);
	for (uint64_t at = 0; at + 777 < SAMPLE_MIB; at += 777)
		write_part(at, 777);
	end(0);
}

static void test_a_failure_in_the_middle_leaves_nothing_charged(void **state)
{
	(void)state;
	begin(4 << 20, 20 * SAMPLE_MIB);
	fault_set(&(struct fault_rule){
		.call = FAULT_SYNC_RANGE, .skip = 1, .count = 1, .error = EIO});
	for (uint64_t at = 0; at < 5 * SAMPLE_MIB; at += 512 << 10)
		write_part(at, 512 << 10);
	end(-EIO);
}

static void test_without_a_pacer_everything_is_free(void **state)
{
	struct tt_writer writer;

	(void)state;
	tt_writer_begin(&writer, -1, UINT64_MAX, NULL, NULL, NULL, 0);
	assert_true(tt_writer_try_charge(&writer, UINT64_C(1) << 40));
	assert_int_equal(tt_writer_most_bytes(&writer), 4 << 20);
	tt_writer_wrote(&writer, 0, 100);
	tt_writer_end(&writer);
}

static bool is_zero(int fd, uint64_t offset, uint64_t bytes)
{
	char byte = 1;

	for (; bytes > 0; offset++, bytes--) {
		if (pread(fd, &byte, 1, (off_t)offset) != 1 || byte != 0)
			return false;
	}
	return true;
}

static void test_in_place_nothing_old_shows_through_a_hole(void **state)
{
	(void)state;
	begin(16 * SAMPLE_MIB, 3 * SAMPLE_MIB);
	sample_write(f.file.fd, 0, 2 * SAMPLE_MIB);
	tt_writer_in_place(&f.writer, 4096, 2 * SAMPLE_MIB);
	write_part(20000, 5000);
	write_part(100000, 100);
	assert_int_equal(tt_writer_clear(&f.writer, 3 * SAMPLE_MIB), 0);
	assert_true(sample_is(f.file.fd, 0, 4096));
	assert_true(is_zero(f.file.fd, 4096, 20000 - 4096));
	assert_true(sample_is(f.file.fd, 20000, 5000));
	assert_true(is_zero(f.file.fd, 25000, 75000));
	assert_true(sample_is(f.file.fd, 100000, 100));
	assert_true(is_zero(f.file.fd, 100100, 4096));
	assert_true(is_zero(f.file.fd, 2 * SAMPLE_MIB - 4096, 4096));
	end(0);
}

static void test_in_place_what_came_by_other_means_is_not_cleared(void **state)
{
	(void)state;
	begin(16 * SAMPLE_MIB, 3 * SAMPLE_MIB);
	sample_write(f.file.fd, 0, 2 * SAMPLE_MIB);
	tt_writer_in_place(&f.writer, 0, 2 * SAMPLE_MIB);
	tt_writer_skip(&f.writer, 2 * SAMPLE_MIB);
	assert_int_equal(tt_writer_clear(&f.writer, 2 * SAMPLE_MIB), 0);
	assert_true(sample_is(f.file.fd, 0, 2 * SAMPLE_MIB));
	end(0);
}

static void test_a_new_file_has_nothing_to_clear(void **state)
{
	(void)state;
	begin(16 * SAMPLE_MIB, 3 * SAMPLE_MIB);
	sample_write(f.file.fd, 0, 100000);
	write_part(200000, 100);
	assert_int_equal(tt_writer_clear(&f.writer, 3 * SAMPLE_MIB), 0);
	assert_true(sample_is(f.file.fd, 0, 100000));
	end(0);
}

static void test_what_cannot_be_cleared_is_an_error(void **state)
{
	(void)state;
	begin(16 * SAMPLE_MIB, 100000);
	f.writer.fd = -1;
	tt_writer_in_place(&f.writer, 0, SAMPLE_MIB);
	tt_writer_wrote(&f.writer, 4096, 10);
	assert_int_equal(tt_writer_clear(&f.writer, 100000), -EBADF);
	f.writer.fd = f.file.fd;
	end(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_small_file_is_charged_once_and_has_no_windows),
		cmocka_unit_test(test_small_means_small_for_the_budget),
		cmocka_unit_test(test_windows_are_handed_over_as_they_fill),
		cmocka_unit_test(test_a_file_larger_than_the_budget_passes),
		cmocka_unit_test(test_what_is_held_is_handed_over_before_sleeping),
		cmocka_unit_test(test_a_hole_ends_a_window),
		cmocka_unit_test(test_a_charge_that_was_not_used_comes_back),
		cmocka_unit_test(test_pieces_that_are_no_pages_are_paid_for),
		cmocka_unit_test(test_a_failure_in_the_middle_leaves_nothing_charged),
		cmocka_unit_test(test_without_a_pacer_everything_is_free),
		cmocka_unit_test(test_in_place_nothing_old_shows_through_a_hole),
		cmocka_unit_test(test_in_place_what_came_by_other_means_is_not_cleared),
		cmocka_unit_test(test_a_new_file_has_nothing_to_clear),
		cmocka_unit_test(test_what_cannot_be_cleared_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
