/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "scratch.h"
#include "tree/stage.h"
#include "tree/sweep.h"

enum {
	LONG_NS = 2000000000, /* more than any test waits */
};

static struct tt_sweep *new_sweep(void)
{
	struct tt_sweep *sweep = NULL;

	assert_int_equal(tt_sweep_new(&sweep), 0);
	return sweep;
}

static bool has(int dir_fd, const char *name)
{
	return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int locked(int dir_fd, char *ret_temp)
{
	struct stat st;
	int fd = -1;

	assert_int_equal(tt_stage_create(dir_fd, "f", 0600, ret_temp, &fd, &st), 0);
	return fd;
}

static int make_dir(const struct scratch *scratch, const char *name)
{
	int fd;

	assert_int_equal(mkdirat(scratch->fd, name, 0755), 0);
	fd = openat(scratch->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void age(int dir_fd)
{
	const struct timespec old[2] = {{.tv_nsec = UTIME_OMIT}, {1234567890, 123456789}};

	assert_int_equal(futimens(dir_fd, old), 0);
}

static void assert_old(int dir_fd)
{
	struct stat st;

	assert_int_equal(fstat(dir_fd, &st), 0);
	assert_int_equal(st.st_mtim.tv_sec, 1234567890);
	assert_int_equal(st.st_mtim.tv_nsec, 123456789);
}

static void test_what_was_locked_goes_when_its_lock_has_gone(void **state)
{
	char free_name[TT_STAGE_NAME_SIZE], here[TT_STAGE_NAME_SIZE], below[TT_STAGE_NAME_SIZE];
	struct tt_sweep *sweep = new_sweep();
	struct scratch scratch;
	int a, b, sub;

	(void)state;
	scratch_open(&scratch);
	sub = make_dir(&scratch, "sub");
	(void)close(locked(scratch.fd, free_name));
	a = locked(scratch.fd, here);
	b = locked(sub, below);
	age(scratch.fd);
	age(sub);
	assert_int_equal(tt_sweep_name(sweep, scratch.fd, "", scratch.fd, free_name), 0);
	assert_int_equal(tt_sweep_name(sweep, scratch.fd, "", scratch.fd, here), 1);
	assert_int_equal(tt_sweep_name(sweep, scratch.fd, "sub", sub, below), 1);
	assert_false(has(scratch.fd, free_name));
	assert_old(scratch.fd);
	assert_int_equal(tt_sweep_again(sweep, 0, NULL), 2);
	assert_true(has(scratch.fd, here));
	(void)close(b);
	assert_int_equal(tt_sweep_again(sweep, 0, NULL), 1);
	assert_false(has(sub, below));
	assert_true(has(scratch.fd, here));
	(void)close(a);
	assert_int_equal(tt_sweep_again(sweep, 0, NULL), 0);
	assert_false(has(scratch.fd, here));
	assert_old(scratch.fd);
	assert_old(sub);
	assert_int_equal(unlinkat(scratch.fd, "sub", AT_REMOVEDIR), 0);
	(void)close(sub);
	tt_sweep_free(sweep);
	scratch_close(&scratch);
}

static void *close_soon(void *argument)
{
	const struct timespec soon = {.tv_nsec = 30000000};

	(void)nanosleep(&soon, NULL);
	(void)close(*(int *)argument);
	return NULL;
}

static void test_a_lock_that_goes_soon_is_waited_for(void **state)
{
	char temp[TT_STAGE_NAME_SIZE];
	struct tt_sweep *sweep = new_sweep();
	struct scratch scratch;
	pthread_t thread;
	int fd;

	(void)state;
	scratch_open(&scratch);
	fd = locked(scratch.fd, temp);
	assert_int_equal(tt_sweep_name(sweep, scratch.fd, "", scratch.fd, temp), 1);
	assert_int_equal(pthread_create(&thread, NULL, close_soon, &fd), 0);
	assert_int_equal(tt_sweep_again(sweep, LONG_NS, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(scratch_count(&scratch), 0);
	tt_sweep_free(sweep);
	scratch_close(&scratch);
}

static void test_whoever_is_told_to_stop_looks_once(void **state)
{
	char temp[TT_STAGE_NAME_SIZE], other[TT_STAGE_NAME_SIZE];
	struct tt_sweep *sweep = new_sweep();
	_Atomic bool stop = true;
	struct scratch scratch;
	int fd, gone;

	(void)state;
	scratch_open(&scratch);
	fd = locked(scratch.fd, temp);
	gone = locked(scratch.fd, other);
	assert_int_equal(tt_sweep_name(sweep, scratch.fd, "", scratch.fd, temp), 1);
	assert_int_equal(tt_sweep_name(sweep, scratch.fd, "", scratch.fd, other), 1);
	(void)close(gone);
	assert_int_equal(tt_sweep_again(sweep, UINT64_MAX / 2, &stop), 1);
	assert_false(has(scratch.fd, other));
	(void)close(fd);
	tt_sweep_free(sweep);
	scratch_close(&scratch);
}

/* Paths are those of an hour ago, perhaps. */
static void test_directories_that_have_gone_are_no_error_and_links_lead_nowhere(void **state)
{
	char lost[TT_STAGE_NAME_SIZE], kept[TT_STAGE_NAME_SIZE];
	struct tt_sweep *sweep = new_sweep();
	struct scratch scratch;
	int gone, moved, a, b;

	(void)state;
	scratch_open(&scratch);
	gone = make_dir(&scratch, "gone");
	moved = make_dir(&scratch, "moved");
	a = locked(gone, lost);
	b = locked(moved, kept);
	assert_int_equal(tt_sweep_name(sweep, scratch.fd, "gone", gone, lost), 1);
	assert_int_equal(tt_sweep_name(sweep, scratch.fd, "moved", moved, kept), 1);
	(void)close(a);
	(void)close(b);
	assert_int_equal(unlinkat(gone, lost, 0), 0);
	assert_int_equal(unlinkat(scratch.fd, "gone", AT_REMOVEDIR), 0);
	assert_int_equal(renameat(scratch.fd, "moved", scratch.fd, "elsewhere"), 0);
	assert_int_equal(symlinkat("elsewhere", scratch.fd, "moved"), 0);
	assert_int_equal(tt_sweep_again(sweep, LONG_NS, NULL), 0);
	assert_true(has(moved, kept));
	assert_int_equal(unlinkat(moved, kept, 0), 0);
	assert_int_equal(unlinkat(scratch.fd, "elsewhere", AT_REMOVEDIR), 0);
	(void)close(gone);
	(void)close(moved);
	tt_sweep_free(sweep);
	scratch_close(&scratch);
}

static void test_so_many_are_remembered_and_no_more(void **state)
{
	char temp[TT_STAGE_NAME_SIZE], link[TT_STAGE_NAME_SIZE], name[16];
	struct tt_sweep *sweep = new_sweep();
	struct scratch scratch;
	int fd;

	(void)state;
	scratch_open(&scratch);
	fd = locked(scratch.fd, temp);
	for (unsigned i = 0; i < 4200; i++) {
		(void)snprintf(name, sizeof name, "%u", i);
		tt_stage_name(name, link);
		assert_int_equal(linkat(scratch.fd, temp, scratch.fd, link, 0), 0);
		assert_int_equal(tt_sweep_name(sweep, scratch.fd, "", scratch.fd, link), 1);
	}
	assert_int_equal(tt_sweep_name(sweep, scratch.fd, "", scratch.fd, link), 1);
	assert_int_equal(tt_sweep_again(sweep, 0, NULL), 4096);
	(void)close(fd);
	assert_int_equal(tt_sweep_again(sweep, 0, NULL), 0);
	assert_int_equal(scratch_count(&scratch), 4200 - 4096 + 1);
	tt_sweep_free(sweep);
	tt_sweep_free(NULL);
	scratch_close(&scratch);
}

/* By a thread that is on its way out, after the directory was listed. */
static void test_what_is_made_later_is_found_where_there_was_something_to_do(void **state)
{
	char late[TT_STAGE_NAME_SIZE], met[TT_STAGE_NAME_SIZE], living[TT_STAGE_NAME_SIZE],
		directory[TT_STAGE_NAME_SIZE];
	struct tt_sweep *sweep = new_sweep();
	struct scratch scratch;
	int sub, fd;

	(void)state;
	scratch_open(&scratch);
	sub = make_dir(&scratch, "sub");
	tt_stage_name("d", directory);
	assert_int_equal(mkdirat(sub, directory, 0755), 0);
	tt_sweep_note(sweep, scratch.fd, "sub");
	tt_sweep_note(sweep, scratch.fd, "gone");
	(void)close(locked(sub, late));
	/* Nothing tells of another run: nobody looks. */
	assert_int_equal(tt_sweep_again(sweep, LONG_NS, NULL), 0);
	assert_true(has(sub, late));
	(void)close(locked(scratch.fd, met));
	assert_int_equal(tt_sweep_name(sweep, scratch.fd, "", scratch.fd, met), 0);
	fd = locked(sub, living);
	age(sub);
	assert_int_equal(tt_sweep_again(sweep, 0, NULL), 1);
	assert_false(has(sub, late));
	assert_true(has(sub, living));
	assert_true(has(sub, directory));
	assert_old(sub);
	(void)close(fd);
	assert_int_equal(tt_sweep_again(sweep, 0, NULL), 0);
	assert_false(has(sub, living));
	assert_int_equal(unlinkat(sub, directory, AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(scratch.fd, "sub", AT_REMOVEDIR), 0);
	(void)close(sub);
	tt_sweep_free(sweep);
	scratch_close(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_locked_goes_when_its_lock_has_gone),
		cmocka_unit_test(test_a_lock_that_goes_soon_is_waited_for),
		cmocka_unit_test(test_whoever_is_told_to_stop_looks_once),
		cmocka_unit_test(
			test_directories_that_have_gone_are_no_error_and_links_lead_nowhere),
		cmocka_unit_test(test_what_is_made_later_is_found_where_there_was_something_to_do),
		cmocka_unit_test(test_so_many_are_remembered_and_no_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
