/* SPDX-License-Identifier: MIT */
/*
 * Whole runs in this process: two at once, stopped ones, ones whose calls fail. After each: no
 * temporary, no descriptor, no budget left.
 */
#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "check.h"
#include "fault.h"
#include "sample.h"
#include "scratch.h"
#include "sync/engine.h"
#include "tree/stage.h"

struct run {
	char from[300], to[300];
	struct tt_engine_policy policy;
	struct tt_engine_stats stats;
	enum tt_exit code;
	_Atomic unsigned errors, internal, items;
	pthread_t thread;
	uint64_t stop_after_bytes; /* 0: do not stop */
	_Atomic bool done;
	struct tt_engine *engine;
};

static struct scratch scratch;
static unsigned fds_before;

static int set_up(void **state)
{
	(void)state;
	fault_clear();
	fds_before = sample_open_fds();
	scratch_open(&scratch);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	return ftw->level > 0 ? remove(path) : 0;
}

static int tear_down(void **state)
{
	(void)state;
	fault_clear();
	(void)nftw(scratch.path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	scratch_close(&scratch);
	assert_int_equal(sample_open_fds(), fds_before);
	return 0;
}

/* NAME/dX/fY, and one large file. */
static void make_tree(const char *name, unsigned dirs, unsigned files, uint64_t large)
{
	char path[64];

	assert_int_equal(mkdirat(scratch.fd, name, 0755), 0);
	for (unsigned d = 0; d < dirs; d++) {
		(void)snprintf(path, sizeof path, "%s/d%u", name, d);
		assert_int_equal(mkdirat(scratch.fd, path, 0755), 0);
		for (unsigned k = 0; k < files; k++) {
			(void)snprintf(path, sizeof path, "%s/d%u/f%u", name, d, k);
			int fd = sample_open(&scratch, path);

			sample_write(fd, 0, (d * files + k) * 37 % 20000);
			(void)close(fd);
		}
	}
	(void)snprintf(path, sizeof path, "%s/large", name);
	int fd = sample_open(&scratch, path);

	sample_write(fd, 0, large);
	(void)close(fd);
}

static unsigned temporaries, names;

static int count_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	names++;
	temporaries += tt_stage_is_temporary(path + ftw->base);
	return 0;
}

static unsigned count_names(const char *path)
{
	names = temporaries = 0;
	(void)nftw(path, count_one, 16, FTW_PHYS);
	assert_int_equal(temporaries, 0);
	return names;
}

static bool file_is_sample(const char *path, uint64_t size)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool same = fd >= 0 && fstat(fd, &st) == 0 && (uint64_t)st.st_size == size
		    && sample_is(fd, 0, size);

	if (fd >= 0)
		(void)close(fd);
	return same;
}

static void check_copy(const struct run *run, unsigned dirs, unsigned files, uint64_t large)
{
	char path[400];

	assert_int_equal(count_names(run->to), 2 + dirs * (files + 1));
	for (unsigned d = 0; d < dirs; d++) {
		for (unsigned k = 0; k < files; k++) {
			(void)snprintf(path, sizeof path, "%s/d%u/f%u", run->to, d, k);
			assert_true(file_is_sample(path, (d * files + k) * 37 % 20000));
		}
	}
	(void)snprintf(path, sizeof path, "%s/large", run->to);
	assert_true(file_is_sample(path, large));
}

static void log_line(void *context, enum tt_log_level level, const char *line)
{
	struct run *run = context;

	if (strstr(line, "internal error")) {
		run->internal++;
		print_message("%s\n", line);
	}
	run->errors += level == TT_LOG_ERROR;
}

static void event(void *context, const struct tt_event *event)
{
	struct run *run = context;

	run->items += event->kind == TT_EVENT_ITEM;
}

static void prepare(struct run *run, const char *from, const char *to)
{
	memset(run, 0, sizeof *run);
	(void)snprintf(run->from, sizeof run->from, "%s/%s/", scratch.path, from);
	(void)snprintf(run->to, sizeof run->to, "%s/%s", scratch.path, to);
	run->policy.plan = (struct tt_plan_policy){.recursive = true,
		.links = true,
		.perms = true,
		.times = true,
		.owner = true,
		.group = true};
	run->policy.meta.perms = run->policy.meta.times = true;
	run->policy.no_ring = getenv("TIPTOE_RING") != NULL;
}

static void *stopper(void *argument)
{
	struct run *run = argument;
	struct tt_engine_progress progress;

	do {
		tt_engine_progress(run->engine, &progress);
	} while (progress.bytes_done < run->stop_after_bytes && !atomic_load(&run->done));
	tt_engine_stop(run->engine);
	return NULL;
}

static void *perform(void *argument)
{
	struct run *run = argument;
	const struct tt_log log = {.write = log_line, .context = run, .threshold = TT_LOG_WARNING};
	const struct tt_engine_events events = {.event = event, .context = run};
	const char *const sources[] = {run->from};
	pthread_t thread;

	if (tt_engine_new(&run->policy, sources, 1, run->to, &log, &events, &run->engine) < 0)
		return NULL;
	if (run->stop_after_bytes > 0 && pthread_create(&thread, NULL, stopper, run) != 0)
		run->stop_after_bytes = 0;
	run->code = tt_engine_run(run->engine);
	atomic_store(&run->done, true);
	if (run->stop_after_bytes > 0)
		(void)pthread_join(thread, NULL);
	tt_engine_stats(run->engine, &run->stats);
	tt_engine_free(run->engine);
	return NULL;
}

static void test_two_engines_at_once(void **state)
{
	struct run runs[2];

	(void)state;
	make_tree("a", 5, 40, 9 * SAMPLE_MIB);
	make_tree("b", 20, 5, 3 * SAMPLE_MIB);
	prepare(&runs[0], "a", "to-a");
	prepare(&runs[1], "b", "to-b");
	runs[0].policy.cache.dirty_limit_bytes = SAMPLE_MIB;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&runs[i].thread, NULL, perform, &runs[i]), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(runs[i].thread, NULL), 0);
		assert_int_equal(runs[i].code, TT_EXIT_OK);
		assert_int_equal(runs[i].errors, 0);
	}
	assert_int_equal(runs[0].stats.transferred, 201);
	assert_int_equal(runs[1].stats.transferred, 101);
	assert_true(runs[0].stats.peak_dirty_bytes <= SAMPLE_MIB);
	check_copy(&runs[0], 5, 40, 9 * SAMPLE_MIB);
	check_copy(&runs[1], 20, 5, 3 * SAMPLE_MIB);
}

static void test_every_number_of_workers_gives_the_same(void **state)
{
	static const unsigned workers[] = {1, 2, 16};
	char name[16];

	(void)state;
	make_tree("a", 4, 30, 9 * SAMPLE_MIB);
	for (unsigned i = 0; i < 6; i++) {
		struct run run;

		(void)snprintf(name, sizeof name, "to%u", i);
		prepare(&run, "a", name);
		run.policy.workers = workers[i % 3];
		run.policy.no_ring = i >= 3;
		run.policy.cache.dirty_limit_bytes = i % 2 ? SAMPLE_MIB : 0;
		(void)perform(&run);
		assert_int_equal(run.code, TT_EXIT_OK);
		assert_int_equal(run.errors, 0);
		check_copy(&run, 4, 30, 9 * SAMPLE_MIB);
		/* Nothing to do the second time. */
		(void)perform(&run);
		assert_int_equal(run.code, TT_EXIT_OK);
		assert_int_equal(run.stats.transferred, 0);
	}
}

static void test_a_stop_in_the_middle_leaves_whole_files_and_no_others(void **state)
{
	struct run run;

	(void)state;
	make_tree("a", 6, 50, 20 * SAMPLE_MIB);
	for (unsigned i = 0; i < 8; i++) {
		prepare(&run, "a", "to");
		run.policy.workers = i % 2 ? 16 : 1;
		run.stop_after_bytes = 1 + i * 500000;
		(void)perform(&run);
		assert_true(run.code == TT_EXIT_SIGNAL || run.code == TT_EXIT_OK);
		assert_int_equal(run.internal, 0);
		(void)count_names(run.to);
	}
	prepare(&run, "a", "to");
	(void)perform(&run);
	assert_int_equal(run.code, TT_EXIT_OK);
	check_copy(&run, 6, 50, 20 * SAMPLE_MIB);
}

static void test_a_dry_run_makes_nothing(void **state)
{
	struct run run;

	(void)state;
	make_tree("a", 2, 5, 5000);
	prepare(&run, "a", "to");
	run.policy.dry_run = true;
	(void)perform(&run);
	assert_int_equal(run.code, TT_EXIT_OK);
	assert_true(run.items >= 13);
	assert_int_equal(scratch_count(&scratch), 1);
}

/* Errors at any call: an exit code, whole files only, nothing left over; the next run completes. */
static void test_failing_calls_fail_files_and_nothing_else(void **state)
{
	static const struct fault_rule rules[] = {
		{.call = FAULT_READ, .skip = 10, .count = 20, .error = EIO},
		{.call = FAULT_WRITE, .skip = 10, .count = 20, .error = EIO},
		{.call = FAULT_SYNC_RANGE, .skip = 10, .count = 20, .error = EIO},
		{.call = FAULT_WRITE, .skip = 5, .count = 1, .error = ENOSPC},
		{.call = FAULT_WRITE, .skip = 3, .most_bytes = 1000},
		{.call = FAULT_READ, .most_bytes = 1000},
	};
	char name[16];

	(void)state;
	make_tree("a", 3, 40, 9 * SAMPLE_MIB);
	for (unsigned i = 0; i < sizeof rules / sizeof *rules; i++) {
		struct run run;

		(void)snprintf(name, sizeof name, "to%u", i);
		prepare(&run, "a", name);
		run.policy.no_ring = true;
		fault_set(&rules[i]);
		(void)perform(&run);
		assert_true(fault_hits() > 0);
		fault_clear();
		if (rules[i].error == EIO)
			assert_int_equal(run.code, TT_EXIT_PARTIAL);
		else
			assert_int_equal(run.code, TT_EXIT_OK);
		assert_int_equal(run.internal, 0);
		(void)count_names(run.to);
		prepare(&run, "a", name);
		run.policy.no_ring = true;
		(void)perform(&run);
		assert_int_equal(run.code, TT_EXIT_OK);
		check_copy(&run, 3, 40, 9 * SAMPLE_MIB);
	}
}

/* The disk stays full: the run ends with rsync's code for it. */
static void test_a_full_disk_ends_the_run(void **state)
{
	struct run run;

	(void)state;
	make_tree("a", 3, 40, 9 * SAMPLE_MIB);
	prepare(&run, "a", "to");
	run.policy.no_ring = true;
	fault_set(&(struct fault_rule){.call = FAULT_WRITE, .skip = 30, .error = ENOSPC});
	(void)perform(&run);
	assert_int_equal(run.code, TT_EXIT_FILE_IO);
	assert_int_equal(run.internal, 0);
	(void)count_names(run.to);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_two_engines_at_once),
		TEST(test_every_number_of_workers_gives_the_same),
		TEST(test_a_stop_in_the_middle_leaves_whole_files_and_no_others),
		TEST(test_a_dry_run_makes_nothing),
		TEST(test_failing_calls_fail_files_and_nothing_else),
		TEST(test_a_full_disk_ends_the_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
