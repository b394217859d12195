/* SPDX-License-Identifier: MIT */
/*
 * Copying inside a file server, with a server that is played here: the linker sends
 * copy_file_range() and fstatfs() to this file. There is no NFS server on the machines that run
 * this.
 */
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/statfs.h>

#include "check.h"
#include "copy/offload.h"
#include "copying.h"
#include "sys/fd.h"

enum {
	MOST_ANSWERS = 8
};

/* What the server says, call after call; the last answer stays. */
static struct {
	bool is_nfs;
	struct {
		int error;
		ssize_t most; /* moves at most so many; 0: moves nothing and says so */
	} answers[MOST_ANSWERS];
	unsigned count, calls;
	size_t largest;
	_Atomic bool *stop_at_call;
	bool moves_nothing; /* counts without moving: for sizes that are too large to move */
} server;

ssize_t __wrap_copy_file_range(
	int from, off_t *from_at, int to, off_t *to_at, size_t bytes, unsigned flags);
int __real_fstatfs64(int fd, struct statfs *fs);
int __wrap_fstatfs64(int fd, struct statfs *fs);

int __wrap_fstatfs64(int fd, struct statfs *fs)
{
	int r = __real_fstatfs64(fd, fs);

	if (server.is_nfs)
		fs->f_type = NFS_SUPER_MAGIC;
	return r;
}

ssize_t __wrap_copy_file_range(
	int from, off_t *from_at, int to, off_t *to_at, size_t bytes, unsigned flags)
{
	unsigned number = server.calls < server.count ? server.calls : server.count - 1;
	char buffer[65536];
	ssize_t moved = 0;

	assert_int_equal(flags, 0);
	assert_int_equal(*from_at, *to_at);
	server.calls++;
	if (bytes > server.largest)
		server.largest = bytes;
	if (server.stop_at_call)
		atomic_store(server.stop_at_call, true);
	if (server.answers[number].error != 0) {
		errno = server.answers[number].error;
		return -1;
	}
	if (bytes > (size_t)server.answers[number].most)
		bytes = (size_t)server.answers[number].most;
	if (server.moves_nothing)
		return (ssize_t)bytes;
	while (bytes > 0) {
		ssize_t n = pread(from, buffer, bytes < sizeof buffer ? bytes : sizeof buffer,
			*from_at + moved);

		if (n <= 0)
			break;
		assert_int_equal(pwrite(to, buffer, (size_t)n, *to_at + moved), n);
		moved += n;
		bytes -= (size_t)n;
	}
	return moved;
}

static void server_says(unsigned count, const int *errors, const ssize_t *most)
{
	memset(&server, 0, sizeof server);
	server.is_nfs = true;
	server.count = count;
	for (unsigned i = 0; i < count; i++) {
		server.answers[i].error = errors ? errors[i] : 0;
		server.answers[i].most = most ? most[i] : SSIZE_MAX;
	}
}

static struct copying c;
static struct tt_clone_memory memory;

static int set_up(void **state)
{
	(void)state;
	memset(&server, 0, sizeof server);
	memset(&memory, 0, sizeof memory);
	copying_begin(&c, 16 * SAMPLE_MIB, true);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	copying_end(&c);
	return 0;
}

/* The whole way through tt_copy_content(): what the server does not do is read and written. */
static void check_copy(uint64_t size, unsigned calls)
{
	struct stat st, before;
	int from = sample_new(&c.scratch, "from", size), to = sample_open(&c.scratch, "to");

	assert_int_equal(fstat(from, &before), 0);
	c.clones = &memory;
	c.before = &before;
	/* FICLONERANGE is not asked. */
	tt_clone_refuse(&memory.clone, before.st_dev);
	assert_int_equal(copying_run(&c, from, to, size, false, false), 0);
	assert_int_equal(server.calls, calls);
	assert_int_equal(c.result.size_bytes, size);
	assert_int_equal(c.progress, size);
	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, size);
	assert_true(sample_is(to, 0, size));
	(void)close(from);
	(void)close(to);
}

static void test_the_server_copies(void **state)
{
	(void)state;
	server_says(1, NULL, NULL);
	check_copy(3 * SAMPLE_MIB + 5, 1);
	assert_int_equal(c.result.literal_bytes, 0);
	assert_true(memory.has_offloaded);
}

static void test_short_answers_are_asked_on(void **state)
{
	static const ssize_t most[] = {4096, 1 << 20, 100000, SSIZE_MAX};

	(void)state;
	server_says(4, NULL, most);
	check_copy(3 * SAMPLE_MIB + 5, 4);
	assert_int_equal(c.result.literal_bytes, 0);
}

/* Field case 4: one call moves at most 0x7ffff000 bytes, whatever it is asked for. */
static void test_no_call_is_larger_than_the_kernel_moves(void **state)
{
	const struct tt_offload_request request = {.from_fd = -1,
		.to_fd = -1,
		.size_bytes = UINT64_C(5) << 30,
		.stop = &c.stop,
		.progress_bytes = &c.progress};
	uint64_t done;

	(void)state;
	server_says(1, NULL, NULL);
	server.moves_nothing = true;
	assert_int_equal(tt_offload_copy(&request, &done), 0);
	assert_int_equal(done, UINT64_C(5) << 30);
	assert_int_equal(server.calls, 3);
	assert_int_equal(server.largest, 0x7ffff000);
}

static void test_nothing_moved_is_not_the_end(void **state)
{
	static const ssize_t at_once[] = {0}, later[] = {8192, 0};

	(void)state;
	server_says(1, NULL, at_once);
	check_copy(SAMPLE_MIB, 1);
	assert_int_equal(c.result.literal_bytes, SAMPLE_MIB);
	server_says(2, NULL, later);
	check_copy(SAMPLE_MIB, 2);
	assert_int_equal(c.result.literal_bytes, SAMPLE_MIB - 8192);
}

/* The rest begins in the middle of a page, and is streamed. */
static void test_a_large_rest_is_streamed(void **state)
{
	static const ssize_t later[] = {1000001, 0};

	(void)state;
	server_says(2, NULL, later);
	check_copy(12 * SAMPLE_MIB + 7, 2);
	assert_int_equal(c.result.literal_bytes, 12 * SAMPLE_MIB + 7 - 1000001);
}

static void test_a_refusal_is_remembered(void **state)
{
	static const int errors[] = {EXDEV, EINVAL, EOPNOTSUPP, ENOSYS};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		memset(&memory, 0, sizeof memory);
		server_says(1, &errors[i], NULL);
		check_copy(SAMPLE_MIB, 1);
		assert_int_equal(c.result.literal_bytes, SAMPLE_MIB);
		check_copy(SAMPLE_MIB, 1); /* not called again */
	}
}

static void test_an_error_is_no_refusal(void **state)
{
	static const int first[] = {EIO}, later[] = {0, EIO};
	static const ssize_t most[] = {65536, 0};

	(void)state;
	server_says(1, first, NULL);
	check_copy(SAMPLE_MIB, 1);
	check_copy(SAMPLE_MIB, 2);
	server_says(2, later, most);
	check_copy(SAMPLE_MIB, 2);
	assert_int_equal(c.result.literal_bytes, SAMPLE_MIB - 65536);
}

static void test_a_stop_ends_it(void **state)
{
	static const ssize_t most[] = {4096};
	const struct tt_offload_request request = {.from_fd = -1,
		.to_fd = -1,
		.size_bytes = SAMPLE_MIB,
		.stop = &c.stop,
		.progress_bytes = &c.progress};
	uint64_t done;

	(void)state;
	server_says(1, NULL, most);
	server.moves_nothing = true;
	server.stop_at_call = &c.stop;
	assert_int_equal(tt_offload_copy(&request, &done), -ECANCELED);
	assert_int_equal(server.calls, 1);
}

/* Field cases 5 and 6: nowhere but on NFS, and never for a file that may not know its size. */
static void test_others_are_not_asked(void **state)
{
	struct stat st;

	(void)state;
	server_says(1, NULL, NULL);
	int from = sample_new(&c.scratch, "a", 100), to = sample_open(&c.scratch, "b");
	int other = open("/proc/version", O_RDONLY | O_CLOEXEC);

	assert_int_equal(fstat(from, &st), 0);
	assert_true(tt_offload_may(from, to, st.st_dev, &memory));
	server.is_nfs = false;
	assert_false(tt_offload_may(from, to, st.st_dev, &memory));
	check_copy(SAMPLE_MIB, 0);
	server.is_nfs = true;
	memset(&memory, 0, sizeof memory);
	c.reflink = TT_CLONE_NEVER;
	check_copy(SAMPLE_MIB, 0);
	c.reflink = TT_CLONE_AUTO;
	assert_int_equal(fstat(other, &st), 0);
	assert_false(tt_offload_may(other, to, st.st_dev, &memory)); /* another mount */
	check_copy(0, 0);
	(void)close(from);
	(void)close(to);
	(void)close(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_server_copies),
		TEST(test_short_answers_are_asked_on),
		TEST(test_no_call_is_larger_than_the_kernel_moves),
		TEST(test_nothing_moved_is_not_the_end),
		TEST(test_a_large_rest_is_streamed),
		TEST(test_a_refusal_is_remembered),
		TEST(test_an_error_is_no_refusal),
		TEST(test_a_stop_ends_it),
		TEST(test_others_are_not_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
