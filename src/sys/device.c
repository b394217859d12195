/* SPDX-License-Identifier: MIT */
/*
 * From st_dev to the disk: a block device number has a directory in /sys/dev/block, whose parent is
 * the disk if it is a partition and whose only slave is followed if it is mapped (LVM, LUKS). An
 * anonymous number (btrfs, overlay, tmpfs, NFS) is looked up in the mount table by the mount's
 * identity; what it was mounted from may be a block device.
 *
 * A mapping over several disks is a disk of its own. So is a loop device: it has a queue, a
 * writeback and perhaps a limit of its own, and what it hands on to the disk of its image has been
 * written by then. What is written into an overlay goes to its upper directory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libmount.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sys/device.h"
#include "sys/fd.h"

enum {
	DEVICE_READ_AHEAD_BYTES = 128 << 10, /* VM_READAHEAD_PAGES, include/linux/mm.h */
	DEVICE_SLAVES_DEPTH = 8,
	DEVICE_OVERLAYS_DEPTH = 4,
};

struct device_known {
	dev_t st_dev;
	struct tt_device device;
};

struct tt_device_table {
	pthread_mutex_t lock; /* guards everything below, and all use of libmount; a leaf */
	struct device_known *known;
	size_t count, capacity;
	struct libmnt_table *mounts; /* NULL until the first question */
};

int tt_device_table_new(struct tt_device_table **ret_table)
{
	struct tt_device_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	(void)pthread_mutex_init(&table->lock, NULL);
	*ret_table = table;
	return 0;
}

void tt_device_table_free(struct tt_device_table *table)
{
	if (!table)
		return;
	mnt_unref_table(table->mounts);
	(void)pthread_mutex_destroy(&table->lock);
	free(table->known);
	free(table);
}

/* ---- /sys ---- */

/* Reads a short file of sysfs. */
static bool device_read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return false;
	got = read(fd, text, size - 1);
	(void)close(fd);
	if (got <= 0)
		return false;
	text[got] = '\0';
	return true;
}

static bool device_read_number(const char *directory, const char *file, uint64_t *ret_number)
{
	char path[PATH_MAX], text[32], *end;
	unsigned long long number;

	if (snprintf(path, sizeof(path), "%s/%s", directory, file) >= (int)sizeof(path)
		|| !device_read_text(path, text, sizeof(text)))
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || end == text)
		return false;
	*ret_number = number;
	return true;
}

static bool device_exists_in(const char *directory, const char *file)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", directory, file) < (int)sizeof(path)
	       && access(path, F_OK) == 0;
}

/* The directory of the only device that this one is mapped to. */
static bool device_only_slave(const char *directory, char ret_directory[PATH_MAX])
{
	char path[PATH_MAX], link[PATH_MAX];
	unsigned count = 0;
	DIR *dir;

	if (snprintf(path, sizeof(path), "%s/slaves", directory) >= (int)sizeof(path))
		return false;
	dir = opendir(path);
	if (!dir)
		return false;
	for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		if (d->d_name[0] == '.')
			continue;
		count++;
		if (snprintf(link, sizeof(link), "%s/%s", path, d->d_name) >= (int)sizeof(link))
			count = 2;
	}
	(void)closedir(dir);
	return count == 1 && realpath(link, ret_directory);
}

/* Goes from a block device's directory up to the disk's. */
static void device_go_to_disk(char directory[PATH_MAX])
{
	char next[PATH_MAX];

	for (int depth = 0; depth < DEVICE_SLAVES_DEPTH; depth++) {
		if (device_exists_in(directory, "partition")) {
			char *slash = strrchr(directory, '/');

			if (slash && slash != directory)
				*slash = '\0';
		}
		if (!device_only_slave(directory, next))
			return;
		memcpy(directory, next, PATH_MAX);
	}
}

static bool device_set_disk(dev_t number, struct tt_device *device)
{
	char path[64], directory[PATH_MAX], file[PATH_MAX], text[32];
	unsigned disk_major, disk_minor;
	const char *name;
	uint64_t kib;

	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(number), minor(number));
	if (!realpath(path, directory))
		return false;
	/* The read-ahead that counts is that of the device that is mounted; a partition has its
	 * disk's. */
	if (device_read_number(directory, "queue/read_ahead_kb", &kib)
		|| device_read_number(directory, "../queue/read_ahead_kb", &kib))
		device->read_ahead_bytes = kib << 10;
	device_go_to_disk(directory);
	if (snprintf(file, sizeof(file), "%s/dev", directory) >= (int)sizeof(file)
		|| !device_read_text(file, text, sizeof(text))
		|| sscanf(text, "%u:%u", &disk_major, &disk_minor) != 2)
		return false;
	name = strrchr(directory, '/') + 1;
	(void)snprintf(device->disk_name, sizeof(device->disk_name), "%.*s",
		(int)sizeof(device->disk_name) - 1, name);
	device->disk = makedev(disk_major, disk_minor);
	device->has_disk = true;
	return true;
}

/* An anonymous file system has a read-ahead of its own: by its number (NFS, FUSE), or for btrfs in
 * /sys/fs/btrfs/UUID/bdi. `source` is the block device that is mounted, or 0. */
static void device_set_own_read_ahead(dev_t mounted, dev_t source, struct tt_device *device)
{
	char path[PATH_MAX], directory[PATH_MAX];
	uint64_t kib;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u", major(mounted), minor(mounted));
	if (device_read_number(path, "read_ahead_kb", &kib))
		device->read_ahead_bytes = kib << 10;
	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(source), minor(source));
	if (strcmp(device->fs_type, "btrfs") != 0 || !source || !realpath(path, directory))
		return;
	dir = opendir("/sys/fs/btrfs");
	if (!dir)
		return;
	for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		/* The devices of a file system are named as in /sys/block, partitions included:
		 * look for one on our disk. */
		(void)snprintf(path, sizeof(path), "/sys/fs/btrfs/%s/devices%s", d->d_name,
			strrchr(directory, '/'));
		if (access(path, F_OK) != 0)
			continue;
		(void)snprintf(path, sizeof(path), "/sys/fs/btrfs/%s/bdi", d->d_name);
		if (device_read_number(path, "read_ahead_kb", &kib))
			device->read_ahead_bytes = kib << 10;
	}
	(void)closedir(dir);
}

/* ---- the mount table; with the lock held ---- */

static struct libmnt_fs *device_find_mount(struct tt_device_table *table, uint64_t mount_id)
{
	struct libmnt_iter *iter;
	struct libmnt_fs *fs = NULL, *found = NULL;

	if (!table->mounts)
		return NULL;
	iter = mnt_new_iter(MNT_ITER_FORWARD);
	if (!iter)
		return NULL;
	while (!found && mnt_table_next_fs(table->mounts, iter, &fs) == 0) {
		if ((uint64_t)mnt_fs_get_id(fs) == mount_id)
			found = fs;
	}
	mnt_free_iter(iter);
	return found;
}

/* The mount that the file is on. One that is not in the table was mounted since it was read: it is
 * read once more. */
static struct libmnt_fs *device_mount_of(struct tt_device_table *table, int fd)
{
	struct libmnt_fs *fs;
	uint64_t id;

	if (tt_fd_mount_id(fd, &id) < 0)
		return NULL;
	fs = device_find_mount(table, id);
	if (fs)
		return fs;
	mnt_unref_table(table->mounts);
	table->mounts = mnt_new_table_from_file("/proc/self/mountinfo");
	return device_find_mount(table, id);
}

/* The upper directory as it stands in the mount options: commas and backslashes have a backslash
 * before them. It may not be visible from here. */
static int device_open_upper(struct libmnt_fs *fs)
{
	char path[PATH_MAX], *value;
	size_t size, length = 0;

	if (mnt_fs_get_option(fs, "upperdir", &value, &size) != 0 || !value || size >= sizeof(path))
		return -1;
	for (size_t i = 0; i < size; i++) {
		if (value[i] == '\\' && i + 1 < size)
			i++;
		path[length++] = value[i];
	}
	path[length] = '\0';
	return path[0] == '/' ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
}

static void device_describe(
	struct tt_device_table *table, int fd, dev_t st_dev, int depth, struct tt_device *device);

/* An overlay has no disk and no read-ahead but those of what is below. */
static void device_set_upper(
	struct tt_device_table *table, struct libmnt_fs *fs, int depth, struct tt_device *device)
{
	int fd = device_open_upper(fs); /* before the mount table may be read again */
	struct tt_device upper;
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0) {
		device_describe(table, fd, st.st_dev, depth + 1, &upper);
		device->disk = upper.disk;
		device->has_disk = upper.has_disk;
		device->read_ahead_bytes = upper.read_ahead_bytes;
		memcpy(device->disk_name, upper.disk_name, sizeof(device->disk_name));
	}
	(void)close(fd);
}

static void device_describe(
	struct tt_device_table *table, int fd, dev_t st_dev, int depth, struct tt_device *device)
{
	struct libmnt_fs *fs = device_mount_of(table, fd);
	const char *text = fs ? mnt_fs_get_fstype(fs) : NULL;
	dev_t source = 0;
	struct stat st;

	*device = (struct tt_device){
		.disk = st_dev,
		.fs_major = major(st_dev),
		.fs_minor = minor(st_dev),
		.read_ahead_bytes = DEVICE_READ_AHEAD_BYTES,
	};
	if (text)
		(void)snprintf(device->fs_type, sizeof(device->fs_type), "%s", text);
	if (major(st_dev) != 0 && device_set_disk(st_dev, device))
		return;
	if (!fs)
		return;
	if (strcmp(device->fs_type, "overlay") == 0) {
		if (depth < DEVICE_OVERLAYS_DEPTH)
			device_set_upper(table, fs, depth, device);
		return;
	}
	/* Only paths in /dev: the source of a network file system is a name, and looking at it
	 * could hang. */
	text = mnt_fs_get_srcpath(fs);
	if (text && strncmp(text, "/dev/", 5) == 0 && stat(text, &st) == 0 && S_ISBLK(st.st_mode)) {
		source = st.st_rdev;
		(void)device_set_disk(source, device);
	}
	device_set_own_read_ahead(mnt_fs_get_devno(fs), source, device);
}

static struct device_known *device_remember(struct tt_device_table *table)
{
	if (table->count == table->capacity) {
		size_t capacity = table->capacity ? table->capacity * 2 : 8;
		struct device_known *known = reallocarray(table->known, capacity, sizeof(*known));

		if (!known)
			return NULL;
		table->known = known;
		table->capacity = capacity;
	}
	return &table->known[table->count++];
}

int tt_device_get(struct tt_device_table *table, int fd, struct tt_device *ret_device)
{
	struct device_known *known;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	(void)pthread_mutex_lock(&table->lock);
	for (size_t i = 0; i < table->count; i++) {
		if (table->known[i].st_dev == st.st_dev) {
			*ret_device = table->known[i].device;
			goto out;
		}
	}
	device_describe(table, fd, st.st_dev, 0, ret_device);
	known = device_remember(table);
	/* Without memory it is found out again the next time. */
	if (known)
		*known = (struct device_known){.st_dev = st.st_dev, .device = *ret_device};
out:
	(void)pthread_mutex_unlock(&table->lock);
	return 0;
}
