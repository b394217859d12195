/* SPDX-License-Identifier: MIT */
/*
 * See volume.h. Which mechanism follows from what was found out is cache/mechanism's.
 */
#include "sync/volume.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "sync/branch.h"
#include "sync/lane.h"
#include "sys/fd.h"
#include "sys/granularity.h"
#include "sys/temporary.h"

struct tt_volume *tt_volume_get(struct tt_engine *engine, int fd, struct tt_volume *near)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		st.st_dev = 0;
	return tt_volume_find(engine, major(st.st_dev), minor(st.st_dev), fd, near);
}

static void volume_set_facts(struct tt_engine *engine, struct tt_volume *volume)
{
	volume->facts = tt_mechanism_facts(
		engine->policy.cache.mode, volume->neutral.method, &volume->probe);
	if (engine->policy.fsync)
		volume->facts |= TT_MECHANISM_WANTS_FSYNC;
}

struct tt_volume *tt_volume_find(struct tt_engine *engine, uint32_t dev_major, uint32_t dev_minor,
	int fd, struct tt_volume *near)
{
	if (near && near->dev_major == dev_major && near->dev_minor == dev_minor)
		return near;
	pthread_mutex_lock(&engine->lock);
	struct tt_volume *volume = engine->volumes;

	while (volume && (volume->dev_major != dev_major || volume->dev_minor != dev_minor))
		volume = volume->next;
	pthread_mutex_unlock(&engine->lock);
	if (volume)
		return volume;
	struct tt_volume *made = calloc(1, sizeof *made);

	if (!made)
		return NULL;
	made->dev_major = dev_major;
	made->dev_minor = dev_minor;
	made->neutral.method = tt_residency_method(fd);
	made->neutral.dontcache_read =
		true; /* until a read is refused: a source is never written to */
	(void)tt_device_get(engine->devices, fd, &made->device);
	volume_set_facts(engine, made);
	made->granularity_ns = tt_granularity_guess(made->device.fs_type, fd);
	pthread_mutex_lock(&engine->lock);
	/* Somebody else may have been faster. */
	for (volume = engine->volumes; volume; volume = volume->next) {
		if (volume->dev_major == made->dev_major && volume->dev_minor == made->dev_minor)
			break;
	}
	if (!volume) {
		tt_neutral_turns_init(&made->turns);
		made->next = engine->volumes;
		engine->volumes = made;
		volume = made;
		made = NULL;
	}
	pthread_mutex_unlock(&engine->lock);
	free(made);
	return volume;
}

static int volume_start_pacer(struct tt_engine *engine, struct tt_volume *volume)
{
	pthread_mutex_lock(&engine->lock);
	for (struct tt_volume *other = engine->volumes; other && !volume->pacer;
		other = other->next) {
		if (other->pacer && other->device.disk == volume->device.disk)
			volume->pacer = other->pacer;
	}
	pthread_mutex_unlock(&engine->lock);
	if (volume->pacer)
		return 0;
	uint64_t budget = engine->policy.cache.dirty_limit_bytes;

	if (budget == 0)
		budget = tt_pacer_default_budget();
	const struct tt_pacer_config config = {
		.budget_bytes = budget < TT_PACER_LEAST_BYTES ? TT_PACER_LEAST_BYTES : budget,
		.no_uring = engine->policy.no_ring,
	};
	int refusal = 0;
	int r = tt_pacer_new(&config, &volume->pacer, &refusal);

	if (r < 0)
		return r;
	volume->owns_pacer = true;
	if (refusal != 0)
		tt_log_line(engine->log, TT_LOG_VERBOSE,
			"io_uring is not available (%s): threads do its work",
			engine->policy.no_ring ? "TIPTOE_RING=off" : tt_error_text(refusal));
	return 0;
}

/* Where nothing is probed for the sake of the cache. */
static void volume_try_granularity(struct tt_volume *volume, int dir_fd)
{
	TT_FD_AUTO fd = tt_temporary_open(dir_fd, NULL);

	if (fd >= 0)
		(void)tt_granularity_try(fd, &volume->granularity_ns);
}

struct tt_plan_policy tt_volume_plan_policy(
	const struct tt_engine *engine, const struct tt_dir *dir)
{
	struct tt_plan_policy policy = engine->policy.plan;

	if (dir->to)
		policy.granularity_ns = dir->to->granularity_ns;
	return policy;
}

/* Tries what has to be tried, for which one may have to wait for the disk: other disks may be
 * planned meanwhile. */
static void volume_try(
	struct tt_engine *engine, struct tt_volume *volume, bool is_paced, int dir_fd)
{
	volume->is_tried = true;
	struct tt_branch *branch = tt_branch_pause(engine);

	if (is_paced)
		tt_probe_run_quick(dir_fd, &volume->probe);
	else
		volume_try_granularity(volume, dir_fd);
	tt_branch_resume(engine, branch);
}

/* Another branch may be about to try it: the same file system, mounted twice. */
static void volume_await_tried(struct tt_engine *engine, const struct tt_volume *volume)
{
	pthread_mutex_lock(&engine->lock);
	while (volume->is_tried)
		tt_engine_wait_plan(engine, NULL);
	pthread_mutex_unlock(&engine->lock);
}

static int volume_begin_pacing(struct tt_engine *engine, struct tt_volume *volume)
{
	if (volume->probe.time_granularity_ns > 0)
		volume->granularity_ns = volume->probe.time_granularity_ns;
	volume->paced = true;
	if (volume->probe.cachestat == TT_PROBE_NO)
		volume->neutral.method = TT_RESIDENCY_MINCORE;
	volume_set_facts(engine, volume);
	volume->sync = volume->facts & TT_MECHANISM_HAS_SYNC_RANGE ? TT_PACER_SYNC_RANGE
								   : TT_PACER_SYNC_DATA;
	volume->can_count = volume->neutral.method == TT_RESIDENCY_CACHESTAT;
	return volume_start_pacer(engine, volume);
}

int tt_volume_prepare(struct tt_engine *engine, struct tt_volume *volume, int dir_fd)
{
	struct tt_lane *lane;

	if (volume->is_destination) {
		volume_await_tried(engine, volume);
		return 0;
	}
	int r = tt_lane_get(engine, volume->device.disk, &lane);

	if (r < 0)
		return r;
	pthread_mutex_lock(&engine->lock);
	volume->lane = lane;
	pthread_mutex_unlock(&engine->lock);
	volume->is_destination = true;
	const struct tt_mechanism *first =
		tt_mechanism_choose(TT_MECHANISM_NEW, TT_MECHANISM_LARGE, volume->facts);
	bool is_paced = first->kind != TT_MECHANISM_ORDINARY; /* else nothing is written back, or
								 that is not wanted */

	volume_try(engine, volume, is_paced, dir_fd);
	if (is_paced)
		r = volume_begin_pacing(engine, volume);
	pthread_mutex_lock(&engine->lock);
	volume->is_tried = false;
	tt_engine_wake_plan(engine, NULL);
	pthread_mutex_unlock(&engine->lock);
	return r;
}

const struct tt_mechanism *tt_volume_choose(const struct tt_volume *volume,
	enum tt_mechanism_operation operation, uint64_t size_bytes, unsigned has, unsigned lacks)
{
	uint64_t whole =
		volume->pacer ? tt_mechanism_whole_bytes(tt_pacer_budget_bytes(volume->pacer)) : 0;

	return tt_mechanism_choose_for(
		operation, size_bytes, whole, (volume->facts | has) & ~lacks);
}

const char *tt_volume_why_undirect(const struct tt_volume *volume, bool hot)
{
	if (!volume->pacer)
		return "it has no page cache of its own";
	if (!(volume->facts & TT_MECHANISM_HAS_DIRECT_WRITE))
		return "it does not say how requests must be aligned";
	return hot ? "what it replaces is resident, and so will it be" : NULL;
}

void tt_volume_tell_no_direct(struct tt_engine *engine, struct tt_volume *volume,
	const struct tt_dir *dir, const char *name, bool writing, const char *why)
{
	char path[PATH_MAX], shown[PATH_MAX];

	if (!why || engine->policy.cache.mode != TT_CACHE_DIRECT)
		return;
	if (writing ? (volume->facts & TT_MECHANISM_HAS_DIRECT_WRITE) != 0
		    : volume->neutral.direct_seen) {
		tt_log_escape(tt_engine_path(dir, name, path, sizeof path), shown, sizeof shown);
		tt_log_line(engine->log, TT_LOG_VERBOSE, "%s is %s without O_DIRECT: %s", shown,
			writing ? "written" : "read", why);
	} else if (!atomic_exchange(&volume->told_no_direct[writing], true)) {
		tt_log_line(engine->log, TT_LOG_VERBOSE,
			"O_DIRECT is not used to %s %s (%u:%u): %s", writing ? "write" : "read",
			volume->device.fs_type[0] ? volume->device.fs_type : "this file system",
			volume->dev_major, volume->dev_minor, why);
	}
}

void tt_volume_tell_small(struct tt_engine *engine)
{
	for (struct tt_volume *volume = engine->volumes; volume; volume = volume->next) {
		uint64_t files = atomic_load(&volume->small_files);

		if (files > 0)
			tt_log_line(engine->log, TT_LOG_VERBOSE,
				"O_DIRECT is not used to write %llu new file%s below 64 KiB on %s "
				"(%u:%u): it takes many times as long",
				(unsigned long long)files, files == 1 ? "" : "s",
				volume->device.fs_type[0] ? volume->device.fs_type
							  : "this file system",
				volume->dev_major, volume->dev_minor);
	}
}

static const char *volume_share_words(const struct tt_volume *volume)
{
	if (atomic_load(&volume->clones.has_cloned))
		return "; clones (FICLONERANGE)";
	return atomic_load(&volume->clones.has_offloaded)
		       ? "; copies inside the server (copy_file_range)"
		       : "";
}

void tt_volume_report(struct tt_engine *engine, struct tt_engine_stats *stats)
{
	size_t used = 0;

	for (struct tt_volume *volume = engine->volumes; volume; volume = volume->next) {
		if (volume->owns_pacer) {
			struct tt_pacer_stats pacer;

			tt_pacer_stats(volume->pacer, &pacer);
			stats->peak_dirty_bytes += pacer.peak_bytes;
			stats->pacer_wait_ns += pacer.wait_ns;
			stats->drop_calls += pacer.drops;
		}
		char words[1024];

		tt_mechanism_describe(&volume->uses, words, sizeof words);
		int n = snprintf(stats->mechanisms + used, sizeof stats->mechanisms - used,
			"%s%s%s%s (%u:%u): %s%s", used > 0 ? "\n" : "",
			volume->device.fs_type[0] ? volume->device.fs_type : "file system",
			volume->device.disk_name[0] ? " on " : "", volume->device.disk_name,
			volume->dev_major, volume->dev_minor,
			words[0] ? words : "no content was moved", volume_share_words(volume));

		if (n < 0 || used + (size_t)n >= sizeof stats->mechanisms)
			break;
		used += (size_t)n;
	}
}

void tt_volume_free_all(struct tt_engine *engine)
{
	for (struct tt_volume *volume = engine->volumes; volume; volume = volume->next) {
		if (volume->owns_pacer)
			tt_pacer_free(volume->pacer);
	}
	while (engine->volumes) {
		struct tt_volume *volume = engine->volumes;

		engine->volumes = volume->next;
		tt_neutral_turns_deinit(&volume->turns);
		free(volume);
	}
}
