/* SPDX-License-Identifier: MIT */
/*
 * One name in a directory and what statx said about it. Compact, because a directory of a million
 * names is a million of these: under 200 bytes for the pair of source and destination.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct statx;

struct tt_entry {
	const char *name; /* one path component; owned by the listing's arena */
	const char *link; /* target of a symbolic link, or NULL; owned likewise */
	uint64_t size_bytes;
	int64_t mtime_sec, atime_sec;
	uint32_t mtime_nsec, atime_nsec;
	uint32_t mode; /* type and permission bits; 0 in the permission bits where only the type is
			  known */
	uint32_t uid;
	uint32_t gid;
	uint64_t ino;
	uint32_t dev_major, dev_minor;   /* the file system it is on */
	uint32_t rdev_major, rdev_minor; /* of a device node */
	uint32_t nlink;
	uint32_t twin;  /* index of the same name in the other tree's listing, TT_ENTRY_NONE if it
			   has none */
	uint16_t layer; /* which of several merged source directories it came from */
	uint16_t flags; /* TT_ENTRY_* bits */
};

#define TT_ENTRY_NONE UINT32_MAX

enum {
	TT_ENTRY_SPARSE = 1 << 0,    /* fewer blocks than its size needs: look for holes */
	TT_ENTRY_SAME_LINK = 1 << 1, /* symbolic link whose twin has the same target */
	TT_ENTRY_SAME_DATA =
		1 << 2, /* regular file whose twin has the same checksum (only under -c) */
	TT_ENTRY_TYPE_ONLY = 1 << 3, /* only the type bits of mode are valid: statx was not asked */
	TT_ENTRY_VANISHED = 1 << 4,  /* was listed, then gone at statx */
	TT_ENTRY_CONTENTS =
		1 << 5, /* directory whose contents are transferred (not only its name) */
	TT_ENTRY_SKIP_GROUP = 1 << 6, /* its group is left alone, because we may not give it
					 (tt_meta_may_give_group) */
	TT_ENTRY_PINNED = 1 << 7, /* immutable or append-only: no name of it may be replaced, and in
				     such a directory none may be given or taken */
	TT_ENTRY_UNKNOWN_TWIN = 1 << 8, /* the destination has the name, and would not say what it
					   is: nothing is done about it */
};

/* Fills everything but name, link, twin, layer from a statx result. Any thread. */
void tt_entry_set(struct tt_entry *entry, const struct statx *stx);

/* rsync's order within one directory: everything that is no directory first, then the directories;
 * bytes are compared unsigned, a directory as if its name ended in '/' (rsync flist.c f_name_cmp,
 * described in its comments). Any thread. */
int tt_entry_compare(const struct tt_entry *a, const struct tt_entry *b);

static inline bool tt_entry_is_dir(const struct tt_entry *entry)
{
	return S_ISDIR(entry->mode);
}
