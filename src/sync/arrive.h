/* SPDX-License-Identifier: MIT */
/*
 * Between the last write of a file and its final name: batches that are started together, awaited
 *together by the pacer, then renamed and dropped by whichever worker is free. Internal to sync/.
 *
 *	new -> (write) -> add -> submit -> pacer waits -> arrive: verdict, rename, drop, count
 */
#pragma once

#include "sync/state.h"

/* The record of a file that is about to be written. Not in a batch yet: while it is written the
 * worker's batch may have to go. NULL without memory. */
struct tt_arrival *tt_arrive_new(void);

/* Frees a record that is in no batch, and closes its file. */
void tt_arrive_free(struct tt_worker *worker, struct tt_arrival *arrival);

/* The file is written, as far as it goes (arrival->discard), to the volume of its directory: takes
 * it over into the worker's batch. Where writes are not paced it arrives at once. */
void tt_arrive_add(struct tt_worker *worker, struct tt_arrival *arrival);

/* Hands the worker's batch to the pacer. */
void tt_arrive_submit(struct tt_worker *worker);

/* Lets one batch of the lane that has come back from the pacer arrive. With the run's lock held,
 * which is given up meanwhile. */
void tt_arrive_run(struct tt_worker *worker, struct tt_lane *lane);

/* The same for somebody who waits for something: a follower that leads now may have left a file in
 * the worker's batch, which goes, or nobody would ever see it come back. */
void tt_arrive_help(struct tt_worker *worker, struct tt_lane *lane);

/* Around a sleep that others' batches end: the batches in the middle of whose arrival the worker is
 * (a follower that leads now) cannot be waited for by anybody meanwhile. With the run's lock held.
 */
void tt_arrive_hold(struct tt_worker *worker);
void tt_arrive_unhold(struct tt_worker *worker);

/* Submits what the worker has and waits until every batch of the lane, or with NULL of the run, has
 * arrived, helping. */
void tt_arrive_drain(struct tt_worker *worker, struct tt_lane *only);

/* A file that will not arrive: settles its hard-link group and releases its directory. */
void tt_arrive_failed(struct tt_worker *worker, struct tt_dir *dir, struct tt_linkset_group *group);
