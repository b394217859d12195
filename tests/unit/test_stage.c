/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "check.h"
#include "scratch.h"
#include "tree/alias.h"
#include "tree/stage.h"

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

static bool locks_as_nfs;

int __wrap_flock(int fd, int operation)
{
	if (locks_as_nfs && (operation & LOCK_EX) && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) {
		errno = EBADF;
		return -1;
	}
	return __real_flock(fd, operation);
}

static bool has(const struct scratch *scratch, const char *name)
{
	struct stat st;

	return fstatat(scratch->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void test_names_have_the_form_and_fit(void **state)
{
	char temp[TT_STAGE_NAME_SIZE], long_name[256];

	(void)state;
	tt_stage_name("file", temp);
	assert_int_equal(strlen(temp), strlen(".file.tt-XXXXXX"));
	assert_memory_equal(temp, ".file.tt-", 9);
	assert_true(tt_stage_is_temporary(temp));
	for (size_t length = 240; length <= 255; length++) {
		memset(long_name, 'x', length);
		long_name[length] = '\0';
		tt_stage_name(long_name, temp);
		assert_true(strlen(temp) <= 255);
		assert_true(tt_stage_is_temporary(temp));
	}
	/* 85 characters of three bytes: the cut falls between two of them. */
	for (size_t i = 0; i < 255; i += 3)
		memcpy(long_name + i, "\xe2\x82\xac", 3);
	tt_stage_name(long_name, temp);
	assert_int_equal((strlen(temp) - strlen("..tt-XXXXXX")) % 3, 0);
}

static void test_only_the_form_is_a_temporary(void **state)
{
	static const char *const others[] = {"", ".", "..", ".tt-abcdef", "f.tt-abcdef",
		".f.tt-abcde", ".f.tt-abcdef~", ".f.tt-abc.ef", ".f.tu-abcdef", ".f.tt-abcdefg",
		".f.XXXXXX", ".notes.tt-backup", ".f.tt-aZ09xY"};
	char temp[TT_STAGE_NAME_SIZE];

	(void)state;
	tt_stage_name("f", temp);
	assert_true(tt_stage_is_temporary(temp));
	temp[1] = 'g'; /* another's */
	assert_false(tt_stage_is_temporary(temp));
	tt_stage_name(".tt-abcdef", temp);
	assert_true(tt_stage_is_temporary(temp));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(tt_stage_is_temporary(others[i]));
}

static void test_names_differ(void **state)
{
	char a[TT_STAGE_NAME_SIZE], b[TT_STAGE_NAME_SIZE];

	(void)state;
	tt_stage_name("n", a);
	for (int i = 0; i < 1000; i++) {
		tt_stage_name("n", b);
		assert_string_not_equal(a, b);
	}
}

static int create_in(const struct scratch *scratch, char *temp, int *ret_fd)
{
	struct stat st;

	return tt_stage_create(scratch->fd, "f", 0640, temp, ret_fd, &st);
}

static void test_a_file_arrives_in_one_step(void **state)
{
	struct scratch scratch;
	char temp[TT_STAGE_NAME_SIZE], text[8] = "";
	struct stat st;
	int fd = -1;

	(void)state;
	scratch_open(&scratch);
	scratch_write(&scratch, "f", "old");
	assert_int_equal(create_in(&scratch, temp, &fd), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(fd, "new", 3), 3);
	assert_int_equal(tt_stage_arrive(scratch.fd, temp, "f", false), 0);
	(void)close(fd);
	fd = openat(scratch.fd, "f", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof(text)), 3);
	assert_string_equal(text, "new");
	(void)close(fd);
	assert_int_equal(scratch_count(&scratch), 1);
	assert_int_equal(tt_stage_arrive(scratch.fd, temp, "f", false), -ENOENT);
	scratch_close(&scratch);
}

static void test_a_new_name_is_given_once_and_replaced_if_spelled_alike(void **state)
{
	/* The last two cannot be judged by their other case. */
	static const char *const names[] = {"f", "123", "\xc3\xa9"};
	struct scratch scratch;
	char temp[TT_STAGE_NAME_SIZE];
	int fd = -1;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		scratch_open(&scratch);
		for (int again = 0; again < 2; again++) {
			assert_int_equal(create_in(&scratch, temp, &fd), 0);
			(void)close(fd);
			assert_int_equal(tt_stage_arrive(scratch.fd, temp, names[i], true), 0);
			assert_int_equal(scratch_count(&scratch), 1);
		}
		assert_int_equal(tt_stage_arrive(scratch.fd, temp, names[i], true), -ENOENT);
		scratch_close(&scratch);
	}
}

static void test_a_name_is_looked_for_as_it_is_spelled(void **state)
{
	struct scratch scratch;
	char other[TT_ALIAS_NAME_SIZE];

	(void)state;
	scratch_open(&scratch);
	assert_int_equal(tt_alias_look(scratch.fd, "name", other), -ENOENT);
	scratch_write(&scratch, "name", "");
	scratch_write(&scratch, "NAME", "");
	scratch_write(&scratch, "end.", "");
	assert_int_equal(tt_alias_look(scratch.fd, "name", other), 0);
	assert_int_equal(tt_alias_look(scratch.fd, "NAME", other), 0);
	assert_int_equal(tt_alias_look(scratch.fd, "end.", other), 0);
	assert_int_equal(tt_alias_look(scratch.fd, "Name", other), -ENOENT);
	/* The nearest thing to another spelling that every file system has. */
	assert_int_equal(tt_alias_look(scratch.fd, "./name", other), 1);
	assert_string_equal(other, "name");
	scratch_close(&scratch);
}

static void test_a_temporary_tells_its_group_no_more_than_everybody(void **state)
{
	(void)state;
	assert_int_equal(tt_stage_early_mode(0644), 0644);
	assert_int_equal(tt_stage_early_mode(04755), 0755);
	assert_int_equal(tt_stage_early_mode(0640), 0600);
	assert_int_equal(tt_stage_early_mode(0604), 0600);
	assert_int_equal(tt_stage_early_mode(0600), 0600);
}

static void test_two_names_of_one_inode_leave_no_temporary(void **state)
{
	struct scratch scratch;
	char temp[TT_STAGE_NAME_SIZE];

	(void)state;
	scratch_open(&scratch);
	scratch_write(&scratch, "f", "x");
	tt_stage_name("f", temp);
	assert_int_equal(linkat(scratch.fd, "f", scratch.fd, temp, 0), 0);
	assert_int_equal(tt_stage_arrive_link(scratch.fd, temp, "f", false), 0);
	assert_true(has(&scratch, "f"));
	assert_int_equal(scratch_count(&scratch), 1);
	scratch_close(&scratch);
}

static void test_a_failed_arrival_keeps_the_temporary(void **state)
{
	struct scratch scratch;
	char temp[TT_STAGE_NAME_SIZE];
	int fd = -1;

	(void)state;
	scratch_open(&scratch);
	assert_int_equal(mkdirat(scratch.fd, "f", 0755), 0);
	assert_int_equal(create_in(&scratch, temp, &fd), 0);
	assert_int_equal(tt_stage_arrive(scratch.fd, temp, "f", false), -EISDIR);
	assert_true(has(&scratch, temp));
	(void)close(fd);
	scratch_close(&scratch);
}

static void test_sweep_takes_the_dead_and_spares_the_living(void **state)
{
	struct scratch scratch;
	char temp[TT_STAGE_NAME_SIZE];
	int fd = -1;

	(void)state;
	scratch_open(&scratch);
	assert_int_equal(create_in(&scratch, temp, &fd), 0);
	assert_int_equal(tt_stage_sweep(scratch.fd, temp), 1);
	assert_true(has(&scratch, temp));
	(void)close(fd);
	assert_int_equal(tt_stage_sweep(scratch.fd, temp), 0);
	assert_int_equal(tt_stage_sweep(scratch.fd, temp), 0);
	assert_int_equal(scratch_count(&scratch), 0);
	scratch_close(&scratch);
}

static void test_sweep_locks_as_nfs_wants_it(void **state)
{
	(void)state;
	locks_as_nfs = true;
	test_sweep_takes_the_dead_and_spares_the_living(NULL);
	locks_as_nfs = false;
}

static void test_sweep_removes_only_temporaries_that_are_no_directories(void **state)
{
	char directory[TT_STAGE_NAME_SIZE], link[TT_STAGE_NAME_SIZE], fifo[TT_STAGE_NAME_SIZE];
	struct scratch scratch;

	(void)state;
	scratch_open(&scratch);
	scratch_write(&scratch, "precious", "x");
	scratch_write(&scratch, ".notes.tt-backup", "x");
	tt_stage_name("d", directory);
	tt_stage_name("l", link);
	tt_stage_name("p", fifo);
	assert_int_equal(mkdirat(scratch.fd, directory, 0755), 0);
	assert_int_equal(symlinkat("precious", scratch.fd, link), 0);
	assert_int_equal(mkfifoat(scratch.fd, fifo, 0600), 0);
	assert_int_equal(tt_stage_sweep(scratch.fd, "precious"), 1);
	assert_int_equal(tt_stage_sweep(scratch.fd, ".notes.tt-backup"), 1);
	assert_int_equal(tt_stage_sweep(scratch.fd, directory), 1);
	assert_int_equal(tt_stage_sweep(scratch.fd, link), 0);
	assert_int_equal(tt_stage_sweep(scratch.fd, fifo), 0);
	assert_true(has(&scratch, "precious"));
	assert_true(has(&scratch, ".notes.tt-backup"));
	assert_true(has(&scratch, directory));
	assert_int_equal(scratch_count(&scratch), 3);
	scratch_close(&scratch);
}

struct race {
	struct scratch *scratch;
	int stop;
};

static void *sweep_without_end(void *argument)
{
	struct race *race = argument;

	while (!__atomic_load_n(&race->stop, __ATOMIC_ACQUIRE)) {
		DIR *dir = opendir(race->scratch->path);

		for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir)) {
			if (tt_stage_is_temporary(d->d_name))
				(void)tt_stage_sweep(race->scratch->fd, d->d_name);
		}
		if (dir)
			(void)closedir(dir);
	}
	return NULL;
}

/* A sweep of another run never takes what tt_stage_create() has returned. */
static void test_a_sweep_at_the_same_time_does_not_take_new_temporaries(void **state)
{
	struct scratch scratch;
	struct race race = {.scratch = &scratch};
	pthread_t thread;
	unsigned lost = 0;

	(void)state;
	scratch_open(&scratch);
	assert_int_equal(pthread_create(&thread, NULL, sweep_without_end, &race), 0);
	for (int i = 0; i < 3000; i++) {
		char temp[TT_STAGE_NAME_SIZE];
		int fd = -1;

		if (create_in(&scratch, temp, &fd) < 0
			|| tt_stage_arrive(scratch.fd, temp, "f", false) < 0)
			lost++;
		if (fd >= 0)
			(void)close(fd);
	}
	__atomic_store_n(&race.stop, 1, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(lost, 0);
	scratch_close(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_have_the_form_and_fit),
		cmocka_unit_test(test_only_the_form_is_a_temporary),
		cmocka_unit_test(test_names_differ),
		cmocka_unit_test(test_a_file_arrives_in_one_step),
		cmocka_unit_test(test_a_new_name_is_given_once_and_replaced_if_spelled_alike),
		cmocka_unit_test(test_a_name_is_looked_for_as_it_is_spelled),
		cmocka_unit_test(test_a_temporary_tells_its_group_no_more_than_everybody),
		cmocka_unit_test(test_two_names_of_one_inode_leave_no_temporary),
		cmocka_unit_test(test_a_failed_arrival_keeps_the_temporary),
		cmocka_unit_test(test_sweep_takes_the_dead_and_spares_the_living),
		cmocka_unit_test(test_sweep_locks_as_nfs_wants_it),
		cmocka_unit_test(test_sweep_removes_only_temporaries_that_are_no_directories),
		cmocka_unit_test(test_a_sweep_at_the_same_time_does_not_take_new_temporaries),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
