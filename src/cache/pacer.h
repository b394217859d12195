/* SPDX-License-Identifier: MIT */
/*
 * Bounded dirt: one pacer per destination disk, with its own thread, ring and budget, so that a
 *slow disk never stalls a fast one.
 *
 * A worker charges bytes before it writes them and sleeps here, not in the kernel's
 *balance_dirty_pages(), while the budget is used up. What it has written it hands over, as windows
 *of one large file or as a batch of small ones. The pacer starts writeback, waits for it, looks
 *whether it is true, gives the charge back, and drops the pages:
 *
 *	charge -> write -> window: WRITE, WAIT, clean?, DROP -> released
 *	                   batch:  (WRITE by the worker) WAIT, clean?      -> released -> the
 *batch's sink
 *
 * The first error that the kernel reports about a file, at whatever step, is its verdict: writeback
 *errors are reported once per descriptor and then gone.
 *
 * Lock order: the pacer's lock, then a sink's. No call is made into other layers with either held.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct tt_neutral_old;
struct tt_pacer;

/* How writeback is had on the file system of a file. */
enum tt_pacer_sync {
	TT_PACER_SYNC_RANGE, /* sync_file_range starts and waits */
	TT_PACER_SYNC_DATA,  /* it does nothing here (overlayfs, ZFS): fdatasync */
};

/* One file being written; embedded in the caller's record of it. The caller fills in the first part
 * before anything is handed over. */
struct tt_pacer_file {
	int fd; /* borrowed until the batch with the file in it has come back */
	enum tt_pacer_sync sync;
	bool started;      /* the kernel starts writeback itself: everything is written with
			      RWF_DONTCACHE */
	bool drop_windows; /* drop a window's pages when it is clean */
	const struct tt_neutral_old *keep; /* with drop_windows, for a file in place: but not these;
					      borrowed as fd, may be NULL */
	bool fsync;                        /* --fsync */
	bool can_count;                    /* cachestat tells whether pages are dirty here */
	/* the pacer's */
	uint64_t charged_bytes; /* not yet given back, without windows in flight */
	unsigned windows;       /* in flight */
	_Atomic int error;      /* verdict: first negative errno; worker and pacer both find some */
	bool is_empty;          /* no page was resident any more when its batch was done */
};

/* Where finished batches go; made by the taker, who guards it with a lock of his own and waits on
 * conditions of his own. */
struct tt_pacer_batch;
struct tt_pacer_sink {
	pthread_mutex_t *lock;
	pthread_cond_t
		*ready[2]; /* all who wait are woken, with the lock held; the second may be NULL */
	struct tt_pacer_batch *first, **last;
};

#define TT_PACER_BATCH_FILES 64

struct tt_pacer_batch {
	struct tt_pacer_batch *next;
	struct tt_pacer_sink *sink;
	void *owner; /* the caller's */
	unsigned count;
	unsigned waiting; /* the pacer's: requests in flight */
	struct tt_pacer_file *files[TT_PACER_BATCH_FILES];
};

/* With less there is no room for one write of a few pages beside one that is in flight. */
#define TT_PACER_LEAST_BYTES (UINT64_C(256) << 10)

struct tt_pacer_config {
	uint64_t budget_bytes; /* filling and in flight together, at least TT_PACER_LEAST_BYTES */
	bool no_uring;         /* use the ring's twin */
};

/* Starts the thread. *ret_refusal: why there is no io_uring (negative errno), or 0. Returns 0 or a
 * negative errno. */
int tt_pacer_new(
	const struct tt_pacer_config *config, struct tt_pacer **ret_pacer, int *ret_refusal);

/* Everything charged must have come back: asserted. Accepts NULL. */
void tt_pacer_free(struct tt_pacer *pacer);

/* The default budget: 48 MiB, at most a quarter of the tightest memory-cgroup limit (v1 or v2) that
 * this process is under. */
uint64_t tt_pacer_default_budget(void);

/* The tightest memory limit: of the cgroup, or the machine's memory. */
uint64_t tt_pacer_memory_limit(void);

/* What it was made with. */
uint64_t tt_pacer_budget_bytes(const struct tt_pacer *pacer);

/* Takes `bytes` (rounded up to pages) from the budget if they are there. Any thread. The most that
 * may be asked for at once is half the budget. */
bool tt_pacer_try_charge(struct tt_pacer *pacer, uint64_t bytes);

/* The same, sleeping until they are. Hand over what you hold first, or nobody will wake. Any
 * thread. Returns the time slept. */
uint64_t tt_pacer_charge(struct tt_pacer *pacer, uint64_t bytes);

/* Gives back what was charged and not written, or written and then removed. Any thread. */
void tt_pacer_release(struct tt_pacer *pacer, uint64_t bytes);

/* How much of a large file to write before it is handed over: adapts so that about 150 ms of device
 * time is in flight; a multiple of 2 MiB unless the budget is too small for that. Any thread. */
uint64_t tt_pacer_window_bytes(const struct tt_pacer *pacer);

/* Hands over [offset, offset + bytes) of a file, of which `bytes` (rounded up) are charged. Ends
 * are on folio edges except the last. Any thread. Returns 0 or -ENOMEM (the charge has been moved
 * to file->charged_bytes then and goes with the file's batch). */
int tt_pacer_submit_window(
	struct tt_pacer *pacer, struct tt_pacer_file *file, uint64_t offset, uint64_t bytes);

/* Starts the writeback of a small file, in the calling thread; the result is part of the verdict.
 */
void tt_pacer_start(struct tt_pacer_file *file);

/* Hands over a batch. It comes to its sink when every file in it is on the disk, with verdicts; by
 * then everything charged for it has been given back. Any thread. */
void tt_pacer_submit_batch(struct tt_pacer *pacer, struct tt_pacer_batch *batch);

struct tt_pacer_stats {
	uint64_t peak_bytes; /* highest charge */
	uint64_t wait_ns;    /* slept by all workers together */
	uint64_t windows, batches;
	uint64_t drops;         /* of windows: DONTNEED through the ring */
	uint64_t again;         /* windows and files that were not clean after waiting */
	uint64_t charged_bytes; /* now */
	bool twin;              /* the ring's twin is at work */
};
void tt_pacer_stats(struct tt_pacer *pacer, struct tt_pacer_stats *ret_stats);

static inline uint64_t tt_pacer_round(uint64_t bytes)
{
	return (bytes + 4095) & ~UINT64_C(4095);
}
