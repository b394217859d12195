/* SPDX-License-Identifier: MIT */
/*
 * Which disk a directory is on. st_dev does not say: partitions of one disk have different ones,
 * btrfs gives every subvolume an anonymous one, overlayfs hides the disk of its upper directory.
 * The mount table (libmount) and /sys/dev/block do.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tt_device_table;

struct tt_device {
	uint64_t disk; /* key: equal for file systems that share a disk; for a file system without a
			  block device its st_dev */
	uint32_t fs_major, fs_minor;
	bool has_disk;             /* a block device was found */
	uint64_t read_ahead_bytes; /* of the backing device, 128 KiB if unknown */
	char fs_type[32];   /* "ext4", "xfs", "btrfs", "overlay", "tmpfs", ...; "" if unknown */
	char disk_name[32]; /* "vda", "loop3", ...; "" without a disk */
};

/* Reads nothing yet. Returns 0 or -ENOMEM. */
int tt_device_table_new(struct tt_device_table **ret_table);
void tt_device_table_free(struct tt_device_table *table); /* accepts NULL */

/* Describes the file system of the open file or directory `fd`; remembered per file system. Any
 * thread (one lock). Returns 0 or a negative errno of fstat; what cannot be found out is filled
 * with the defaults above. */
int tt_device_get(struct tt_device_table *table, int fd, struct tt_device *ret_device);
