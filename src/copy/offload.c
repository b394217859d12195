/* SPDX-License-Identifier: MIT */
/*
 * See offload.h.
 */
#include "copy/offload.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "copy/clone.h"

static bool offload_is_nfs(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (unsigned long)fs.f_type == NFS_SUPER_MAGIC;
}

bool tt_offload_may(int from_fd, int to_fd, uint64_t from_dev, const struct tt_clone_memory *memory)
{
	struct stat st;

	return !tt_clone_is_refused(&memory->offload, from_dev) && offload_is_nfs(from_fd)
	       && offload_is_nfs(to_fd) && fstat(to_fd, &st) == 0
	       && (uint64_t)st.st_dev == from_dev;
}

/* What a server that cannot copy says, or a kernel that will not ask it. */
static bool offload_is_refusal(int error)
{
	return error == EXDEV || error == EINVAL || error == EOPNOTSUPP || error == ENOSYS
	       || error == EPERM;
}

int tt_offload_copy(const struct tt_offload_request *request, uint64_t *ret_bytes)
{
	uint64_t at = 0;

	*ret_bytes = 0;
	while (at < request->size_bytes) {
		uint64_t left = request->size_bytes - at;
		off_t from = (off_t)at, to = (off_t)at;

		if (atomic_load_explicit(request->stop, memory_order_relaxed))
			return -ECANCELED;
		ssize_t moved = copy_file_range(request->from_fd, &from, request->to_fd, &to,
			left < TT_OFFLOAD_MOST_BYTES ? left : TT_OFFLOAD_MOST_BYTES, 0);

		if (moved < 0 && errno == EINTR)
			continue;
		/* An error that is real will come again when the rest is copied by reading, and say
		 * there which side it is of. */
		if (moved < 0)
			return at == 0 && offload_is_refusal(errno);
		if (moved == 0)
			return 0;
		at += (uint64_t)moved;
		*ret_bytes = at;
		atomic_fetch_add_explicit(
			request->progress_bytes, (uint64_t)moved, memory_order_relaxed);
	}
	return 0;
}
