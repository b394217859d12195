/* SPDX-License-Identifier: MIT */
/*
 * Files of 8 MiB and more, with io_uring and with the twin, on a comfortable and on a tiny budget.
 */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "check.h"
#include "copying.h"
#include "fault.h"

static struct copying c;

static int set_up(uint64_t budget, bool no_uring)
{
	fault_clear();
	copying_begin(&c, budget, no_uring || getenv("TIPTOE_RING") != NULL);
	return 0;
}

static int set_up_uring(void **state)
{
	(void)state;
	return set_up(16 * SAMPLE_MIB, false);
}

static int set_up_twin(void **state)
{
	(void)state;
	return set_up(16 * SAMPLE_MIB, true);
}

static int set_up_tiny(void **state)
{
	(void)state;
	return set_up(256 << 10, false);
}

static int set_up_tiny_twin(void **state)
{
	(void)state;
	return set_up(256 << 10, true);
}

static int tear_down(void **state)
{
	(void)state;
	fault_clear();
	copying_end(&c);
	return 0;
}

static void test_what_is_copied_is_the_same(void **state)
{
	static const uint64_t sizes[] = {
		8 * SAMPLE_MIB, 8 * SAMPLE_MIB + 1, 12 * SAMPLE_MIB - 1, 20 * SAMPLE_MIB + 4097};

	(void)state;
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		copying_check_size(&c, sizes[i]);
	assert_non_null(c.worker.stream); /* that is how */
}

static void test_it_can_be_used_again_after_an_error(void **state)
{
	(void)state;
	int from = sample_new(&c.scratch, "from", 9 * SAMPLE_MIB);
	int read_only = openat(c.scratch.fd, "from", O_RDONLY | O_CLOEXEC);

	assert_int_equal(copying_run(&c, from, read_only, 9 * SAMPLE_MIB, false, false), -EBADF);
	assert_int_equal(c.result.failed, TT_COPY_WRITING);
	(void)close(from);
	(void)close(read_only);
	copying_check_size(&c, 9 * SAMPLE_MIB);
}

static void test_a_limit_of_the_file_size_is_an_error_of_writing(void **state)
{
	struct rlimit before, low;

	(void)state;
	int from = sample_new(&c.scratch, "from", 20 * SAMPLE_MIB);
	int to = sample_open(&c.scratch, "to");

	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	low = (struct rlimit){.rlim_cur = 9 * SAMPLE_MIB + 5, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	int r = copying_run(&c, from, to, 20 * SAMPLE_MIB, false, false);

	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(r, -EFBIG);
	assert_int_equal(c.result.failed, TT_COPY_WRITING);
	(void)close(from);
	(void)close(to);
}

static void test_a_source_that_cannot_be_read_is_an_error_of_reading(void **state)
{
	(void)state;
	int from = sample_new(&c.scratch, "from", 9 * SAMPLE_MIB);
	int write_only = openat(c.scratch.fd, "from", O_WRONLY | O_CLOEXEC);
	int to = sample_open(&c.scratch, "to");

	assert_int_equal(copying_run(&c, write_only, to, 9 * SAMPLE_MIB, false, false), -EBADF);
	assert_int_equal(c.result.failed, TT_COPY_READING);
	(void)close(from);
	(void)close(write_only);
	(void)close(to);
}

static void test_a_source_that_is_shorter_than_was_said(void **state)
{
	struct stat st;

	(void)state;
	int from = sample_new(&c.scratch, "from", 9 * SAMPLE_MIB + 77);
	int to = sample_open(&c.scratch, "to");

	assert_int_equal(copying_run(&c, from, to, 30 * SAMPLE_MIB, false, false), 0);
	assert_int_equal(c.result.size_bytes, 9 * SAMPLE_MIB + 77);
	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, 9 * SAMPLE_MIB + 77);
	assert_true(sample_is(to, 0, 9 * SAMPLE_MIB + 77));
	(void)close(from);
	(void)close(to);
}

static void test_islands_and_holes(void **state)
{
	static const uint64_t islands[] = {3, 20, 21, 70, 140};
	struct stat st;

	(void)state;
	int from = sample_open(&c.scratch, "from"), to = sample_open(&c.scratch, "to");

	for (unsigned i = 0; i < 5; i++)
		sample_write(from, islands[i] * SAMPLE_MIB, SAMPLE_MIB - 4096);
	assert_int_equal(ftruncate(from, 150 * SAMPLE_MIB), 0);
	sample_make_cold(from);
	assert_int_equal(copying_run(&c, from, to, 150 * SAMPLE_MIB, true, false), 0);
	assert_int_equal(c.result.literal_bytes, 5 * (SAMPLE_MIB - 4096));
	assert_int_equal(sample_count_resident(to), 0);
	assert_int_equal(sample_count_resident(from), 0);
	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, 150 * SAMPLE_MIB);
	assert_true((uint64_t)st.st_blocks * 512 < 6 * SAMPLE_MIB);
	for (unsigned i = 0; i < 5; i++)
		assert_true(sample_is(to, islands[i] * SAMPLE_MIB, SAMPLE_MIB - 4096));
	(void)close(from);
	(void)close(to);
}

static void test_a_stop_ends_it(void **state)
{
	(void)state;
	int from = sample_new(&c.scratch, "from", 9 * SAMPLE_MIB);
	int to = sample_open(&c.scratch, "to");

	atomic_store(&c.stop, true);
	assert_int_equal(copying_run(&c, from, to, 9 * SAMPLE_MIB, false, false), -ECANCELED);
	(void)close(from);
	(void)close(to);
}

/* Faults need the twin. */
static void test_errors_anywhere(void **state)
{
	(void)state;
	int from = sample_new(&c.scratch, "from", 9 * SAMPLE_MIB);

	for (unsigned skip = 0; skip < 9; skip++) {
		for (unsigned side = 0; side < 2; side++) {
			int to = sample_open(&c.scratch, "to");

			fault_set(&(struct fault_rule){.call = side ? FAULT_WRITE : FAULT_READ,
				.skip = skip,
				.count = 1,
				.error = EIO,
				.delay_usec = 2000});
			assert_int_equal(
				copying_run(&c, from, to, 9 * SAMPLE_MIB, false, false), -EIO);
			assert_int_equal(c.result.failed, side ? TT_COPY_WRITING : TT_COPY_READING);
			(void)close(to);
		}
	}
	fault_clear();
	(void)close(from);
	copying_check_size(&c, 9 * SAMPLE_MIB);
}

static void test_interrupted_calls_are_made_again(void **state)
{
	(void)state;
	int from = sample_new(&c.scratch, "from", 9 * SAMPLE_MIB);
	int to = sample_open(&c.scratch, "to");

	fault_set(
		&(struct fault_rule){.call = FAULT_WRITE, .skip = 1, .count = 2, .error = EAGAIN});
	assert_int_equal(copying_run(&c, from, to, 9 * SAMPLE_MIB, false, false), 0);
	assert_int_equal(fault_hits(), 2);
	assert_true(sample_is(to, 0, 9 * SAMPLE_MIB));
	fault_set(&(struct fault_rule){.call = FAULT_READ, .count = 2, .error = EINTR});
	assert_int_equal(copying_run(&c, from, to, 9 * SAMPLE_MIB, false, false), 0);
	fault_clear();
	(void)close(from);
	(void)close(to);
}

/* Reads that come late and out of order. */
static void test_slow_reads_keep_the_order(void **state)
{
	(void)state;
	int from = sample_new(&c.scratch, "from", 16 * SAMPLE_MIB);
	int to = sample_open(&c.scratch, "to");

	fault_set(&(struct fault_rule){
		.call = FAULT_READ, .skip = 2, .count = 3, .delay_usec = 30000});
	assert_int_equal(copying_run(&c, from, to, 16 * SAMPLE_MIB, false, false), 0);
	assert_true(sample_is(to, 0, 16 * SAMPLE_MIB));
	fault_clear();
	(void)close(from);
	(void)close(to);
}

#define ALL(test)                                                                 \
	{#test " (ring)", test, set_up_uring, tear_down, NULL},                   \
		{#test " (twin)", test, set_up_twin, tear_down, NULL},            \
		{#test " (ring, 256 KiB)", test, set_up_tiny, tear_down, NULL},   \
	{                                                                         \
#test " (twin, 256 KiB)", test, set_up_tiny_twin, tear_down, NULL \
	}
#define TWIN(name) cmocka_unit_test_setup_teardown(name, set_up_twin, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALL(test_what_is_copied_is_the_same),
		ALL(test_it_can_be_used_again_after_an_error),
		ALL(test_a_limit_of_the_file_size_is_an_error_of_writing),
		ALL(test_a_source_that_cannot_be_read_is_an_error_of_reading),
		ALL(test_a_source_that_is_shorter_than_was_said),
		ALL(test_islands_and_holes),
		ALL(test_a_stop_ends_it),
		TWIN(test_errors_anywhere),
		TWIN(test_interrupted_calls_are_made_again),
		TWIN(test_slow_reads_keep_the_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
