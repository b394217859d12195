/* SPDX-License-Identifier: MIT */
/*
 * Against the machine that it runs on: what /proc and /tmp are is known or can be asked another
 * way. btrfs on a loop device needs root and is looked at by hand with devicetool.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "check.h"
#include "sys/device.h"

static void test_proc_has_no_disk(void **state)
{
	struct tt_device_table *table = NULL;
	struct tt_device device;
	struct stat st;
	int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(tt_device_table_new(&table), 0);
	assert_int_equal(tt_device_get(table, fd, &device), 0);
	assert_string_equal(device.fs_type, "proc");
	assert_false(device.has_disk);
	assert_string_equal(device.disk_name, "");
	assert_int_equal(device.disk, st.st_dev);
	assert_int_equal(device.fs_minor, minor(st.st_dev));
	assert_true(device.read_ahead_bytes > 0);
	(void)close(fd);
	tt_device_table_free(table);
	tt_device_table_free(NULL);
}

static void test_a_file_system_on_a_disk_names_it(void **state)
{
	struct tt_device_table *table = NULL;
	struct tt_device device, again;
	char path[128];
	struct stat st;
	int fd = open("/var/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	if (fd < 0 || fstat(fd, &st) < 0 || major(st.st_dev) == 0)
		skip();
	assert_int_equal(tt_device_table_new(&table), 0);
	assert_int_equal(tt_device_get(table, fd, &device), 0);
	assert_true(device.has_disk);
	assert_true(device.fs_type[0] != '\0');
	/* A whole disk is in /sys/block, a partition is not. */
	(void)snprintf(path, sizeof(path), "/sys/block/%s", device.disk_name);
	assert_int_equal(access(path, F_OK), 0);
	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/queue", major(device.disk),
		minor(device.disk));
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(tt_device_get(table, fd, &again), 0);
	assert_memory_equal(&device, &again, sizeof(device));
	(void)close(fd);
	tt_device_table_free(table);
}

static void test_a_closed_descriptor_is_an_error(void **state)
{
	struct tt_device_table *table = NULL;
	struct tt_device device;

	(void)state;
	assert_int_equal(tt_device_table_new(&table), 0);
	assert_int_equal(tt_device_get(table, -1, &device), -EBADF);
	tt_device_table_free(table);
}

static const char *const places[] = {"/", "/proc", "/dev", "/sys", "/tmp", "/dev/shm", "/run"};

static void *ask_for_all(void *argument)
{
	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			int fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			struct tt_device device;
			struct stat st;

			if (fd < 0)
				continue;
			if (tt_device_get(argument, fd, &device) < 0 || fstat(fd, &st) < 0
				|| makedev(device.fs_major, device.fs_minor) != st.st_dev) {
				(void)close(fd);
				return argument;
			}
			(void)close(fd);
		}
	}
	return NULL;
}

static void test_any_thread_may_ask(void **state)
{
	struct tt_device_table *table = NULL;
	pthread_t threads[4];

	(void)state;
	assert_int_equal(tt_device_table_new(&table), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_for_all, table), 0);
	for (int i = 0; i < 4; i++) {
		void *failed = NULL;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	tt_device_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_proc_has_no_disk),
		cmocka_unit_test(test_a_file_system_on_a_disk_names_it),
		cmocka_unit_test(test_a_closed_descriptor_is_an_error),
		cmocka_unit_test(test_any_thread_may_ask),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
