/* SPDX-License-Identifier: MIT */
/*
 * See direct.h. Debian 12's headers know the fields, older ones do not: the kernel's struct statx
 * is 256 bytes whose layout does not change (include/uapi/linux/stat.h).
 */
#include "sys/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "sys/facility.h"

#define DIRECT_STATX_DIOALIGN 0x2000u /* Linux 6.1 */
#define DIRECT_FUSE_MAGIC     0x65735546

enum {
	DIRECT_MOST_BYTES = 65536, /* chunks are multiples of it */
	DIRECT_EXTENTS = 64,
	DIRECT_MOST_ASKS = 1024, /* a file in more pieces is not worth the time */
};

struct direct_statx {
	uint32_t mask;
	unsigned char before[0x98 - 4];
	uint32_t dio_mem_align, dio_offset_align; /* at 0x98 */
	unsigned char after[256 - 0xa0];
};
_Static_assert(sizeof(struct direct_statx) == 256, "the kernel writes so much");

static bool direct_is_sane(uint32_t bytes, uint32_t most)
{
	return bytes > 0 && bytes <= most && (bytes & (bytes - 1)) == 0;
}

void tt_direct_ask(int fd, struct tt_direct *ret_direct)
{
	struct direct_statx stx;

	*ret_direct = (struct tt_direct){0};
	if (tt_facility_is_refused(TT_FACILITY_DIOALIGN))
		return;
	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, DIRECT_STATX_DIOALIGN,
		    &stx)
		< 0) {
		if (tt_facility_may_be_refusal(-errno))
			tt_facility_refuse(TT_FACILITY_DIOALIGN, -errno);
		return;
	}
	if (!(stx.mask & DIRECT_STATX_DIOALIGN))
		return;
	/* Buffers here are aligned to pages. */
	if (!direct_is_sane(stx.dio_mem_align, 4096)
		|| !direct_is_sane(stx.dio_offset_align, DIRECT_MOST_BYTES))
		return;
	ret_direct->memory_bytes = stx.dio_mem_align;
	ret_direct->offset_bytes = stx.dio_offset_align;
}

static bool direct_is_plain(const struct fiemap_extent *extent)
{
	const uint32_t other = FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC
			       | FIEMAP_EXTENT_ENCODED | FIEMAP_EXTENT_DATA_ENCRYPTED
			       | FIEMAP_EXTENT_NOT_ALIGNED | FIEMAP_EXTENT_DATA_INLINE
			       | FIEMAP_EXTENT_DATA_TAIL;

	return (extent->fe_flags & other) == 0;
}

/* Looks at all extents of the file. */
static bool direct_is_all_plain(int fd)
{
	union {
		struct fiemap map;
		char room[sizeof(struct fiemap) + DIRECT_EXTENTS * sizeof(struct fiemap_extent)];
	} ask;
	uint64_t start = 0;

	for (unsigned i = 0; i < DIRECT_MOST_ASKS; i++) {
		memset(&ask, 0, sizeof ask);
		ask.map.fm_start = start;
		ask.map.fm_length = FIEMAP_MAX_OFFSET - start;
		ask.map.fm_extent_count = DIRECT_EXTENTS;
		if (ioctl(fd, FS_IOC_FIEMAP, &ask.map) < 0) {
			if (tt_facility_may_be_refusal(-errno))
				tt_facility_refuse(TT_FACILITY_FIEMAP, -errno);
			return false;
		}
		if (ask.map.fm_mapped_extents == 0)
			return true;
		for (unsigned e = 0; e < ask.map.fm_mapped_extents; e++) {
			const struct fiemap_extent *extent = &ask.map.fm_extents[e];

			if (!direct_is_plain(extent))
				return false;
			if (extent->fe_flags & FIEMAP_EXTENT_LAST)
				return true;
			start = extent->fe_logical + extent->fe_length;
		}
	}
	return false;
}

/* It asks the other program, whatever the alignment (fs/fuse/file.c, fuse_direct_IO). */
static bool direct_is_fuse(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == DIRECT_FUSE_MAGIC;
}

void tt_direct_guess(int fd, struct tt_direct *ret_direct)
{
	struct stat st;

	*ret_direct = (struct tt_direct){0};
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	if (direct_is_fuse(fd)) {
		*ret_direct = (struct tt_direct){.memory_bytes = 1, .offset_bytes = 1};
		return;
	}
	uint32_t bytes = st.st_blksize > 4096 ? (uint32_t)st.st_blksize : 4096;

	if (!tt_facility_is_refused(TT_FACILITY_FIEMAP) && direct_is_sane(bytes, DIRECT_MOST_BYTES)
		&& direct_is_all_plain(fd))
		*ret_direct = (struct tt_direct){.memory_bytes = 4096, .offset_bytes = bytes};
}

void tt_direct_touch(void *buffer, uint64_t bytes)
{
	volatile char *at = buffer;

	for (uint64_t i = 0; i < bytes; i += 4096)
		at[i] = 0;
}

int tt_direct_set(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = on ? flags | O_DIRECT : flags & ~O_DIRECT;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}
