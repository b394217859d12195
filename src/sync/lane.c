/* SPDX-License-Identifier: MIT */
/*
 * See lane.h.
 */
#include "sync/lane.h"

#include <errno.h>
#include <stdlib.h>

#include "sync/crew.h"
#include "sync/volume.h"

static struct tt_lane *lane_find(const struct tt_engine *engine, uint64_t disk)
{
	for (struct tt_lane *lane = engine->lanes; lane; lane = lane->next) {
		if (lane->disk == disk)
			return lane;
	}
	return NULL;
}

int tt_lane_get(struct tt_engine *engine, uint64_t disk, struct tt_lane **ret_lane)
{
	struct tt_lane *lane = lane_find(engine, disk);

	if (lane) {
		*ret_lane = lane;
		return 0;
	}
	lane = calloc(1, sizeof *lane);
	if (!lane)
		return -ENOMEM;
	lane->disk = disk;
	lane->jobs_last = &lane->jobs;
	lane->arrived = (struct tt_pacer_sink){.lock = &engine->lock,
		.ready = {&engine->work_ready, &engine->batch_ready},
		.last = &lane->arrived.first};
	tt_pool_init(&lane->pool);
	pthread_mutex_init(&lane->space_lock, NULL);
	pthread_mutex_init(&lane->preallocate_lock, NULL);
	pthread_mutex_lock(&engine->lock);
	lane->next = engine->lanes;
	engine->lanes = lane;
	engine->lane_count++;
	pthread_mutex_unlock(&engine->lock);
	if (engine->lane_count > 1)
		tt_crew_add(engine, lane);
	*ret_lane = lane;
	return 0;
}

struct tt_lane *tt_lane_of(const struct tt_dir *dir)
{
	return dir->to ? dir->to->lane : NULL;
}

/* The lane with the fewest workers of those that want one. With more disks than one, some are left
 * for listings: the plan would wait for these, and with it other disks. */
static struct tt_lane *lane_choose(const struct tt_engine *engine, bool arrivals)
{
	unsigned most = engine->most_busy - (engine->lane_count > 1 ? engine->most_busy / 4 : 0);
	struct tt_lane *best = NULL;

	for (struct tt_lane *lane = engine->lanes; lane; lane = lane->next) {
		if ((arrivals ? lane->arrived.first != NULL : lane->jobs != NULL)
			&& lane->busy < most && (!best || lane->busy < best->busy))
			best = lane;
	}
	return best;
}

struct tt_lane *tt_lane_with_arrival(const struct tt_engine *engine)
{
	return lane_choose(engine, true);
}

struct tt_lane *tt_lane_with_job(const struct tt_engine *engine)
{
	return lane_choose(engine, false);
}

struct tt_job *tt_lane_take_job(struct tt_engine *engine, struct tt_lane *lane)
{
	struct tt_job *job = lane->jobs;

	lane->jobs = job->next;
	if (!lane->jobs)
		lane->jobs_last = &lane->jobs;
	lane->jobs_queued--;
	if (lane->jobs_queued < TT_MOST_JOBS / 2)
		tt_engine_wake_plan(engine, NULL);
	return job;
}

void tt_lane_queue_job(struct tt_engine *engine, struct tt_lane *lane, struct tt_job *job)
{
	job->next = NULL;
	*lane->jobs_last = job;
	lane->jobs_last = &job->next;
	lane->jobs_queued++;
	lane->tasks_out += job->count;
	tt_engine_wake_workers(engine, 1);
}

bool tt_lane_is_full(const struct tt_lane *lane)
{
	return lane->jobs_queued >= TT_MOST_JOBS || lane->tasks_out >= TT_MOST_TASKS;
}

bool tt_lane_enter_listing(const struct tt_engine *engine, struct tt_lane *lane)
{
	if (lane && lane->busy >= engine->most_busy)
		return false;
	tt_lane_enter(lane);
	return true;
}

void tt_lane_enter(struct tt_lane *lane)
{
	if (lane)
		lane->busy++;
}

void tt_lane_leave(struct tt_engine *engine, struct tt_lane *lane)
{
	if (!lane)
		return;
	lane->busy--;
	/* Whoever leaves may go on with another disk; those who found this one full are asleep. */
	if (engine->lane_count > 1 && (lane->jobs || lane->arrived.first))
		tt_engine_wake_workers(engine, 1);
}

bool tt_lane_any_jobs(const struct tt_engine *engine)
{
	for (const struct tt_lane *lane = engine->lanes; lane; lane = lane->next) {
		if (lane->jobs)
			return true;
	}
	return false;
}

bool tt_lane_any_tasks(const struct tt_engine *engine)
{
	for (const struct tt_lane *lane = engine->lanes; lane; lane = lane->next) {
		if (lane->tasks_out > 0)
			return true;
	}
	return false;
}

void tt_lane_free_all(struct tt_engine *engine)
{
	while (engine->lanes) {
		struct tt_lane *lane = engine->lanes;

		engine->lanes = lane->next;
		tt_pool_deinit(&lane->pool);
		pthread_mutex_destroy(&lane->space_lock);
		pthread_mutex_destroy(&lane->preallocate_lock);
		free(lane);
	}
	engine->lane_count = 0;
}
