/* SPDX-License-Identifier: MIT */
/*
 * See apply_file.h.
 *
 * A file that changes while it is copied is noticed by comparing fstat before and after, and copied
 * once more. If it changes again: one that only grew keeps what was copied, with the first time, so
 * that the next run takes it again; one that shrank or was rewritten leaves the old content in
 * place.
 *
 * A file that is written in place (apply_inplace.h) goes the same way, except that it has no
 * temporary, gets its attributes when it arrives, and is what it is after a failure.
 *
 * A disk that is full may be full of our own temporaries: everything on its way arrives first, then
 * the file is tried once more, alone.
 */
#include "sync/apply_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "copy/extents.h"
#include "sync/apply.h"
#include "sync/apply_inplace.h"
#include "sync/arrive.h"
#include "sync/lane.h"
#include "sync/reason.h"
#include "sync/turn.h"
#include "sync/volume.h"
#include "sys/fd.h"
#include "tree/stage.h"

enum file_outcome {
	FILE_GOOD,
	FILE_FAILED,  /* reported */
	FILE_CHANGED, /* the source moved under us: again */
	FILE_FULL,    /* no space: again when there is some */
};

struct file_copy {
	struct tt_worker *worker;
	struct tt_dir *dir;
	const struct tt_task *task;
	const char *name; /* at the destination */
	int from_fd;
	struct stat before;                   /* of the source, before the first read */
	struct stat made;                     /* of the temporary */
	const struct tt_mechanism *mechanism; /* of writing */
	const char *undirect;      /* why not with O_DIRECT, if that was asked for; or NULL */
	bool in_place, is_touched; /* in place: it has been opened for writing */
	uint64_t old_bytes;        /* in place: length before the first try */
	unsigned tries;
	bool last_try;
	int full_error;            /* -ENOSPC or -EDQUOT, with FILE_FULL */
	int preallocate_error;     /* of the present try */
	enum tt_inplace_rest rest; /* in place: what a failure leaves */
};

static bool file_is_gone(int error)
{
	return error == -ENOENT || error == -ESTALE;
}

/* Opens the source and makes sure that it is still a regular file. */
static int file_open(struct file_copy *copy)
{
	const struct tt_entry *wanted = copy->task->wanted;
	struct tt_engine *engine = copy->worker->engine;

	copy->from_fd = tt_fd_open_read(copy->dir->source_fds[wanted->layer], wanted->name);
	if (file_is_gone(copy->from_fd)) {
		tt_engine_vanished(engine, copy->dir, wanted->name);
		return copy->from_fd;
	}
	if (copy->from_fd < 0) {
		atomic_store(&engine->source_failed, true);
		tt_engine_fail(engine, "opening", copy->dir, wanted->name, copy->from_fd);
		return copy->from_fd;
	}
	if (fstat(copy->from_fd, &copy->before) < 0 || !S_ISREG(copy->before.st_mode)) {
		tt_engine_fail(engine, "copying something that is no regular file any more,",
			copy->dir, wanted->name, -ESTALE);
		tt_fd_close(copy->from_fd);
		return -ESTALE;
	}
	return 0;
}

/* Whether it is worth a try. An append-only directory would take the temporary and never give it
 * back. */
static bool file_may_be_made(const struct file_copy *copy)
{
	struct tt_engine *engine = copy->worker->engine;

	if (tt_reason_gave_up(engine, copy->dir))
		return false;
	if (copy->in_place || !tt_apply_is_pinned(copy->dir, copy->task))
		return true;
	tt_engine_fail(engine, copy->task->existing ? "replacing" : "making", copy->dir, copy->name,
		-EPERM);
	return false;
}

/* What of the file to be replaced is in the cache: its readers will want the same of the new one.
 */
static void file_look_at_old(struct file_copy *copy, struct tt_arrival *arrival)
{
	struct tt_worker *worker = copy->worker;
	struct stat st;

	const enum tt_cache_mode mode = worker->engine->policy.cache.mode;

	if (!copy->dir->to || (mode != TT_CACHE_LEAVE && mode != TT_CACHE_DIRECT)
		|| !copy->task->action.exists || copy->in_place)
		return;
	TT_FD_AUTO fd = tt_fd_open_read(copy->dir->destination_fd, copy->name);

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	(void)tt_neutral_old_look(&arrival->old, fd, (uint64_t)st.st_size, &copy->dir->to->neutral,
		&worker->cache_stats);
}

static void file_choose(struct file_copy *copy, struct tt_arrival *arrival, unsigned lacks)
{
	const bool overwrites = copy->in_place && arrival->inplace->old_bytes > 0;

	copy->mechanism = tt_volume_choose(copy->dir->to,
		overwrites ? TT_MECHANISM_OVERWRITE : TT_MECHANISM_NEW,
		(uint64_t)copy->before.st_size,
		arrival->old.resident_pages > 0 ? TT_MECHANISM_IS_HOT : 0, lacks);
	arrival->paced.started = copy->mechanism->kind == TT_MECHANISM_UNCACHED;
}

static void file_prepare(struct file_copy *copy, struct tt_arrival *arrival)
{
	const struct tt_volume *to = copy->dir->to;
	struct tt_pacer_file *paced = &arrival->paced;
	const bool hot = arrival->old.resident_pages > 0;

	file_choose(copy, arrival, copy->in_place ? TT_MECHANISM_HAS_DIRECT_WRITE : 0);
	paced->sync = to->sync;
	paced->drop_windows = copy->in_place || !hot;
	paced->keep = copy->in_place && hot ? &arrival->old : NULL;
	paced->fsync = copy->worker->engine->policy.fsync;
	paced->can_count = to->can_count;
}

/* Begins to write, with O_DIRECT where the table says so and this file can. */
static void file_begin_writer(
	struct file_copy *copy, struct tt_arrival *arrival, struct tt_writer *writer)
{
	struct tt_worker *worker = copy->worker;
	struct tt_volume *to = copy->dir->to;
	const uint64_t size = (uint64_t)copy->before.st_size;

	copy->undirect = tt_volume_why_undirect(to, arrival->old.resident_pages > 0);
	if (copy->mechanism->kind == TT_MECHANISM_DIRECT) {
		int r = tt_writer_begin_direct(writer, arrival->paced.fd, size, to->pacer,
			&arrival->paced, &worker->hooks);

		if (r == 0) {
			worker->cache_stats.files_written_direct++;
			return;
		}
		copy->undirect = tt_error_text(r);
		file_choose(copy, arrival, TT_MECHANISM_HAS_DIRECT_WRITE);
	}
	tt_writer_begin(writer, arrival->paced.fd, size, to->pacer, &arrival->paced, &worker->hooks,
		arrival->paced.started ? TT_FD_DONTCACHE : 0);
}

/* Counts what content has been moved with, and tells where it is not what was asked for. */
static void file_tell_mechanisms(struct file_copy *copy, struct tt_volume *from,
	const struct tt_neutral_reader *reader, const struct tt_writer *writer)
{
	struct tt_engine *engine = copy->worker->engine;
	struct tt_volume *to = copy->dir->to;
	const char *name = copy->task->wanted->name;

	tt_mechanism_use(&from->uses, reader->mechanism);
	tt_mechanism_use(&to->uses, copy->mechanism);
	tt_volume_tell_no_direct(engine, from, copy->dir, name, false, reader->refusal);
	tt_volume_tell_no_direct(engine, to, copy->dir, name, true,
		writer->refusal ? writer->refusal : copy->undirect);
	if (engine->policy.cache.mode == TT_CACHE_DIRECT && !writer->was_direct && !copy->undirect)
		atomic_fetch_add(&to->small_files, 1);
}

/* Whether the source was written to while it was copied. */
static bool file_has_changed(const struct file_copy *copy, const struct stat *after)
{
	return after->st_size != copy->before.st_size
	       || after->st_mtim.tv_sec != copy->before.st_mtim.tv_sec
	       || after->st_mtim.tv_nsec != copy->before.st_mtim.tv_nsec;
}

static enum file_outcome file_judge_change(
	struct file_copy *copy, const struct tt_copy_result *result)
{
	struct tt_engine *engine = copy->worker->engine;
	const char *name = copy->task->wanted->name;
	struct stat after;
	char path[PATH_MAX], shown[PATH_MAX];

	if (fstat(copy->from_fd, &after) < 0) {
		tt_engine_fail(engine, "reading attributes of", copy->dir, name, -errno);
		return FILE_FAILED;
	}
	if (!file_has_changed(copy, &after))
		return FILE_GOOD;
	if (!copy->last_try)
		return FILE_CHANGED;
	tt_log_escape(tt_engine_path(copy->dir, name, path, sizeof path), shown, sizeof shown);
	if (after.st_size > copy->before.st_size
		&& result->size_bytes >= (uint64_t)copy->before.st_size) {
		tt_log_line(engine->log, TT_LOG_WARNING,
			"%s grew while it was copied: what it held before was copied", shown);
		return FILE_GOOD;
	}
	tt_log_line(engine->log, TT_LOG_ERROR, "%s changed while it was copied%s", shown,
		copy->in_place ? "" : ": the old version stays");
	atomic_fetch_add(&engine->errors, 1);
	return FILE_FAILED;
}

static bool file_is_full(struct file_copy *copy, int error)
{
	if (error != -ENOSPC && error != -EDQUOT)
		return false;
	copy->full_error = error;
	return true;
}

static enum file_outcome file_failed(
	struct file_copy *copy, const struct tt_copy_result *result, int error)
{
	struct tt_engine *engine = copy->worker->engine;

	if (error == -ECANCELED)
		return FILE_FAILED;
	if (result->failed != TT_COPY_READING && file_is_full(copy, error))
		return FILE_FULL;
	bool reading = result->failed == TT_COPY_READING;

	if (reading && file_is_gone(error)) {
		tt_engine_vanished(engine, copy->dir, copy->task->wanted->name);
		return FILE_FAILED;
	}
	if (reading)
		atomic_store(&engine->source_failed, true);
	tt_engine_fail(engine,
		reading                             ? "reading"
		: result->failed == TT_COPY_CLONING ? "cloning"
						    : "writing",
		copy->dir, copy->task->wanted->name, error);
	return FILE_FAILED;
}

/* The attributes of what is really copied, which may have changed since it was listed. Times from
 * before the first read. */
static struct tt_entry file_wanted(const struct file_copy *copy)
{
	struct tt_entry wanted = *copy->task->wanted;

	wanted.mode = copy->before.st_mode;
	wanted.uid = copy->before.st_uid;
	wanted.gid = copy->before.st_gid;
	wanted.mtime_sec = copy->before.st_mtim.tv_sec;
	wanted.mtime_nsec = (uint32_t)copy->before.st_mtim.tv_nsec;
	tt_meta_adjust(&copy->worker->engine->policy.meta, &wanted);
	return wanted;
}

static const struct tt_entry *file_existing(const struct file_copy *copy)
{
	return copy->task->action.exists ? copy->task->existing : NULL;
}

static int file_create(struct file_copy *copy, struct tt_arrival *arrival)
{
	struct tt_entry wanted = file_wanted(copy);
	mode_t mode =
		tt_meta_mode(&copy->worker->engine->policy.meta, &wanted, file_existing(copy));

	return tt_stage_create(copy->dir->destination_fd, copy->name, mode, arrival->temp,
		&arrival->paced.fd, &copy->made);
}

bool tt_apply_file_is_about_data(int error)
{
	return error == -EIO || error == -ENOTCONN || error == -ESTALE || error == -ESHUTDOWN
	       || error == -EROFS;
}

/* Now, or when it arrives. */
static enum file_outcome file_set_attributes(struct file_copy *copy, struct tt_arrival *arrival)
{
	struct tt_engine *engine = copy->worker->engine;
	struct tt_entry wanted = file_wanted(copy);
	enum tt_meta_step step;

	if (copy->in_place) {
		arrival->inplace->wanted = wanted;
		arrival->inplace->existing = file_existing(copy);
		return FILE_GOOD;
	}
	int r = tt_meta_apply_made(&engine->policy.meta, arrival->paced.fd, &copy->made, &wanted,
		file_existing(copy), &step);

	if (r == 0)
		return FILE_GOOD;
	if (file_is_full(copy, r))
		return FILE_FULL;
	tt_engine_fail(engine, tt_meta_step_text(step), copy->dir, copy->task->wanted->name, r);
	return tt_apply_file_is_about_data(r) ? FILE_FAILED : FILE_GOOD;
}

/* What the request says about holes, and about space without content. */
static void file_set_holes(
	const struct file_copy *copy, const struct tt_volume *from, struct tt_copy_request *request)
{
	const struct tt_engine_policy *policy = &copy->worker->engine->policy;
	enum tt_extents_trust trust = policy->no_seek_hole ? TT_EXTENTS_NOTHING
							   : tt_extents_trust(from->device.fs_type,
								   &copy->before, time(NULL));

	request->holes = tt_extents_has_holes(copy->from_fd, &copy->before, trust);
	request->sparse = policy->sparse || trust == TT_EXTENTS_ZEROS;
	request->preallocate = policy->preallocate;
	request->preallocate_lock = &copy->dir->to->lane->preallocate_lock;
}

/* rsync warns, and copies without. Once, of the try that counts: the disk may have been full of our
 * own temporaries before. */
static void file_warn_preallocate(const struct file_copy *copy)
{
	char path[PATH_MAX], shown[PATH_MAX];

	if (copy->preallocate_error >= 0)
		return;
	tt_log_escape(tt_engine_path(copy->dir, copy->task->wanted->name, path, sizeof path), shown,
		sizeof shown);
	tt_log_line(copy->worker->engine->log, TT_LOG_WARNING, "preallocating %s: %s", shown,
		tt_error_text(copy->preallocate_error));
}

/* Copies the content of a new file. */
static int file_copy_new(struct file_copy *copy, struct tt_arrival *arrival, struct tt_volume *from,
	struct tt_copy_request *request, struct tt_copy_result *ret_result)
{
	struct tt_worker *worker = copy->worker;
	struct tt_neutral_reader reader;
	struct tt_writer writer;
	struct tt_turn turn;

	tt_turn_take(&turn, worker, from, (uint64_t)copy->before.st_ino);
	tt_neutral_reader_begin(&reader, copy->from_fd, request->size_bytes,
		worker->engine->policy.cache.mode, &from->neutral, &worker->cache_stats);
	file_begin_writer(copy, arrival, &writer);
	request->reader = &reader;
	request->writer = &writer;
	int r = tt_copy_content(&worker->copy, request, ret_result);

	tt_writer_end(&writer);
	tt_neutral_reader_end(&reader);
	tt_turn_end(&turn);
	if (writer.was_direct && ret_result->cloned_bytes > 0)
		worker->cache_stats.files_written_direct--;
	if (ret_result->literal_bytes > 0)
		file_tell_mechanisms(copy, from, &reader, &writer);
	return r;
}

/* Copies the content into the file that the arrival holds. */
static enum file_outcome file_transfer(struct file_copy *copy, struct tt_arrival *arrival)
{
	struct tt_worker *worker = copy->worker;
	struct tt_engine *engine = worker->engine;
	struct tt_copy_result result;
	uint64_t size = (uint64_t)copy->before.st_size;
	struct tt_volume *from = copy->dir->from;

	if (copy->dir->layer_count > 1)
		from = tt_volume_get(engine, copy->from_fd, from);
	struct tt_copy_request request = {
		.from_fd = copy->from_fd,
		.size_bytes = size,
		.reflink = engine->policy.reflink,
		.clones = &copy->dir->to->clones,
		.before = &copy->before,
		.in_order = copy->in_place,
	};
	file_set_holes(copy, from, &request);
	int r = copy->in_place
			? tt_inplace_copy(worker, arrival, from, &request, copy->old_bytes, &result)
			: file_copy_new(copy, arrival, from, &request, &result);

	if (copy->in_place && result.literal_bytes > 0)
		tt_mechanism_use(&copy->dir->to->uses, copy->mechanism);
	arrival->size_bytes = result.size_bytes;
	arrival->literal_bytes = result.literal_bytes;
	arrival->cloned_bytes = result.cloned_bytes;
	copy->preallocate_error = result.preallocate_error;
	if (copy->in_place) {
		enum tt_inplace_rest rest =
			tt_inplace_rest(engine, arrival->inplace, copy->old_bytes);

		copy->rest = rest > copy->rest ? rest : copy->rest;
		arrival->inplace->rest = copy->rest;
	}
	if (r < 0)
		return file_failed(copy, &result, r);
	enum file_outcome outcome = file_judge_change(copy, &result);

	if (outcome == FILE_GOOD)
		outcome = file_set_attributes(copy, arrival);
	if (outcome == FILE_GOOD && copy->dir->to->pacer)
		tt_pacer_start(&arrival->paced);
	return outcome;
}

/* Opens what is written to. Reported if it fails. */
static enum file_outcome file_begin(struct file_copy *copy, struct tt_arrival *arrival)
{
	struct tt_engine *engine = copy->worker->engine;
	int r = 0;

	/* On a later try the file may be another than it was at the first. */
	if (copy->tries++ > 0 && fstat(copy->from_fd, &copy->before) < 0)
		r = -errno;
	else if (copy->in_place)
		r = tt_inplace_open(
			copy->worker, copy->dir, copy->task, copy->name, &copy->before, arrival);
	else
		r = file_create(copy, arrival);
	if (file_is_full(copy, r))
		return FILE_FULL;
	if (r < 0) {
		tt_engine_fail(engine,
			copy->in_place ? "opening for writing" : "creating a temporary for",
			copy->dir, copy->name, r);
		if (!copy->in_place || !copy->task->action.exists)
			tt_reason_refused(engine, copy->dir, r);
		return FILE_FAILED;
	}
	copy->is_touched = copy->in_place;
	if (copy->in_place && copy->tries == 1)
		copy->old_bytes = arrival->inplace->old_bytes;
	return FILE_GOOD;
}

/* One try: file to write to, content, attributes, batch. */
static enum file_outcome file_try(struct file_copy *copy)
{
	struct tt_worker *worker = copy->worker;
	struct tt_arrival *arrival = tt_arrive_new();
	enum file_outcome outcome;

	if (!arrival) {
		tt_engine_fail(
			worker->engine, "copying", copy->dir, copy->task->wanted->name, -ENOMEM);
		return FILE_FAILED;
	}
	outcome = file_begin(copy, arrival);
	if (outcome != FILE_GOOD) {
		tt_arrive_free(worker, arrival);
		return outcome;
	}
	tt_reason_taken(copy->dir);
	arrival->dir = copy->dir;
	arrival->is_new = copy->task->existing == NULL;
	arrival->wanted = copy->task->wanted;
	arrival->group = copy->task->group;
	file_look_at_old(copy, arrival);
	file_prepare(copy, arrival);
	outcome = file_transfer(copy, arrival);
	/* A failed one goes the same way: its windows may be in flight, and the descriptor must
	 * outlive them. */
	arrival->discard = outcome != FILE_GOOD;
	if (arrival->discard && !copy->in_place)
		unlinkat(copy->dir->destination_fd, arrival->temp, 0);
	tt_arrive_add(worker, arrival);
	return outcome;
}

/* Waits until everything on its way to this disk has arrived and nobody else does the same. */
static void file_enter_alone(struct tt_worker *worker, struct tt_lane *lane)
{
	struct tt_engine *engine = worker->engine;

	tt_arrive_drain(worker, lane);
	pthread_mutex_lock(&engine->lock);
	tt_arrive_hold(worker);
	pthread_mutex_unlock(&engine->lock);
	pthread_mutex_lock(&lane->space_lock);
	pthread_mutex_lock(&engine->lock);
	tt_arrive_unhold(worker);
	pthread_mutex_unlock(&engine->lock);
	worker->is_alone = true;
	tt_arrive_drain(worker, lane);
}

/* Once more, with nobody else doing the same. */
static enum file_outcome file_try_alone(struct file_copy *copy)
{
	struct tt_engine *engine = copy->worker->engine;
	struct tt_lane *lane = copy->dir->to->lane;
	const char *name = copy->task->wanted->name;

	/* The worker may be alone already, and helps something to arrive that had to be copied. */
	bool nested = copy->worker->is_alone;

	if (!nested)
		file_enter_alone(copy->worker, lane);
	copy->last_try = true; /* a change is judged and told, there is no other try */
	enum file_outcome outcome = atomic_load(&engine->stop) ? FILE_FAILED : file_try(copy);

	if (outcome == FILE_FULL) {
		tt_engine_fail(engine, "writing", copy->dir, name, copy->full_error);
		tt_engine_full(engine);
		outcome = FILE_FAILED;
	}
	if (!nested) {
		copy->worker->is_alone = false;
		pthread_mutex_unlock(&lane->space_lock);
	}
	return outcome;
}

/* All tries. */
static enum file_outcome file_do(struct file_copy *copy)
{
	enum file_outcome outcome = file_try(copy);

	if (outcome == FILE_CHANGED) {
		/* In place, what the first try has written must not count as what was there. */
		if (copy->in_place)
			tt_arrive_drain(copy->worker, copy->dir->to->lane);
		copy->last_try = true;
		outcome = file_try(copy);
	}
	if (outcome == FILE_FULL)
		outcome = file_try_alone(copy);
	file_warn_preallocate(copy);
	if (outcome != FILE_GOOD && copy->is_touched)
		tt_inplace_tell(
			copy->worker->engine, copy->dir, copy->task->wanted->name, copy->rest);
	return outcome;
}

/* A log that is shorter than it was listed has been rotated: appending would mix two of them. */
static bool file_is_diminished(const struct file_copy *copy)
{
	struct tt_engine *engine = copy->worker->engine;
	const char *name = copy->task->wanted->name;
	char path[PATH_MAX], shown[PATH_MAX];

	if (!engine->policy.plan.append
		|| (uint64_t)copy->before.st_size >= copy->task->wanted->size_bytes)
		return false;
	tt_log_line(engine->log, TT_LOG_WARNING, "skipped diminished file: %s",
		tt_log_escape(
			tt_engine_path(copy->dir, name, path, sizeof path), shown, sizeof shown));
	return true;
}

void tt_apply_file(struct tt_worker *worker, struct tt_dir *dir, const struct tt_task *task)
{
	struct file_copy copy = {
		.worker = worker,
		.dir = dir,
		.task = task,
		.name = dir->destination_name ? dir->destination_name : task->wanted->name,
		.in_place = tt_inplace_is_asked(worker->engine, task),
	};
	enum file_outcome outcome = FILE_FAILED;

	if (file_may_be_made(&copy) && file_open(&copy) == 0) {
		if (!file_is_diminished(&copy))
			outcome = file_do(&copy);
		tt_fd_close(copy.from_fd);
	}
	if (outcome != FILE_GOOD)
		tt_arrive_failed(worker, dir, task->group);
}
