/* SPDX-License-Identifier: MIT */
/*
 * See faultfs_inode.h.
 */
#include "faultfs_inode.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUCKETS 65536
#define ROOT_ID 1 /* FUSE_ROOT_ID */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct inode *table[BUCKETS];
static struct inode root = {.name = "/"};

bool inode_begin(const char *directory)
{
	root.fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root.fd >= 0;
}

uint64_t inode_id(const struct inode *inode)
{
	return inode == &root ? ROOT_ID : (uintptr_t)inode;
}

struct inode *inode_of(uint64_t id)
{
	return id == ROOT_ID ? &root : (struct inode *)(uintptr_t)id; /* NOLINT: as libfuse does */
}

static struct inode **bucket_of(const struct stat *st)
{
	return &table[(st->st_ino * 2654435761U + st->st_dev) % BUCKETS];
}

static struct inode *find(const struct stat *st)
{
	struct inode *inode = *bucket_of(st);

	while (inode && (inode->ino != st->st_ino || inode->dev != st->st_dev)) {
		inode = inode->next;
	}
	return inode;
}

struct inode *inode_find(int fd, const struct stat *st, const char *name)
{
	struct inode *inode;

	pthread_mutex_lock(&lock);
	inode = find(st);
	if (inode) {
		close(fd);
	} else if ((inode = calloc(1, sizeof(*inode)))) {
		struct inode **bucket = bucket_of(st);

		inode->fd = fd;
		inode->dev = st->st_dev;
		inode->ino = st->st_ino;
		inode->next = *bucket;
		*bucket = inode;
	} else {
		close(fd);
	}
	if (inode) {
		inode->lookups++;
		strncpy(inode->name, name, sizeof(inode->name) - 1);
	}
	pthread_mutex_unlock(&lock);
	return inode;
}

void inode_rename(const struct stat *st, const char *name)
{
	struct inode *inode;

	pthread_mutex_lock(&lock);
	inode = find(st);
	if (inode) {
		strncpy(inode->name, name, sizeof(inode->name) - 1);
	}
	pthread_mutex_unlock(&lock);
}

void inode_name(struct inode *inode, char *ret_name)
{
	pthread_mutex_lock(&lock);
	memcpy(ret_name, inode->name, INODE_NAME_SIZE);
	pthread_mutex_unlock(&lock);
}

void inode_forget(struct inode *inode, uint64_t count)
{
	pthread_mutex_lock(&lock);
	if (inode == &root || (inode->lookups -= count) > 0) {
		pthread_mutex_unlock(&lock);
		return;
	}
	struct inode **at = &table[(inode->ino * 2654435761U + inode->dev) % BUCKETS];

	while (*at != inode) {
		at = &(*at)->next;
	}
	*at = inode->next;
	pthread_mutex_unlock(&lock);
	close(inode->fd);
	free(inode);
}
