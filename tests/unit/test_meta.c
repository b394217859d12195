/* SPDX-License-Identifier: MIT */
/*
 * What an inode has afterwards. The rules without -p, -o, -g and -t are those of rsync 3.5 (`rsync
 * -r`, `rsync -rt`, `rsync -a` over files made by hand with umask 027). Cases with foreign owners
 * need root.
 */
#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "check.h"
#include "scratch.h"
#include "tree/entry.h"
#include "tree/meta.h"

static const struct tt_meta_policy archive = {.perms = true,
	.times = true,
	.owner = true,
	.group = true,
	.umask_bits = 027,
	.is_super = true};
static const struct tt_meta_policy plain = {.umask_bits = 027, .is_super = true};
static const struct tt_meta_policy ordinary = {
	.perms = true, .times = true, .owner = true, .group = true, .umask_bits = 027};

static struct stat look(const struct scratch *scratch, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(scratch->fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st;
}

static struct tt_entry entry_of(const struct scratch *scratch, const char *name)
{
	struct tt_entry entry = {.name = name};
	struct statx stx;

	assert_int_equal(statx(scratch->fd, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &stx), 0);
	tt_entry_set(&entry, &stx);
	return entry;
}

static int make(const struct scratch *scratch, const char *name, mode_t mode)
{
	int fd = openat(scratch->fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	return fd;
}

static void need_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void test_mode_follows_the_options(void **state)
{
	const struct tt_entry wanted = {.mode = S_IFREG | 06777},
			      existing = {.mode = S_IFREG | 04640};
	const struct tt_entry dir = {.mode = S_IFDIR | 01777};

	(void)state;
	assert_int_equal(tt_meta_mode(&archive, &wanted, &existing), S_IFREG | 06777);
	assert_int_equal(tt_meta_mode(&plain, &wanted, &existing), S_IFREG | 04640);
	assert_int_equal(tt_meta_mode(&plain, &wanted, NULL), S_IFREG | 0750);
	assert_int_equal(tt_meta_mode(&plain, &wanted, &dir), S_IFREG | 0750);
	assert_int_equal(tt_meta_mode(&plain, &dir, NULL), S_IFDIR | 0750);
}

static void test_the_right_to_execute_follows_the_source(void **state)
{
	const struct tt_meta_policy executable = {.executability = true, .umask_bits = 027};
	const struct tt_entry yes = {.mode = S_IFREG | 0100}, no = {.mode = S_IFREG | 0644},
			      readable = {.mode = S_IFREG | 0640}, runs = {.mode = S_IFREG | 0751},
			      dir = {.mode = S_IFDIR | 0700};

	(void)state;
	assert_int_equal(tt_meta_mode(&executable, &yes, &readable), S_IFREG | 0750);
	assert_int_equal(tt_meta_mode(&executable, &yes, &runs), S_IFREG | 0751);
	assert_int_equal(tt_meta_mode(&executable, &no, &runs), S_IFREG | 0640);
	assert_int_equal(tt_meta_mode(&executable, &no, &readable), S_IFREG | 0640);
	assert_int_equal(tt_meta_mode(&executable, &dir, &dir), S_IFDIR | 0700);
	assert_int_equal(tt_meta_mode(&plain, &yes, &readable), S_IFREG | 0640);
}

static void test_times_of_access_and_those_that_are_left_out(void **state)
{
	const struct tt_meta_policy accessed = {.atimes = true, .times = true, .exact_times = true},
				    omitting = {.times = true,
					    .omit_dir_times = true,
					    .omit_link_times = true,
					    .exact_times = true};
	const struct tt_entry wanted = {.mode = S_IFREG | 0600,
				      .mtime_sec = 5,
				      .atime_sec = 7,
				      .atime_nsec = 8},
			      link = {.mode = S_IFLNK | 0777, .mtime_sec = 5};
	struct scratch scratch;
	enum tt_meta_step step;

	(void)state;
	scratch_open(&scratch);
	int fd = make(&scratch, "f", 0600);

	assert_int_equal(tt_meta_apply_fd(&accessed, fd, &wanted, NULL, &step), 0);
	struct stat st = look(&scratch, "f");

	assert_int_equal(st.st_atim.tv_sec, 7);
	assert_int_equal(st.st_atim.tv_nsec, 8);
	assert_int_equal(st.st_mtim.tv_sec, 5);
	assert_int_equal(symlinkat("x", scratch.fd, "l"), 0);
	assert_int_equal(tt_meta_apply_at(&omitting, scratch.fd, "l", &link, NULL, &step), 0);
	assert_true(look(&scratch, "l").st_mtim.tv_sec > 5);
	close(fd);
	scratch_close(&scratch);
}

static void test_everything_arrives_under_archive(void **state)
{
	const struct tt_entry wanted = {.mode = S_IFREG | 06755,
		.uid = 5,
		.gid = 6,
		.mtime_sec = 1577836800,
		.mtime_nsec = 123456789};
	enum tt_meta_step step;
	struct scratch scratch;
	struct stat st;
	int fd;

	(void)state;
	need_root();
	scratch_open(&scratch);
	fd = make(&scratch, "f", 0600);
	assert_int_equal(tt_meta_apply_fd(&archive, fd, &wanted, NULL, &step), 0);
	st = look(&scratch, "f");
	assert_int_equal(st.st_mode, S_IFREG | 06755);
	assert_int_equal(st.st_uid, 5);
	assert_int_equal(st.st_gid, 6);
	assert_int_equal(st.st_mtim.tv_sec, 1577836800);
	assert_int_equal(st.st_mtim.tv_nsec, 123456789);
	/* The mode is right already, but chown takes the setuid bit away. */
	assert_int_equal(fchown(fd, 0, 0), 0);
	assert_int_equal(fchmod(fd, 06755), 0);
	assert_int_equal(tt_meta_apply_fd(&archive, fd, &wanted, NULL, &step), 0);
	st = look(&scratch, "f");
	assert_int_equal(st.st_mode, S_IFREG | 06755);
	assert_int_equal(st.st_uid, 5);
	(void)close(fd);
	scratch_close(&scratch);
}

static void test_what_is_right_is_not_touched(void **state)
{
	struct scratch scratch;
	enum tt_meta_step step;
	struct tt_entry wanted;
	struct stat before, after;
	int fd;

	(void)state;
	scratch_open(&scratch);
	fd = make(&scratch, "f", 0640);
	wanted = entry_of(&scratch, "f");
	before = look(&scratch, "f");
	(void)usleep(20000);
	assert_int_equal(tt_meta_apply_fd(&archive, fd, &wanted, NULL, &step), 0);
	assert_int_equal(tt_meta_apply_at(&archive, scratch.fd, "f", &wanted, &wanted, &step), 0);
	after = look(&scratch, "f");
	assert_memory_equal(&before.st_ctim, &after.st_ctim, sizeof(after.st_ctim));
	(void)close(fd);
	scratch_close(&scratch);
}

static void test_nothing_but_the_mode_without_options(void **state)
{
	const struct tt_entry wanted = {.mode = S_IFREG | 0666, .uid = 5, .gid = 6, .mtime_sec = 1};
	struct scratch scratch;
	enum tt_meta_step step;
	struct stat before, after;
	int fd;

	(void)state;
	scratch_open(&scratch);
	fd = make(&scratch, "f", 0600);
	before = look(&scratch, "f");
	assert_int_equal(tt_meta_apply_fd(&plain, fd, &wanted, NULL, &step), 0);
	after = look(&scratch, "f");
	assert_int_equal(after.st_mode, S_IFREG | 0640);
	assert_int_equal(after.st_uid, before.st_uid);
	assert_int_equal(after.st_gid, before.st_gid);
	assert_int_equal(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
	(void)close(fd);
	scratch_close(&scratch);
}

static void test_a_new_directory_keeps_the_setgid_bit_it_was_born_with(void **state)
{
	const struct tt_entry wanted = {.mode = S_IFDIR | 0755};
	struct tt_meta_policy perms = plain;
	struct scratch scratch;
	enum tt_meta_step step;

	(void)state;
	perms.perms = true;
	scratch_open(&scratch);
	assert_int_equal(mkdirat(scratch.fd, "d", 0700), 0);
	assert_int_equal(fchmodat(scratch.fd, "d", 02700, 0), 0);
	assert_int_equal(tt_meta_apply_at(&plain, scratch.fd, "d", &wanted, NULL, &step), 0);
	assert_int_equal(look(&scratch, "d").st_mode, S_IFDIR | 02750);
	assert_int_equal(tt_meta_apply_at(&perms, scratch.fd, "d", &wanted, NULL, &step), 0);
	assert_int_equal(look(&scratch, "d").st_mode, S_IFDIR | 0755);
	scratch_close(&scratch);
}

static void test_a_setuid_bit_does_not_change_hands(void **state)
{
	const struct tt_entry wanted = {.mode = S_IFREG | 0644};
	struct tt_entry existing = {.mode = S_IFREG | 06755, .uid = 5, .gid = 6};
	struct scratch scratch;
	enum tt_meta_step step;
	int fd;

	(void)state;
	scratch_open(&scratch);
	fd = make(&scratch, "f", 0600);
	assert_int_equal(tt_meta_apply_fd(&plain, fd, &wanted, &existing, &step), 0);
	assert_int_equal(look(&scratch, "f").st_mode, S_IFREG | 0755);
	existing.uid = geteuid();
	existing.gid = look(&scratch, "f").st_gid;
	assert_int_equal(tt_meta_apply_fd(&plain, fd, &wanted, &existing, &step), 0);
	assert_int_equal(look(&scratch, "f").st_mode, S_IFREG | 06755);
	(void)close(fd);
	scratch_close(&scratch);
}

static void test_less_than_a_second_is_left_alone_where_nothing_was_written(void **state)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000, .tv_nsec = 5}};
	struct scratch scratch;
	enum tt_meta_step step;
	struct tt_entry wanted, existing;
	int fd;

	(void)state;
	scratch_open(&scratch);
	fd = make(&scratch, "f", 0600);
	assert_int_equal(futimens(fd, times), 0);
	existing = entry_of(&scratch, "f");
	wanted = existing;
	wanted.mtime_nsec = 7;
	assert_int_equal(tt_meta_apply_fd(&ordinary, fd, &wanted, &existing, &step), 0);
	assert_int_equal(look(&scratch, "f").st_mtim.tv_nsec, 5);
	assert_int_equal(tt_meta_apply_fd(&ordinary, fd, &wanted, NULL, &step), 0);
	assert_int_equal(look(&scratch, "f").st_mtim.tv_nsec, 7);
	(void)close(fd);
	scratch_close(&scratch);
}

static void test_a_link_is_changed_and_not_what_it_points_to(void **state)
{
	struct scratch scratch;
	enum tt_meta_step step;
	struct tt_entry wanted;
	struct stat st;

	(void)state;
	scratch_open(&scratch);
	(void)close(make(&scratch, "f", 0600));
	assert_int_equal(symlinkat("f", scratch.fd, "l"), 0);
	wanted = entry_of(&scratch, "l");
	wanted.mtime_sec = 1000;
	wanted.mode = S_IFLNK | 0700;
	wanted.uid = 5;
	assert_int_equal(tt_meta_apply_at(geteuid() ? &ordinary : &archive, scratch.fd, "l",
				 &wanted, NULL, &step),
		0);
	st = look(&scratch, "l");
	assert_int_equal(st.st_mtim.tv_sec, 1000);
	assert_int_equal(st.st_uid, geteuid() ? geteuid() : 5);
	st = look(&scratch, "f");
	assert_int_not_equal(st.st_mtim.tv_sec, 1000);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(st.st_uid, geteuid());
	scratch_close(&scratch);
}

static void test_a_fifo_gets_its_mode_by_name(void **state)
{
	struct scratch scratch;
	enum tt_meta_step step;
	struct tt_entry wanted;

	(void)state;
	scratch_open(&scratch);
	assert_int_equal(mkfifoat(scratch.fd, "p", 0600), 0);
	wanted = entry_of(&scratch, "p");
	wanted.mode = S_IFIFO | 0644;
	wanted.mtime_sec = 1000;
	assert_int_equal(tt_meta_apply_at(&ordinary, scratch.fd, "p", &wanted, NULL, &step), 0);
	assert_int_equal(look(&scratch, "p").st_mode, S_IFIFO | 0644);
	assert_int_equal(look(&scratch, "p").st_mtim.tv_sec, 1000);
	scratch_close(&scratch);
}

static void test_a_name_that_became_a_link_is_refused(void **state)
{
	const struct tt_entry wanted = {.mode = S_IFIFO | 0666};
	struct scratch scratch;
	enum tt_meta_step step;

	(void)state;
	scratch_open(&scratch);
	(void)close(make(&scratch, "f", 0600));
	assert_int_equal(symlinkat("f", scratch.fd, "p"), 0);
	assert_int_equal(
		tt_meta_apply_at(&archive, scratch.fd, "p", &wanted, NULL, &step), -ESTALE);
	assert_int_equal(look(&scratch, "f").st_mode, S_IFREG | 0600);
	scratch_close(&scratch);
}

/* An ordinary user's -a: the owner and a group that one is not in are left without a word, the rest
 * is set; and an inode of somebody else's fails at the first step and tries the others. */
static void test_an_ordinary_user_sets_what_is_theirs(void **state)
{
	struct tt_entry wanted = {.mode = S_IFREG | 0604, .uid = 5, .gid = 6, .mtime_sec = 1000};
	struct scratch scratch;
	enum tt_meta_step step = TT_META_TIMES;
	struct stat st;
	int fd, foreign;

	(void)state;
	need_root();
	scratch_open(&scratch);
	assert_int_equal(fchmod(scratch.fd, 0755), 0);
	foreign = make(&scratch, "foreign", 0600);
	fd = make(&scratch, "f", 0600);
	assert_int_equal(fchown(fd, 65534, 65534), 0);
	assert_int_equal(setegid(65534), 0);
	assert_int_equal(seteuid(65534), 0);
	assert_int_equal(tt_meta_apply_fd(&ordinary, fd, &wanted, NULL, &step), 0);
	st = look(&scratch, "f");
	assert_int_equal(st.st_mode, S_IFREG | 0604);
	assert_int_equal(st.st_uid, 65534);
	assert_int_equal(st.st_gid, 65534);
	assert_int_equal(st.st_mtim.tv_sec, 1000);
	assert_int_equal(tt_meta_apply_fd(&ordinary, foreign, &wanted, NULL, &step), -EPERM);
	assert_int_equal(step, TT_META_MODE);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(setegid(0), 0);
	(void)close(fd);
	(void)close(foreign);
	scratch_close(&scratch);
}

static void test_an_error_does_not_stop_the_later_steps(void **state)
{
	/* Believing to be the super-user and being refused is the way to a failing chown. */
	struct tt_entry wanted = {
		.mode = S_IFREG | 04604, .uid = 5, .gid = 65534, .mtime_sec = 1000};
	struct scratch scratch;
	enum tt_meta_step step = TT_META_TIMES;
	struct stat st;
	int fd;

	(void)state;
	need_root();
	scratch_open(&scratch);
	fd = make(&scratch, "f", 0600);
	assert_int_equal(fchown(fd, 65534, 65534), 0);
	assert_int_equal(seteuid(65534), 0);
	assert_int_equal(tt_meta_apply_fd(&archive, fd, &wanted, NULL, &step), -EPERM);
	assert_int_equal(step, TT_META_OWNER);
	assert_string_equal(tt_meta_step_text(step), "setting owner of");
	assert_int_equal(seteuid(0), 0);
	st = look(&scratch, "f");
	/* Not setuid: it has another owner than it should. */
	assert_int_equal(st.st_mode, S_IFREG | 0604);
	assert_int_equal(st.st_mtim.tv_sec, 1000);
	(void)close(fd);
	scratch_close(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mode_follows_the_options),
		cmocka_unit_test(test_the_right_to_execute_follows_the_source),
		cmocka_unit_test(test_times_of_access_and_those_that_are_left_out),
		cmocka_unit_test(test_everything_arrives_under_archive),
		cmocka_unit_test(test_what_is_right_is_not_touched),
		cmocka_unit_test(test_nothing_but_the_mode_without_options),
		cmocka_unit_test(test_a_new_directory_keeps_the_setgid_bit_it_was_born_with),
		cmocka_unit_test(test_a_setuid_bit_does_not_change_hands),
		cmocka_unit_test(test_less_than_a_second_is_left_alone_where_nothing_was_written),
		cmocka_unit_test(test_a_link_is_changed_and_not_what_it_points_to),
		cmocka_unit_test(test_a_fifo_gets_its_mode_by_name),
		cmocka_unit_test(test_a_name_that_became_a_link_is_refused),
		cmocka_unit_test(test_an_ordinary_user_sets_what_is_theirs),
		cmocka_unit_test(test_an_error_does_not_stop_the_later_steps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
