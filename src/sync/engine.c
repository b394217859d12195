/* SPDX-License-Identifier: MIT */
/*
 * See engine.h. Passes and accounts are here; threads are in crew and branch; what happens to a
 * tree is in planner, lister, apply, arrive, finish and deleter.
 *
 * Lock order: turn (the planners'), a lane's space_lock, lock (the run's), linkset's, pacer's and
 * pool's; none is held while another layer does I/O, except the first two.
 */
#include "sync/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sync/branch.h"
#include "sync/crew.h"
#include "sync/delayed.h"
#include "sync/dir.h"
#include "sync/lane.h"
#include "sync/operands.h"
#include "sync/planner.h"
#include "sync/reason.h"
#include "sync/state.h"
#include "sync/verify.h"
#include "sync/volume.h"
#include "sys/device.h"
#include "sys/facility.h"
#include "tree/linkset.h"
#include "tree/sweep.h"

enum {
	ENGINE_ENTRIES_AHEAD = 32768, /* listed and not planned: about 6 MB */
	/* For locks that a dead run still holds; beside a live one it is waited for nothing. */
	ENGINE_SWEEP_PATIENCE_NS = 1000000000,
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
	struct tt_branch *mine = tt_branch_pause(engine);

	/* With more than one asleep, all look again at whatever happens. */
	engine->plan_waits_for = engine->plan_waits++ == 0 ? dir : NULL;
	pthread_cond_wait(&engine->plan_ready, &engine->lock);
	engine->plan_waits--;
	/* The turn comes before the lock. */
	pthread_mutex_unlock(&engine->lock);
	tt_branch_resume(engine, mine);
	pthread_mutex_lock(&engine->lock);
}

void tt_engine_wake_plan(struct tt_engine *engine, const struct tt_dir *dir)
{
	if (engine->plan_waits > 0 && (!engine->plan_waits_for || engine->plan_waits_for == dir))
		pthread_cond_broadcast(&engine->plan_ready);
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

/* Memory is a budget as descriptors are. */
static void engine_set_budgets(struct tt_engine *engine)
{
	tt_crew_set_budgets(engine);
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
	/* A walk afterwards would not find in the source what has been removed from it. */
	if (policy->remove_source_files && policy->delete_mode == TT_DELETE_AFTER)
		engine->policy.delete_mode = TT_DELETE_DELAY;
	engine->sources = sources;
	engine->source_count = source_count;
	engine->destination = destination;
	engine->log = log;
	engine->events = *events;
	engine->worker_count = policy->workers;
	engine->root_destination_fd = -1;
	pthread_mutex_init(&engine->lock, NULL);
	pthread_mutex_init(&engine->turn, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&engine->work_ready, &attributes);
	pthread_cond_init(&engine->batch_ready, &attributes);
	pthread_cond_init(&engine->plan_ready, &attributes);
	pthread_cond_init(&engine->share_ready, &attributes);
	pthread_condattr_destroy(&attributes);
	tt_pool_init(&engine->pool);
	int r = tt_device_table_new(&engine->devices);

	if (r == 0)
		r = tt_linkset_new(&engine->links);
	if (r == 0)
		r = tt_sweep_new(&engine->sweep);
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
	tt_delayed_free(engine);
	tt_volume_free_all(engine);
	tt_lane_free_all(engine);
	tt_linkset_free(engine->links);
	tt_sweep_free(engine->sweep);
	tt_device_table_free(engine->devices);
	tt_pool_deinit(&engine->pool);
	pthread_mutex_destroy(&engine->lock);
	pthread_mutex_destroy(&engine->turn);
	pthread_cond_destroy(&engine->work_ready);
	pthread_cond_destroy(&engine->batch_ready);
	pthread_cond_destroy(&engine->plan_ready);
	pthread_cond_destroy(&engine->share_ready);
	for (unsigned i = 0; i < engine->spare_count; i++)
		tt_listing_deinit(&engine->spare[i]);
	free(engine->heap);
	free(engine->destination_name);
	for (unsigned i = 0; i < engine->missing_count; i++)
		free(engine->missing[i]);
	free(engine->missing);
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
	if (!engine->workers && tt_crew_start(engine) < 0) {
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
	if (atomic_load(&engine->vanished) > 0)
		return TT_EXIT_VANISHED;
	return engine->stats.skipped_deletions > 0 ? TT_EXIT_MAX_DELETE : TT_EXIT_OK;
}

/* Budgets are integers: everything taken has been given back. */
static void engine_check_budgets(const struct tt_engine *engine)
{
	unsigned batches = 0, tasks = 0, jobs = 0, busy = 0;

	for (const struct tt_lane *lane = engine->lanes; lane; lane = lane->next) {
		batches += lane->batches_out;
		tasks += lane->tasks_out;
		jobs += lane->jobs_queued;
		busy += lane->busy;
	}
	if (batches != 0 || tasks != 0 || engine->dirs_ahead != 0 || engine->entries_ahead != 0
		|| jobs != 0 || engine->heap_count != 0 || busy != 0)
		tt_log_line(engine->log, TT_LOG_ERROR,
			"internal error: budgets are not at zero: %u batches, %u tasks, %u "
			"directories, %u entries, %u jobs, %u waiting, %u busy",
			batches, tasks, engine->dirs_ahead, engine->entries_ahead, jobs,
			engine->heap_count, busy);
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

/* A walk that only deletes says nothing of what it cannot read: the one that copies does, unless
 * the error came only then. */
static void engine_tell_deleting_error(struct tt_engine *engine)
{
	int error = atomic_load(&engine->deleting_error);

	if (error == 0 || atomic_load(&engine->errors) > 0)
		return;
	atomic_fetch_add(&engine->errors, 1);
	tt_log_line(engine->log, TT_LOG_ERROR,
		"reading directories for deletions: %s: names that the source does not have may be "
		"left",
		tt_error_text(error));
}

static void engine_tell_skipped_deletions(struct tt_engine *engine)
{
	if (engine->stats.skipped_deletions > 0)
		tt_log_line(engine->log, TT_LOG_WARNING,
			"deletions stopped at the limit of --max-delete (%" PRIu64 " left out)",
			engine->stats.skipped_deletions);
}

enum tt_exit tt_engine_run(struct tt_engine *engine)
{
	engine->start_ns = tt_clock_now_ns();
	engine_set_budgets(engine);
	int r = tt_branch_begin(engine) < 0 ? TT_EXIT_MEMORY : engine_passes(engine);

	tt_crew_end(engine);
	tt_branch_end(engine);
	(void)tt_sweep_again(engine->sweep, ENGINE_SWEEP_PATIENCE_NS, &engine->stop);
	tt_reason_finish(engine);
	engine_check_budgets(engine);
	engine_tell_deleting_error(engine);
	engine_tell_skipped_deletions(engine);
	if (r == 0 && engine->policy.verify_cache)
		tt_verify_run(engine);
	tt_volume_tell_small(engine);
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
