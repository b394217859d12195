/* SPDX-License-Identifier: MIT */
/*
 * See apply_inplace.h.
 *
 * A file in place is half new until it is done, whatever ends the run, and whoever compares size
 * and time must see that. The time of the source is set last, when the content is on the disk.
 * Until then the file has that of its last write, which may be the same second; so one that is as
 * long as its source is a byte longer while it is written, and after a failure that we live to see
 * it has a time that nothing has.
 *
 * Two names of the destination may be one inode. Written by two workers at once it would become a
 * mixture of two files; so such an inode is claimed from the opening to the arrival.
 */
#include "sync/apply_inplace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "copy/preallocate.h"
#include "copy/unwritten.h"
#include "sync/apply_file.h"
#include "sync/arrive.h"
#include "sync/lane.h"
#include "sync/turn.h"
#include "sync/volume.h"
#include "sys/fd.h"
#include "sys/fiemap.h"
#include "tree/alias.h"

bool tt_inplace_is_asked(const struct tt_engine *engine, const struct tt_task *task)
{
	/* What is of another type is replaced as ever: then the name is never missing. */
	return engine->policy.inplace != TT_INPLACE_NO
	       && (task->action.exists || !task->existing || S_ISDIR(task->existing->mode));
}

/* With the run's lock held. */
static bool inplace_is_claimed(const struct tt_engine *engine, dev_t dev, ino_t ino)
{
	for (const struct tt_inplace *other = engine->claims; other; other = other->next) {
		if (other->dev == dev && other->ino == ino)
			return true;
	}
	return false;
}

static void inplace_claim(
	struct tt_worker *worker, struct tt_lane *lane, struct tt_inplace *inplace)
{
	struct tt_engine *engine = worker->engine;

	/* It may be held by a file in this worker's batch. */
	tt_arrive_submit(worker);
	pthread_mutex_lock(&engine->lock);
	/* In the middle of arrivals (a follower that leads now) the holder may be one of these, and
	 * will not arrive before this one: its content has been written, that must do. */
	while (!worker->arriving && inplace_is_claimed(engine, inplace->dev, inplace->ino)) {
		if (lane->arrived.first)
			tt_arrive_help(worker, lane);
		else
			pthread_cond_wait(&engine->batch_ready, &engine->lock);
	}
	inplace->claimed = true;
	inplace->next = engine->claims;
	engine->claims = inplace;
	pthread_mutex_unlock(&engine->lock);
}

static void inplace_unclaim(struct tt_engine *engine, struct tt_inplace *inplace)
{
	pthread_mutex_lock(&engine->lock);
	struct tt_inplace **at = &engine->claims;

	while (*at != inplace)
		at = &(*at)->next;
	*at = inplace->next;
	pthread_cond_broadcast(&engine->batch_ready);
	pthread_mutex_unlock(&engine->lock);
}

/* Whichever it is, it may have become the other since it was listed. */
static int inplace_open_or_make(struct tt_dir *dir, const struct tt_task *task, const char *name)
{
	char other[TT_ALIAS_NAME_SIZE];
	int fd = task->action.exists ? tt_fd_open_update(dir->destination_fd, name) : -ENOENT;

	if (fd == -ENOENT)
		fd = tt_fd_create(dir->destination_fd, name);
	if (fd != -EEXIST)
		return fd;
	/* Made meanwhile, or not the name that was asked for. */
	if (!task->existing && tt_alias_look(dir->destination_fd, name, other) == 1)
		return -ENOTUNIQ;
	return tt_fd_open_update(dir->destination_fd, name);
}

int tt_inplace_open(struct tt_worker *worker, struct tt_dir *dir, const struct tt_task *task,
	const char *name, const struct stat *source, struct tt_arrival *arrival)
{
	struct tt_engine *engine = worker->engine;
	struct tt_inplace *inplace = calloc(1, sizeof *inplace);
	struct stat st;

	if (!inplace)
		return -ENOMEM;
	arrival->inplace = inplace;
	int fd = inplace_open_or_make(dir, task, name);

	if (fd < 0)
		return fd;
	arrival->paced.fd = fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ESTALE;
	inplace->source_sec = source->st_mtim.tv_sec;
	inplace->dev = st.st_dev;
	inplace->ino = st.st_ino;
	inplace->is_source = st.st_dev == source->st_dev && st.st_ino == source->st_ino;
	if (st.st_nlink > 1) {
		inplace_claim(worker, tt_lane_of(dir), inplace);
		/* Whoever had it has changed it. */
		if (fstat(fd, &st) < 0)
			return -errno;
	}
	inplace->old_bytes = (uint64_t)st.st_size;
	inplace->old_mtime = st.st_mtim;
	if (engine->policy.cache.mode == TT_CACHE_LEAVE
		|| engine->policy.cache.mode == TT_CACHE_DIRECT)
		(void)tt_neutral_old_look(&arrival->old, fd, inplace->old_bytes, &dir->to->neutral,
			&worker->cache_stats);
	return 0;
}

/* One piece of a file, as much as there is. Returns the bytes or a negative errno. */
static ssize_t inplace_read(
	struct tt_neutral_reader *reader, char *buffer, uint64_t bytes, uint64_t offset)
{
	uint64_t done = 0;

	while (done < bytes) {
		ssize_t got =
			tt_neutral_reader_pread(reader, buffer + done, bytes - done, offset + done);

		if (got < 0)
			return got;
		if (got == 0)
			break;
		done += (uint64_t)got;
	}
	tt_neutral_reader_passed(reader, offset + done);
	return (ssize_t)done;
}

/* Whether the next piece of both files is the same: 1, 0, or a negative errno. */
static int inplace_same_piece(struct tt_neutral_reader *ours, struct tt_neutral_reader *theirs,
	char *buffer, uint64_t bytes, uint64_t offset, struct tt_hash *hash,
	enum tt_copy_side *ret_failed)
{
	struct tt_neutral_reader *readers[2] = {ours, theirs};
	struct tt_hash_digest digests[2];

	for (int i = 0; i < 2; i++) {
		*ret_failed = i == 0 ? TT_COPY_READING : TT_COPY_WRITING;
		ssize_t got = inplace_read(readers[i], buffer, bytes, offset);

		if (got < 0)
			return (int)got;
		if ((uint64_t)got < bytes)
			return 0;
		tt_hash_reset(hash);
		tt_hash_update(hash, buffer, bytes);
		tt_hash_digest(hash, &digests[i]);
	}
	return memcmp(&digests[0], &digests[1], sizeof digests[0]) == 0;
}

/* Whether both files begin with the same `bytes`: 1, 0, or a negative errno. One buffer of the
 * pool, since those who hold one and wait for a second would wait for each other. */
static int inplace_same_beginning(struct tt_worker *worker, struct tt_neutral_reader *ours,
	struct tt_neutral_reader *theirs, uint64_t bytes, enum tt_copy_side *ret_failed)
{
	struct tt_hash *hash;
	int r = tt_hash_new(&hash);

	*ret_failed = TT_COPY_READING;
	if (r < 0)
		return r;
	char *buffer = tt_pool_take(worker->copy.pool, true);

	r = buffer ? 1 : -ENOMEM;
	for (uint64_t at = 0; r > 0 && at < bytes; at += TT_POOL_BUFFER_BYTES) {
		uint64_t piece =
			bytes - at < TT_POOL_BUFFER_BYTES ? bytes - at : TT_POOL_BUFFER_BYTES;

		r = atomic_load(worker->copy.stop)
			    ? -ECANCELED
			    : inplace_same_piece(ours, theirs, buffer, piece, at, hash, ret_failed);
	}
	tt_pool_give(worker->copy.pool, buffer);
	tt_hash_free(hash);
	return r;
}

/* Whether what the file has is the beginning of the source: 1, 0, or a negative errno. The source's
 * reader goes on from there if it is. */
static int inplace_verify(struct tt_worker *worker, struct tt_arrival *arrival, uint64_t bytes,
	struct tt_neutral_reader *reader, enum tt_copy_side *ret_failed)
{
	struct tt_neutral_reader theirs;

	tt_neutral_reader_begin(&theirs, arrival->paced.fd, bytes,
		worker->engine->policy.cache.mode, &arrival->dir->to->neutral,
		&worker->cache_stats);
	int r = inplace_same_beginning(worker, reader, &theirs, bytes, ret_failed);

	tt_neutral_reader_end(&theirs);
	tt_mechanism_use(&arrival->dir->to->uses, theirs.mechanism);
	/* What may only be written to cannot be verified. */
	return r == -EBADF && *ret_failed == TT_COPY_WRITING ? 0 : r;
}

static bool inplace_verifies(const struct tt_engine *engine, const struct tt_inplace *inplace)
{
	return engine->policy.inplace == TT_INPLACE_APPEND_VERIFY && inplace->old_bytes > 0
	       && !inplace->is_source;
}

/* Begins the reader where the copy begins. Returns 0, or a negative errno with *ret_failed; the
 * reader is begun in any case. */
static int inplace_begin(struct tt_worker *worker, struct tt_arrival *arrival,
	const struct tt_copy_request *request, uint64_t most_bytes, struct tt_volume *from,
	enum tt_copy_side *ret_failed)
{
	const struct tt_engine_policy *policy = &worker->engine->policy;
	struct tt_inplace *inplace = arrival->inplace;
	bool verify = policy->inplace == TT_INPLACE_APPEND_VERIFY;
	uint64_t start = inplace->old_bytes < most_bytes ? inplace->old_bytes : most_bytes;
	int r = 0;

	if (policy->inplace == TT_INPLACE_WHOLE)
		start = 0;
	if (start > request->size_bytes)
		start = request->size_bytes;
	if (inplace->is_source)
		start = request->size_bytes;
	tt_neutral_reader_begin_at(request->reader, request->from_fd, verify ? 0 : start,
		request->size_bytes, policy->cache.mode, &from->neutral, &worker->cache_stats);
	if (start > 0 && verify && !inplace->is_source) {
		r = inplace_verify(worker, arrival, start, request->reader, ret_failed);
		if (r == 0) {
			start = 0;
			tt_neutral_reader_end(request->reader);
			tt_neutral_reader_begin(request->reader, request->from_fd,
				request->size_bytes, policy->cache.mode, &from->neutral,
				&worker->cache_stats);
		}
	}
	inplace->start_bytes = start;
	inplace->is_anew = r >= 0 && start == 0 && inplace->old_bytes > 0;
	return r < 0 ? r : 0;
}

/* Holes of the new content become holes of the file. Where the file system cannot do that, an empty
 * file has none but its own. */
static int inplace_prepare_holes(struct tt_inplace *inplace, int fd)
{
	const off_t block = 4096;
	off_t end = ((off_t)inplace->old_bytes + block - 1) / block * block;

	/* Behind the end, where there is nothing. */
	if (tt_fd_allocate(
		    fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (uint64_t)end, (uint64_t)block)
		!= -EOPNOTSUPP)
		return 0;
	if (ftruncate(fd, 0) < 0)
		return -errno;
	inplace->old_bytes = 0;
	return 0;
}

/* See above. Where it cannot be longer, only the time tells. One with holes has its length first:
 * xfs allocates ahead of writes that make a file longer, into the holes (fs/xfs/xfs_iomap.c). */
static void inplace_make_unlike(
	const struct tt_inplace *inplace, const struct tt_copy_request *request, int fd)
{
	uint64_t size = request->size_bytes;
	bool grows = inplace->old_bytes < size && (request->holes || request->sparse);

	if (inplace->start_bytes == 0 && size > 0 && (inplace->old_bytes == size || grows))
		(void)!ftruncate(fd, (off_t)size + 1);
}

/* What the old file has behind its end goes first: after a clone its last block would be written
 * for that, and not be shared any more. */
static void inplace_cut_old(const struct tt_inplace *inplace, int fd)
{
	struct stat st;

	if (!inplace->is_source && fstat(fd, &st) == 0 && tt_unwritten_is_behind_end(fd, &st))
		(void)!ftruncate(fd, st.st_size);
}

/* Whether xfs has allocated ahead of what was written, and will not take it back from a file that
 * has been given space by fallocate(2), or is about to be. With holes the number of blocks tells
 * nothing. */
static bool inplace_is_ahead(int fd, const struct tt_copy_request *request, const struct stat *st)
{
	if (!request->holes && !tt_unwritten_has_surplus(st))
		return false;
	return tt_fiemap_is_asked_for(fd)
	       || ((request->holes || tt_unwritten_has_surplus(request->before))
		       && tt_fiemap_is_asked_for(request->from_fd));
}

/* The length, and nothing behind it. */
static int inplace_cut(
	int fd, const struct tt_copy_request *request, const struct tt_copy_result *result)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	/* A file that has come anew has the time of its coming without -t, empty ones too. */
	bool is_right =
		(uint64_t)st.st_size == result->size_bytes
		&& (result->cloned_bytes > 0
			|| (result->literal_bytes > 0 && !inplace_is_ahead(fd, request, &st)));

	return !is_right && ftruncate(fd, (off_t)result->size_bytes) < 0 ? -errno : 0;
}

/* Space without content: the source's, and with --preallocate all that is a hole by now. */
static int inplace_allocate(
	int fd, const struct tt_copy_request *request, struct tt_copy_result *result)
{
	if (request->sparse)
		return 0;
	if (request->preallocate && result->preallocate_error == 0)
		result->preallocate_error = tt_preallocate_holes(request->from_fd, fd,
			request->start_bytes, result->size_bytes, request->preallocate_lock);
	return tt_unwritten_copy(request->from_fd, fd, request->before, request->holes);
}

/* What is missing, and then what the new content does not cover goes. */
static int inplace_write(struct tt_worker *worker, struct tt_inplace *inplace,
	const struct tt_copy_request *request, struct tt_copy_result *result)
{
	int fd = request->writer->fd;
	int r = 0;

	if (inplace->start_bytes < request->size_bytes || request->size_bytes == 0)
		r = tt_copy_content(&worker->copy, request, result);
	else
		result->size_bytes = request->size_bytes;
	if (r < 0 || inplace->is_source)
		return r;
	result->failed = TT_COPY_WRITING;
	r = tt_writer_clear_rest(request->writer, result->size_bytes);
	if (r == 0)
		r = inplace_cut(fd, request, result);
	return r < 0 ? r : inplace_allocate(fd, request, result);
}

int tt_inplace_copy(struct tt_worker *worker, struct tt_arrival *arrival, struct tt_volume *from,
	struct tt_copy_request *request, uint64_t most_bytes, struct tt_copy_result *ret_result)
{
	struct tt_inplace *inplace = arrival->inplace;
	struct tt_neutral_reader reader;
	struct tt_writer writer;
	struct tt_turn turn;
	int fd = arrival->paced.fd;

	*ret_result = (struct tt_copy_result){0};
	request->reader = &reader;
	request->writer = &writer;
	request->in_place = true;
	tt_turn_take(&turn, worker, from, (uint64_t)request->before->st_ino);
	int r = inplace_begin(worker, arrival, request, most_bytes, from, &ret_result->failed);

	if (r == 0 && inplace->start_bytes == 0 && inplace->old_bytes > 0
		&& (request->holes || request->sparse)) {
		ret_result->failed = TT_COPY_WRITING;
		r = inplace_prepare_holes(inplace, fd);
	}
	if (r == 0) {
		uint64_t start = inplace->start_bytes;

		request->start_bytes = start;
		atomic_fetch_add_explicit(worker->copy.progress_bytes, start, memory_order_relaxed);
		tt_writer_begin(&writer, fd, request->size_bytes - start, arrival->dir->to->pacer,
			&arrival->paced, &worker->hooks,
			arrival->paced.started ? TT_FD_DONTCACHE : 0);
		tt_writer_in_place(&writer, start, inplace->old_bytes);
		inplace_cut_old(inplace, fd);
		/* --append takes what is there for content, after a kill, too. */
		if (worker->engine->policy.inplace == TT_INPLACE_WHOLE)
			inplace_make_unlike(inplace, request, fd);
		r = inplace_write(worker, inplace, request, ret_result);
		tt_writer_end(&writer);
	}
	tt_neutral_reader_end(&reader);
	tt_turn_end(&turn);
	if (ret_result->literal_bytes > 0 || inplace_verifies(worker->engine, inplace))
		tt_mechanism_use(&from->uses, reader.mechanism);
	if (ret_result->literal_bytes == 0)
		return r;
	/* O_DIRECT wants the length first, by which an unfinished file would look finished. */
	tt_volume_tell_no_direct(worker->engine, arrival->dir->to, arrival->dir,
		arrival->wanted->name, true, "it is written in place");
	tt_volume_tell_no_direct(
		worker->engine, from, arrival->dir, arrival->wanted->name, false, reader.refusal);
	return r;
}

bool tt_inplace_arrive(struct tt_worker *worker, struct tt_arrival *arrival)
{
	struct tt_engine *engine = worker->engine;
	struct tt_inplace *inplace = arrival->inplace;
	const char *name = arrival->wanted->name;
	enum tt_meta_step step;
	struct stat st;

	if (fstat(arrival->paced.fd, &st) < 0) {
		tt_engine_fail(engine, "reading attributes of", arrival->dir, name, -errno);
		return false;
	}
	int r = tt_meta_apply_made(&engine->policy.meta, arrival->paced.fd, &st, &inplace->wanted,
		inplace->existing, &step);

	if (r < 0)
		tt_engine_fail(engine, tt_meta_step_text(step), arrival->dir, name, r);
	if (r < 0 && tt_apply_file_is_about_data(r))
		return false;
	if (engine->policy.fsync && fsync(arrival->paced.fd) < 0) {
		tt_engine_fail(engine, "writing", arrival->dir, name, -errno);
		return false;
	}
	return true;
}

/* It has been written to and is not complete. Not the time of the writing: the source may have been
 * changed in the same second, and -u would take the file for a newer one. */
static void inplace_disown(const struct tt_arrival *arrival)
{
	const struct tt_inplace *inplace = arrival->inplace;
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 0}};
	struct stat st;

	if (fstat(arrival->paced.fd, &st) < 0
		|| (st.st_mtim.tv_sec == inplace->old_mtime.tv_sec
			&& st.st_mtim.tv_nsec == inplace->old_mtime.tv_nsec))
		return;
	/* Some file systems cut off two seconds. */
	if (inplace->source_sec >= 0 && inplace->source_sec < 2)
		times[1].tv_sec = 2;
	(void)futimens(arrival->paced.fd, times);
}

/* What has been appended and is perhaps not on the disk must not be taken for content by the next
 * --append, which looks at the length only. */
static void inplace_take_back(const struct tt_engine *engine, const struct tt_arrival *arrival)
{
	const struct tt_inplace *inplace = arrival->inplace;

	if (engine->policy.inplace == TT_INPLACE_WHOLE || inplace->is_anew || inplace->is_source
		|| (arrival->discard && arrival->paced.error == 0))
		return;
	(void)!ftruncate(arrival->paced.fd, (off_t)inplace->start_bytes);
}

void tt_inplace_leave(struct tt_worker *worker, const struct tt_arrival *arrival,
	const struct tt_volume *volume, bool good)
{
	const struct tt_inplace *inplace = arrival->inplace;
	struct stat st;

	if (!good) {
		inplace_take_back(worker->engine, arrival);
		inplace_disown(arrival);
	}
	if (worker->engine->policy.cache.mode == TT_CACHE_KEEP || !volume->paced)
		return;
	if (arrival->paced.is_empty && arrival->old.resident_pages == 0)
		return;
	/* After a failure more may have been written than was counted. */
	if (fstat(arrival->paced.fd, &st) == 0)
		tt_neutral_updated(arrival->paced.fd, inplace->start_bytes, (uint64_t)st.st_size,
			&arrival->old, &volume->neutral, &worker->cache_stats);
}

enum tt_inplace_rest tt_inplace_rest(
	const struct tt_engine *engine, const struct tt_inplace *inplace, uint64_t old_bytes)
{
	if (old_bytes == 0)
		return TT_INPLACE_REST_PART;
	return engine->policy.inplace == TT_INPLACE_WHOLE || inplace->is_anew
		       ? TT_INPLACE_REST_MIXTURE
		       : TT_INPLACE_REST_LONGER;
}

void tt_inplace_tell(struct tt_engine *engine, const struct tt_dir *dir, const char *name,
	enum tt_inplace_rest rest)
{
	static const char *const words[] = {
		[TT_INPLACE_REST_MIXTURE] =
			"was being written in place: it may be part old and part new",
		[TT_INPLACE_REST_LONGER] =
			("was being appended to: it has what it had, and may have a part of the "
			 "rest"),
		[TT_INPLACE_REST_PART] =
			"was being written in place: it may have only a part of its content",
	};
	char path[PATH_MAX], shown[PATH_MAX];

	tt_log_line(engine->log, TT_LOG_WARNING, "%s %s until a run completes it",
		tt_log_escape(tt_engine_path(dir, name, path, sizeof path), shown, sizeof shown),
		words[rest]);
}

void tt_inplace_deinit(struct tt_engine *engine, struct tt_arrival *arrival)
{
	struct tt_inplace *inplace = arrival->inplace;

	if (inplace && inplace->claimed)
		inplace_unclaim(engine, inplace);
	free(inplace);
	arrival->inplace = NULL;
}
