/* SPDX-License-Identifier: MIT */
/*
 * The inodes that the kernel remembers of a faultfs: an O_PATH descriptor each, and the name that
 * each was last known by. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define INODE_NAME_SIZE 256

struct inode {
	struct inode *next;
	int fd;
	dev_t dev;
	ino_t ino;
	uint64_t lookups;
	char name[INODE_NAME_SIZE];
};

/* The root. Returns false with errno. */
bool inode_begin(const char *directory);

/* The kernel's number of an inode, and back: its address, and 1 for the root. */
uint64_t inode_id(const struct inode *inode);
struct inode *inode_of(uint64_t id);

/* The inode that `fd` has open: a known one (`fd` is closed), or a new one that owns it. Counts one
 * lookup. NULL: no memory, `fd` is closed. */
struct inode *inode_find(int fd, const struct stat *st, const char *name);

/* It is known by another name now. */
void inode_rename(const struct stat *st, const char *name);

/* Copies the name (INODE_NAME_SIZE bytes). */
void inode_name(struct inode *inode, char *ret_name);

/* The kernel forgets so many lookups; with the last the inode goes. */
void inode_forget(struct inode *inode, uint64_t count);
