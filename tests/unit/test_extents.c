/* SPDX-License-Identifier: MIT */
/*
 * Files with holes, made on the scratch directory's file system, which must keep them.
 */
#include <errno.h>

#include "check.h"
#include "copy/extents.h"
#include "sample.h"
#include "scratch.h"

struct part {
	uint64_t offset, bytes;
};

static void make(int fd, uint64_t size, const struct part *parts, unsigned count)
{
	assert_int_equal(ftruncate(fd, 0), 0);
	for (unsigned i = 0; i < count; i++)
		sample_write(fd, parts[i].offset, parts[i].bytes);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fsync(fd), 0);
}

/* The pieces, put together where they touch, are exactly these parts; no piece is larger than
 * `most`. */
static void expect(
	int fd, uint64_t size, uint64_t most, bool sparse, const struct part *parts, unsigned count)
{
	struct tt_extents extents;
	struct part now = {0};
	uint64_t offset, bytes;
	unsigned seen = 0;
	int r;

	tt_extents_init(&extents, fd, size, sparse);
	while ((r = tt_extents_next(&extents, most, &offset, &bytes)) > 0) {
		assert_in_range(bytes, 1, most);
		if (now.bytes > 0 && offset == now.offset + now.bytes) {
			assert_int_equal(offset % most, 0);
			now.bytes += bytes;
			continue;
		}
		if (now.bytes > 0) {
			assert_true(seen < count);
			assert_int_equal(now.offset, parts[seen].offset);
			assert_int_equal(now.bytes, parts[seen].bytes);
			seen++;
		}
		now = (struct part){offset, bytes};
	}
	assert_int_equal(r, 0);
	if (now.bytes > 0) {
		assert_true(seen < count);
		assert_int_equal(now.offset, parts[seen].offset);
		assert_int_equal(now.bytes, parts[seen].bytes);
		seen++;
	}
	assert_int_equal(seen, count);
	/* It has ended for good. */
	assert_int_equal(tt_extents_next(&extents, most, &offset, &bytes), 0);
}

static void both_ways(uint64_t size, const struct part *parts, unsigned count)
{
	static const uint64_t most[] = {4096, 65536, 524288, SAMPLE_MIB, 4 * SAMPLE_MIB};
	struct scratch scratch;

	scratch_open(&scratch);
	int fd = sample_open(&scratch, "file");

	make(fd, size, parts, count);
	for (unsigned i = 0; i < sizeof most / sizeof *most; i++) {
		const struct part whole = {0, size};

		expect(fd, size, most[i], true, parts, count);
		expect(fd, size, most[i], false, &whole, size > 0);
	}
	(void)close(fd);
	scratch_close(&scratch);
}

static void test_a_file_without_holes_is_one_part(void **state)
{
	const struct part parts[] = {{0, 3 * SAMPLE_MIB}};

	(void)state;
	both_ways(3 * SAMPLE_MIB, parts, 1);
}

static void test_an_empty_file_has_none(void **state)
{
	(void)state;
	both_ways(0, NULL, 0);
}

static void test_a_hole_at_the_start(void **state)
{
	const struct part parts[] = {{SAMPLE_MIB, SAMPLE_MIB}};

	(void)state;
	both_ways(2 * SAMPLE_MIB, parts, 1);
}

static void test_a_hole_at_the_end(void **state)
{
	const struct part parts[] = {{0, SAMPLE_MIB}};

	(void)state;
	both_ways(9 * SAMPLE_MIB + 7, parts, 1);
}

static void test_islands(void **state)
{
	const struct part parts[] = {{SAMPLE_MIB, 4096}, {3 * SAMPLE_MIB, SAMPLE_MIB},
		{7 * SAMPLE_MIB + 4096, 8192}, {10 * SAMPLE_MIB - 4096, 4096}};

	(void)state;
	both_ways(10 * SAMPLE_MIB, parts, 4);
}

static void test_a_file_that_is_one_hole(void **state)
{
	(void)state;
	both_ways(UINT64_C(1) << 40, NULL, 0);
}

static void test_parts_end_at_the_size_that_was_said(void **state)
{
	const struct part parts[] = {{0, 3 * SAMPLE_MIB}}, said[] = {{0, SAMPLE_MIB + 5}};
	struct scratch scratch;

	(void)state;
	scratch_open(&scratch);
	int fd = sample_open(&scratch, "file");

	make(fd, 4 * SAMPLE_MIB, parts, 1);
	expect(fd, SAMPLE_MIB + 5, 65536, true, said, 1);
	expect(fd, SAMPLE_MIB + 5, 65536, false, said, 1);
	(void)close(fd);
	scratch_close(&scratch);
}

static void test_a_file_that_shrank_ends_early(void **state)
{
	const struct part parts[] = {{0, SAMPLE_MIB}};
	struct scratch scratch;

	(void)state;
	scratch_open(&scratch);
	int fd = sample_open(&scratch, "file");

	make(fd, SAMPLE_MIB, parts, 1);
	expect(fd, 8 * SAMPLE_MIB, 65536, true, parts, 1);
	(void)close(fd);
	scratch_close(&scratch);
}

static void test_a_bad_descriptor_is_an_error(void **state)
{
	struct tt_extents extents;
	uint64_t offset, bytes;

	(void)state;
	tt_extents_init(&extents, -1, 100, true);
	assert_int_equal(tt_extents_next(&extents, 10, &offset, &bytes), -EBADF);
	assert_int_equal(tt_extents_next(&extents, 10, &offset, &bytes), 0);
}

/* /proc cannot seek for data: the file counts as one without holes. */
static void test_a_file_system_that_cannot_tell(void **state)
{
	struct tt_extents extents;
	uint64_t offset, bytes;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	(void)state;
	tt_extents_init(&extents, fd, 100, true);
	assert_int_equal(tt_extents_next(&extents, 64, &offset, &bytes), 1);
	assert_int_equal(offset, 0);
	assert_int_equal(bytes, 64);
	assert_int_equal(tt_extents_next(&extents, 64, &offset, &bytes), 1);
	assert_int_equal(offset, 64);
	assert_int_equal(bytes, 36);
	assert_int_equal(tt_extents_next(&extents, 64, &offset, &bytes), 0);
	(void)close(fd);
}

static void check_first(struct tt_extents *extents, uint64_t offset, uint64_t bytes)
{
	uint64_t got_offset, got_bytes;

	assert_int_equal(tt_extents_next(extents, 65536, &got_offset, &got_bytes), 1);
	assert_int_equal(got_offset, offset);
	assert_int_equal(got_bytes, bytes);
}

static void test_a_later_start(void **state)
{
	const struct part parts[] = {{0, SAMPLE_MIB}, {2 * SAMPLE_MIB, SAMPLE_MIB}};
	struct tt_extents extents;
	struct scratch scratch;

	(void)state;
	scratch_open(&scratch);
	int fd = sample_open(&scratch, "file");

	make(fd, 4 * SAMPLE_MIB, parts, 2);
	tt_extents_init(&extents, fd, 4 * SAMPLE_MIB, true);
	tt_extents_start(&extents, 70000);
	check_first(&extents, 70000, 131072 - 70000);
	tt_extents_init(&extents, fd, 4 * SAMPLE_MIB, true);
	tt_extents_start(&extents, SAMPLE_MIB + 1);
	check_first(&extents, 2 * SAMPLE_MIB, 65536);
	tt_extents_init(&extents, fd, 4 * SAMPLE_MIB, false);
	tt_extents_start(&extents, SAMPLE_MIB + 1);
	check_first(&extents, SAMPLE_MIB + 1, 65535);
	(void)close(fd);
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	tt_extents_init(&extents, fd, 100, true);
	tt_extents_start(&extents, 10);
	check_first(&extents, 10, 90);
	(void)close(fd);
	scratch_close(&scratch);
}

/* Field case 2. */
static void test_young_files_of_zfs_are_read(void **state)
{
	const time_t now = 1000000;
	struct stat old = {.st_mtim.tv_sec = now - 60, .st_ctim.tv_sec = now - 60};
	struct stat young = old;

	(void)state;
	assert_int_equal(tt_extents_trust("zfs", &old, now), TT_EXTENTS_BLOCKS);
	young.st_ctim.tv_sec = now - 59;
	assert_int_equal(tt_extents_trust("zfs", &young, now), TT_EXTENTS_ZEROS);
	young = old;
	young.st_mtim.tv_sec = now + 5;
	assert_int_equal(tt_extents_trust("zfs", &young, now), TT_EXTENTS_ZEROS);
	assert_int_equal(tt_extents_trust("ext4", &young, now), TT_EXTENTS_ASK);
	assert_int_equal(tt_extents_trust("xfs", &young, now), TT_EXTENTS_ASK);
	assert_int_equal(tt_extents_trust("btrfs", &young, now), TT_EXTENTS_ASK);
	assert_int_equal(tt_extents_trust("nfs4", &young, now), TT_EXTENTS_ZEROS);
	assert_int_equal(tt_extents_trust("fuse.sshfs", &young, now), TT_EXTENTS_ZEROS);
	assert_int_equal(tt_extents_trust("", &young, now), TT_EXTENTS_ZEROS);
}

static void check_has_holes(int fd, bool blocks, bool ask)
{
	struct stat st;

	assert_int_equal(fsync(fd), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_false(tt_extents_has_holes(fd, &st, TT_EXTENTS_NOTHING));
	assert_false(tt_extents_has_holes(fd, &st, TT_EXTENTS_ZEROS));
	assert_int_equal(tt_extents_has_holes(fd, &st, TT_EXTENTS_BLOCKS), blocks);
	assert_int_equal(tt_extents_has_holes(fd, &st, TT_EXTENTS_ASK), ask);
}

static void test_which_files_have_holes(void **state)
{
	struct scratch scratch;

	(void)state;
	scratch_open(&scratch);
	int fd = sample_open(&scratch, "file");

	check_has_holes(fd, false, false);
	sample_write(fd, 0, 100);
	check_has_holes(fd, false, false);
	sample_write(fd, 0, 100000);
	check_has_holes(fd, false, false);
	assert_int_equal(ftruncate(fd, SAMPLE_MIB), 0);
	check_has_holes(fd, true, true);
	/* As many blocks as its size, and a hole. */
	assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, SAMPLE_MIB, 2 * SAMPLE_MIB), 0);
	check_has_holes(fd, false, true);
	/* less than a block, and nothing of it there */
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(ftruncate(fd, 1000), 0);
	check_has_holes(fd, false, true);
	(void)close(fd);
	scratch_close(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_without_holes_is_one_part),
		cmocka_unit_test(test_an_empty_file_has_none),
		cmocka_unit_test(test_a_hole_at_the_start),
		cmocka_unit_test(test_a_hole_at_the_end),
		cmocka_unit_test(test_islands),
		cmocka_unit_test(test_a_file_that_is_one_hole),
		cmocka_unit_test(test_parts_end_at_the_size_that_was_said),
		cmocka_unit_test(test_a_file_that_shrank_ends_early),
		cmocka_unit_test(test_a_bad_descriptor_is_an_error),
		cmocka_unit_test(test_a_file_system_that_cannot_tell),
		cmocka_unit_test(test_a_later_start),
		cmocka_unit_test(test_young_files_of_zfs_are_read),
		cmocka_unit_test(test_which_files_have_holes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
