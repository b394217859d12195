/* SPDX-License-Identifier: MIT */
/*
 * Copies with O_DIRECT on both sides: equal, nothing of them in the page cache, nothing charged but
 * the tail; and what happens when the kernel does not go along.
 */
#include <errno.h>

#include "check.h"
#include "copying.h"
#include "fault.h"
#include "sys/direct.h"

static struct copying c;
static const char *write_refusal;
static const char *refusal;    /* of the reader of the last copy */
static struct fault_rule rule; /* during copies */
static unsigned hits;
static bool was_direct; /* the writer of the last copy still was at the end of the data */

static int set_up(bool no_uring)
{
	struct tt_direct direct;

	rule = (struct fault_rule){0};
	copying_begin(&c, 16 * SAMPLE_MIB, no_uring || getenv("TIPTOE_RING") != NULL);
	int fd = sample_new(&c.scratch, "ask", 1);

	tt_direct_ask(fd, &direct);
	(void)close(fd);
	/* cmocka calls no tear_down after a failed set_up, and skip() is not for here. */
	if (direct.offset_bytes == 0)
		refusal = "no O_DIRECT in $TMPDIR";
	return 0;
}

static int set_up_uring(void **state)
{
	(void)state;
	return set_up(false);
}

static int set_up_twin(void **state)
{
	(void)state;
	return set_up(true);
}

static int tear_down(void **state)
{
	(void)state;
	fault_clear();
	copying_end(&c);
	return 0;
}

static void need_direct(void)
{
	if (refusal && strcmp(refusal, "no O_DIRECT in $TMPDIR") == 0)
		skip();
}

/* As copying_run(), with O_DIRECT. */
static int run(int from, int to, uint64_t size, bool holes, bool sparse)
{
	struct tt_pacer_file file = {.fd = to, .drop_windows = true, .can_count = true};
	struct tt_neutral_reader reader;
	struct tt_writer writer;

	/* Not while the pacer makes calls. */
	fault_set(&rule);
	atomic_store(&c.progress, 0);
	tt_neutral_reader_begin(&reader, from, size, TT_CACHE_DIRECT, &c.fs, &c.stats);
	assert_int_equal(tt_writer_begin_direct(&writer, to, size, c.pacer, &file, NULL), 0);
	const struct tt_copy_request request = {.from_fd = from,
		.size_bytes = size,
		.holes = holes,
		.sparse = sparse,
		.reader = &reader,
		.writer = &writer};
	int r = tt_copy_content(&c.worker, &request, &c.result);

	was_direct = writer.is_direct;
	tt_writer_end(&writer);
	write_refusal = writer.refusal;
	tt_neutral_reader_end(&reader);
	refusal = reader.refusal;
	tt_pacer_start(&file);
	c.verdict = sink_verdict(&c.sink, c.pacer, &file);
	hits = fault_hits();
	fault_clear();
	tt_neutral_written(to, c.result.size_bytes, NULL, &c.fs, NULL, &c.stats);
	/* Nobody else finds it switched on. */
	assert_int_equal(fcntl(from, F_GETFL) & O_DIRECT, 0);
	assert_int_equal(fcntl(to, F_GETFL) & O_DIRECT, 0);
	return r;
}

static void check_equal(int from, int to, uint64_t size)
{
	struct stat st;

	assert_int_equal(c.verdict, 0);
	assert_int_equal(c.result.size_bytes, size);
	assert_int_equal(sample_count_resident(from), 0);
	assert_int_equal(sample_count_resident(to), 0);
	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, size);
	assert_true(sample_is(to, 0, size));
}

static void check_size(uint64_t size)
{
	int from = sample_new(&c.scratch, "from", size);
	int to = sample_open(&c.scratch, "to");

	assert_int_equal(run(from, to, size, false, false), 0);
	assert_int_equal(c.result.literal_bytes, size);
	assert_int_equal(c.progress, size);
	check_equal(from, to, size);
	(void)close(from);
	(void)close(to);
}

static uint64_t most_charged(void)
{
	struct tt_pacer_stats stats;

	tt_pacer_stats(c.pacer, &stats);
	return stats.peak_bytes;
}

static void test_sizes_around_all_edges(void **state)
{
	static const uint64_t sizes[] = {1, 511, 512, 513, 4095, 4096, 4097, 65535, 65536, 65537,
		524287, 524288, 524289, 8 * SAMPLE_MIB - 1, 8 * SAMPLE_MIB, 8 * SAMPLE_MIB + 1,
		33 * SAMPLE_MIB + 5};

	(void)state;
	need_direct();
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		check_size(sizes[i]);
		assert_null(refusal);
		assert_null(write_refusal);
		assert_int_equal(was_direct, sizes[i] % 4096 == 0 || sizes[i] == 512);
	}
	assert_in_range(most_charged(), 4096, 4096); /* nothing but tails */
}

static void test_short_counts_are_completed(void **state)
{
	(void)state;
	need_direct();
	rule = (struct fault_rule){.call = FAULT_READ, .most_bytes = 12288};
	check_size(9 * SAMPLE_MIB + 5);
	rule = (struct fault_rule){.call = FAULT_WRITE, .most_bytes = 12288};
	check_size(9 * SAMPLE_MIB + 5);
	check_size(200000);
	assert_null(refusal);
	assert_true(hits > 0 || !c.worker.no_uring);
}

static void test_a_read_that_is_refused_goes_on_the_ordinary_way(void **state)
{
	(void)state;
	need_direct();
	static const uint64_t sizes[] = {200000, 600000, 20 * SAMPLE_MIB + 5};

	for (unsigned i = 0; i < 3; i++) {
		for (unsigned skipped = 0; skipped < 8; skipped += 3) {
			rule = (struct fault_rule){
				.call = FAULT_READ, .skip = skipped, .count = 1, .error = EINVAL};
			check_size(sizes[i]);
			if (hits > 0)
				assert_non_null(refusal);
		}
	}
}

static void test_a_write_that_is_refused_goes_on_the_ordinary_way(void **state)
{
	(void)state;
	need_direct();
	static const uint64_t sizes[] = {200000, 600000, 20 * SAMPLE_MIB};

	for (unsigned i = 0; i < 3; i++) {
		for (unsigned skipped = 0; skipped < 12; skipped += 3) {
			rule = (struct fault_rule){.call = FAULT_WRITE,
				.skip = skipped,
				.count = 1,
				.error = EINVAL,
				.delay_usec = 2000};
			check_size(sizes[i]);
			if (hits > 0)
				assert_non_null(write_refusal);
		}
	}
}

static void test_errors_are_errors(void **state)
{
	(void)state;
	need_direct();
	struct stat st;
	int from = sample_new(&c.scratch, "from", 9 * SAMPLE_MIB);
	int to = sample_open(&c.scratch, "to");

	rule = (struct fault_rule){.call = FAULT_READ, .skip = 2, .error = EIO};
	if (c.worker.no_uring) {
		assert_int_equal(run(from, to, 9 * SAMPLE_MIB, false, false), -EIO);
		assert_int_equal(c.result.failed, TT_COPY_READING);
		rule = (struct fault_rule){.call = FAULT_WRITE, .skip = 2, .error = ENOSPC};
		assert_int_equal(run(from, to, 9 * SAMPLE_MIB, false, false), -ENOSPC);
		assert_int_equal(c.result.failed, TT_COPY_WRITING);
		/* It does not look longer than it is. */
		assert_int_equal(fstat(to, &st), 0);
		assert_int_equal(st.st_size, c.result.size_bytes);
	}
	(void)close(from);
	(void)close(to);
}

/* What it said before is not what it has. */
static void test_a_source_that_is_shorter_or_longer_than_was_told(void **state)
{
	static const uint64_t has[] = {
		1, 4096, 100000, 524288, 600001, 8 * SAMPLE_MIB, 9 * SAMPLE_MIB + 777};
	static const uint64_t told[] = {70000, 600001, 10 * SAMPLE_MIB, 12 * SAMPLE_MIB + 3};

	(void)state;
	need_direct();
	for (unsigned i = 0; i < sizeof has / sizeof *has; i++) {
		for (unsigned j = 0; j < sizeof told / sizeof *told; j++) {
			uint64_t size = has[i] < told[j] ? has[i] : told[j];
			int from = sample_new(&c.scratch, "from", has[i]);
			int to = sample_open(&c.scratch, "to");

			assert_int_equal(run(from, to, told[j], false, false), 0);
			check_equal(from, to, size);
			(void)close(from);
			(void)close(to);
		}
	}
}

static void test_holes_stay_holes(void **state)
{
	const uint64_t size = 40 * SAMPLE_MIB + 5;
	struct stat st;

	(void)state;
	need_direct();
	int from = sample_open(&c.scratch, "from");

	sample_write(from, 3 * SAMPLE_MIB, 2 * SAMPLE_MIB + 100);
	sample_write(from, 30 * SAMPLE_MIB + 4096, 1);
	sample_write(from, size - 1, 1);
	sample_make_cold(from);
	for (unsigned sparse = 0; sparse < 2; sparse++) {
		int to = sample_open(&c.scratch, "to");

		assert_int_equal(run(from, to, size, true, sparse), 0);
		assert_int_equal(c.verdict, 0);
		assert_int_equal(c.result.size_bytes, size);
		assert_int_equal(sample_count_resident(to), 0);
		assert_true(sample_is(to, 3 * SAMPLE_MIB, 2 * SAMPLE_MIB + 100));
		assert_true(sample_is(to, 30 * SAMPLE_MIB + 4096, 1));
		assert_true(sample_is(to, size - 1, 1));
		assert_int_equal(fstat(to, &st), 0);
		assert_int_equal(st.st_size, size);
		assert_true(st.st_blocks * 512 < (off_t)(3 * SAMPLE_MIB));
		(void)close(to);
	}
	(void)close(from);
}

/* Somebody's dirty page: it is not flushed, and the copy has its content. */
static void test_a_page_that_becomes_dirty_meanwhile(void **state)
{
	const uint64_t size = 20 * SAMPLE_MIB;
	struct tt_neutral_reader reader;
	struct tt_residency count;

	(void)state;
	need_direct();
	int from = sample_new(&c.scratch, "from", size);
	int writer = openat(c.scratch.fd, "from", O_RDWR | O_CLOEXEC);
	char *buffer = aligned_alloc(4096, SAMPLE_MIB);

	assert_non_null(buffer);
	tt_neutral_reader_begin(&reader, from, size, TT_CACHE_DIRECT, &c.fs, &c.stats);
	assert_true(reader.is_direct);
	for (uint64_t at = 0; at < size; at += SAMPLE_MIB) {
		if (at == 8 * SAMPLE_MIB)
			sample_write(writer, 15 * SAMPLE_MIB, SAMPLE_PAGE);
		assert_int_equal(
			tt_neutral_reader_pread(&reader, buffer, SAMPLE_MIB, at), SAMPLE_MIB);
		tt_neutral_reader_passed(&reader, at + SAMPLE_MIB);
	}
	assert_non_null(reader.refusal);
	tt_neutral_reader_end(&reader);
	assert_int_equal(tt_residency_count(from, TT_RESIDENCY_CACHESTAT, 0, 0, &count), 0);
	assert_int_equal(count.dirty_pages, 1);
	assert_true(count.resident_pages <= 16); /* the smallest piece that is looked at */
	/* One that is dirty from the beginning. */
	tt_neutral_reader_begin(&reader, from, size, TT_CACHE_DIRECT, &c.fs, &c.stats);
	assert_false(reader.is_direct);
	assert_non_null(reader.refusal);
	tt_neutral_reader_end(&reader);
	free(buffer);
	(void)close(writer);
	(void)close(from);
}

/* Aligned for others, not for this one. */
static void test_a_buffer_that_is_not_aligned_is_filled_all_the_same(void **state)
{
	struct tt_neutral_reader reader;

	(void)state;
	need_direct();
	int from = sample_new(&c.scratch, "from", 50000);
	unsigned char *buffer = aligned_alloc(4096, 131072);

	assert_non_null(buffer);
	tt_neutral_reader_begin(&reader, from, 50000, TT_CACHE_DIRECT, &c.fs, &c.stats);
	assert_int_equal(tt_neutral_reader_pread(&reader, buffer, 1000, 0), 1000);
	assert_int_equal(buffer[999], sample_byte(999));
	assert_int_equal(tt_neutral_reader_pread(&reader, buffer, 1000, 1000), 1000);
	assert_int_equal(buffer[0], sample_byte(1000));
	assert_non_null(reader.refusal);
	tt_neutral_reader_passed(&reader, 50000);
	tt_neutral_reader_end(&reader);
	assert_int_equal(sample_count_resident(from), 0);
	free(buffer);
	(void)close(from);
}

#define TEST(name, set_up) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_sizes_around_all_edges, set_up_uring),
		TEST(test_sizes_around_all_edges, set_up_twin),
		TEST(test_short_counts_are_completed, set_up_twin),
		TEST(test_a_read_that_is_refused_goes_on_the_ordinary_way, set_up_twin),
		TEST(test_a_write_that_is_refused_goes_on_the_ordinary_way, set_up_twin),
		TEST(test_errors_are_errors, set_up_twin),
		TEST(test_a_source_that_is_shorter_or_longer_than_was_told, set_up_uring),
		TEST(test_a_source_that_is_shorter_or_longer_than_was_told, set_up_twin),
		TEST(test_holes_stay_holes, set_up_uring),
		TEST(test_holes_stay_holes, set_up_twin),
		TEST(test_a_page_that_becomes_dirty_meanwhile, set_up_uring),
		TEST(test_a_buffer_that_is_not_aligned_is_filled_all_the_same, set_up_uring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
