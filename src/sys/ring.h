/* SPDX-License-Identifier: MIT */
/*
 * Operations that wait: large reads and writes, writeback windows, fsync. Requests are submitted,
 * completions are pulled; nobody is called back. Only ring.c sees liburing; ring_twin.c does the
 * same with threads where io_uring is denied (containers, sysctl kernel.io_uring_disabled, seccomp)
 * or switched off, with the same results.
 *
 * A ring belongs to the thread that made it: every function except tt_ring_wake() is for that
 * thread only. In flight, the request owns buffer and descriptor: the caller keeps both untouched
 * until the completion was pulled.
 *
 * There are no links between requests: on Linux 6.0 to 7.1 a failed SYNC_FILE_RANGE or FSYNC does
 * not stop the linked ones behind it. Order that matters is kept by the caller.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tt_ring;

enum tt_ring_op {
	TT_RING_READ,       /* buffer, length at offset; flags: RWF_* */
	TT_RING_WRITE,      /* the same; may be short like write(2) */
	TT_RING_SYNC_RANGE, /* sync_file_range(2) of [offset, offset + length), 0: to the end;
			       flags: SYNC_FILE_RANGE_* */
	TT_RING_DROP,       /* POSIX_FADV_DONTNEED of the same range */
	TT_RING_FSYNC,      /* fsync(2) */
	TT_RING_FDATASYNC,  /* fdatasync(2) */
};

struct tt_ring_request {
	enum tt_ring_op op;
	int fd;
	int flags;
	void *buffer;
	uint64_t offset;
	uint64_t length;
	void *token; /* comes back with the completion; not NULL */
};

struct tt_ring_completion {
	void *token;
	int64_t result; /* bytes or 0, or a negative errno */
};

struct tt_ring_config {
	unsigned depth;   /* most requests in flight, 1 to 1024 */
	unsigned workers; /* most kernel (io-wq) or twin threads that may sleep in an operation at
			     once, at least 1 */
	bool no_uring;    /* use the twin without asking the kernel */
};

/* Makes a ring; uses the twin if the kernel refuses (*ret_refusal gets the negative errno, else 0;
 * may be NULL). Returns 0 or a negative errno. */
int tt_ring_new(const struct tt_ring_config *config, struct tt_ring **ret_ring, int *ret_refusal);

/* Waits for everything in flight, then frees. Accepts NULL. */
void tt_ring_free(struct tt_ring *ring);

/* Whether the thread twin is at work. */
bool tt_ring_is_twin(const struct tt_ring *ring);

/* Requests that are in flight: submitted and not yet pulled. */
unsigned tt_ring_in_flight(const struct tt_ring *ring);

/* Queues a request. It may start at once or at the next tt_ring_start()/tt_ring_wait(). Returns 0,
 * or -EBUSY if `depth` requests are in flight. */
int tt_ring_submit(struct tt_ring *ring, const struct tt_ring_request *request);

/* Sends what is queued on its way without waiting. */
void tt_ring_start(struct tt_ring *ring);

/* Waits for one completion (wait = true: until there is one or somebody calls tt_ring_wake();
 * false: not at all). Returns 1 with *ret written, 0 if there is none (woken, or not waited), or a
 * negative errno if the ring is broken. */
int tt_ring_wait(struct tt_ring *ring, bool wait, struct tt_ring_completion *ret);

/* Makes the current or the next waiting tt_ring_wait() return 0. Any thread. */
void tt_ring_wake(struct tt_ring *ring);
