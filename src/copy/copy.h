/* SPDX-License-Identifier: MIT */
/*
 * The content of one regular file, from one descriptor to another: chooses between the plain loop
 * (small and sparse files) and the stream (large ones), keeps holes, and never reads more through
 * the page cache than it drops again.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cache/neutral.h"
#include "copy/pool.h"
#include "copy/writer.h"

struct tt_stream;

/* What one worker thread owns for copying; zero-initialised but for the borrowed parts. */
struct tt_copy_worker {
	struct tt_pool *pool;
	const _Atomic bool *stop;         /* set: give up with -ECANCELED */
	_Atomic uint64_t *progress_bytes; /* counted up while copying */
	bool no_uring;
	void *buffer;             /* TT_COPY_BUFFER_BYTES, made when first wanted */
	struct tt_stream *stream; /* likewise */
};

#define TT_COPY_BUFFER_BYTES (512u << 10)

void tt_copy_worker_deinit(struct tt_copy_worker *worker);

enum tt_copy_side {
	TT_COPY_READING,
	TT_COPY_WRITING
};

struct tt_copy_request {
	int from_fd;
	uint64_t size_bytes;  /* what fstat said before */
	uint64_t start_bytes; /* what is below is there already (--append); less than size_bytes, or
				 both 0 */
	bool holes;           /* the source has fewer blocks than its size: look for holes */
	bool sparse;          /* -S: blocks of zeros become holes */
	struct tt_neutral_reader *reader; /* begun for from_fd */
	struct tt_writer *writer;         /* begun for the destination */
};

struct tt_copy_result {
	uint64_t size_bytes;      /* length of the copy */
	uint64_t literal_bytes;   /* written, holes not counted */
	enum tt_copy_side failed; /* on failure */
};

/* Copies up to size_bytes (a file of size 0 is read to its end: /proc says 0 for files with
 * content). The destination has its final length afterwards. The reader and the writer are not
 * ended. Returns 0, -ECANCELED, or a negative errno with result->failed. A source that ends early
 * is no error: result->size_bytes says so. */
int tt_copy_content(struct tt_copy_worker *worker, const struct tt_copy_request *request,
	struct tt_copy_result *ret_result);
