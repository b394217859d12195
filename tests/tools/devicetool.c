/* SPDX-License-Identifier: MIT */
/*
 * devicetool PATH...: what tt_device_get() says of each, one line.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sys/device.h"

int main(int argc, char **argv)
{
	struct tt_device_table *table = NULL;
	int status = 0;

	if (tt_device_table_new(&table) < 0)
		return 1;
	for (int i = 1; i < argc; i++) {
		struct tt_device device;
		int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
		int r = tt_device_get(table, fd, &device);

		if (fd >= 0)
			(void)close(fd);
		if (r < 0) {
			(void)fprintf(stderr, "%s: %s\n", argv[i], strerror(-r));
			status = 1;
			continue;
		}
		(void)printf("%s: %s %u:%u on \"%s\" (%u:%u) read-ahead %" PRIu64 "\n", argv[i],
			device.fs_type, device.fs_major, device.fs_minor, device.disk_name,
			major(device.disk), minor(device.disk), device.read_ahead_bytes);
	}
	tt_device_table_free(table);
	return status;
}
