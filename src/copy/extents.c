/* SPDX-License-Identifier: MIT */
/*
 * See extents.h.
 */
#include "copy/extents.h"

#include <errno.h>
#include <unistd.h>

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
