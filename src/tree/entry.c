/* SPDX-License-Identifier: MIT */
/*
 * What statx said, made compact, and the order of names within one directory.
 */
#include "tree/entry.h"

void tt_entry_set(struct tt_entry *entry, const struct statx *stx)
{
	entry->size_bytes = stx->stx_size;
	entry->mtime_sec = stx->stx_mtime.tv_sec;
	entry->mtime_nsec = stx->stx_mtime.tv_nsec;
	entry->atime_sec = stx->stx_atime.tv_sec;
	entry->atime_nsec = stx->stx_atime.tv_nsec;
	entry->mode = stx->stx_mode;
	entry->uid = stx->stx_uid;
	entry->gid = stx->stx_gid;
	entry->ino = stx->stx_ino;
	entry->dev_major = stx->stx_dev_major;
	entry->dev_minor = stx->stx_dev_minor;
	entry->rdev_major = stx->stx_rdev_major;
	entry->rdev_minor = stx->stx_rdev_minor;
	entry->nlink = stx->stx_nlink;
	entry->flags = 0;
	/* Compressed and inline files look sparse too; looking for holes that are not there costs
	 * one lseek. */
	if (S_ISREG(entry->mode) && stx->stx_blocks < stx->stx_size / 512)
		entry->flags |= TT_ENTRY_SPARSE;
	if (stx->stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND))
		entry->flags |= TT_ENTRY_PINNED;
}

int tt_entry_compare(const struct tt_entry *a, const struct tt_entry *b)
{
	const unsigned char *x = (const unsigned char *)a->name;
	const unsigned char *y = (const unsigned char *)b->name;
	bool dirs = tt_entry_is_dir(a);

	if (dirs != tt_entry_is_dir(b))
		return dirs ? 1 : -1;
	while (*x && *x == *y) {
		x++;
		y++;
	}
	if (*x == *y)
		return 0;
	/* One is a prefix of the other, or they differ here; a directory goes on with its '/'. A
	 * '/' cannot be in a name, so the two are never equal here. */
	unsigned c = *x ? *x : (dirs ? '/' : 0U);
	unsigned d = *y ? *y : (dirs ? '/' : 0U);
	return c < d ? -1 : 1;
}
