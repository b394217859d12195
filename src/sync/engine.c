/* SPDX-License-Identifier: MIT */
/*
 * See engine.h. Threads, passes and accounts are here; what happens to a tree is in planner,
 * lister, apply, arrive, finish and deleter.
 *
 * Lock order: space_lock, lock (the run's), linkset's, pacer's and pool's; none is held while
 * another layer does I/O, except space_lock.
 */
#include "sync/engine.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "base/clock.h"
#include "sync/apply.h"
#include "sync/arrive.h"
#include "sync/dir.h"
#include "sync/lister.h"
#include "sync/operands.h"
#include "sync/planner.h"
#include "sync/reason.h"
#include "sync/share.h"
#include "sync/state.h"
#include "sync/verify.h"
#include "sync/volume.h"
#include "sys/device.h"
#include "sys/facility.h"
#include "sys/fd.h"
#include "tree/linkset.h"

enum {
	ENGINE_LEAST_WORKERS = 8, /* they sleep in reads most of the time */
	ENGINE_MOST_WORKERS = 32,
	ENGINE_ENTRIES_AHEAD = 32768, /* listed and not planned: about 6 MB */
	ENGINE_ENTRIES_SOON = 2048,   /* so many are listed before copying is preferred */
	ENGINE_DIRS_AHEAD = 4096,
	ENGINE_BATCHES = 64,
	ENGINE_RESERVED_FDS = 128,
	ENGINE_BATCH_PATIENCE_NS = 2000000, /* a batch that is not full waits so long for more */
};

const char *tt_engine_path(const struct tt_dir *dir, const char *name, char *buffer, size_t size)
{
	if (!name)
		snprintf(buffer, size, "%s", dir->path);
	else if (dir->path[0] == '\0')
		snprintf(buffer, size, "%s", name);
	else
		snprintf(buffer, size, "%s/%s", dir->path, name);
	return buffer;
}

void tt_engine_fail(struct tt_engine *engine, const char *verb, const struct tt_dir *dir,
	const char *name, int error)
{
	char path[PATH_MAX * 2], shown[PATH_MAX * 2], reason[TT_REASON_SIZE];

	atomic_fetch_add(&engine->errors, 1);
	if (!tt_reason_is_news(engine, dir, error))
		return;
	tt_engine_path(dir, name, path, sizeof path);
	tt_log_line(engine->log, TT_LOG_ERROR, "%s %s: %s", verb,
		path[0] ? tt_log_escape(path, shown, sizeof shown) : ".",
		tt_reason_text(dir, name, error, reason));
}

void tt_engine_vanished(struct tt_engine *engine, const struct tt_dir *dir, const char *name)
{
	char path[PATH_MAX * 2], shown[PATH_MAX * 2];

	atomic_fetch_add(&engine->vanished, 1);
	tt_engine_path(dir, name, path, sizeof path);
	tt_log_line(engine->log, TT_LOG_WARNING, "file has vanished: %s",
		tt_log_escape(path, shown, sizeof shown));
}

void tt_engine_wait_plan(struct tt_engine *engine, const struct tt_dir *dir)
{
	engine->plan_waits = true;
	engine->plan_waits_for = dir;
	pthread_cond_wait(&engine->plan_ready, &engine->lock);
	engine->plan_waits = false;
}

void tt_engine_wake_plan(struct tt_engine *engine, const struct tt_dir *dir)
{
	if (engine->plan_waits && (!engine->plan_waits_for || engine->plan_waits_for == dir))
		pthread_cond_signal(&engine->plan_ready);
}

void tt_engine_wake_workers(struct tt_engine *engine, unsigned count)
{
	for (unsigned i = 0; i < count && i < engine->idle_workers; i++)
		pthread_cond_signal(&engine->work_ready);
}

static void engine_wake_all(struct tt_engine *engine)
{
	pthread_mutex_lock(&engine->lock);
	pthread_cond_broadcast(&engine->work_ready);
	pthread_cond_broadcast(&engine->batch_ready);
	pthread_cond_broadcast(&engine->plan_ready);
	pthread_mutex_unlock(&engine->lock);
}

void tt_engine_abort(struct tt_engine *engine, enum tt_exit code)
{
	int none = 0;

	atomic_compare_exchange_strong(&engine->fatal, &none, (int)code);
	atomic_store(&engine->stop, true);
	engine_wake_all(engine);
}

void tt_engine_full(struct tt_engine *engine)
{
	atomic_store(&engine->disk_full, true);
	tt_engine_abort(engine, TT_EXIT_FILE_IO);
}

void tt_engine_stop(struct tt_engine *engine)
{
	atomic_store(&engine->asked_to_stop, true);
	atomic_store(&engine->stop, true);
	engine_wake_all(engine);
}

/* With the lock held: the next directory to list, if it is wanted now. */
static struct tt_dir *engine_next_listing(struct tt_engine *engine, unsigned most_entries)
{
	struct tt_dir *dir = tt_dir_queue_first(engine);

	if (engine->entries_ahead >= engine->most_entries_ahead)
		engine->listing_rests = true;
	if (!dir || engine->listing_rests || engine->entries_ahead >= most_entries
		|| engine->dirs_ahead >= engine->most_dirs_ahead
		|| atomic_load_explicit(&engine->stop, memory_order_relaxed))
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

static struct tt_job *engine_next_job(struct tt_engine *engine)
{
	struct tt_job *job = engine->jobs;

	if (!job)
		return NULL;
	engine->jobs = job->next;
	if (!engine->jobs)
		engine->jobs_last = &engine->jobs;
	engine->jobs_queued--;
	if (engine->jobs_queued < TT_MOST_JOBS / 2)
		tt_engine_wake_plan(engine, NULL);
	return job;
}

/* With the lock held. Returns whether something was done (the lock was given up meanwhile). */
static bool engine_work_once(struct tt_worker *worker)
{
	struct tt_engine *engine = worker->engine;
	struct tt_job *job = NULL;

	if (engine->arrived.first) {
		tt_arrive_run(worker);
		return true;
	}
	struct tt_dir *dir = engine_next_listing(engine, ENGINE_ENTRIES_SOON);

	if (!dir)
		job = engine_next_job(engine);
	if (!dir && !job)
		dir = engine_next_listing(engine, engine->most_entries_ahead);
	if (!dir && !job)
		return tt_share_help(engine);
	pthread_mutex_unlock(&engine->lock);
	if (dir)
		tt_lister_run(engine, worker, dir);
	else
		tt_apply_job(worker, job);
	pthread_mutex_lock(&engine->lock);
	return true;
}

/* Nothing to do at once. A batch that is not full waits a moment for more, but never for ever: the
 * plan may be waiting for it. */
static void engine_work_idle(struct tt_worker *worker)
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
	until.tv_nsec += ENGINE_BATCH_PATIENCE_NS;
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

static void *engine_worker(void *argument)
{
	struct tt_worker *worker = argument;
	struct tt_engine *engine = worker->engine;

	pthread_mutex_lock(&engine->lock);
	while (!engine->no_more_work || engine->jobs || worker->batch) {
		if (!engine_work_once(worker))
			engine_work_idle(worker);
	}
	pthread_mutex_unlock(&engine->lock);
	return NULL;
}

static void engine_before_sleep(void *context)
{
	tt_arrive_submit(context);
}

/* The last worker is the engine thread's own: no thread, but statistics and buffers. */
static int engine_start_workers(struct tt_engine *engine)
{
	engine->workers = calloc(engine->worker_count + 1, sizeof *engine->workers);
	if (!engine->workers)
		return -ENOMEM;
	for (unsigned i = 0; i <= engine->worker_count; i++) {
		struct tt_worker *worker = &engine->workers[i];

		worker->engine = engine;
		worker->copy.pool = &engine->pool;
		worker->copy.stop = &engine->stop;
		worker->copy.progress_bytes = &engine->bytes_done;
		worker->copy.no_uring = engine->policy.no_ring;
		worker->hooks = (struct tt_writer_hooks){
			.before_sleep = engine_before_sleep, .context = worker};
		worker->cache_stats.start_ns = engine->start_ns;
	}
	for (unsigned i = 0; i < engine->worker_count; i++) {
		int r = pthread_create(
			&engine->workers[i].thread, NULL, engine_worker, &engine->workers[i]);

		if (r != 0 && i == 0)
			return -r;
		if (r != 0) { /* fewer will do */
			engine->workers[i] = engine->workers[engine->worker_count];
			engine->workers[i].hooks.context = &engine->workers[i];
			engine->worker_count = i;
			break;
		}
	}
	return 0;
}

static void engine_end_workers(struct tt_engine *engine)
{
	if (!engine->workers)
		return;
	pthread_mutex_lock(&engine->lock);
	engine->no_more_work = true;
	pthread_cond_broadcast(&engine->work_ready);
	pthread_mutex_unlock(&engine->lock);
	for (unsigned i = 0; i < engine->worker_count; i++)
		pthread_join(engine->workers[i].thread, NULL);
	/* Batches of nothing but discarded files: no directory has waited for them. */
	tt_arrive_drain(&engine->workers[engine->worker_count]);
	for (unsigned i = 0; i <= engine->worker_count; i++) {
		struct tt_worker *worker = &engine->workers[i];

		tt_neutral_stats_add(&engine->cache_stats, &worker->cache_stats);
		engine->stats.literal_bytes += worker->stats.literal_bytes;
		engine->stats.cloned_bytes += worker->stats.cloned_bytes;
		tt_copy_worker_deinit(&worker->copy);
	}
	free(engine->workers);
	engine->workers = NULL;
}

static unsigned engine_least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Descriptors and memory are budgets: shared out here. */
static void engine_set_budgets(struct tt_engine *engine)
{
	unsigned limit = tt_fd_raise_limit();
	unsigned free_fds = limit - engine_least(limit / 4, ENGINE_RESERVED_FDS);

	if (engine->worker_count == 0) {
		unsigned workers = 4 * (unsigned)get_nprocs();

		workers = workers < ENGINE_LEAST_WORKERS ? ENGINE_LEAST_WORKERS : workers;
		engine->worker_count = engine_least(workers, ENGINE_MOST_WORKERS);
	}
	/* Each has a source and perhaps an old file open, and a ring for large ones. */
	engine->worker_count = engine_least(engine->worker_count, free_fds / 16 + 1);
	/* Half of the rest for directories (two descriptors each), half for files on their way.
	 * Each worker may hold one batch that it fills; where descriptors are few, batches are
	 * small. */
	free_fds -= engine_least(free_fds / 2, 4 * engine->worker_count);
	engine->most_dirs_ahead = engine_least(free_fds / 4, ENGINE_DIRS_AHEAD);
	engine->most_batches = engine_least(free_fds / 2 / TT_PACER_BATCH_FILES, ENGINE_BATCHES);
	if (engine->most_batches < engine->worker_count + 1)
		engine->most_batches = engine->worker_count + 1;
	engine->batch_files =
		engine_least(free_fds / 2 / engine->most_batches, TT_PACER_BATCH_FILES);
	if (engine->batch_files == 0)
		engine->batch_files = 1;
	engine->most_entries_ahead = ENGINE_ENTRIES_AHEAD;
	atomic_store(&engine->keep_budget_pages,
		(int64_t)(tt_pacer_memory_limit() / 4 / tt_residency_page_bytes()));
}

int tt_engine_new(const struct tt_engine_policy *policy, const char *const *sources,
	unsigned source_count, const char *destination, const struct tt_log *log,
	const struct tt_engine_events *events, struct tt_engine **ret_engine)
{
	struct tt_engine *engine = calloc(1, sizeof *engine);
	pthread_condattr_t attributes;

	if (!engine)
		return -ENOMEM;
	engine->policy = *policy;
	engine->sources = sources;
	engine->source_count = source_count;
	engine->destination = destination;
	engine->log = log;
	engine->events = *events;
	engine->worker_count = policy->workers;
	engine->root_destination_fd = -1;
	engine->jobs_last = &engine->jobs;
	pthread_mutex_init(&engine->lock, NULL);
	pthread_mutex_init(&engine->space_lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&engine->work_ready, &attributes);
	pthread_cond_init(&engine->batch_ready, &attributes);
	pthread_cond_init(&engine->plan_ready, &attributes);
	pthread_cond_init(&engine->share_ready, &attributes);
	pthread_condattr_destroy(&attributes);
	engine->arrived = (struct tt_pacer_sink){.lock = &engine->lock,
		.ready = {&engine->work_ready, &engine->batch_ready},
		.last = &engine->arrived.first};
	tt_pool_init(&engine->pool);
	int r = tt_device_table_new(&engine->devices);

	if (r == 0)
		r = tt_linkset_new(&engine->links);
	if (r < 0) {
		tt_engine_free(engine);
		return r;
	}
	*ret_engine = engine;
	return 0;
}

void tt_engine_free(struct tt_engine *engine)
{
	if (!engine)
		return;
	tt_volume_free_all(engine);
	tt_linkset_free(engine->links);
	tt_device_table_free(engine->devices);
	tt_pool_deinit(&engine->pool);
	pthread_mutex_destroy(&engine->lock);
	pthread_mutex_destroy(&engine->space_lock);
	pthread_cond_destroy(&engine->work_ready);
	pthread_cond_destroy(&engine->batch_ready);
	pthread_cond_destroy(&engine->plan_ready);
	pthread_cond_destroy(&engine->share_ready);
	for (unsigned i = 0; i < engine->spare_count; i++)
		tt_listing_deinit(&engine->spare[i]);
	free(engine->heap);
	free(engine->destination_name);
	free(engine);
}

/* One walk over both trees. Returns an exit code for errors that end the run before it begins. */
static int engine_pass(struct tt_engine *engine, bool copying, bool deleting)
{
	struct tt_dir *root = NULL;

	engine->copying_pass = copying;
	engine->deleting_pass = deleting;
	int r = tt_operands_open(engine, &root);

	if (r != 0 || !root)
		return r;
	if (!engine->workers && engine_start_workers(engine) < 0) {
		tt_dir_free(root);
		return TT_EXIT_MEMORY;
	}
	tt_planner_walk(engine, root);
	return 0;
}

static int engine_passes(struct tt_engine *engine)
{
	int r = 0;

	if (engine->policy.delete_mode == TT_DELETE_BEFORE)
		r = engine_pass(engine, false, true);
	if (r == 0)
		r = engine_pass(engine, true, false);
	if (r == 0 && engine->policy.delete_mode == TT_DELETE_AFTER && !atomic_load(&engine->stop))
		r = engine_pass(engine, false, true);
	return r;
}

static enum tt_exit engine_exit_code(const struct tt_engine *engine, int result)
{
	if (result != 0)
		return (enum tt_exit)result;
	if (atomic_load(&engine->fatal) != 0)
		return (enum tt_exit)atomic_load(&engine->fatal);
	if (atomic_load(&engine->asked_to_stop))
		return TT_EXIT_SIGNAL;
	if (atomic_load(&engine->errors) > 0)
		return TT_EXIT_PARTIAL;
	return atomic_load(&engine->vanished) > 0 ? TT_EXIT_VANISHED : TT_EXIT_OK;
}

/* Budgets are integers: everything taken has been given back. */
static void engine_check_budgets(const struct tt_engine *engine)
{
	if (engine->batches_out != 0 || engine->tasks_out != 0 || engine->dirs_ahead != 0
		|| engine->entries_ahead != 0 || engine->jobs_queued != 0
		|| engine->heap_count != 0)
		tt_log_line(engine->log, TT_LOG_ERROR,
			"internal error: budgets are not at zero: %u batches, %u tasks, %u "
			"directories, %u entries, %u jobs, %u waiting",
			engine->batches_out, engine->tasks_out, engine->dirs_ahead,
			engine->entries_ahead, engine->jobs_queued, engine->heap_count);
}

/* What a kernel or a sandbox has refused: for --stats, and at -v if a promise is weaker for it. */
static void engine_tell_refusals(struct tt_engine *engine)
{
	char *text = engine->stats.refusals, line[256];
	const size_t size = sizeof engine->stats.refusals;

	for (int i = 0; i < TT_FACILITY_COUNT; i++) {
		size_t used = strlen(text);

		if (!tt_facility_describe((enum tt_facility)i, line, sizeof line))
			continue;
		if (tt_facility_weakens((enum tt_facility)i))
			tt_log_line(engine->log, TT_LOG_VERBOSE, "%s", line);
		snprintf(text + used, size - used, "%s\n", line);
	}
}

enum tt_exit tt_engine_run(struct tt_engine *engine)
{
	engine->start_ns = tt_clock_now_ns();
	engine_set_budgets(engine);
	int r = engine_passes(engine);

	engine_end_workers(engine);
	tt_reason_finish(engine);
	engine_check_budgets(engine);
	if (r == 0 && engine->policy.verify_cache)
		tt_verify_run(engine);
	engine_tell_refusals(engine);
	engine->stats.elapsed_ns = tt_clock_now_ns() - engine->start_ns;
	return engine_exit_code(engine, r);
}

void tt_engine_progress(struct tt_engine *engine, struct tt_engine_progress *ret_progress)
{
	*ret_progress = (struct tt_engine_progress){
		.files_done = atomic_load(&engine->files_done),
		.files_known = atomic_load(&engine->files_known),
		.bytes_done = atomic_load(&engine->bytes_done),
		.bytes_known = atomic_load(&engine->bytes_known),
		.listing_complete = atomic_load(&engine->listing_complete),
		.elapsed_ns = engine->start_ns ? tt_clock_now_ns() - engine->start_ns : 0,
	};
}

void tt_engine_stats(const struct tt_engine *engine, struct tt_engine_stats *ret_stats)
{
	struct tt_engine_stats *stats = ret_stats;

	*stats = engine->stats;
	stats->pages_found_resident = engine->cache_stats.found_resident;
	stats->pages_dropped = engine->cache_stats.dropped;
	stats->pages_not_dropped = engine->cache_stats.not_dropped;
	stats->pages_left = engine->cache_stats.left;
	stats->pages_kept_hot = engine->cache_stats.kept_hot;
	stats->files_read_direct = engine->cache_stats.files_read_direct;
	stats->files_written_direct = engine->cache_stats.files_written_direct;
	stats->files_unknown = engine->cache_stats.files_unknown;
	stats->drop_calls = engine->cache_stats.drop_calls;
	stats->drop_ns = engine->cache_stats.drop_ns;
	stats->list_ns = atomic_load(&engine->list_ns);
	stats->errors = atomic_load(&engine->errors);
	stats->vanished = atomic_load(&engine->vanished);
	tt_volume_report((struct tt_engine *)engine, stats);
}
