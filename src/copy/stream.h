/* SPDX-License-Identifier: MIT */
/*
 * A large file through the ring: reads run ahead of writes, so that the disk reads while pages are
 *written.
 *
 *	free -> reading -> filled -> writing -> free
 *
 * Four chunks of 1 MiB (eight of 512 KiB with O_DIRECT); reads are started in order as chunks come
 *free, writes are started in order as chunks are filled, at most two at a time (the kernel writes
 *one inode one request after the other anyway). What has been written goes to the writer in order.
 */
#pragma once

#include "copy/copy.h"

void tt_stream_free(struct tt_stream *stream); /* accepts NULL */

/* As tt_copy_content(), for a file of known size; `buffer` has TT_POOL_BUFFER_BYTES. Makes
 * worker->stream when there is none. */
int tt_stream_copy(struct tt_copy_worker *worker, const struct tt_copy_request *request,
	void *buffer, struct tt_copy_result *ret_result);
