/* SPDX-License-Identifier: MIT */
/*
 * See volume.h. This is where the table {file system} x {new file, size} x {what it can} of
 * man/tiptoe-internals.7 is decided.
 */
#include "sync/volume.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

struct tt_volume *tt_volume_get(struct tt_engine *engine, int fd, struct tt_volume *near)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		st.st_dev = 0;
	return tt_volume_find(engine, major(st.st_dev), minor(st.st_dev), fd, near);
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
	pthread_mutex_lock(&engine->lock);
	/* Somebody else may have been faster. */
	for (volume = engine->volumes; volume; volume = volume->next) {
		if (volume->dev_major == made->dev_major && volume->dev_minor == made->dev_minor)
			break;
	}
	if (!volume) {
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

int tt_volume_prepare(struct tt_engine *engine, struct tt_volume *volume, int dir_fd)
{
	if (volume->is_destination)
		return 0;
	volume->is_destination = true;
	if (engine->policy.cache.mode == TT_CACHE_KEEP)
		return 0;
	if (volume->neutral.method
		== TT_RESIDENCY_NONE) /* no cache of its own, nothing to write back */
		return 0;
	tt_probe_run_quick(dir_fd, &volume->probe);
	volume->paced = true;
	volume->can_count = volume->probe.cachestat == TT_PROBE_YES;
	if (volume->probe.cachestat == TT_PROBE_NO
		&& volume->neutral.method != TT_RESIDENCY_MINCORE)
		volume->neutral.method = TT_RESIDENCY_MINCORE;
	/* Unknown (no experiment: the disk is nearly full, or has no unnamed files) counts as
	 * working, except where it is known not to. */
	volume->sync = volume->probe.sync_file_range == TT_PROBE_NO ? TT_PACER_SYNC_DATA
								    : TT_PACER_SYNC_RANGE;
	if (volume->probe.tmpfile_error != 0 && strcmp(volume->device.fs_type, "overlay") == 0)
		volume->sync = TT_PACER_SYNC_DATA;
	volume->dontcache_write = volume->probe.dontcache_write == TT_PROBE_YES;
	return volume_start_pacer(engine, volume);
}

static const char *volume_write_words(const struct tt_volume *volume)
{
	if (!volume->paced)
		return "ordinary buffered writes";
	if (volume->sync == TT_PACER_SYNC_DATA)
		return "fdatasync, then DONTNEED";
	return volume->dontcache_write
		       ? "small files RWF_DONTCACHE, windows sync_file_range then DONTNEED"
		       : "sync_file_range, then DONTNEED";
}

static const char *volume_read_words(const struct tt_engine *engine, const struct tt_volume *volume)
{
	if (engine->policy.cache.mode == TT_CACHE_KEEP)
		return "ordinary buffered reads";
	switch (volume->neutral.method) {
	case TT_RESIDENCY_NONE:
		return "nothing (no cache of its own)";
	case TT_RESIDENCY_MINCORE:
		return "mincore, trailing DONTNEED";
	case TT_RESIDENCY_CACHESTAT:
		break;
	}
	return "cachestat, trailing DONTNEED";
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
		}
		int n = snprintf(stats->mechanisms + used, sizeof stats->mechanisms - used,
			"%s%s%s%s (%u:%u): %s%s%s", used > 0 ? "\n" : "",
			volume->device.fs_type[0] ? volume->device.fs_type : "file system",
			volume->device.disk_name[0] ? " on " : "", volume->device.disk_name,
			volume->dev_major, volume->dev_minor, volume_read_words(engine, volume),
			volume->is_destination ? "; " : "",
			volume->is_destination ? volume_write_words(volume) : "");

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
		free(volume);
	}
}
