/* SPDX-License-Identifier: MIT */
/*
 * See extents.h.
 */
#include "copy/extents.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	EXTENTS_YOUNG_SEC = 60, /* ZFS writes what is dirty after 5 s, under load later */
};

enum tt_extents_trust tt_extents_trust(const char *fs_type, const struct stat *st, time_t now_sec)
{
	/* Local file systems that know unwritten extents. */
	static const char *const asked[] = {"ext4", "xfs", "btrfs", "f2fs", "overlay", "tmpfs",
		"ext3", "ext2", "gfs2", "ocfs2", "bcachefs"};
	bool young = st->st_mtim.tv_sec > now_sec - EXTENTS_YOUNG_SEC
		     || st->st_ctim.tv_sec > now_sec - EXTENTS_YOUNG_SEC;

	for (unsigned i = 0; i < sizeof asked / sizeof *asked; i++) {
		if (strcmp(fs_type, asked[i]) == 0)
			return TT_EXTENTS_ASK;
	}
	/* ZFS, FUSE and servers tell of what they have been given: what is still dirty here or
	 * there is a hole to them (FUSE with a writeback cache: st_blocks and SEEK_DATA are the
	 * server's). */
	return young ? TT_EXTENTS_ZEROS : TT_EXTENTS_BLOCKS;
}

bool tt_extents_has_holes(int fd, const struct stat *st, enum tt_extents_trust trust)
{
	off_t block = st->st_blksize > 0 && st->st_blksize < 4096 ? st->st_blksize : 4096;
	off_t hole;

	switch (trust) {
	case TT_EXTENTS_NOTHING:
	case TT_EXTENTS_ZEROS:
		return false;
	case TT_EXTENTS_BLOCKS:
		return st->st_size > 4096 && st->st_blocks * 512 < st->st_size;
	case TT_EXTENTS_ASK:
		break;
	}
	/* One block that is there is either written or as good as. */
	if (st->st_size == 0 || (st->st_size <= block && st->st_blocks > 0))
		return false;
	hole = lseek(fd, 0, SEEK_HOLE);
	return hole >= 0 && hole < st->st_size;
}

void tt_extents_init(struct tt_extents *extents, int fd, uint64_t size_bytes, bool sparse)
{
	*extents = (struct tt_extents){.fd = fd, .sparse = sparse, .size_bytes = size_bytes};
	if (!sparse)
		extents->hole_bytes = size_bytes;
}

void tt_extents_start(struct tt_extents *extents, uint64_t start_bytes)
{
	extents->start_bytes = start_bytes;
	extents->data_bytes = start_bytes;
	if (extents->sparse)
		extents->hole_bytes = start_bytes;
}

/* Finds the part after the present one. */
static int extents_seek(struct tt_extents *extents)
{
	off_t data = lseek(extents->fd, (off_t)extents->hole_bytes, SEEK_DATA);

	if (data < 0 && errno == ENXIO) /* nothing but a hole from here to the end */
		return 0;
	if (data < 0 && errno == EINVAL
		&& extents->hole_bytes == extents->start_bytes) { /* the file system cannot tell */
		extents->sparse = false;
		extents->hole_bytes = extents->size_bytes;
		return 1;
	}
	if (data < 0)
		return -errno;
	off_t hole = lseek(extents->fd, data, SEEK_HOLE);

	if (hole < 0)
		return errno == ENXIO ? 0 : -errno;
	extents->data_bytes = (uint64_t)data;
	extents->hole_bytes =
		(uint64_t)hole < extents->size_bytes ? (uint64_t)hole : extents->size_bytes;
	return extents->data_bytes < extents->hole_bytes;
}

int tt_extents_next(
	struct tt_extents *extents, uint64_t most, uint64_t *ret_offset, uint64_t *ret_bytes)
{
	if (extents->finished)
		return 0;
	if (extents->data_bytes >= extents->hole_bytes) {
		int r = extents->sparse && extents->hole_bytes < extents->size_bytes
				? extents_seek(extents)
				: 0;

		if (r <= 0) {
			extents->finished = true;
			return r;
		}
	}
	uint64_t bytes = most - extents->data_bytes % most;

	if (bytes > extents->hole_bytes - extents->data_bytes)
		bytes = extents->hole_bytes - extents->data_bytes;
	*ret_offset = extents->data_bytes;
	*ret_bytes = bytes;
	extents->data_bytes += bytes;
	return 1;
}
