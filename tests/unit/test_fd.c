/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "check.h"
#include "sample.h"
#include "scratch.h"
#include "sys/facility.h"
#include "sys/fd.h"

static void test_a_link_is_never_followed(void **state)
{
	struct scratch scratch;

	(void)state;
	scratch_open(&scratch);
	scratch_write(&scratch, "file", "text");
	assert_int_equal(mkdirat(scratch.fd, "dir", 0755), 0);
	assert_int_equal(symlinkat("file", scratch.fd, "to-file"), 0);
	assert_int_equal(symlinkat("dir", scratch.fd, "to-dir"), 0);
	assert_int_equal(symlinkat("nothing", scratch.fd, "to-nothing"), 0);
	assert_int_equal(tt_fd_open_read(scratch.fd, "to-file"), -ELOOP);
	assert_int_equal(tt_fd_open_read(scratch.fd, "to-nothing"), -ELOOP);
	assert_true(tt_fd_open_dir(scratch.fd, "to-dir") == -ENOTDIR
		    || tt_fd_open_dir(scratch.fd, "to-dir") == -ELOOP);
	int r = tt_fd_open_beneath(scratch.fd, "to-dir");

	assert_true(r == -ENOTDIR || r == -ELOOP);
	scratch_close(&scratch);
}

static void test_a_directory_is_a_directory(void **state)
{
	struct scratch scratch;

	(void)state;
	scratch_open(&scratch);
	scratch_write(&scratch, "file", "text");
	assert_int_equal(mkdirat(scratch.fd, "dir", 0755), 0);
	assert_int_equal(tt_fd_open_dir(scratch.fd, "file"), -ENOTDIR);
	assert_int_equal(tt_fd_open_dir(scratch.fd, "nothing"), -ENOENT);
	TT_FD_AUTO fd = tt_fd_open_dir(scratch.fd, "dir");

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	scratch_close(&scratch);
}

static void test_a_fifo_does_not_block(void **state)
{
	struct scratch scratch;
	struct stat st;

	(void)state;
	scratch_open(&scratch);
	assert_int_equal(mkfifoat(scratch.fd, "fifo", 0644), 0);
	(void)alarm(10);
	TT_FD_AUTO fd = tt_fd_open_read(scratch.fd, "fifo");

	(void)alarm(0);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	scratch_close(&scratch);
}

static void test_reading_leaves_the_access_time(void **state)
{
	struct scratch scratch;
	struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 2000}};
	struct stat st;
	char byte;

	(void)state;
	scratch_open(&scratch);
	scratch_write(&scratch, "file", "text");
	assert_int_equal(utimensat(scratch.fd, "file", old, 0), 0);
	TT_FD_AUTO fd = tt_fd_open_read(scratch.fd, "file");

	assert_int_equal(tt_fd_pread(fd, &byte, 1, 0, 0), 1);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_atim.tv_sec, 1000);
	scratch_close(&scratch);
}

static void make_tree(struct scratch *scratch)
{
	scratch_open(scratch);
	assert_int_equal(mkdirat(scratch->fd, "a", 0755), 0);
	assert_int_equal(mkdirat(scratch->fd, "a/b", 0755), 0);
	assert_int_equal(mkdirat(scratch->fd, "a/b/c", 0755), 0);
	assert_int_equal(symlinkat("b", scratch->fd, "a/link"), 0);
	assert_int_equal(symlinkat("/", scratch->fd, "a/out"), 0);
}

static void remove_tree(struct scratch *scratch)
{
	static const char *const dirs[] = {"a/b/c", "a/b", "a"};

	(void)unlinkat(scratch->fd, "a/link", 0);
	(void)unlinkat(scratch->fd, "a/out", 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(unlinkat(scratch->fd, dirs[i], AT_REMOVEDIR), 0);
	scratch_close(scratch);
}

static void test_beneath_goes_down_only(void **state)
{
	static const char *const outside[] = {"..", "a/../..", "../a", "/", "/tmp", "a/b/../../.."};
	struct scratch scratch;
	struct stat want, got;

	(void)state;
	make_tree(&scratch);
	TT_FD_AUTO fd = tt_fd_open_beneath(scratch.fd, "a/b/c");

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &got), 0);
	assert_int_equal(fstatat(scratch.fd, "a/b/c", &want, 0), 0);
	assert_int_equal(got.st_ino, want.st_ino);
	for (unsigned i = 0; i < sizeof outside / sizeof *outside; i++)
		assert_int_equal(tt_fd_open_beneath(scratch.fd, outside[i]), -EXDEV);
	assert_int_equal(tt_fd_open_beneath(scratch.fd, "a/nothing"), -ENOENT);
	remove_tree(&scratch);
}

static void test_beneath_passes_no_link_on_the_way(void **state)
{
	struct scratch scratch;

	(void)state;
	make_tree(&scratch);
	assert_int_equal(tt_fd_open_beneath(scratch.fd, "a/link/c"), -ELOOP);
	assert_int_equal(tt_fd_open_beneath(scratch.fd, "a/out/tmp"), -ELOOP);
	remove_tree(&scratch);
}

/* A path that openat2 refuses as too long is walked component by component: the same rules. */
static void test_a_very_long_path_is_walked_by_the_same_rules(void **state)
{
	struct scratch scratch;
	char path[8192] = "";

	(void)state;
	make_tree(&scratch);
	for (unsigned i = 0; i < 2500; i++)
		strcpy(path + 2 * i, "./");
	strcpy(path + 5000, "a/b/c");
	TT_FD_AUTO fd = tt_fd_open_beneath(scratch.fd, path);

	assert_true(fd >= 0);
	strcpy(path + 5000, "a/../a/b");
	assert_int_equal(tt_fd_open_beneath(scratch.fd, path), -EXDEV);
	strcpy(path + 5000, "a/link/c");
	int r = tt_fd_open_beneath(scratch.fd, path);

	assert_true(r == -ENOTDIR || r == -ELOOP);
	remove_tree(&scratch);
}

static void test_statx_sees_the_link_itself(void **state)
{
	struct scratch scratch;
	struct statx stx;

	(void)state;
	scratch_open(&scratch);
	assert_int_equal(symlinkat("nothing", scratch.fd, "link"), 0);
	assert_int_equal(tt_fd_statx(scratch.fd, "link", &stx), 0);
	assert_true(S_ISLNK(stx.stx_mode));
	assert_int_equal(tt_fd_statx(scratch.fd, "none", &stx), -ENOENT);
	scratch_close(&scratch);
}

/* Without what is only there sometimes, and what may differ: the time of the look itself. */
static bool same_basics(const struct statx *a, const struct statx *b)
{
	return a->stx_mode == b->stx_mode && a->stx_nlink == b->stx_nlink
	       && a->stx_uid == b->stx_uid && a->stx_gid == b->stx_gid && a->stx_ino == b->stx_ino
	       && a->stx_size == b->stx_size && a->stx_blocks == b->stx_blocks
	       && a->stx_mtime.tv_sec == b->stx_mtime.tv_sec
	       && a->stx_mtime.tv_nsec == b->stx_mtime.tv_nsec
	       && a->stx_ctime.tv_nsec == b->stx_ctime.tv_nsec
	       && a->stx_rdev_major == b->stx_rdev_major && a->stx_rdev_minor == b->stx_rdev_minor
	       && a->stx_dev_major == b->stx_dev_major && a->stx_dev_minor == b->stx_dev_minor
	       && b->stx_mask == STATX_BASIC_STATS;
}

/* In a child: a refusal is for the process. Returns the number of the first thing that is wrong. */
static int without_new_calls(struct scratch *scratch)
{
	static const char *const names[] = {"file", "link", "a", "", "fifo"};
	struct statx with, without;
	uint64_t id, other_id;
	struct stat st;

	if (tt_fd_mount_id(scratch->fd, &id) < 0)
		return 1;
	for (unsigned i = 0; i < 5; i++) {
		if (syscall(SYS_statx, scratch->fd, names[i], AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH,
			    STATX_BASIC_STATS, &with)
			< 0)
			return 2;
		tt_facility_refuse(TT_FACILITY_STATX, -ENOSYS);
		if (tt_fd_statx(scratch->fd, names[i], &without) < 0
			|| !same_basics(&with, &without))
			return 3;
	}
	if (tt_fd_statx(scratch->fd, "none", &without) != -ENOENT)
		return 4;
	if (tt_fd_mount_id(scratch->fd, &other_id) < 0 || id != other_id)
		return 5;
	tt_facility_refuse(TT_FACILITY_OPENAT2, -EPERM);
	if (tt_fd_open_beneath(scratch->fd, "a/b/c") < 0
		|| tt_fd_open_beneath(scratch->fd, "a/b/../../..") != -EXDEV
		|| tt_fd_open_beneath(scratch->fd, "a/link/c") >= 0
		|| tt_fd_open_beneath(scratch->fd, "a/out/tmp") >= 0)
		return 6;
	tt_facility_refuse(TT_FACILITY_FCHMODAT2, -ENOSYS);
	if (tt_fd_chmod_at(scratch->fd, "fifo", 0741) < 0
		|| fstatat(scratch->fd, "fifo", &st, 0) < 0 || (st.st_mode & 07777) != 0741)
		return 7;
	return tt_fd_chmod_at(scratch->fd, "link", 0777) == -EOPNOTSUPP ? 0 : 8;
}

static void test_without_newer_calls_the_answers_are_the_same(void **state)
{
	struct scratch scratch;
	int status;

	(void)state;
	make_tree(&scratch);
	scratch_write(&scratch, "file", "text");
	assert_int_equal(symlinkat("nothing", scratch.fd, "link"), 0);
	assert_int_equal(mkfifoat(scratch.fd, "fifo", 0600), 0);
	assert_int_equal(tt_fd_chmod_at(scratch.fd, "fifo", 0640), 0);
	pid_t child = fork();

	if (child == 0)
		_exit(without_new_calls(&scratch));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(status, 0);
	remove_tree(&scratch);
}

static void test_getdents_gives_every_name_once(void **state)
{
	struct scratch scratch;
	unsigned seen = 0;
	char buffer[1024], name[16];
	ssize_t n;

	(void)state;
	scratch_open(&scratch);
	for (unsigned i = 0; i < 300; i++) {
		(void)snprintf(name, sizeof name, "f%u", i);
		scratch_write(&scratch, name, "");
	}
	TT_FD_AUTO fd = tt_fd_open_dir(scratch.fd, ".");

	while ((n = tt_fd_getdents(fd, buffer, sizeof buffer)) > 0) {
		for (ssize_t at = 0; at < n;) {
			struct tt_fd_dirent *d = (void *)(buffer + at);

			seen += d->name[0] == 'f';
			at += d->record_length;
		}
	}
	assert_int_equal(n, 0);
	assert_int_equal(seen, 300);
	assert_int_equal(tt_fd_getdents(-1, buffer, sizeof buffer), -EBADF);
	scratch_close(&scratch);
}

static void test_the_limit_becomes_the_hard_one(void **state)
{
	struct rlimit before, after;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	struct rlimit low = {.rlim_cur = 64, .rlim_max = before.rlim_max};

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	unsigned limit = tt_fd_raise_limit();

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &after), 0);
	assert_int_equal(after.rlim_cur, after.rlim_max);
	assert_int_equal(limit, after.rlim_cur);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void test_writing_all_writes_all(void **state)
{
	struct scratch scratch;
	unsigned char data[10000];
	int ends[2];

	(void)state;
	scratch_open(&scratch);
	TT_FD_AUTO fd = sample_open(&scratch, "file");

	sample_fill(data, 0, sizeof data);
	assert_int_equal(tt_fd_pwrite_all(fd, data, sizeof data, 0, 0), 0);
	assert_true(sample_is(fd, 0, sizeof data));
	assert_int_equal(tt_fd_pwrite_all(fd, data, 0, 0, 0), 0);
	assert_int_equal(tt_fd_pwrite_all(-1, data, 1, 0, 0), -EBADF);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(tt_fd_pwrite_all(ends[1], data, 1, 0, 0), -ESPIPE);
	(void)close(ends[0]);
	(void)close(ends[1]);
	scratch_close(&scratch);
}

static void test_what_is_written_in_place_is_never_behind_a_link(void **state)
{
	struct scratch scratch;
	struct stat st;

	(void)state;
	scratch_open(&scratch);
	scratch_write(&scratch, "file", "text");
	assert_int_equal(symlinkat("file", scratch.fd, "to-file"), 0);
	assert_int_equal(symlinkat("nothing", scratch.fd, "to-nothing"), 0);
	assert_int_equal(mkfifoat(scratch.fd, "fifo", 0644), 0);
	assert_int_equal(tt_fd_open_update(scratch.fd, "to-file"), -ELOOP);
	assert_int_equal(tt_fd_open_update(scratch.fd, "to-nothing"), -ELOOP);
	assert_int_equal(tt_fd_open_update(scratch.fd, "nothing"), -ENOENT);
	assert_int_equal(tt_fd_create(scratch.fd, "to-nothing"), -EEXIST);
	assert_int_equal(tt_fd_create(scratch.fd, "file"), -EEXIST);
	(void)alarm(10);
	tt_fd_close(tt_fd_open_update(scratch.fd, "fifo"));
	(void)alarm(0);
	TT_FD_AUTO fd = tt_fd_open_update(scratch.fd, "file");

	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 4);
	TT_FD_AUTO made = tt_fd_create(scratch.fd, "nothing");

	assert_int_equal(fstat(made, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	scratch_close(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_link_is_never_followed),
		cmocka_unit_test(test_a_directory_is_a_directory),
		cmocka_unit_test(test_a_fifo_does_not_block),
		cmocka_unit_test(test_reading_leaves_the_access_time),
		cmocka_unit_test(test_beneath_goes_down_only),
		cmocka_unit_test(test_beneath_passes_no_link_on_the_way),
		cmocka_unit_test(test_a_very_long_path_is_walked_by_the_same_rules),
		cmocka_unit_test(test_statx_sees_the_link_itself),
		cmocka_unit_test(test_without_newer_calls_the_answers_are_the_same),
		cmocka_unit_test(test_getdents_gives_every_name_once),
		cmocka_unit_test(test_the_limit_becomes_the_hard_one),
		cmocka_unit_test(test_writing_all_writes_all),
		cmocka_unit_test(test_what_is_written_in_place_is_never_behind_a_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
