/* SPDX-License-Identifier: MIT */
/*
 * Clones with a kernel that is played here: the linker sends ioctl() to this file, which copies
 * what FICLONERANGE would share, with the kernel's rules about blocks, or fails where it is told
 * to. The real ones are in tests/neutrality/clone.bats.
 */
#include <errno.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <sys/ioctl.h>

#include "check.h"
#include "copy/clone.h"
#include "copying.h"

static struct {
	unsigned calls, fail_at; /* 1: the first */
	int error;
	uint64_t longest;
	_Atomic bool *stop_at_call;
} kernel;

int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);

static int refuse(int error)
{
	errno = error;
	return -1;
}

/* generic_remap_checks() and generic_remap_check_len(), fs/remap_range.c. */
static int share(int to, const struct file_clone_range *range)
{
	struct stat from_st, to_st;
	char buffer[65536];

	assert_int_equal(fstat((int)range->src_fd, &from_st), 0);
	assert_int_equal(fstat(to, &to_st), 0);
	uint64_t size = (uint64_t)from_st.st_size, at = range->src_offset;
	uint64_t end = range->src_length ? at + range->src_length : size;

	if (at % 4096 != 0 || at > size || end > size)
		return refuse(EINVAL);
	if (end % 4096 != 0 && (end != size || end < (uint64_t)to_st.st_size))
		return refuse(EINVAL);
	if ((uint64_t)to_st.st_size < end)
		assert_int_equal(ftruncate(to, (off_t)end), 0);
	while (at < end) {
		off_t data = lseek((int)range->src_fd, (off_t)at, SEEK_DATA);

		if (data < 0 || (uint64_t)data >= end)
			break;
		at = (uint64_t)data;
		ssize_t n = pread((int)range->src_fd, buffer,
			end - at < sizeof buffer ? end - at : sizeof buffer, (off_t)at);

		assert_true(n > 0);
		assert_int_equal(pwrite(to, buffer, (size_t)n, (off_t)at), n);
		at += (uint64_t)n;
	}
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list args;

	va_start(args, request);
	void *argument = va_arg(args, void *);

	va_end(args);
	if (request != FICLONERANGE)
		return __real_ioctl(fd, request, argument);
	const struct file_clone_range *range = argument;

	assert_int_equal(range->src_offset, range->dest_offset);
	kernel.calls++;
	if (range->src_length > kernel.longest)
		kernel.longest = range->src_length;
	if (kernel.stop_at_call)
		atomic_store(kernel.stop_at_call, true);
	if (kernel.error != 0 && kernel.calls >= kernel.fail_at)
		return refuse(kernel.error);
	return share(fd, range);
}

static struct copying c;
static struct tt_clone_memory memory;
static struct stat before;

static int set_up(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof kernel);
	memset(&memory, 0, sizeof memory);
	copying_begin(&c, 16 * SAMPLE_MIB, true);
	c.clones = &memory;
	c.before = &before;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	copying_end(&c);
	return 0;
}

static void kernel_fails(unsigned at, int error)
{
	memset(&kernel, 0, sizeof kernel);
	kernel.fail_at = at;
	kernel.error = error;
}

/* `holes`: as if there were none, or the file would be one piece whatever its length. */
static int run(int from, int to, bool holes)
{
	assert_int_equal(fstat(from, &before), 0);
	if (holes)
		before.st_blocks = before.st_size / 512;
	return copying_run(&c, from, to, (uint64_t)before.st_size, holes, false);
}

/* The copy is the sample, whatever way it came. */
static void check_is(int to, uint64_t size)
{
	struct stat st;

	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, size);
	assert_int_equal(c.result.size_bytes, size);
	assert_int_equal(c.progress, size);
	assert_true(sample_is(to, 0, size));
}

static void check_copy(uint64_t size, uint64_t cloned)
{
	int from = sample_new(&c.scratch, "from", size), to = sample_open(&c.scratch, "to");

	assert_int_equal(run(from, to, false), 0);
	check_is(to, size);
	assert_int_equal(c.result.cloned_bytes, cloned);
	assert_int_equal(c.result.literal_bytes, size - cloned);
	(void)close(from);
	(void)close(to);
}

static void test_every_size_is_cloned(void **state)
{
	static const uint64_t sizes[] = {1, 4095, 4096, 4097, SAMPLE_MIB, 9 * SAMPLE_MIB + 1};

	(void)state;
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		check_copy(sizes[i], sizes[i]);
	assert_int_equal(kernel.calls, 6);
	assert_true(memory.has_cloned);
}

static void test_an_empty_file_is_not_asked_for(void **state)
{
	(void)state;
	check_copy(0, 0);
	assert_int_equal(kernel.calls, 0);
}

static void test_never_is_never(void **state)
{
	(void)state;
	c.reflink = TT_CLONE_NEVER;
	check_copy(SAMPLE_MIB, 0);
	assert_int_equal(kernel.calls, 0);
}

static void test_what_the_file_system_cannot_is_asked_once(void **state)
{
	static const int errors[] = {EOPNOTSUPP, EXDEV, ENOTTY, ENOSYS};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		memset(&memory, 0, sizeof memory);
		kernel_fails(1, errors[i]);
		for (unsigned k = 0; k < 3; k++)
			check_copy(SAMPLE_MIB, 0);
		assert_int_equal(kernel.calls, 1);
	}
}

/* EINVAL may be the file's own fault. */
static void test_einval_is_believed_when_it_is_all_there_is(void **state)
{
	(void)state;
	kernel_fails(1, EINVAL);
	for (unsigned k = 0; k < 20; k++)
		check_copy(5000, 0);
	assert_int_equal(kernel.calls, 16);
	memset(&memory, 0, sizeof memory);
	memset(&kernel, 0, sizeof kernel);
	check_copy(5000, 5000);
	kernel_fails(1, EINVAL);
	for (unsigned k = 0; k < 20; k++)
		check_copy(5000, 0);
	assert_int_equal(kernel.calls, 20);
}

static void test_the_memory_is_per_source(void **state)
{
	struct tt_clone_refused refused = {0};

	(void)state;
	for (uint64_t dev = 0; dev < 8; dev++) {
		assert_false(tt_clone_is_refused(&refused, dev));
		tt_clone_refuse(&refused, dev);
		tt_clone_refuse(&refused, dev);
		assert_true(tt_clone_is_refused(&refused, dev));
	}
	tt_clone_refuse(&refused, 8); /* full: asked each time */
	assert_false(tt_clone_is_refused(&refused, 8));
	assert_true(tt_clone_is_refused(&refused, 7));
}

/* In the middle of it: the second piece of a file of two and a half. */
static void test_a_clone_that_fails_in_the_middle_is_copied(void **state)
{
	static const int errors[] = {ENOSPC, EIO, EINTR, EINVAL, ETXTBSY};
	const uint64_t size = (UINT64_C(5) << 29) + 77;
	struct stat st;

	(void)state;
	int from = sample_open(&c.scratch, "from");

	sample_write(from, 0, SAMPLE_MIB);
	sample_write(from, size - SAMPLE_MIB, SAMPLE_MIB);
	sample_make_cold(from);
	for (unsigned i = 0; i < 5; i++) {
		int to = sample_open(&c.scratch, "to");

		kernel_fails(2, errors[i]);
		assert_int_equal(run(from, to, true), 0);
		assert_int_equal(kernel.calls, 2);
		assert_int_equal(kernel.longest, UINT64_C(1) << 30);
		assert_int_equal(c.result.cloned_bytes, 0);
		assert_int_equal(c.result.size_bytes, size);
		assert_in_range(c.result.literal_bytes, 2 * SAMPLE_MIB, 2 * SAMPLE_MIB + 8192);
		assert_int_equal(c.progress, c.result.literal_bytes);
		assert_int_equal(fstat(to, &st), 0);
		assert_int_equal(st.st_size, size);
		assert_true((uint64_t)st.st_blocks * 512 <= 2 * SAMPLE_MIB + 65536);
		assert_true(sample_is(to, 0, SAMPLE_MIB));
		assert_true(sample_is(to, size - SAMPLE_MIB, SAMPLE_MIB));
		(void)close(to);
	}
	(void)close(from);
}

static void test_always_fails_with_what_the_kernel_said(void **state)
{
	(void)state;
	int from = sample_new(&c.scratch, "from", SAMPLE_MIB), to = sample_open(&c.scratch, "to");

	c.reflink = TT_CLONE_ALWAYS;
	kernel_fails(1, EOPNOTSUPP);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(run(from, to, false), -EOPNOTSUPP);
		assert_int_equal(c.result.failed, TT_COPY_CLONING);
	}
	assert_int_equal(kernel.calls, 2); /* remembering does not save it from being asked */
	memset(&kernel, 0, sizeof kernel);
	assert_int_equal(run(from, to, false), 0);
	check_is(to, SAMPLE_MIB);
	(void)close(from);
	(void)close(to);
}

static void test_a_stop_ends_it_between_two_pieces(void **state)
{
	(void)state;
	int from = sample_open(&c.scratch, "from"), to = sample_open(&c.scratch, "to");

	assert_int_equal(ftruncate(from, (off_t)3 << 30), 0);
	assert_int_equal(fsync(from), 0);
	kernel.stop_at_call = &c.stop;
	assert_int_equal(run(from, to, true), -ECANCELED);
	assert_int_equal(kernel.calls, 1);
	(void)close(from);
	(void)close(to);
}

static void test_a_hole_is_one_piece(void **state)
{
	(void)state;
	int from = sample_open(&c.scratch, "from"), to = sample_open(&c.scratch, "to");

	assert_int_equal(ftruncate(from, (off_t)8 << 40), 0);
	assert_int_equal(run(from, to, false), 0);
	assert_int_equal(kernel.calls, 1);
	assert_int_equal(c.result.cloned_bytes, UINT64_C(8) << 40);
	(void)close(from);
	(void)close(to);
}

/* Dirty pages are somebody else's business: the kernel would write them. */
static void test_a_dirty_source_is_cloned_only_always(void **state)
{
	(void)state;
	int from = sample_open(&c.scratch, "from"), to = sample_open(&c.scratch, "to");

	sample_write(from, 0, SAMPLE_MIB);
	assert_int_equal(run(from, to, false), 0);
	assert_int_equal(kernel.calls, 0);
	check_is(to, SAMPLE_MIB);
	(void)close(to);
	to = sample_open(&c.scratch, "to");
	c.reflink = TT_CLONE_ALWAYS;
	assert_int_equal(run(from, to, false), 0);
	assert_int_equal(kernel.calls, 1);
	(void)close(from);
	(void)close(to);
}

/* Where dirty pages cannot be counted, the times tell. */
static void test_without_cachestat_a_young_file_is_copied(void **state)
{
	(void)state;
	c.fs.method = TT_RESIDENCY_MINCORE;
	check_copy(SAMPLE_MIB, 0);
	assert_int_equal(kernel.calls, 0);
}

/* Over a longer file: whole blocks are shared, the rest of the last one is written. */
static void test_in_place_whole_blocks_are_cloned(void **state)
{
	static const uint64_t sizes[] = {100, 8192, 100000, 9 * SAMPLE_MIB + 1};
	static const uint64_t old_sizes[] = {0, 50, 200000, 20 * SAMPLE_MIB};

	(void)state;
	c.in_place = true;
	for (unsigned i = 0; i < 16; i++) {
		uint64_t size = sizes[i / 4];
		uint64_t whole = old_sizes[i % 4] <= size ? size : size / 4096 * 4096;
		int from = sample_new(&c.scratch, "from", size);
		int to = sample_new(&c.scratch, "to", old_sizes[i % 4]);

		kernel.calls = 0;
		assert_int_equal(run(from, to, false), 0);
		check_is(to, size);
		assert_int_equal(kernel.calls, whole > 0);
		assert_int_equal(c.result.cloned_bytes, whole);
		assert_int_equal(c.result.literal_bytes, size - whole);
		(void)close(from);
		(void)close(to);
	}
}

static void test_in_place_a_clone_that_fails_is_copied(void **state)
{
	(void)state;
	c.in_place = true;
	int from = sample_new(&c.scratch, "from", SAMPLE_MIB);
	int to = sample_new(&c.scratch, "to", 2 * SAMPLE_MIB);

	kernel_fails(1, ENOSPC);
	assert_int_equal(run(from, to, false), 0);
	check_is(to, SAMPLE_MIB);
	assert_int_equal(c.result.literal_bytes, SAMPLE_MIB);
	(void)close(from);
	(void)close(to);
}

static void test_of_a_range_the_whole_blocks_are_cloned(void **state)
{
	static const struct {
		uint64_t offset, bytes, start, cloned;
	} cases[] = {{0, 8192, 0, 8192}, {1, 8192, 4096, 4096}, {4096, 4095, 4096, 0},
		{100, 10, 4096, 0}, {5000, 100000, 8192, 94208}};
	uint64_t start, cloned;

	(void)state;
	int from = sample_new(&c.scratch, "from", SAMPLE_MIB);
	int to = sample_open(&c.scratch, "to");
	const struct tt_clone_request request = {.from_fd = from,
		.to_fd = to,
		.before = &before,
		.method = c.fs.method,
		.in_place = true,
		.memory = &memory,
		.stop = &c.stop,
		.progress_bytes = &c.progress};

	assert_int_equal(fstat(from, &before), 0);
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(ftruncate(to, 0), 0);
		assert_int_equal(ftruncate(to, 2 << 20), 0);
		int r = tt_clone_range(&request, cases[i].offset, cases[i].bytes, &start, &cloned);

		assert_int_equal(r, cases[i].cloned > 0);
		assert_int_equal(cloned, cases[i].cloned);
		if (r > 0) {
			assert_int_equal(start, cases[i].start);
			assert_true(sample_is(to, start, cloned));
		}
	}
	(void)close(from);
	(void)close(to);
}

static void test_a_source_that_grew_or_shrank_meanwhile(void **state)
{
	struct stat st;

	(void)state;
	int from = sample_new(&c.scratch, "from", 300000), to = sample_open(&c.scratch, "to");

	assert_int_equal(fstat(from, &before), 0);
	before.st_size = 100001; /* what it was when it was looked at */
	assert_int_equal(copying_run(&c, from, to, 100001, false, false), 0);
	check_is(to, 100001);
	(void)close(to);
	to = sample_open(&c.scratch, "to");
	before.st_size = 500000;
	assert_int_equal(copying_run(&c, from, to, 500000, false, false), 0);
	assert_int_equal(c.result.size_bytes, 300000);
	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, 300000);
	assert_true(sample_is(to, 0, 300000));
	(void)close(from);
	(void)close(to);
}

/* What was charged ahead is given back before the file's batch is. */
static void test_a_clone_holds_no_budget(void **state)
{
	struct tt_pacer_stats stats;
	struct tt_pacer_file file = {.can_count = true};
	struct tt_neutral_reader reader;
	struct tt_writer writer;

	(void)state;
	int from = sample_new(&c.scratch, "from", 500000);

	file.fd = sample_open(&c.scratch, "to");
	assert_int_equal(fstat(from, &before), 0);
	tt_neutral_reader_begin(&reader, from, 500000, TT_CACHE_LEAVE, &c.fs, &c.stats);
	tt_writer_begin(&writer, file.fd, 500000, c.pacer, &file, NULL, 0);
	const struct tt_copy_request request = {.from_fd = from,
		.size_bytes = 500000,
		.clones = &memory,
		.before = &before,
		.reader = &reader,
		.writer = &writer};

	assert_int_equal(tt_copy_content(&c.worker, &request, &c.result), 0);
	assert_int_equal(c.result.cloned_bytes, 500000);
	tt_pacer_stats(c.pacer, &stats);
	assert_int_equal(stats.charged_bytes, 0);
	tt_writer_end(&writer);
	tt_neutral_reader_end(&reader);
	assert_int_equal(sink_verdict(&c.sink, c.pacer, &file), 0);
	(void)close(from);
	(void)close(file.fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_every_size_is_cloned),
		TEST(test_an_empty_file_is_not_asked_for),
		TEST(test_never_is_never),
		TEST(test_what_the_file_system_cannot_is_asked_once),
		TEST(test_einval_is_believed_when_it_is_all_there_is),
		TEST(test_the_memory_is_per_source),
		TEST(test_a_clone_that_fails_in_the_middle_is_copied),
		TEST(test_always_fails_with_what_the_kernel_said),
		TEST(test_a_stop_ends_it_between_two_pieces),
		TEST(test_a_hole_is_one_piece),
		TEST(test_a_dirty_source_is_cloned_only_always),
		TEST(test_without_cachestat_a_young_file_is_copied),
		TEST(test_in_place_whole_blocks_are_cloned),
		TEST(test_in_place_a_clone_that_fails_is_copied),
		TEST(test_of_a_range_the_whole_blocks_are_cloned),
		TEST(test_a_source_that_grew_or_shrank_meanwhile),
		TEST(test_a_clone_holds_no_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
