/* SPDX-License-Identifier: MIT */
/*
 * See unwritten.h.
 */
#include "copy/unwritten.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

#include "sys/fd.h"
#include "sys/fiemap.h"

static bool unwritten_cannot(int error)
{
	return error == -EOPNOTSUPP || error == -ENOTTY || error == -ENOSYS || error == -EINVAL
	       || error == -EPERM;
}

bool tt_unwritten_has_surplus(const struct stat *st)
{
	uint64_t block = st->st_blksize > 512 ? (uint64_t)st->st_blksize : 512;

	return (uint64_t)st->st_blocks * 512 > ((uint64_t)st->st_size + block - 1) / block * block;
}

bool tt_unwritten_is_behind_end(int fd, const struct stat *st)
{
	return tt_unwritten_has_surplus(st) && tt_fiemap_is_asked_for(fd);
}

int tt_unwritten_copy(int from_fd, int to_fd, const struct stat *before, bool holes)
{
	const uint64_t size = (uint64_t)before->st_size;
	struct tt_fiemap map;
	uint64_t offset, bytes;
	int r;

	if (!holes && !tt_unwritten_has_surplus(before))
		return 0;
	tt_fiemap_init(&map, from_fd);
	while ((r = tt_fiemap_next_unwritten(&map, &offset, &bytes)) > 0) {
		if (offset + bytes > size && !tt_fiemap_is_asked_for(from_fd)) {
			if (offset >= size)
				return 0;
			bytes = size - offset;
		}
		r = tt_fd_allocate(to_fd, FALLOC_FL_KEEP_SIZE, offset, bytes);
		if (r < 0)
			return unwritten_cannot(r) ? 0 : r;
	}
	/* That the map cannot be had is no reason to fail: the content is there. */
	return 0;
}
