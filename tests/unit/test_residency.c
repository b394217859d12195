/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"
#include "sample.h"
#include "scratch.h"
#include "sys/facility.h"
#include "sys/residency.h"

static const enum tt_residency_method methods[] = {TT_RESIDENCY_CACHESTAT, TT_RESIDENCY_MINCORE};

static uint64_t count(int fd, enum tt_residency_method method, uint64_t offset, uint64_t length)
{
	struct tt_residency got;

	assert_int_equal(tt_residency_count(fd, method, offset, length, &got), 0);
	return got.resident_pages;
}

static void test_pages_are_counted_one_by_one(void **state)
{
	static const uint64_t touched[] = {0, 1, 7, 63, 64, 65, 100, 255};
	struct scratch scratch;

	(void)state;
	scratch_open(&scratch);
	int fd = sample_new(&scratch, "file", SAMPLE_MIB);

	for (unsigned m = 0; m < 2; m++) {
		sample_make_cold(fd);
		for (unsigned i = 0; i < sizeof touched / sizeof *touched; i++) {
			assert_int_equal(count(fd, methods[m], 0, 0), i);
			sample_touch(fd, touched[i]);
		}
		assert_int_equal(count(fd, methods[m], 0, 0), 8);
		assert_int_equal(count(fd, methods[m], 0, 64 * SAMPLE_PAGE), 4);
		assert_int_equal(count(fd, methods[m], 64 * SAMPLE_PAGE, 2 * SAMPLE_PAGE), 2);
		assert_int_equal(count(fd, methods[m], 66 * SAMPLE_PAGE, 0), 2);
	}
	(void)close(fd);
	scratch_close(&scratch);
}

static void test_asking_brings_nothing_in(void **state)
{
	struct scratch scratch;
	uint64_t bits[16];

	(void)state;
	scratch_open(&scratch);
	int fd = sample_new(&scratch, "file", 4 * SAMPLE_MIB);

	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(count(fd, methods[i % 2], 0, 0), 0);
		assert_int_equal(tt_residency_map(fd, 0, 1024, bits), 0);
	}
	assert_int_equal(sample_count_resident(fd), 0);
	(void)close(fd);
	scratch_close(&scratch);
}

static void test_the_map_names_the_pages(void **state)
{
	struct scratch scratch;
	uint64_t bits[5000 / 64 + 1];

	(void)state;
	scratch_open(&scratch);
	/* More pages than one mincore vector, and a last page that is not full. */
	int fd = sample_new(&scratch, "file", 5000 * SAMPLE_PAGE - 100);

	for (uint64_t page = 3; page < 5000; page += 100)
		sample_touch(fd, page);
	sample_touch(fd, 4999);
	assert_int_equal(tt_residency_map(fd, 0, 5000, bits), 0);
	for (uint64_t page = 0; page < 5000; page++) {
		assert_int_equal(
			bits[page / 64] >> (page % 64) & 1, page % 100 == 3 || page == 4999);
	}
	/* Bit 0 is the page at the offset. */
	assert_int_equal(tt_residency_map(fd, 100 * SAMPLE_PAGE, 5, bits), 0);
	assert_int_equal(bits[0], 1 << 3);
	(void)close(fd);
	scratch_close(&scratch);
}

static void test_dirty_pages_are_told_apart(void **state)
{
	struct scratch scratch;
	struct tt_residency got;

	(void)state;
	scratch_open(&scratch);
	int fd = sample_open(&scratch, "file");

	sample_write(fd, 0, 10 * SAMPLE_PAGE);
	assert_int_equal(tt_residency_count(fd, TT_RESIDENCY_CACHESTAT, 0, 0, &got), 0);
	assert_int_equal(got.resident_pages, 10);
	assert_int_equal(got.dirty_pages + got.writeback_pages, 10);
	assert_int_equal(fdatasync(fd), 0);
	assert_int_equal(tt_residency_count(fd, TT_RESIDENCY_CACHESTAT, 0, 0, &got), 0);
	assert_int_equal(got.resident_pages, 10);
	assert_int_equal(got.dirty_pages + got.writeback_pages, 0);
	(void)close(fd);
	scratch_close(&scratch);
}

static void test_dropping_drops_the_range(void **state)
{
	struct scratch scratch;

	(void)state;
	scratch_open(&scratch);
	int fd = sample_new(&scratch, "file", 40 * SAMPLE_PAGE - 1);

	for (unsigned i = 0; i < 40; i++)
		sample_touch(fd, i);
	assert_int_equal(tt_residency_drop(fd, 10 * SAMPLE_PAGE, 10 * SAMPLE_PAGE), 0);
	assert_int_equal(count(fd, TT_RESIDENCY_CACHESTAT, 0, 0), 30);
	assert_int_equal(tt_residency_drop(fd, 30 * SAMPLE_PAGE, 0), 0);
	assert_int_equal(count(fd, TT_RESIDENCY_CACHESTAT, 0, 0), 20);
	assert_int_equal(tt_residency_drop(-1, 0, 0), -EBADF);
	(void)close(fd);
	scratch_close(&scratch);
}

static void test_an_empty_file_and_one_beyond_its_end(void **state)
{
	struct scratch scratch;

	(void)state;
	scratch_open(&scratch);
	int fd = sample_open(&scratch, "file");

	for (unsigned m = 0; m < 2; m++)
		assert_int_equal(count(fd, methods[m], 0, 0), 0);
	sample_write(fd, 0, 100);
	for (unsigned m = 0; m < 2; m++) {
		assert_int_equal(count(fd, methods[m], 0, 0), 1);
		assert_int_equal(count(fd, methods[m], SAMPLE_MIB, 0), 0);
	}
	(void)close(fd);
	scratch_close(&scratch);
}

/* As somebody who neither owns the file nor may write to it: both methods say that he may not know
 * (mincore itself would say that all is resident). */
static void test_another_user_may_not_know(void **state)
{
	struct scratch scratch;
	int status;

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root to become somebody else\n");
		skip();
	}
	scratch_open(&scratch);
	int fd = sample_new(&scratch, "file", 10 * SAMPLE_PAGE);
	pid_t child = fork();

	if (child == 0) {
		struct tt_residency got;
		char path[300];

		(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		int other = open(path, O_RDONLY | O_CLOEXEC);

		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(1);
		if (tt_residency_count(other, TT_RESIDENCY_CACHESTAT, 0, 0, &got) != -EPERM)
			_exit(2);
		if (tt_residency_count(other, TT_RESIDENCY_MINCORE, 0, 0, &got) != -EPERM)
			_exit(3);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	(void)close(fd);
	scratch_close(&scratch);
}

/* In a child: a refusal is for the process. */
static void test_without_mincore_the_map_is_the_same(void **state)
{
	struct scratch scratch;
	uint64_t bits[2][1000 / 64 + 1];
	int status;

	(void)state;
	scratch_open(&scratch);
	int fd = sample_new(&scratch, "file", 1000 * SAMPLE_PAGE - 100);

	for (uint64_t page = 5; page < 1000; page += page % 90 < 40 ? 1 : 7)
		sample_touch(fd, page);
	pid_t child = fork();

	if (child == 0) {
		struct tt_residency got;

		if (tt_residency_map(fd, 0, 1000, bits[0]) < 0)
			_exit(1);
		tt_facility_refuse(TT_FACILITY_MINCORE, -ENOSYS);
		if (tt_residency_map(fd, 0, 1000, bits[1]) < 0)
			_exit(2);
		if (memcmp(bits[0], bits[1], sizeof bits[0]) != 0)
			_exit(3);
		if (tt_residency_count(fd, TT_RESIDENCY_MINCORE, 0, 0, &got) != -ENOSYS)
			_exit(4);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	(void)close(fd);
	scratch_close(&scratch);
}

/* mincore tells this root, who may do nothing, that all of somebody else's file is resident. */
static void test_a_root_without_capabilities_may_not_know(void **state)
{
	struct scratch scratch;
	int status;

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root to give a file away\n");
		skip();
	}
	scratch_open(&scratch);
	int fd = sample_new(&scratch, "file", 10 * SAMPLE_PAGE);

	assert_int_equal(fchown(fd, 7, 7), 0);
	pid_t child = fork();

	if (child == 0) {
		struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
		struct __user_cap_data_struct none[2] = {{0}};
		struct tt_residency got;
		char path[64];

		(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		int other = open(path, O_RDONLY | O_CLOEXEC);

		if (other < 0 || syscall(SYS_capset, &header, none) < 0)
			_exit(1);
		_exit(tt_residency_count(other, TT_RESIDENCY_MINCORE, 0, 0, &got) == -EPERM ? 0
											    : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	(void)close(fd);
	scratch_close(&scratch);
}

static void test_the_method_follows_the_file_system(void **state)
{
	struct scratch scratch;

	(void)state;
	scratch_open(&scratch);
	assert_int_equal(tt_residency_method(scratch.fd), TT_RESIDENCY_CACHESTAT);
	int proc = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

	assert_int_equal(tt_residency_method(proc), TT_RESIDENCY_NONE);
	assert_int_equal(count(proc, TT_RESIDENCY_NONE, 0, 0), 0);
	int memory = open("/dev/shm", O_RDONLY | O_CLOEXEC);

	if (memory >= 0)
		assert_int_equal(tt_residency_method(memory), TT_RESIDENCY_NONE);
	(void)close(proc);
	(void)close(memory);
	scratch_close(&scratch);
}

static void test_sizes_are_sizes(void **state)
{
	(void)state;
	assert_int_equal(tt_residency_page_bytes(), sysconf(_SC_PAGESIZE));
	assert_true(tt_residency_folio_bytes() >= 2u << 20);
	assert_int_equal(tt_residency_folio_bytes() & (tt_residency_folio_bytes() - 1), 0);
}

/* Who can count is asked; else the time of the last change tells. */
static void test_pages_that_may_be_dirty(void **state)
{
	struct scratch scratch;
	struct stat st;

	(void)state;
	scratch_open(&scratch);
	int fd = sample_new(&scratch, "file", 4 * SAMPLE_PAGE);

	assert_int_equal(fstat(fd, &st), 0);
	assert_false(tt_residency_may_be_dirty(fd, TT_RESIDENCY_CACHESTAT, &st, 0, 0));
	sample_write(fd, 2 * SAMPLE_PAGE, SAMPLE_PAGE);
	assert_true(tt_residency_may_be_dirty(fd, TT_RESIDENCY_CACHESTAT, &st, 0, 0));
	assert_false(
		tt_residency_may_be_dirty(fd, TT_RESIDENCY_CACHESTAT, &st, 0, 2 * SAMPLE_PAGE));
	/* Just changed. A time that was set back changes nothing; a change in the future neither.
	 */
	assert_true(tt_residency_may_be_dirty(fd, TT_RESIDENCY_MINCORE, &st, 0, 0));
	st.st_mtim.tv_sec -= 1000000;
	assert_true(tt_residency_may_be_dirty(fd, TT_RESIDENCY_MINCORE, &st, 0, 0));
	st.st_ctim.tv_sec += 1000000;
	assert_true(tt_residency_may_be_dirty(fd, TT_RESIDENCY_MINCORE, &st, 0, 0));
	st.st_ctim.tv_sec -= 2000000;
	assert_false(tt_residency_may_be_dirty(fd, TT_RESIDENCY_MINCORE, &st, 0, 0));
	st.st_mtim.tv_sec += 1000000;
	assert_true(tt_residency_may_be_dirty(fd, TT_RESIDENCY_MINCORE, &st, 0, 0));
	assert_false(tt_residency_may_be_dirty(fd, TT_RESIDENCY_NONE, &st, 0, 0));
	(void)close(fd);
	scratch_close(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages_are_counted_one_by_one),
		cmocka_unit_test(test_asking_brings_nothing_in),
		cmocka_unit_test(test_the_map_names_the_pages),
		cmocka_unit_test(test_dirty_pages_are_told_apart),
		cmocka_unit_test(test_dropping_drops_the_range),
		cmocka_unit_test(test_an_empty_file_and_one_beyond_its_end),
		cmocka_unit_test(test_pages_that_may_be_dirty),
		cmocka_unit_test(test_another_user_may_not_know),
		cmocka_unit_test(test_without_mincore_the_map_is_the_same),
		cmocka_unit_test(test_a_root_without_capabilities_may_not_know),
		cmocka_unit_test(test_the_method_follows_the_file_system),
		cmocka_unit_test(test_sizes_are_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
