/* SPDX-License-Identifier: MIT */
/*
 * See arrive.h.
 */
#include "sync/arrive.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sync/apply.h"
#include "sync/apply_inplace.h"
#include "sync/finish.h"
#include "sync/lane.h"
#include "sync/moved.h"
#include "sync/reason.h"
#include "sync/volume.h"
#include "sys/fd.h"
#include "tree/stage.h"

/* So many batches fit into the budget that one is on the disk while others are written and filled.
 */
enum {
	ARRIVE_BATCHES_IN_BUDGET = 16
};

static const char *arrive_name(const struct tt_arrival *arrival)
{
	return arrival->dir->destination_name ? arrival->dir->destination_name
					      : arrival->wanted->name;
}

/* The verdict is in: the new content gets the name, or nobody will ever see it. */
static bool arrive_rename(struct tt_worker *worker, struct tt_arrival *arrival)
{
	struct tt_engine *engine = worker->engine;
	int r = arrival->paced.error;

	if (arrival->discard)
		return false;
	/* Before the name changes hands: some file systems say only now what became of the data. */
	if (r == 0)
		r = tt_fd_flush(arrival->paced.fd);
	if (r < 0) {
		tt_engine_fail(engine, "writing", arrival->dir, arrive_name(arrival), r);
		if (arrival->inplace)
			tt_inplace_tell(
				engine, arrival->dir, arrive_name(arrival), arrival->inplace->rest);
		if (r == -ENOSPC || r == -EDQUOT)
			tt_engine_full(engine);
		return false;
	}
	if (arrival->inplace)
		return tt_inplace_arrive(worker, arrival);
	r = tt_stage_arrive(
		arrival->dir->destination_fd, arrival->temp, arrive_name(arrival), arrival->is_new);
	if (r < 0) {
		tt_engine_fail(
			engine, "renaming into place", arrival->dir, arrive_name(arrival), r);
		tt_reason_refused(engine, arrival->dir, r);
	}
	return r == 0;
}

static void arrive_drop(struct tt_worker *worker, const struct tt_arrival *arrival,
	const struct tt_volume *volume, bool good)
{
	struct tt_engine *engine = worker->engine;

	if (arrival->inplace) {
		tt_inplace_leave(worker, arrival, volume, good);
		return;
	}
	if (engine->policy.cache.mode == TT_CACHE_KEEP || !volume->paced)
		return;
	if (arrival->paced.is_empty
		&& arrival->old.resident_pages == 0) /* RWF_DONTCACHE has done it */
		return;
	tt_neutral_written(arrival->paced.fd, arrival->size_bytes, good ? &arrival->old : NULL,
		&volume->neutral, &engine->keep_budget_pages, &worker->cache_stats);
}

/* Returns whether the file has its name now; its directory is the caller's to release then. */
static bool arrive_one(
	struct tt_worker *worker, struct tt_arrival *arrival, const struct tt_volume *volume)
{
	struct tt_dir *dir = arrival->dir;
	struct tt_linkset_group *group = arrival->group;
	const struct tt_entry *wanted = arrival->wanted;
	bool discarded = arrival->discard;
	bool good = arrive_rename(worker, arrival);

	/* Of a discarded one the name is gone already, and the directory may be: only the pages are
	 * left. */
	if (!good && !discarded && !arrival->inplace)
		unlinkat(dir->destination_fd, arrival->temp, 0);
	arrive_drop(worker, arrival, volume, good);
	if (close(arrival->paced.fd) < 0 && errno != EINTR && good)
		tt_engine_fail(worker->engine, "closing", dir, arrive_name(arrival), -errno);
	arrival->paced.fd = -1;
	if (good) {
		worker->stats.literal_bytes += arrival->literal_bytes;
		worker->stats.cloned_bytes += arrival->cloned_bytes;
	}
	tt_arrive_free(worker, arrival);
	if (good)
		tt_moved_remove(worker->engine, dir, wanted);
	if (good && group)
		tt_apply_settle_group(worker, group, true);
	else if (!good && !discarded)
		tt_arrive_failed(worker, dir, group);
	return good;
}

void tt_arrive_failed(struct tt_worker *worker, struct tt_dir *dir, struct tt_linkset_group *group)
{
	if (group)
		tt_apply_settle_group(worker, group, false);
	tt_finish_release(worker, dir, 1, false);
}

static struct tt_batch *arrive_new_batch(struct tt_worker *worker, struct tt_volume *volume)
{
	struct tt_engine *engine = worker->engine;
	struct tt_batch *batch = malloc(sizeof *batch);
	struct tt_lane *lane = volume->lane;

	if (!batch)
		return NULL;
	batch->paced = (struct tt_pacer_batch){.sink = &lane->arrived, .owner = batch};
	batch->volume = volume;
	batch->bytes = 0;
	batch->held = 0;
	/* Descriptors are a budget too: batches that are out are bounded, and whoever waits for one
	 * helps, with this disk's only. Not in the middle of an arrival (a follower that leads
	 * now): what is waited for might be that. */
	pthread_mutex_lock(&engine->lock);
	while (!worker->arriving && lane->batches_out >= engine->most_batches) {
		if (lane->arrived.first)
			tt_arrive_help(worker, lane);
		else
			pthread_cond_wait(&engine->batch_ready, &engine->lock);
	}
	lane->batches_out++;
	pthread_mutex_unlock(&engine->lock);
	return batch;
}

struct tt_arrival *tt_arrive_new(void)
{
	struct tt_arrival *arrival = malloc(sizeof *arrival);

	if (!arrival)
		return NULL;
	memset(arrival, 0, offsetof(struct tt_arrival, temp));
	arrival->paced.fd = -1;
	return arrival;
}

void tt_arrive_free(struct tt_worker *worker, struct tt_arrival *arrival)
{
	tt_fd_close(arrival->paced.fd);
	tt_inplace_deinit(worker->engine, arrival);
	tt_neutral_old_deinit(&arrival->old);
	free(arrival);
}

/* Makes sure that the worker has a batch for the volume with room in it. */
static bool arrive_have_batch(struct tt_worker *worker, struct tt_volume *volume)
{
	if (worker->batch && worker->batch->volume != volume)
		tt_arrive_submit(worker);
	if (worker->batch)
		return true;
	struct tt_batch *batch = arrive_new_batch(worker, volume);

	/* Helping while waiting may have given this worker one already: a follower that leads is
	 * copied. */
	tt_arrive_submit(worker);
	worker->batch = batch;
	return batch;
}

void tt_arrive_add(struct tt_worker *worker, struct tt_arrival *arrival)
{
	struct tt_volume *volume = arrival->dir->to;

	/* A batch of one, while there is no memory for another: wait for some to come back. */
	while (!arrive_have_batch(worker, volume))
		tt_arrive_drain(worker, volume->lane);
	struct tt_batch *batch = worker->batch;

	batch->arrivals[batch->paced.count] = arrival;
	batch->paced.files[batch->paced.count++] = &arrival->paced;
	batch->bytes += arrival->literal_bytes;
	uint64_t most =
		volume->pacer ? tt_pacer_budget_bytes(volume->pacer) / ARRIVE_BATCHES_IN_BUDGET : 0;

	if (!volume->pacer || batch->paced.count >= worker->engine->batch_files
		|| batch->bytes >= most)
		tt_arrive_submit(worker);
}

static void arrive_batch(struct tt_worker *worker, struct tt_batch *batch)
{
	struct tt_engine *engine = worker->engine;
	struct tt_dir *dir = NULL;
	unsigned count = 0;

	batch->outer = worker->arriving;
	worker->arriving = batch;
	/* Neighbours are mostly of one directory: it is released once for all of them. */
	for (unsigned i = 0; i < batch->paced.count; i++) {
		struct tt_dir *next = batch->arrivals[i]->discard ? NULL : batch->arrivals[i]->dir;

		if (count > 0 && next != dir) {
			tt_finish_release(worker, dir, count, true);
			count = 0;
		}
		dir = next;
		count += arrive_one(worker, batch->arrivals[i], batch->volume);
	}
	if (count > 0)
		tt_finish_release(worker, dir, count, true);
	struct tt_lane *lane = batch->volume->lane;

	worker->arriving = batch->outer;
	free(batch);
	pthread_mutex_lock(&engine->lock);
	lane->batches_out--;
	pthread_cond_broadcast(&engine->batch_ready);
	pthread_mutex_unlock(&engine->lock);
}

/* Without a pacer nobody waits for the disk, unless --fsync asks for it. */
static void arrive_unpaced(struct tt_worker *worker, struct tt_batch *batch)
{
	for (unsigned i = 0; worker->engine->policy.fsync && i < batch->paced.count; i++) {
		struct tt_arrival *arrival = batch->arrivals[i];

		if (!arrival->discard && fsync(arrival->paced.fd) < 0)
			arrival->paced.error = -errno;
	}
	arrive_batch(worker, batch);
}

void tt_arrive_submit(struct tt_worker *worker)
{
	struct tt_batch *batch = worker->batch;

	worker->batch = NULL;
	if (!batch)
		return;
	if (batch->volume->pacer && batch->paced.count > 0)
		tt_pacer_submit_batch(batch->volume->pacer, &batch->paced);
	else
		arrive_unpaced(worker, batch);
}

void tt_arrive_run(struct tt_worker *worker, struct tt_lane *lane)
{
	struct tt_engine *engine = worker->engine;
	struct tt_pacer_batch *first = lane->arrived.first;

	lane->arrived.first = first->next;
	if (!first->next)
		lane->arrived.last = &lane->arrived.first;
	pthread_mutex_unlock(&engine->lock);
	arrive_batch(worker, first->owner);
	pthread_mutex_lock(&engine->lock);
}

void tt_arrive_help(struct tt_worker *worker, struct tt_lane *lane)
{
	tt_arrive_run(worker, lane);
	if (!worker->batch)
		return;
	pthread_mutex_unlock(&worker->engine->lock);
	tt_arrive_submit(worker);
	pthread_mutex_lock(&worker->engine->lock);
}

void tt_arrive_hold(struct tt_worker *worker)
{
	for (struct tt_batch *batch = worker->arriving; batch; batch = batch->outer) {
		if (batch->held++ == 0)
			batch->volume->lane->batches_held++;
	}
	pthread_cond_broadcast(&worker->engine->batch_ready);
}

void tt_arrive_unhold(struct tt_worker *worker)
{
	for (struct tt_batch *batch = worker->arriving; batch; batch = batch->outer) {
		if (--batch->held == 0)
			batch->volume->lane->batches_held--;
	}
}

/* With the lock held: whether `only` (NULL: any lane) has batches that can be waited for;
 * *ret_arrived: a lane of these with one that has come back, or NULL. */
static bool arrive_is_out(
	const struct tt_engine *engine, struct tt_lane *only, struct tt_lane **ret_arrived)
{
	bool out = false;

	*ret_arrived = NULL;
	for (struct tt_lane *lane = only ? only : engine->lanes; lane; lane = lane->next) {
		out = out || lane->batches_out > lane->batches_held;
		if (lane->arrived.first)
			*ret_arrived = lane;
		if (only)
			break;
	}
	return out;
}

void tt_arrive_drain(struct tt_worker *worker, struct tt_lane *only)
{
	struct tt_engine *engine = worker->engine;
	struct tt_lane *arrived;

	tt_arrive_submit(worker);
	pthread_mutex_lock(&engine->lock);
	tt_arrive_hold(worker);
	while (arrive_is_out(engine, only, &arrived)) {
		if (arrived)
			tt_arrive_help(worker, arrived);
		else
			pthread_cond_wait(&engine->batch_ready, &engine->lock);
	}
	tt_arrive_unhold(worker);
	pthread_mutex_unlock(&engine->lock);
}
