/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "check.h"
#include "copying.h"
#include "fault.h"
#include "sys/fd.h"

static struct copying c;

static int set_up(void **state)
{
	(void)state;
	fault_clear();
	copying_begin(&c, 16 * SAMPLE_MIB, getenv("TIPTOE_RING") != NULL);
	return 0;
}

static int set_up_twin(void **state)
{
	(void)state;
	fault_clear();
	copying_begin(&c, 16 * SAMPLE_MIB, true);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fault_clear();
	copying_end(&c);
	return 0;
}

static void test_every_size_comes_out_the_same(void **state)
{
	static const uint64_t sizes[] = {0, 1, 4095, 4096, 4097, (512 << 10) - 1, 512 << 10,
		(512 << 10) + 1, SAMPLE_MIB - 1, SAMPLE_MIB, SAMPLE_MIB + 1, 8 * SAMPLE_MIB - 1,
		8 * SAMPLE_MIB, 8 * SAMPLE_MIB + 1, 20 * SAMPLE_MIB};

	(void)state;
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		copying_check_size(&c, sizes[i]);
	assert_int_equal(c.stats.left, 0);
}

static void test_a_file_that_does_not_know_its_size_is_read_to_the_end(void **state)
{
	char wanted[4096], got[4096];

	(void)state;
	int from = open("/proc/version", O_RDONLY | O_CLOEXEC);
	int to = sample_open(&c.scratch, "to");
	ssize_t n = pread(from, wanted, sizeof wanted, 0);

	assert_true(n > 0);
	assert_int_equal(copying_run(&c, from, to, 0, false, false), 0);
	assert_int_equal(c.result.size_bytes, n);
	assert_int_equal(pread(to, got, sizeof got, 0), n);
	assert_memory_equal(got, wanted, (size_t)n);
	(void)close(from);
	(void)close(to);
}

/* More than the budget, from a file that says it is empty: it is charged as it comes. */
static void test_a_large_file_without_a_size_is_paced(void **state)
{
	struct tt_pacer_stats stats;

	(void)state;
	int from = sample_new(&c.scratch, "from", 20 * SAMPLE_MIB);
	int to = sample_open(&c.scratch, "to");

	assert_int_equal(copying_run(&c, from, to, 0, false, false), 0);
	assert_int_equal(c.result.size_bytes, 20 * SAMPLE_MIB);
	assert_true(sample_is(to, 0, 20 * SAMPLE_MIB));
	tt_pacer_stats(c.pacer, &stats);
	assert_true(stats.windows > 0);
	(void)close(from);
	(void)close(to);
}

static void check_holes(uint64_t data, uint64_t offset, uint64_t size)
{
	struct stat st;
	int from = sample_open(&c.scratch, "from"), to = sample_open(&c.scratch, "to");

	if (data > 0)
		sample_write(from, offset, data);
	assert_int_equal(ftruncate(from, (off_t)size), 0);
	sample_make_cold(from);
	assert_int_equal(copying_run(&c, from, to, size, true, false), 0);
	assert_int_equal(c.result.size_bytes, size);
	assert_int_equal(c.result.literal_bytes, data);
	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, size);
	assert_true((uint64_t)st.st_blocks * 512 <= data + 65536);
	assert_true(sample_is(to, offset, data));
	(void)close(from);
	(void)close(to);
}

static void test_holes_stay_holes(void **state)
{
	(void)state;
	check_holes(SAMPLE_MIB, 0, 3 * SAMPLE_MIB + 1);
	check_holes(SAMPLE_MIB, 2 * SAMPLE_MIB, 3 * SAMPLE_MIB);
	check_holes(4096, SAMPLE_MIB, 5 * SAMPLE_MIB);
	check_holes(0, 0, 5 * SAMPLE_MIB);
	/* the stream */
	check_holes(10 * SAMPLE_MIB, 100 * SAMPLE_MIB, 300 * SAMPLE_MIB);
	check_holes(0, 0, UINT64_C(1) << 36);
}

static void check_sparse(uint64_t size, const uint64_t *data, unsigned count)
{
	struct stat st;
	int from = sample_open(&c.scratch, "from"), to = sample_open(&c.scratch, "to");
	char *zeros = calloc(1, size);

	/* Zeros that are written, not holes. */
	assert_int_equal(pwrite(from, zeros, size, 0), size);
	free(zeros);
	for (unsigned i = 0; i < count; i++)
		sample_write(from, data[i], 4096);
	assert_int_equal(fsync(from), 0);
	assert_int_equal(copying_run(&c, from, to, size, false, true), 0);
	assert_int_equal(c.result.size_bytes, size);
	assert_int_equal(c.result.literal_bytes, count * 4096);
	assert_int_equal(fsync(to), 0);
	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, size);
	assert_true((uint64_t)st.st_blocks * 512 <= count * 4096 + 65536);
	for (unsigned i = 0; i < count; i++)
		assert_true(sample_is(to, data[i], 4096));
	(void)close(from);
	(void)close(to);
}

static void test_zeros_become_holes_with_sparse(void **state)
{
	static const uint64_t ends[] = {0, 4 * SAMPLE_MIB - 4096};
	static const uint64_t islands[] = {8192, 524288 - 4096, 524288, 9 * SAMPLE_MIB};

	(void)state;
	check_sparse(4 * SAMPLE_MIB, ends, 2);
	check_sparse(10 * SAMPLE_MIB + 17, islands, 4);
	check_sparse(SAMPLE_MIB, NULL, 0);
	check_sparse(5000, NULL, 0);
}

static void test_a_source_that_ends_early_is_no_error(void **state)
{
	static const uint64_t real[] = {0, 100, 100000, 5 * SAMPLE_MIB};

	(void)state;
	for (unsigned i = 0; i < sizeof real / sizeof *real; i++) {
		struct stat st;
		int from = sample_new(&c.scratch, "from", real[i]);
		int to = sample_open(&c.scratch, "to");

		assert_int_equal(copying_run(&c, from, to, 6 * SAMPLE_MIB, false, false), 0);
		assert_int_equal(c.result.size_bytes, real[i]);
		assert_int_equal(fstat(to, &st), 0);
		assert_int_equal(st.st_size, real[i]);
		assert_true(sample_is(to, 0, real[i]));
		(void)close(from);
		(void)close(to);
	}
}

static void test_a_source_that_grew_is_copied_as_far_as_it_was(void **state)
{
	struct stat st;

	(void)state;
	int from = sample_new(&c.scratch, "from", SAMPLE_MIB);
	int to = sample_open(&c.scratch, "to");

	assert_int_equal(copying_run(&c, from, to, 500000, false, false), 0);
	assert_int_equal(c.result.size_bytes, 500000);
	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, 500000);
	(void)close(from);
	(void)close(to);
}

static void test_the_side_that_failed_is_named(void **state)
{
	(void)state;
	int from = sample_new(&c.scratch, "from", 100000);
	int to = openat(c.scratch.fd, "from", O_RDONLY | O_CLOEXEC);
	int write_only = openat(c.scratch.fd, "from", O_WRONLY | O_CLOEXEC);

	assert_int_equal(copying_run(&c, from, to, 100000, false, false), -EBADF);
	assert_int_equal(c.result.failed, TT_COPY_WRITING);
	int other = sample_open(&c.scratch, "to");

	assert_int_equal(copying_run(&c, write_only, other, 100000, false, false), -EBADF);
	assert_int_equal(c.result.failed, TT_COPY_READING);
	(void)close(from);
	(void)close(to);
	(void)close(write_only);
	(void)close(other);
}

static void test_a_stop_ends_it(void **state)
{
	(void)state;
	int from = sample_new(&c.scratch, "from", SAMPLE_MIB);
	int to = sample_open(&c.scratch, "to");

	atomic_store(&c.stop, true);
	assert_int_equal(copying_run(&c, from, to, SAMPLE_MIB, false, false), -ECANCELED);
	(void)close(from);
	(void)close(to);
}

/* With faults: errors and short counts at every place. */
static void test_short_reads_and_writes_lose_nothing(void **state)
{
	static const enum fault_call calls[] = {FAULT_READ, FAULT_WRITE};
	static const uint64_t sizes[] = {5000, 300000, SAMPLE_MIB + 5, 9 * SAMPLE_MIB + 5};

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct stat st;
		uint64_t size = sizes[i / 2];
		int from = sample_new(&c.scratch, "from", size);
		int to = sample_open(&c.scratch, "to");

		fault_set(&(struct fault_rule){
			.call = calls[i % 2], .most_bytes = size > SAMPLE_MIB ? 100001 : 1001});
		assert_int_equal(copying_run(&c, from, to, size, false, false), 0);
		assert_true(fault_hits() > 0);
		fault_clear();
		assert_int_equal(c.result.size_bytes, size);
		assert_int_equal(fstat(to, &st), 0);
		assert_int_equal(st.st_size, size);
		assert_true(sample_is(to, 0, size));
		(void)close(from);
		(void)close(to);
	}
}

static void test_an_error_at_any_call_ends_it(void **state)
{
	static const uint64_t sizes[] = {100000, 3 * SAMPLE_MIB, 12 * SAMPLE_MIB};

	(void)state;
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		int from = sample_new(&c.scratch, "from", sizes[i]);

		for (unsigned k = 0; k < 6; k++) {
			enum fault_call call = k % 2 ? FAULT_READ : FAULT_WRITE;
			int to = sample_open(&c.scratch, "to");

			fault_set(&(struct fault_rule){
				.call = call, .skip = k / 2, .count = 1, .error = EIO});
			int r = copying_run(&c, from, to, sizes[i], false, false);

			assert_int_equal(r, fault_hits() > 0 ? -EIO : 0);
			if (r < 0)
				assert_int_equal(c.result.failed,
					call == FAULT_READ ? TT_COPY_READING : TT_COPY_WRITING);
			(void)close(to);
		}
		fault_clear();
		(void)close(from);
	}
}

static void test_a_failed_writeback_is_the_verdict(void **state)
{
	(void)state;
	int from = sample_new(&c.scratch, "from", 12 * SAMPLE_MIB);
	int to = sample_open(&c.scratch, "to");

	fault_set(&(struct fault_rule){.call = FAULT_SYNC_RANGE, .count = 1, .error = EIO});
	assert_int_equal(copying_run(&c, from, to, 12 * SAMPLE_MIB, false, false), 0);
	assert_int_equal(c.verdict, -EIO);
	(void)close(from);
	(void)close(to);
}

/* RWF_DONTCACHE refused: read again without. */
static void test_a_refused_flag_is_given_up(void **state)
{
	(void)state;
	int from = sample_new(&c.scratch, "from", 700000);
	int to = sample_open(&c.scratch, "to");
	struct tt_neutral_reader reader;
	struct tt_writer writer;

	tt_neutral_reader_begin(&reader, from, 700000, TT_CACHE_LEAVE, &c.fs, &c.stats);
	reader.unknown = true;
	tt_writer_begin(&writer, to, 700000, NULL, NULL, NULL, 0);
	fault_set(&(struct fault_rule){.call = FAULT_READ, .count = 1, .error = EOPNOTSUPP});
	const struct tt_copy_request request = {
		.from_fd = from, .size_bytes = 700000, .reader = &reader, .writer = &writer};

	assert_int_equal(tt_copy_content(&c.worker, &request, &c.result), 0);
	assert_int_equal(fault_hits(), 1);
	assert_false(c.fs.dontcache_read);
	/* With O_DIRECT, where that is possible. */
	assert_int_equal(c.stats.files_unknown + c.stats.files_read_direct, 1);
	tt_neutral_reader_end(&reader);
	assert_true(sample_is(to, 0, 700000));
	(void)close(from);
	(void)close(to);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TWIN(name) cmocka_unit_test_setup_teardown(name, set_up_twin, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_every_size_comes_out_the_same),
		TEST(test_a_file_that_does_not_know_its_size_is_read_to_the_end),
		TEST(test_a_large_file_without_a_size_is_paced),
		TEST(test_holes_stay_holes),
		TEST(test_zeros_become_holes_with_sparse),
		TEST(test_a_source_that_ends_early_is_no_error),
		TEST(test_a_source_that_grew_is_copied_as_far_as_it_was),
		TEST(test_the_side_that_failed_is_named),
		TEST(test_a_stop_ends_it),
		TWIN(test_short_reads_and_writes_lose_nothing),
		TWIN(test_an_error_at_any_call_ends_it),
		TWIN(test_a_failed_writeback_is_the_verdict),
		TWIN(test_a_refused_flag_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
