/* SPDX-License-Identifier: MIT */
/*
 * Copies one file with everything that the engine puts around tt_copy_content(): reader, writer,
 * pacer, batch. Checks what must be so after each.
 */
#pragma once

#include <stdatomic.h>
#include <time.h>

#include "cache/pacer.h"
#include "check.h"
#include "copy/copy.h"
#include "sample.h"
#include "scratch.h"
#include "sink.h"

struct copying {
	struct scratch scratch;
	struct sink sink;
	struct tt_pacer *pacer;
	struct tt_pool pool;
	struct tt_copy_worker worker;
	struct tt_neutral_fs fs;
	struct tt_neutral_stats stats;
	struct tt_copy_result result;
	/* of the requests that follow; zero: no clones, nothing preallocated */
	enum tt_clone_mode reflink;
	struct tt_clone_memory *clones;
	const struct stat *before;
	bool preallocate, in_place;
	_Atomic bool stop;
	_Atomic uint64_t progress;
	int verdict;
	unsigned fds;
};

static inline void copying_begin(struct copying *copying, uint64_t budget, bool no_uring)
{
	const struct tt_pacer_config config = {.budget_bytes = budget, .no_uring = no_uring};
	struct timespec now;
	int refusal;

	memset(copying, 0, sizeof *copying);
	clock_gettime(CLOCK_MONOTONIC, &now);
	copying->stats.start_ns = (uint64_t)(now.tv_sec - 60) * 1000000000;
	copying->fds = sample_open_fds();
	scratch_open(&copying->scratch);
	sink_init(&copying->sink);
	tt_pool_init(&copying->pool);
	assert_int_equal(tt_pacer_new(&config, &copying->pacer, &refusal), 0);
	copying->worker = (struct tt_copy_worker){.pool = &copying->pool,
		.stop = &copying->stop,
		.progress_bytes = &copying->progress,
		.no_uring = no_uring};
	copying->fs.method = tt_residency_method(copying->scratch.fd);
	copying->fs.dontcache_read = true;
}

static inline void copying_end(struct copying *copying)
{
	struct tt_pacer_stats stats;

	tt_pacer_stats(copying->pacer, &stats);
	assert_int_equal(stats.charged_bytes, 0);
	assert_true(stats.peak_bytes <= tt_pacer_budget_bytes(copying->pacer));
	tt_pacer_free(copying->pacer);
	tt_copy_worker_deinit(&copying->worker);
	tt_pool_deinit(&copying->pool);
	sink_deinit(&copying->sink);
	scratch_close(&copying->scratch);
	assert_int_equal(sample_open_fds(), copying->fds);
}

/* Copies `from` into `to`; what tt_copy_content() returned. The verdict of the pacer is apart. */
static inline int copying_run(
	struct copying *copying, int from, int to, uint64_t size, bool holes, bool sparse)
{
	struct tt_pacer_file file = {.fd = to, .drop_windows = true, .can_count = true};
	struct tt_neutral_reader reader;
	struct tt_writer writer;

	atomic_store(&copying->progress, 0);
	tt_neutral_reader_begin(&reader, from, size, TT_CACHE_LEAVE, &copying->fs, &copying->stats);
	tt_writer_begin(&writer, to, size, copying->pacer, &file, NULL, 0);
	const struct tt_copy_request request = {.from_fd = from,
		.size_bytes = size,
		.holes = holes,
		.sparse = sparse,
		.preallocate = copying->preallocate,
		.in_place = copying->in_place,
		.reflink = copying->reflink,
		.clones = copying->clones,
		.before = copying->before,
		.reader = &reader,
		.writer = &writer};
	int r = tt_copy_content(&copying->worker, &request, &copying->result);

	tt_writer_end(&writer);
	tt_neutral_reader_end(&reader);
	tt_pacer_start(&file);
	copying->verdict = sink_verdict(&copying->sink, copying->pacer, &file);
	tt_neutral_written(
		to, copying->result.size_bytes, NULL, &copying->fs, NULL, &copying->stats);
	return r;
}

/* A cold sample of this size is copied; it equals, and neither file is in the cache. */
static inline void copying_check_size(struct copying *copying, uint64_t size)
{
	struct stat st;
	int from = sample_new(&copying->scratch, "from", size);
	int to = sample_open(&copying->scratch, "to");

	assert_int_equal(copying_run(copying, from, to, size, false, false), 0);
	assert_int_equal(copying->verdict, 0);
	assert_int_equal(copying->result.size_bytes, size);
	assert_int_equal(copying->result.literal_bytes, size);
	assert_int_equal(copying->progress, size);
	assert_int_equal(sample_count_resident(from), 0);
	assert_int_equal(sample_count_resident(to), 0);
	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, size);
	assert_true(sample_is(to, 0, size));
	(void)close(from);
	(void)close(to);
}
