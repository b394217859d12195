/* SPDX-License-Identifier: MIT */
/*
 * Copying inside a file server: copy_file_range(2) between two files of one NFS mount (NFS 4.2), so
 * that the content does not travel through this machine. Nowhere else: on local file systems the
 * call is a buffered copy that neither paces nor leaves the cache alone, and on CIFS it has made
 * files of zeros without an error (golang issue 42400).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tt_clone_memory;

/* The most that one call moves (fs/read_write.c, MAX_RW_COUNT). */
#define TT_OFFLOAD_MOST_BYTES UINT64_C(0x7ffff000)

struct tt_offload_request {
	int from_fd, to_fd;
	uint64_t size_bytes;
	const _Atomic bool *stop;
	_Atomic uint64_t *progress_bytes;
};

/* Whether the server could do it: both files on NFS, on one file system, and it has not refused. A
 * file of size 0 is never given to it (/proc). */
bool tt_offload_may(
	int from_fd, int to_fd, uint64_t from_dev, const struct tt_clone_memory *memory);

/* Moves [0, size_bytes) and says in *ret_bytes how far it came: what is missing is to be copied by
 * reading, because the server moved nothing (which says nothing about the end of the file), or
 * refused. Returns 0, 1 if it refused in a way that will be the same for the next file, or
 * -ECANCELED. */
int tt_offload_copy(const struct tt_offload_request *request, uint64_t *ret_bytes);
