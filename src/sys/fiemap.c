/* SPDX-License-Identifier: MIT */
/*
 * See fiemap.h.
 */
#include "sys/fiemap.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include "sys/facility.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* What the kernel fills: a head and, behind it, extents. */
union fiemap_request {
	struct fiemap head;
	char room[sizeof(struct fiemap) + TT_FIEMAP_EXTENTS * sizeof(struct fiemap_extent)];
};

void tt_fiemap_init(struct tt_fiemap *map, int fd)
{
	map->fd = fd;
	map->next_bytes = 0;
	map->count = map->at = 0;
	map->last = false;
}

/* Fetches extents from next_bytes on. Returns 1, 0 at the end, or a negative errno. */
static int fiemap_fetch(struct tt_fiemap *map)
{
	union fiemap_request request;

	if (map->last)
		return 0;
	if (tt_facility_is_refused(TT_FACILITY_FIEMAP))
		return -EOPNOTSUPP;
	memset(&request.head, 0, sizeof request.head);
	request.head.fm_start = map->next_bytes;
	request.head.fm_length = FIEMAP_MAX_OFFSET - map->next_bytes;
	request.head.fm_extent_count = TT_FIEMAP_EXTENTS;
	if (ioctl(map->fd, FS_IOC_FIEMAP, &request) < 0) {
		int error = -errno;

		if (tt_facility_may_be_refusal(error))
			tt_facility_refuse(TT_FACILITY_FIEMAP, error);
		return error;
	}
	map->at = 0;
	map->count = request.head.fm_mapped_extents;
	map->last = map->count == 0;
	for (unsigned i = 0; i < map->count; i++) {
		const struct fiemap_extent *extent = &request.head.fm_extents[i];

		map->extents[i].offset = extent->fe_logical;
		map->extents[i].bytes = extent->fe_length;
		map->extents[i].flags = extent->fe_flags;
		map->next_bytes = extent->fe_logical + extent->fe_length;
		if (extent->fe_flags & FIEMAP_EXTENT_LAST)
			map->last = true;
	}
	return map->count > 0;
}

/* The next extent, without taking it. */
static int fiemap_peek(struct tt_fiemap *map)
{
	return map->at < map->count ? 1 : fiemap_fetch(map);
}

int tt_fiemap_next_unwritten(struct tt_fiemap *map, uint64_t *ret_offset, uint64_t *ret_bytes)
{
	uint64_t start = 0, end = 0;
	int r;

	while ((r = fiemap_peek(map)) > 0) {
		uint64_t offset = map->extents[map->at].offset;
		bool unwritten = map->extents[map->at].flags & FIEMAP_EXTENT_UNWRITTEN;

		if (end > start && (!unwritten || offset != end))
			break;
		if (unwritten) {
			if (end == start)
				start = offset;
			end = offset + map->extents[map->at].bytes;
		}
		map->at++;
	}
	if (r < 0)
		return r;
	*ret_offset = start;
	*ret_bytes = end - start;
	return end > start;
}

bool tt_fiemap_is_asked_for(int fd)
{
	struct fsxattr attributes;
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0 || (unsigned long)fs.f_type != XFS_SUPER_MAGIC)
		return true;
	return ioctl(fd, FS_IOC_FSGETXATTR, &attributes) == 0
	       && (attributes.fsx_xflags & FS_XFLAG_PREALLOC);
}
