/* SPDX-License-Identifier: MIT */
/*
 * One disk that the run writes to, and all that would let a slow one hold up a fast one if they
 * shared it: the queue of jobs and its limits, the batches on their way and their limit, large
 * buffers, and how many workers may be busy with it. A worker that a slow disk has put to sleep, in
 * the pacer or in the kernel, is one of that disk's.
 *
 * Each disk after the first brings as many workers as there were, so that whatever all the others
 * do there is one for it. Internal to sync/.
 */
#pragma once

#include "sync/state.h"

struct tt_lane {
	struct tt_lane *next;
	uint64_t disk; /* struct tt_device's */
	struct tt_pool pool;
	/* Taken by a worker that tries a file alone on the full disk; before `lock`. */
	pthread_mutex_t space_lock;
	pthread_mutex_t preallocate_lock; /* a leaf: copy/preallocate.h */
	/* guarded by the run's lock */
	struct tt_job *jobs, **jobs_last;
	unsigned jobs_queued;
	unsigned tasks_out;           /* planned and not done */
	struct tt_pacer_sink arrived; /* batches that have come back from the pacer */
	unsigned batches_out;         /* begun, not yet arrived */
	unsigned batches_held; /* of these: in the middle of arriving, by workers that wait for the
				  others */
	unsigned busy;         /* workers with a job, a listing or an arrival of this disk */
	/* which it brought; constant once they run */
	struct tt_worker *workers;
	unsigned worker_count;
};

/* The lane of a disk, made when it is first asked for. Whoever plans. Returns 0 or -ENOMEM. */
int tt_lane_get(struct tt_engine *engine, uint64_t disk, struct tt_lane **ret_lane);

/* Of the disk that the directory is on; NULL under -n. */
struct tt_lane *tt_lane_of(const struct tt_dir *dir);

/* With the run's lock held: a lane that may have one more worker, and has a batch that came back or
 * a job: the one with the fewest. NULL if there is none. */
struct tt_lane *tt_lane_with_arrival(const struct tt_engine *engine);
struct tt_lane *tt_lane_with_job(const struct tt_engine *engine);

/* With the run's lock held: a job, or a place in the queue for one. */
struct tt_job *tt_lane_take_job(struct tt_engine *engine, struct tt_lane *lane);
void tt_lane_queue_job(struct tt_engine *engine, struct tt_lane *lane, struct tt_job *job);
bool tt_lane_is_full(const struct tt_lane *lane);

/* With the run's lock held: one more worker is busy with the lane, which may be NULL. For a listing
 * only if it may have one more (false: it may not); for others that was asked before. */
bool tt_lane_enter_listing(const struct tt_engine *engine, struct tt_lane *lane);
void tt_lane_enter(struct tt_lane *lane);
void tt_lane_leave(struct tt_engine *engine, struct tt_lane *lane);

/* With the run's lock held: whether something waits for a worker, whatever the limits. */
bool tt_lane_any_jobs(const struct tt_engine *engine);

/* With the run's lock held: whether something that is planned is not done yet. */
bool tt_lane_any_tasks(const struct tt_engine *engine);

/* Ends with all budgets at zero: asserted by the engine. */
void tt_lane_free_all(struct tt_engine *engine);
