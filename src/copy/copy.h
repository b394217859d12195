/* SPDX-License-Identifier: MIT */
/*
 * The content of one regular file, from one descriptor to another: chooses between cloning, a copy
 * inside the file server, the plain loop (small and sparse files) and the stream (large ones),
 * keeps holes and preallocated space, and never reads more through the page cache than it drops
 * again.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cache/neutral.h"
#include "copy/clone.h"
#include "copy/pool.h"
#include "copy/writer.h"

struct stat;
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
	TT_COPY_WRITING,
	TT_COPY_CLONING, /* with TT_CLONE_ALWAYS */
};

struct tt_copy_request {
	int from_fd;
	uint64_t size_bytes;  /* what fstat said before */
	uint64_t start_bytes; /* what is below is there already (--append); less than size_bytes, or
				 both 0 */
	bool in_order;        /* what is written is a beginning of the file at any moment */
	bool holes;           /* the source has holes or unwritten extents: look for them */
	bool sparse;          /* -S: blocks of zeros become holes */
	bool preallocate;     /* allocate the whole length first; in place, what is behind the old
				 end */
	pthread_mutex_t *preallocate_lock; /* see preallocate.h */
	bool in_place; /* the destination is an old file: its length is cut at the end, and what
			  holes and -S leave out must not be there (the caller's) */
	enum tt_clone_mode reflink;
	struct tt_clone_memory *clones;   /* of the destination's file system; NULL: never clone */
	const struct stat *before;        /* of the source; may be NULL: neither clone nor keep
					     unwritten extents */
	struct tt_neutral_reader *reader; /* begun for from_fd */
	struct tt_writer *writer;         /* begun for the destination */
};

struct tt_copy_result {
	uint64_t size_bytes;      /* length of the copy */
	uint64_t literal_bytes;   /* written, holes not counted */
	uint64_t cloned_bytes;    /* share their blocks with the source */
	int preallocate_error;    /* negative errno: could not be allocated ahead, copied without */
	enum tt_copy_side failed; /* on failure */
};

/* Copies up to size_bytes (a file of size 0 is read to its end: /proc says 0 for files with
 * content). The destination has its final length afterwards. The reader and the writer are not
 * ended. Returns 0, -ECANCELED, or a negative errno with result->failed. A source that ends early
 * is no error: result->size_bytes says so. */
int tt_copy_content(struct tt_copy_worker *worker, const struct tt_copy_request *request,
	struct tt_copy_result *ret_result);
