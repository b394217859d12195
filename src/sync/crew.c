/* SPDX-License-Identifier: MIT */
/*
 * See crew.h.
 */
#include "sync/crew.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "sync/apply.h"
#include "sync/arrive.h"
#include "sync/dir.h"
#include "sync/lane.h"
#include "sync/lister.h"
#include "sync/share.h"
#include "sync/volume.h"
#include "sys/fd.h"
#include "tree/linkset.h"

enum {
	CREW_LEAST = 8, /* they sleep in reads most of the time */
	CREW_MOST = 32,
	CREW_ENTRIES_SOON = 2048, /* so many are listed before copying is preferred */
	CREW_BATCHES = 64,
	CREW_DIRS_AHEAD = 4096,
	CREW_RESERVED_FDS = 128,
	CREW_FDS = 16,                    /* of a worker: a source, an old file, a ring */
	CREW_BATCH_PATIENCE_NS = 2000000, /* a batch that is not full waits so long for more */
};

static unsigned crew_least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* All threads there are. */
static unsigned crew_count(const struct tt_engine *engine)
{
	unsigned count = engine->worker_count;

	for (const struct tt_lane *lane = engine->lanes; lane; lane = lane->next)
		count += lane->worker_count;
	return count;
}

/* With more disks each may have fewer batches, but one for each worker always: whoever waits for a
 * batch may hold another. */
static void crew_share_out(struct tt_engine *engine)
{
	unsigned lanes = engine->lane_count > 0 ? engine->lane_count : 1;
	unsigned count = crew_count(engine);

	engine->most_busy = crew_least(engine->worker_count, count / lanes);
	if (engine->most_busy == 0)
		engine->most_busy = 1;
	engine->most_batches = crew_least(engine->batch_fds / TT_PACER_BATCH_FILES, CREW_BATCHES);
	engine->most_batches /= lanes;
	if (engine->most_batches < count + 1)
		engine->most_batches = count + 1;
	unsigned files =
		crew_least(engine->batch_fds / engine->most_batches / lanes, TT_PACER_BATCH_FILES);

	atomic_store_explicit(&engine->batch_files, files > 0 ? files : 1, memory_order_relaxed);
}

void tt_crew_set_budgets(struct tt_engine *engine)
{
	unsigned limit = tt_fd_raise_limit();
	unsigned free_fds = limit - crew_least(limit / 4, CREW_RESERVED_FDS);

	if (engine->worker_count == 0) {
		unsigned workers = 4 * (unsigned)get_nprocs();

		workers = workers < CREW_LEAST ? CREW_LEAST : workers;
		engine->worker_count = crew_least(workers, CREW_MOST);
	}
	engine->most_workers = free_fds / CREW_FDS + 1;
	engine->worker_count = crew_least(engine->worker_count, engine->most_workers);
	/* Half of the rest for directories (two descriptors each), half for files on their way.
	 * Each worker may hold one batch that it fills; where descriptors are few, batches are
	 * small. */
	free_fds -= crew_least(free_fds / 2, 4 * engine->worker_count);
	engine->most_dirs_ahead = crew_least(free_fds / 4, CREW_DIRS_AHEAD);
	engine->batch_fds = free_fds / 2;
	crew_share_out(engine);
}

/* With the lock held: the next directory to list, if it is wanted now. *ret_lane has one more
 * worker then. */
static struct tt_dir *crew_next_listing(
	struct tt_engine *engine, unsigned most_entries, struct tt_lane **ret_lane)
{
	struct tt_dir *dir = tt_dir_queue_first(engine);

	if (engine->entries_ahead >= engine->most_entries_ahead)
		engine->listing_rests = true;
	if (!dir || engine->listing_rests || engine->entries_ahead >= most_entries
		|| engine->dirs_ahead >= engine->most_dirs_ahead
		|| atomic_load_explicit(&engine->stop, memory_order_relaxed))
		return NULL;
	/* Reading a directory may have to wait for a slow disk as writing does. What is not there
	 * is not read, and where it will be is not known yet. */
	*ret_lane = dir->parent && dir->exists ? tt_lane_of(dir->parent) : NULL;
	if (!tt_lane_enter_listing(engine, *ret_lane))
		return NULL;
	tt_dir_queue_remove(engine, dir);
	dir->state = TT_DIR_LISTING;
	engine->dirs_ahead++;
	engine->listings++;
	tt_dir_take_listings(engine, dir);
	/* Whoever takes one wakes the next, as long as there are more: waking costs more than
	 * listing a small directory. */
	if (engine->heap_count > 0)
		tt_engine_wake_workers(engine, 1);
	return dir;
}

/* With the lock held, which is given up if need be: before a worker does something that may have to
 * wait for this disk (NULL: or for none), what it holds for another one goes. */
static void crew_part_with_batch(struct tt_worker *worker, const struct tt_lane *lane)
{
	struct tt_engine *engine = worker->engine;

	if (!worker->batch || engine->lane_count < 2 || worker->batch->volume->lane == lane)
		return;
	pthread_mutex_unlock(&engine->lock);
	tt_arrive_submit(worker);
	pthread_mutex_lock(&engine->lock);
}

/* With the lock held, which is given up meanwhile. */
static void crew_list(struct tt_worker *worker, struct tt_dir *dir, struct tt_lane *lane)
{
	struct tt_engine *engine = worker->engine;

	crew_part_with_batch(worker, lane);
	pthread_mutex_unlock(&engine->lock);
	tt_lister_run(engine, worker, dir);
	pthread_mutex_lock(&engine->lock);
	tt_lane_leave(engine, lane);
}

static bool crew_do_job(struct tt_worker *worker)
{
	struct tt_engine *engine = worker->engine;
	struct tt_lane *lane = tt_lane_with_job(engine);

	if (!lane)
		return false;
	struct tt_job *job = tt_lane_take_job(engine, lane);

	tt_lane_enter(lane);
	crew_part_with_batch(worker, lane);
	pthread_mutex_unlock(&engine->lock);
	worker->copy.pool = &lane->pool;
	tt_apply_job(worker, job);
	pthread_mutex_lock(&engine->lock);
	tt_lane_leave(engine, lane);
	return true;
}

/* With the lock held. Returns whether something was done (the lock was given up meanwhile). */
static bool crew_work_once(struct tt_worker *worker)
{
	struct tt_engine *engine = worker->engine;
	struct tt_lane *lane = tt_lane_with_arrival(engine);

	if (lane) {
		tt_lane_enter(lane);
		crew_part_with_batch(worker, lane);
		/* Somebody else may have taken it meanwhile. */
		if (lane->arrived.first)
			tt_arrive_run(worker, lane);
		tt_lane_leave(engine, lane);
		return true;
	}
	struct tt_dir *dir = crew_next_listing(engine, CREW_ENTRIES_SOON, &lane);

	if (!dir && crew_do_job(worker))
		return true;
	if (!dir)
		dir = crew_next_listing(engine, engine->most_entries_ahead, &lane);
	if (!dir)
		return tt_share_help(engine);
	crew_list(worker, dir, lane);
	return true;
}

/* Nothing to do at once. A batch that is not full waits a moment for more, but never for ever: the
 * plan may be waiting for it. */
static void crew_idle(struct tt_worker *worker)
{
	struct tt_engine *engine = worker->engine;
	struct timespec until;

	engine->idle_workers++;
	if (!worker->batch) {
		pthread_cond_wait(&engine->work_ready, &engine->lock);
		engine->idle_workers--;
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += CREW_BATCH_PATIENCE_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	int r = pthread_cond_timedwait(&engine->work_ready, &engine->lock, &until);

	engine->idle_workers--;
	if (r == ETIMEDOUT) {
		pthread_mutex_unlock(&engine->lock);
		tt_arrive_submit(worker);
		pthread_mutex_lock(&engine->lock);
	}
}

static void *crew_thread(void *argument)
{
	struct tt_worker *worker = argument;
	struct tt_engine *engine = worker->engine;

	pthread_mutex_lock(&engine->lock);
	while (!engine->no_more_work || tt_lane_any_jobs(engine) || worker->batch) {
		if (!crew_work_once(worker))
			crew_idle(worker);
	}
	pthread_mutex_unlock(&engine->lock);
	return NULL;
}

static void crew_before_sleep(void *context)
{
	tt_arrive_submit(context);
}

void tt_crew_enlist(struct tt_engine *engine, struct tt_worker *worker)
{
	*worker = (struct tt_worker){
		.engine = engine,
		.copy =
			{
				.pool = &engine->pool,
				.stop = &engine->stop,
				.progress_bytes = &engine->bytes_done,
				.no_uring = engine->policy.no_ring,
			},
		.hooks = {.before_sleep = crew_before_sleep, .context = worker},
		.cache_stats = {.start_ns = engine->start_ns},
	};
}

void tt_crew_discharge(struct tt_engine *engine, struct tt_worker *worker)
{
	tt_neutral_stats_add(&engine->cache_stats, &worker->cache_stats);
	engine->stats.literal_bytes += worker->stats.literal_bytes;
	engine->stats.cloned_bytes += worker->stats.cloned_bytes;
	tt_copy_worker_deinit(&worker->copy);
}

/* Starts threads for the workers; returns how many. */
static unsigned crew_start_threads(
	struct tt_engine *engine, struct tt_worker *workers, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		tt_crew_enlist(engine, &workers[i]);
		if (pthread_create(&workers[i].thread, NULL, crew_thread, &workers[i]) != 0)
			return i;
	}
	return count;
}

/* The last worker is the engine thread's own: no thread. */
int tt_crew_start(struct tt_engine *engine)
{
	engine->workers = calloc(engine->worker_count + 1, sizeof *engine->workers);
	if (!engine->workers)
		return -ENOMEM;
	unsigned started = crew_start_threads(engine, engine->workers, engine->worker_count);

	if (started == 0)
		return -EAGAIN;
	engine->worker_count = started; /* fewer will do */
	tt_crew_enlist(engine, &engine->workers[started]);
	pthread_mutex_lock(&engine->lock);
	crew_share_out(engine);
	pthread_mutex_unlock(&engine->lock);
	return 0;
}

void tt_crew_add(struct tt_engine *engine, struct tt_lane *lane)
{
	unsigned count = engine->worker_count, have = crew_count(engine);

	if (count > engine->most_workers - crew_least(have, engine->most_workers))
		count = engine->most_workers - crew_least(have, engine->most_workers);
	lane->workers = calloc(count + 1, sizeof *lane->workers);
	if (lane->workers) {
		unsigned started = crew_start_threads(engine, lane->workers, count);

		pthread_mutex_lock(&engine->lock);
		lane->worker_count = started;
		pthread_mutex_unlock(&engine->lock);
	}
	pthread_mutex_lock(&engine->lock);
	crew_share_out(engine);
	pthread_mutex_unlock(&engine->lock);
}

static void crew_join(struct tt_engine *engine, struct tt_worker *workers, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned i = 0; i < count; i++)
		tt_crew_discharge(engine, &workers[i]);
}

void tt_crew_end(struct tt_engine *engine)
{
	if (!engine->workers)
		return;
	struct tt_worker *own = &engine->workers[engine->worker_count];

	pthread_mutex_lock(&engine->lock);
	engine->no_more_work = true;
	pthread_cond_broadcast(&engine->work_ready);
	pthread_mutex_unlock(&engine->lock);
	crew_join(engine, engine->workers, engine->worker_count);
	for (struct tt_lane *lane = engine->lanes; lane; lane = lane->next)
		crew_join(engine, lane->workers, lane->worker_count);
	/* Batches of nothing but discarded files: no directory has waited for them. */
	tt_arrive_drain(own, NULL);
	tt_crew_discharge(engine, own);
	for (struct tt_lane *lane = engine->lanes; lane; lane = lane->next) {
		free(lane->workers);
		lane->workers = NULL;
		lane->worker_count = 0;
	}
	free(engine->workers);
	engine->workers = NULL;
}
