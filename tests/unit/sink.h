/* SPDX-License-Identifier: MIT */
/*
 * Where batches of a test come back to.
 */
#pragma once

#include <pthread.h>
#include <stdlib.h>

#include "cache/pacer.h"
#include "check.h"

struct sink {
	pthread_mutex_t lock;
	pthread_cond_t ready;
	struct tt_pacer_sink sink;
};

static inline void sink_init(struct sink *sink)
{
	pthread_mutex_init(&sink->lock, NULL);
	pthread_cond_init(&sink->ready, NULL);
	sink->sink = (struct tt_pacer_sink){
		.lock = &sink->lock, .ready = {&sink->ready}, .last = &sink->sink.first};
}

/* The next batch that is done. */
static inline struct tt_pacer_batch *sink_wait(struct sink *sink)
{
	pthread_mutex_lock(&sink->lock);
	while (!sink->sink.first)
		pthread_cond_wait(&sink->ready, &sink->lock);
	struct tt_pacer_batch *batch = sink->sink.first;

	sink->sink.first = batch->next;
	if (!batch->next)
		sink->sink.last = &sink->sink.first;
	pthread_mutex_unlock(&sink->lock);
	return batch;
}

static inline void sink_deinit(struct sink *sink)
{
	assert_null(sink->sink.first);
	pthread_mutex_destroy(&sink->lock);
	pthread_cond_destroy(&sink->ready);
}

/* A batch of one file: its verdict. */
static inline int sink_verdict(
	struct sink *sink, struct tt_pacer *pacer, struct tt_pacer_file *file)
{
	struct tt_pacer_batch batch = {.sink = &sink->sink, .count = 1, .files = {file}};

	tt_pacer_submit_batch(pacer, &batch);
	assert_ptr_equal(sink_wait(sink), &batch);
	assert_int_equal(file->windows, 0);
	assert_int_equal(file->charged_bytes, 0);
	return file->error;
}
