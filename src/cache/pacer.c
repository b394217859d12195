/* SPDX-License-Identifier: MIT */
/*
 * See pacer.h. The thread pulls completions from its ring and newly handed-over work from two
 * lists; each window and each batch is a small state machine whose state is named by what it waits
 * for.
 *
 * A window waits in the ring for each of its steps. A batch waits in the ring for its last file
 * only: writeback was started in order, so the others are done by then or nearly so, and asking
 * them with plain calls costs a third of what requests would (measured: 8 to 15 ms of CPU per
 * thousand files against 15 to 25).
 */
#include "cache/pacer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cache/neutral.h"
#include "cache/pacer_budget.h"
#include "sys/residency.h"
#include "sys/ring.h"

enum {
	PACER_RING_DEPTH = 256,
	PACER_RING_WORKERS = 8,
	PACER_MOST_AGAIN = 100, /* rounds for a window that somebody else keeps dirty */
};

enum pacer_state {
	PACER_WINDOW_WRITE, /* writeback is being started */
	PACER_WINDOW_WAIT,  /* ... and waited for */
	PACER_WINDOW_DROP,  /* its pages are going */
	PACER_BATCH_WAIT,   /* the last file's writeback, or all files' fsync */
};

/* What a ring completion belongs to. */
struct pacer_item {
	enum pacer_state state;
	struct pacer_item *next;
	struct tt_pacer_file *file;
	struct tt_pacer_batch *batch;
	uint64_t offset, bytes;
	uint64_t start_ns;
	unsigned again;
};

struct tt_pacer {
	struct tt_pacer_budget budget;
	struct tt_ring *ring; /* pacer thread only */
	pthread_t thread;
	_Atomic uint64_t window_bytes;
	bool twin, no_uring;
	/* guarded by lock */
	pthread_mutex_t lock;
	pthread_cond_t started;
	struct pacer_item *incoming, **incoming_last;
	bool ending, is_started;
	int start_result, refusal;
	/* pacer thread writes, anybody reads */
	_Atomic uint64_t windows, batches, again, drops;
	/* pacer thread only */
	struct pacer_item *backlog, **backlog_last; /* did not fit into the ring */
	double bytes_per_ns;                        /* moving average of the device's rate */
};

static void pacer_verdict(struct tt_pacer_file *file, int error)
{
	int none = 0;

	if (error < 0)
		atomic_compare_exchange_strong(&file->error, &none, error);
}

static bool pacer_submit(
	struct tt_pacer *pacer, struct pacer_item *item, enum tt_ring_op op, int flags)
{
	struct tt_ring_request request = {
		.op = op,
		.fd = item->file->fd,
		.flags = flags,
		.offset = item->offset,
		.length = item->bytes,
		.token = item,
	};

	return tt_ring_submit(pacer->ring, &request) == 0;
}

/* How to wait. Where nobody can count afterwards, what is still dirty then (the page that two
 * writes share, a file system that writes back asynchronously) is written and awaited by the same
 * call. */
static unsigned pacer_wait_flags(const struct tt_pacer_file *file)
{
	return file->can_count ? SYNC_FILE_RANGE_WAIT_BEFORE
			       : SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE
					 | SYNC_FILE_RANGE_WAIT_AFTER;
}

/* Puts the request for the item's present state into the ring. */
static bool pacer_advance(struct tt_pacer *pacer, struct pacer_item *item)
{
	switch (item->state) {
	case PACER_WINDOW_WRITE:
		item->start_ns = tt_clock_now_ns();
		return pacer_submit(pacer, item, TT_RING_SYNC_RANGE, SYNC_FILE_RANGE_WRITE);
	case PACER_WINDOW_WAIT:
		if (item->file->sync == TT_PACER_SYNC_DATA)
			return pacer_submit(pacer, item, TT_RING_FDATASYNC, 0);
		return pacer_submit(
			pacer, item, TT_RING_SYNC_RANGE, (int)pacer_wait_flags(item->file));
	case PACER_WINDOW_DROP:
		return pacer_submit(pacer, item, TT_RING_DROP, 0);
	case PACER_BATCH_WAIT:
		if (item->file->fsync)
			return pacer_submit(pacer, item, TT_RING_FSYNC, 0);
		if (item->file->sync == TT_PACER_SYNC_DATA)
			return pacer_submit(pacer, item, TT_RING_FDATASYNC, 0);
		return pacer_submit(
			pacer, item, TT_RING_SYNC_RANGE, (int)pacer_wait_flags(item->file));
	}
	return false;
}

static void pacer_enter(struct tt_pacer *pacer, struct pacer_item *item, enum pacer_state state)
{
	item->state = state;
	if (pacer->backlog || !pacer_advance(pacer, item)) {
		item->next = NULL;
		*pacer->backlog_last = item;
		pacer->backlog_last = &item->next;
	}
}

/* Whether some page of the range is still dirty or under writeback. Where nobody can count, waiting
 * was all there is. */
static bool pacer_is_dirty(const struct tt_pacer_file *file, uint64_t offset, uint64_t bytes)
{
	struct tt_residency count;

	if (!file->can_count
		|| tt_residency_count(file->fd, TT_RESIDENCY_CACHESTAT, offset, bytes, &count) < 0)
		return false;
	return count.dirty_pages > 0 || count.writeback_pages > 0;
}

/* About 150 ms of device time in flight, in two windows at least; never less than a folio, never
 * more than a quarter of the budget. */
static void pacer_adapt(struct tt_pacer *pacer, const struct pacer_item *item, uint64_t now_ns)
{
	const double half_ns = 75e6;
	double rate = (double)item->bytes / (double)(now_ns - item->start_ns + 1);

	pacer->bytes_per_ns =
		pacer->bytes_per_ns == 0 ? rate : pacer->bytes_per_ns * 0.875 + rate * 0.125;
	atomic_store_explicit(&pacer->window_bytes,
		tt_pacer_budget_window(&pacer->budget, (uint64_t)(pacer->bytes_per_ns * half_ns)),
		memory_order_relaxed);
}

/* The budget comes back only now that the pages have gone: dropping may lag behind a fast disk, and
 * what is clean and not dropped yet is ours, too. Given back before the drop, 24 MiB more than the
 * budget were resident (btrfs, Linux 6.18). */
static void pacer_finish_window(struct tt_pacer *pacer, struct pacer_item *item)
{
	tt_pacer_budget_release(&pacer->budget, tt_pacer_round(item->bytes));
	pthread_mutex_lock(&pacer->lock);
	item->file->windows--;
	pacer->windows++;
	pthread_mutex_unlock(&pacer->lock);
	free(item);
}

/* The window's writeback has been waited for. */
static void pacer_window_waited(struct tt_pacer *pacer, struct pacer_item *item)
{
	uint64_t now_ns = tt_clock_now_ns();

	if (item->file->error == 0 && item->again < PACER_MOST_AGAIN
		&& pacer_is_dirty(item->file, item->offset, item->bytes)) {
		item->again++;
		pacer->again++;
		/* Asynchronous writeback (btrfs with compression) needs a second request, and a
		 * page that was under writeback when it was written again was left out of the
		 * first. */
		pacer_enter(pacer, item,
			item->file->sync == TT_PACER_SYNC_DATA ? PACER_WINDOW_WAIT
							       : PACER_WINDOW_WRITE);
		return;
	}
	pacer_adapt(pacer, item, now_ns);
	if (item->file->drop_windows && !item->file->keep) {
		pacer_enter(pacer, item, PACER_WINDOW_DROP);
		return;
	}
	/* Many short runs: plain calls cost less than as many requests. */
	if (item->file->drop_windows)
		tt_neutral_updated_window(
			item->file->fd, item->offset, item->offset + item->bytes, item->file->keep);
	pacer_finish_window(pacer, item);
}

/* The same for a whole file of a batch; notes whether there is anything left to drop. */
static bool pacer_is_file_dirty(struct tt_pacer_file *file)
{
	struct tt_residency count;

	if (!file->can_count
		|| tt_residency_count(file->fd, TT_RESIDENCY_CACHESTAT, 0, 0, &count) < 0)
		return false;
	file->is_empty = count.resident_pages == 0;
	return count.dirty_pages > 0 || count.writeback_pages > 0;
}

/* Waits for one file of a batch whose turn has come; plain calls, nearly always without sleeping.
 */
static void pacer_settle_file(struct tt_pacer *pacer, struct tt_pacer_file *file)
{
	int r = 0;

	if (!file->fsync) {
		for (unsigned again = 0; r >= 0 && again < PACER_MOST_AGAIN; again++) {
			if (file->sync == TT_PACER_SYNC_DATA) {
				r = fdatasync(file->fd) < 0 ? -errno : 0;
				break;
			}
			unsigned flags = pacer_wait_flags(file);

			if (again > 0)
				flags |= SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
			r = sync_file_range(file->fd, 0, 0, flags) < 0 ? -errno : 0;
			if (!pacer_is_file_dirty(file))
				break;
			pacer->again++;
		}
	}
	pacer_verdict(file, r);
	tt_pacer_budget_release(&pacer->budget, file->charged_bytes);
	file->charged_bytes = 0;
}

static void pacer_finish_batch(struct tt_pacer *pacer, struct tt_pacer_batch *batch)
{
	struct tt_pacer_sink *sink = batch->sink;

	for (unsigned i = 0; i < batch->count; i++)
		pacer_settle_file(pacer, batch->files[i]);
	pacer->batches++;
	pthread_mutex_lock(sink->lock);
	batch->next = NULL;
	*sink->last = batch;
	sink->last = &batch->next;
	pthread_cond_broadcast(sink->ready[0]);
	if (sink->ready[1])
		pthread_cond_broadcast(sink->ready[1]);
	pthread_mutex_unlock(sink->lock);
}

static void pacer_complete(struct tt_pacer *pacer, const struct tt_ring_completion *completion)
{
	struct pacer_item *item = completion->token;
	int error = completion->result < 0 ? (int)completion->result : 0;

	switch (item->state) {
	case PACER_WINDOW_WRITE:
		pacer_verdict(item->file, error);
		pacer_enter(pacer, item, PACER_WINDOW_WAIT);
		break;
	case PACER_WINDOW_WAIT:
		pacer_verdict(item->file, error);
		pacer_window_waited(pacer, item);
		break;
	case PACER_WINDOW_DROP: /* advice: what did not go is counted when the file has arrived */
		pacer->drops++;
		pacer_finish_window(pacer, item);
		break;
	case PACER_BATCH_WAIT: {
		struct tt_pacer_batch *batch = item->batch;

		pacer_verdict(item->file, error);
		free(item);
		if (--batch->waiting == 0)
			pacer_finish_batch(pacer, batch);
		break;
	}
	}
}

static bool pacer_has_windows(struct tt_pacer *pacer, const struct tt_pacer_batch *batch)
{
	bool has = false;

	pthread_mutex_lock(&pacer->lock);
	for (unsigned i = 0; i < batch->count && !has; i++)
		has = batch->files[i]->windows > 0;
	pthread_mutex_unlock(&pacer->lock);
	return has;
}

static void pacer_wait_for(
	struct tt_pacer *pacer, struct tt_pacer_batch *batch, struct tt_pacer_file *file)
{
	struct pacer_item *item = calloc(1, sizeof *item);

	if (!item) { /* the plain calls at the end wait too, but they do not fsync */
		if (file->fsync)
			pacer_verdict(file, -ENOMEM);
		return;
	}
	item->file = file;
	item->batch = batch;
	batch->waiting++;
	pacer_enter(pacer, item, PACER_BATCH_WAIT);
}

/* Starts waiting for a batch whose files have no windows in flight any more. */
static void pacer_begin_batch(struct tt_pacer *pacer, struct tt_pacer_batch *batch)
{
	batch->waiting = 1; /* ours, so that it cannot finish while it is being begun */
	for (unsigned i = 0; i < batch->count; i++) {
		if (batch->files[i]->fsync || i + 1 == batch->count)
			pacer_wait_for(pacer, batch, batch->files[i]);
	}
	if (--batch->waiting == 0)
		pacer_finish_batch(pacer, batch);
}

/* Takes what workers have handed over. A batch with windows in flight is looked at again after the
 * next completion. */
static void pacer_take(struct tt_pacer *pacer)
{
	pthread_mutex_lock(&pacer->lock);
	struct pacer_item *list = pacer->incoming;

	pacer->incoming = NULL;
	pacer->incoming_last = &pacer->incoming;
	pthread_mutex_unlock(&pacer->lock);
	while (list) {
		struct pacer_item *item = list;

		list = item->next;
		if (!item->batch) {
			pacer_enter(pacer, item,
				item->file->started || item->file->sync == TT_PACER_SYNC_DATA
					? PACER_WINDOW_WAIT
					: PACER_WINDOW_WRITE);
		} else if (pacer_has_windows(pacer, item->batch)) {
			pthread_mutex_lock(&pacer->lock);
			item->next = NULL;
			*pacer->incoming_last = item;
			pacer->incoming_last = &item->next;
			pthread_mutex_unlock(&pacer->lock);
		} else {
			pacer_begin_batch(pacer, item->batch);
			free(item);
		}
	}
}

static void pacer_drain_backlog(struct tt_pacer *pacer)
{
	while (pacer->backlog && pacer_advance(pacer, pacer->backlog)) {
		pacer->backlog = pacer->backlog->next;
		if (!pacer->backlog)
			pacer->backlog_last = &pacer->backlog;
	}
}

static void *pacer_thread(void *argument)
{
	struct tt_pacer *pacer = argument;
	const struct tt_ring_config config = {.depth = PACER_RING_DEPTH,
		.workers = PACER_RING_WORKERS,
		.no_uring = pacer->no_uring};
	struct tt_ring_completion completion;
	bool ending = false;
	int refusal = 0, r = tt_ring_new(&config, &pacer->ring, &refusal);

	pthread_mutex_lock(&pacer->lock);
	pacer->is_started = true;
	pacer->start_result = r;
	pacer->refusal = refusal;
	pthread_cond_signal(&pacer->started);
	pthread_mutex_unlock(&pacer->lock);
	if (r < 0)
		return NULL;
	while (!ending || tt_ring_in_flight(pacer->ring) > 0) {
		pacer_take(pacer);
		pacer_drain_backlog(pacer);
		r = tt_ring_wait(pacer->ring, true, &completion);
		/* A ring that breaks in the middle of a run would lose track of what is in flight.
		 */
		assert(r >= 0);
		while (r > 0) {
			pacer_complete(pacer, &completion);
			pacer_drain_backlog(pacer);
			r = tt_ring_wait(pacer->ring, false, &completion);
		}
		pthread_mutex_lock(&pacer->lock);
		ending = pacer->ending && !pacer->incoming;
		pthread_mutex_unlock(&pacer->lock);
	}
	tt_ring_free(pacer->ring);
	return NULL;
}

int tt_pacer_new(
	const struct tt_pacer_config *config, struct tt_pacer **ret_pacer, int *ret_refusal)
{
	struct tt_pacer *pacer = calloc(1, sizeof *pacer);

	if (!pacer)
		return -ENOMEM;
	tt_pacer_budget_init(&pacer->budget, config->budget_bytes);
	pthread_mutex_init(&pacer->lock, NULL);
	pthread_cond_init(&pacer->started, NULL);
	pacer->incoming_last = &pacer->incoming;
	pacer->backlog_last = &pacer->backlog;
	pacer->no_uring = config->no_uring;
	atomic_init(
		&pacer->window_bytes, tt_pacer_budget_window(&pacer->budget, UINT64_C(8) << 20));
	int r = -pthread_create(&pacer->thread, NULL, pacer_thread, pacer);

	if (r == 0) {
		pthread_mutex_lock(&pacer->lock);
		while (!pacer->is_started)
			pthread_cond_wait(&pacer->started, &pacer->lock);
		r = pacer->start_result;
		pacer->twin = pacer->refusal != 0;
		*ret_refusal = pacer->refusal;
		pthread_mutex_unlock(&pacer->lock);
		if (r < 0)
			pthread_join(pacer->thread, NULL);
	}
	if (r < 0) {
		tt_pacer_budget_deinit(&pacer->budget);
		free(pacer);
		return r;
	}
	*ret_pacer = pacer;
	return 0;
}

void tt_pacer_free(struct tt_pacer *pacer)
{
	if (!pacer)
		return;
	pthread_mutex_lock(&pacer->lock);
	pacer->ending = true;
	/* With the lock held: once the thread has seen `ending`, the ring is gone. */
	tt_ring_wake(pacer->ring);
	pthread_mutex_unlock(&pacer->lock);
	pthread_join(pacer->thread, NULL);
	tt_pacer_budget_deinit(&pacer->budget);
	pthread_mutex_destroy(&pacer->lock);
	pthread_cond_destroy(&pacer->started);
	free(pacer);
}

uint64_t tt_pacer_budget_bytes(const struct tt_pacer *pacer)
{
	return pacer->budget.total_bytes;
}

bool tt_pacer_try_charge(struct tt_pacer *pacer, uint64_t bytes)
{
	return tt_pacer_budget_try(&pacer->budget, tt_pacer_round(bytes));
}

uint64_t tt_pacer_charge(struct tt_pacer *pacer, uint64_t bytes)
{
	return tt_pacer_budget_take(&pacer->budget, tt_pacer_round(bytes));
}

void tt_pacer_release(struct tt_pacer *pacer, uint64_t bytes)
{
	tt_pacer_budget_release(&pacer->budget, tt_pacer_round(bytes));
}

uint64_t tt_pacer_window_bytes(const struct tt_pacer *pacer)
{
	return atomic_load_explicit(&pacer->window_bytes, memory_order_relaxed);
}

static void pacer_hand_over(struct tt_pacer *pacer, struct pacer_item *item)
{
	item->next = NULL;
	pthread_mutex_lock(&pacer->lock);
	if (!item->batch)
		item->file->windows++;
	*pacer->incoming_last = item;
	pacer->incoming_last = &item->next;
	pthread_mutex_unlock(&pacer->lock);
	tt_ring_wake(pacer->ring);
}

int tt_pacer_submit_window(
	struct tt_pacer *pacer, struct tt_pacer_file *file, uint64_t offset, uint64_t bytes)
{
	struct pacer_item *item = calloc(1, sizeof *item);

	if (!item) {
		file->charged_bytes += tt_pacer_round(bytes);
		return -ENOMEM;
	}
	item->file = file;
	item->offset = offset;
	item->bytes = bytes;
	item->start_ns = tt_clock_now_ns();
	pacer_hand_over(pacer, item);
	return 0;
}

void tt_pacer_start(struct tt_pacer_file *file)
{
	if (file->started || file->fsync || file->sync == TT_PACER_SYNC_DATA)
		return;
	if (sync_file_range(file->fd, 0, 0, SYNC_FILE_RANGE_WRITE) < 0)
		pacer_verdict(file, -errno);
}

void tt_pacer_submit_batch(struct tt_pacer *pacer, struct tt_pacer_batch *batch)
{
	struct pacer_item *item = calloc(1, sizeof *item);

	if (!item) {
		/* Without memory for a request the caller's thread does the waiting. */
		while (pacer_has_windows(pacer, batch))
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		pacer_finish_batch(pacer, batch);
		return;
	}
	item->batch = batch;
	pacer_hand_over(pacer, item);
}

void tt_pacer_stats(struct tt_pacer *pacer, struct tt_pacer_stats *ret_stats)
{
	*ret_stats = (struct tt_pacer_stats){.twin = pacer->twin};
	tt_pacer_budget_stats(&pacer->budget, &ret_stats->peak_bytes, &ret_stats->wait_ns,
		&ret_stats->charged_bytes);
	ret_stats->windows = atomic_load(&pacer->windows);
	ret_stats->batches = atomic_load(&pacer->batches);
	ret_stats->again = atomic_load(&pacer->again);
	ret_stats->drops = atomic_load(&pacer->drops);
}
