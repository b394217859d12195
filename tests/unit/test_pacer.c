/* SPDX-License-Identifier: MIT */
/*
 * With io_uring and with the twin; faults with the twin only (see fault.h).
 */
#include <errno.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "cache/pacer.h"
#include "check.h"
#include "fault.h"
#include "sample.h"
#include "scratch.h"
#include "sink.h"
#include "sys/residency.h"

struct fixture {
	struct scratch scratch;
	struct sink sink;
	struct tt_pacer *pacer;
	uint64_t budget;
};

static struct fixture f;

static void start(uint64_t budget, bool no_uring)
{
	const struct tt_pacer_config config = {.budget_bytes = budget, .no_uring = no_uring};
	int refusal;

	f.budget = budget;
	assert_int_equal(tt_pacer_new(&config, &f.pacer, &refusal), 0);
}

static int set_up(bool no_uring)
{
	memset(&f, 0, sizeof f);
	fault_clear();
	scratch_open(&f.scratch);
	sink_init(&f.sink);
	start(8 * SAMPLE_MIB, no_uring);
	return 0;
}

static int set_up_uring(void **state)
{
	(void)state;
	return set_up(getenv("TIPTOE_RING") != NULL);
}

static int set_up_twin(void **state)
{
	(void)state;
	return set_up(true);
}

static uint64_t charged(void)
{
	struct tt_pacer_stats stats;

	tt_pacer_stats(f.pacer, &stats);
	return stats.charged_bytes;
}

static int tear_down(void **state)
{
	(void)state;
	fault_clear();
	assert_int_equal(charged(), 0);
	tt_pacer_free(f.pacer);
	sink_deinit(&f.sink);
	scratch_close(&f.scratch);
	return 0;
}

static struct tt_pacer_file paced(int fd)
{
	return (struct tt_pacer_file){.fd = fd, .drop_windows = true, .can_count = true};
}

static bool is_clean(int fd)
{
	struct tt_residency count;

	assert_int_equal(tt_residency_count(fd, TT_RESIDENCY_CACHESTAT, 0, 0, &count), 0);
	return count.dirty_pages == 0 && count.writeback_pages == 0;
}

/* Charges, writes and hands over one window. */
static void window(struct tt_pacer_file *file, uint64_t offset, uint64_t bytes)
{
	tt_pacer_charge(f.pacer, bytes);
	sample_write(file->fd, offset, bytes);
	assert_int_equal(tt_pacer_submit_window(f.pacer, file, offset, bytes), 0);
}

static void small_file(struct tt_pacer_file *file, uint64_t bytes)
{
	tt_pacer_charge(f.pacer, bytes);
	file->charged_bytes += tt_pacer_round(bytes);
	sample_write(file->fd, 0, bytes);
	tt_pacer_start(file);
}

static void test_a_charge_is_taken_and_given_back(void **state)
{
	(void)state;
	assert_int_equal(tt_pacer_budget_bytes(f.pacer), f.budget);
	assert_true(tt_pacer_try_charge(f.pacer, 1));
	assert_int_equal(charged(), 4096);
	assert_true(tt_pacer_try_charge(f.pacer, f.budget - 4096));
	assert_false(tt_pacer_try_charge(f.pacer, 1));
	tt_pacer_release(f.pacer, f.budget - 4096);
	tt_pacer_release(f.pacer, 1);
	assert_int_equal(tt_pacer_charge(f.pacer, f.budget / 2), 0);
	tt_pacer_release(f.pacer, f.budget / 2);
	assert_true(tt_pacer_try_charge(f.pacer, 0));
	tt_pacer_release(f.pacer, 0);
}

static void *release_later(void *argument)
{
	usleep(30000);
	tt_pacer_release(f.pacer, f.budget);
	return argument;
}

static void test_who_asks_for_more_than_is_there_sleeps(void **state)
{
	struct tt_pacer_stats stats;
	pthread_t thread;

	(void)state;
	assert_true(tt_pacer_try_charge(f.pacer, f.budget));
	assert_int_equal(pthread_create(&thread, NULL, release_later, NULL), 0);
	uint64_t slept = tt_pacer_charge(f.pacer, 4096);

	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(slept >= 10000000);
	tt_pacer_stats(f.pacer, &stats);
	assert_int_equal(stats.wait_ns, slept);
	assert_int_equal(stats.peak_bytes, f.budget);
	tt_pacer_release(f.pacer, 4096);
}

static void *take_half(void *argument)
{
	tt_pacer_charge(f.pacer, f.budget / 2);
	return argument;
}

static void test_nobody_slips_past_a_sleeper(void **state)
{
	pthread_t thread;

	(void)state;
	assert_true(tt_pacer_try_charge(f.pacer, f.budget - 8192));
	assert_int_equal(pthread_create(&thread, NULL, take_half, NULL), 0);
	/* There is room for this one, until somebody is asleep for more. */
	while (tt_pacer_try_charge(f.pacer, 4096)) {
		tt_pacer_release(f.pacer, 4096);
		usleep(1000);
	}
	tt_pacer_release(f.pacer, f.budget - 8192);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(tt_pacer_try_charge(f.pacer, 4096));
	tt_pacer_release(f.pacer, f.budget / 2 + 4096);
}

static void test_a_window_is_written_back_and_dropped(void **state)
{
	struct tt_pacer_stats stats;

	(void)state;
	int fd = sample_open(&f.scratch, "file");
	struct tt_pacer_file file = paced(fd);

	window(&file, 0, 2 * SAMPLE_MIB);
	assert_int_equal(sink_verdict(&f.sink, f.pacer, &file), 0);
	assert_int_equal(charged(), 0);
	assert_true(is_clean(fd));
	assert_int_equal(sample_count_resident(fd), 0);
	assert_true(sample_is(fd, 0, 2 * SAMPLE_MIB));
	tt_pacer_stats(f.pacer, &stats);
	assert_int_equal(stats.windows, 1);
	assert_int_equal(stats.batches, 1);
	(void)close(fd);
}

static void test_a_file_larger_than_the_budget_goes_through(void **state)
{
	struct tt_pacer_stats stats;

	(void)state;
	int fd = sample_open(&f.scratch, "file");
	struct tt_pacer_file file = paced(fd);

	for (uint64_t at = 0; at < 40 * SAMPLE_MIB; at += 2 * SAMPLE_MIB)
		window(&file, at, 2 * SAMPLE_MIB);
	window(&file, 40 * SAMPLE_MIB, 777);
	assert_int_equal(sink_verdict(&f.sink, f.pacer, &file), 0);
	assert_true(is_clean(fd));
	assert_true(sample_count_resident(fd) <= 1);
	tt_pacer_stats(f.pacer, &stats);
	assert_int_equal(stats.windows, 21);
	assert_true(stats.peak_bytes <= f.budget);
	assert_true(sample_is(fd, 0, 40 * SAMPLE_MIB + 777));
	(void)close(fd);
}

static void test_a_window_that_shall_stay_stays(void **state)
{
	(void)state;
	int fd = sample_open(&f.scratch, "file");
	struct tt_pacer_file file = paced(fd);

	file.drop_windows = false;
	window(&file, 0, SAMPLE_MIB);
	assert_int_equal(sink_verdict(&f.sink, f.pacer, &file), 0);
	assert_true(is_clean(fd));
	assert_int_equal(sample_count_resident(fd), 256);
	(void)close(fd);
}

static void test_a_batch_comes_back_clean_and_paid(void **state)
{
	struct tt_pacer_batch batch = {.sink = &f.sink.sink, .owner = &f};
	struct tt_pacer_file files[TT_PACER_BATCH_FILES];
	char name[16];

	(void)state;
	for (unsigned i = 0; i < TT_PACER_BATCH_FILES; i++) {
		(void)snprintf(name, sizeof name, "f%u", i);
		files[i] = paced(sample_open(&f.scratch, name));
		files[i].fsync = i == 5;
		files[i].sync = i == 6 ? TT_PACER_SYNC_DATA : TT_PACER_SYNC_RANGE;
		small_file(&files[i], 1 + i * 1000);
		batch.files[batch.count++] = &files[i];
	}
	tt_pacer_submit_batch(f.pacer, &batch);
	assert_ptr_equal(sink_wait(&f.sink), &batch);
	assert_ptr_equal(batch.owner, &f);
	assert_int_equal(charged(), 0);
	for (unsigned i = 0; i < TT_PACER_BATCH_FILES; i++) {
		assert_int_equal(files[i].error, 0);
		assert_true(is_clean(files[i].fd));
		(void)close(files[i].fd);
	}
}

static void test_an_empty_batch_comes_back(void **state)
{
	struct tt_pacer_batch batch = {.sink = &f.sink.sink};

	(void)state;
	tt_pacer_submit_batch(f.pacer, &batch);
	assert_ptr_equal(sink_wait(&f.sink), &batch);
}

static void test_batches_overlap_with_windows(void **state)
{
	struct tt_pacer_file large[3], small[3];
	struct tt_pacer_batch batches[3];
	char name[16];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		(void)snprintf(name, sizeof name, "large%u", i);
		large[i] = paced(sample_open(&f.scratch, name));
		(void)snprintf(name, sizeof name, "small%u", i);
		small[i] = paced(sample_open(&f.scratch, name));
		for (unsigned k = 0; k < 4; k++)
			window(&large[i], k * SAMPLE_MIB, SAMPLE_MIB);
		small_file(&small[i], 5000);
		batches[i] = (struct tt_pacer_batch){
			.sink = &f.sink.sink, .count = 2, .files = {&large[i], &small[i]}};
		tt_pacer_submit_batch(f.pacer, &batches[i]);
	}
	for (unsigned i = 0; i < 3; i++) {
		struct tt_pacer_batch *batch = sink_wait(&f.sink);

		assert_int_equal(batch->files[0]->windows, 0);
		assert_int_equal(batch->files[0]->error, 0);
		assert_true(is_clean(batch->files[0]->fd));
		assert_true(is_clean(batch->files[1]->fd));
		(void)close(batch->files[0]->fd);
		(void)close(batch->files[1]->fd);
	}
}

static void test_a_bad_descriptor_is_the_verdict(void **state)
{
	(void)state;
	struct tt_pacer_file file = paced(-1);

	tt_pacer_charge(f.pacer, 4096);
	assert_int_equal(tt_pacer_submit_window(f.pacer, &file, 0, 4096), 0);
	assert_int_equal(sink_verdict(&f.sink, f.pacer, &file), -EBADF);
	assert_int_equal(charged(), 0);

	file = paced(-1);
	file.fsync = true;
	tt_pacer_start(&file);
	assert_int_equal(file.error, 0);
	assert_int_equal(sink_verdict(&f.sink, f.pacer, &file), -EBADF);

	file = paced(-1);
	tt_pacer_start(&file);
	assert_int_equal(file.error, -EBADF);
	assert_int_equal(sink_verdict(&f.sink, f.pacer, &file), -EBADF);
}

struct charger {
	pthread_t thread;
	unsigned seed;
};

static _Atomic uint64_t in_use, most_in_use;

static void *charge_and_release(void *argument)
{
	struct charger *charger = argument;

	for (unsigned i = 0; i < 2000; i++) {
		uint64_t bytes = (uint64_t)(rand_r(&charger->seed) % 300 + 1) * 4096;

		tt_pacer_charge(f.pacer, bytes);
		uint64_t now = atomic_fetch_add(&in_use, bytes) + bytes;
		uint64_t most = atomic_load(&most_in_use);

		while (now > most && !atomic_compare_exchange_weak(&most_in_use, &most, now))
			;
		atomic_fetch_sub(&in_use, bytes);
		tt_pacer_release(f.pacer, bytes);
	}
	return NULL;
}

static void test_eight_threads_stay_within_the_budget(void **state)
{
	struct charger chargers[8];
	struct tt_pacer_stats stats;

	(void)state;
	atomic_store(&most_in_use, 0);
	for (unsigned i = 0; i < 8; i++) {
		chargers[i].seed = i + 1;
		assert_int_equal(
			pthread_create(&chargers[i].thread, NULL, charge_and_release, &chargers[i]),
			0);
	}
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(pthread_join(chargers[i].thread, NULL), 0);
	tt_pacer_stats(f.pacer, &stats);
	assert_true(stats.peak_bytes <= f.budget);
	assert_true(atomic_load(&most_in_use) <= f.budget);
	assert_int_equal(stats.charged_bytes, 0);
}

static void *write_a_large_file(void *argument)
{
	struct charger *charger = argument;
	char name[16];

	(void)snprintf(name, sizeof name, "t%u", charger->seed);
	struct tt_pacer_file file = paced(sample_open(&f.scratch, name));
	struct sink sink;

	sink_init(&sink);
	for (unsigned i = 0; i < 6; i++)
		window(&file, i * SAMPLE_MIB, SAMPLE_MIB);
	assert_int_equal(sink_verdict(&sink, f.pacer, &file), 0);
	(void)close(file.fd);
	sink_deinit(&sink);
	return NULL;
}

static void test_eight_writers_stay_within_the_budget(void **state)
{
	struct charger chargers[8];
	struct tt_pacer_stats stats;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		chargers[i].seed = i;
		assert_int_equal(
			pthread_create(&chargers[i].thread, NULL, write_a_large_file, &chargers[i]),
			0);
	}
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(pthread_join(chargers[i].thread, NULL), 0);
	tt_pacer_stats(f.pacer, &stats);
	assert_true(stats.peak_bytes <= f.budget);
	assert_int_equal(stats.windows, 48);
}

static void test_windows_fit_the_budget(void **state)
{
	static const uint64_t budgets[] = {256 << 10, 1 << 20, 3 << 20, 8 << 20, 48 << 20};

	(void)state;
	for (unsigned i = 0; i < sizeof budgets / sizeof *budgets; i++) {
		tt_pacer_free(f.pacer);
		start(budgets[i], true);
		struct tt_pacer_file file = paced(sample_open(&f.scratch, "file"));

		for (unsigned k = 0; k < 20; k++) {
			uint64_t bytes = tt_pacer_window_bytes(f.pacer);

			assert_in_range(bytes, 4096, budgets[i] / 4);
			assert_int_equal(bytes % 4096, 0);
			window(&file, 0, bytes);
		}
		assert_int_equal(sink_verdict(&f.sink, f.pacer, &file), 0);
		(void)close(file.fd);
	}
}

static void test_free_is_safe_right_after_the_last_batch(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		tt_pacer_free(f.pacer);
		start(SAMPLE_MIB, i % 2);
		struct tt_pacer_batch batch = {.sink = &f.sink.sink};

		tt_pacer_submit_batch(f.pacer, &batch);
		(void)sink_wait(&f.sink);
	}
	tt_pacer_free(NULL);
}

/* What follows needs faults: the twin. */

static void test_an_error_of_any_window_is_the_verdict(void **state)
{
	(void)state;
	for (unsigned skip = 0; skip < 6; skip++) {
		struct tt_pacer_file file = paced(sample_open(&f.scratch, "file"));

		fault_set(&(struct fault_rule){
			.call = FAULT_SYNC_RANGE, .skip = skip, .count = 1, .error = EIO});
		for (unsigned i = 0; i < 3; i++)
			window(&file, i * SAMPLE_MIB, SAMPLE_MIB);
		assert_int_equal(sink_verdict(&f.sink, f.pacer, &file), -EIO);
		assert_int_equal(fault_hits(), 1);
		assert_int_equal(charged(), 0);
		(void)close(file.fd);
	}
}

static void test_the_first_error_stays(void **state)
{
	struct tt_pacer_file file = paced(sample_open(&f.scratch, "file"));

	(void)state;
	fault_set(&(struct fault_rule){.call = FAULT_SYNC_RANGE, .count = 1, .error = ENOSPC});
	small_file(&file, 4096);
	assert_int_equal(file.error, -ENOSPC);
	fault_set(&(struct fault_rule){.call = FAULT_SYNC_RANGE, .error = EIO});
	assert_int_equal(sink_verdict(&f.sink, f.pacer, &file), -ENOSPC);
	(void)close(file.fd);
}

static void test_errors_of_fsync_and_fdatasync_are_verdicts(void **state)
{
	struct tt_pacer_file file = paced(sample_open(&f.scratch, "file"));

	(void)state;
	file.fsync = true;
	fault_set(&(struct fault_rule){.call = FAULT_FSYNC, .count = 1, .error = EIO});
	small_file(&file, 100);
	assert_int_equal(sink_verdict(&f.sink, f.pacer, &file), -EIO);
	assert_int_equal(fault_hits(), 1);
	file.fsync = false;
	file.error = 0;
	file.sync = TT_PACER_SYNC_DATA;
	fault_set(&(struct fault_rule){.call = FAULT_FDATASYNC, .count = 1, .error = EDQUOT});
	small_file(&file, 100);
	assert_int_equal(sink_verdict(&f.sink, f.pacer, &file), -EDQUOT);
	(void)close(file.fd);
}

/* A wait that returned too soon (asynchronous writeback) is noticed by counting. */
static void test_a_wait_that_did_nothing_is_repeated(void **state)
{
	struct tt_pacer_file file = paced(sample_open(&f.scratch, "file"));
	struct tt_pacer_stats stats;

	(void)state;
	fault_set(&(struct fault_rule){.call = FAULT_SYNC_RANGE, .count = 6, .nothing = true});
	window(&file, 0, SAMPLE_MIB);
	assert_int_equal(sink_verdict(&f.sink, f.pacer, &file), 0);
	assert_true(is_clean(file.fd));
	tt_pacer_stats(f.pacer, &stats);
	assert_int_equal(stats.again, 3);
	fault_set(&(struct fault_rule){.call = FAULT_SYNC_RANGE, .count = 3, .nothing = true});
	small_file(&file, 100000);
	assert_int_equal(sink_verdict(&f.sink, f.pacer, &file), 0);
	assert_true(is_clean(file.fd));
	(void)close(file.fd);
}

/* Somebody else keeps it dirty: the pacer does not wait for ever. */
static void test_a_window_that_never_gets_clean_is_given_up(void **state)
{
	struct tt_pacer_file file = paced(sample_open(&f.scratch, "file"));

	(void)state;
	fault_set(&(struct fault_rule){.call = FAULT_SYNC_RANGE, .nothing = true});
	window(&file, 0, SAMPLE_MIB);
	assert_int_equal(sink_verdict(&f.sink, f.pacer, &file), 0);
	assert_int_equal(charged(), 0);
	(void)close(file.fd);
}

/* The default follows the cgroup's limit. */
static void test_the_default_budget_is_a_quarter_of_a_small_cgroup(void **state)
{
	static const char group[] = "/sys/fs/cgroup/memory/tt-unit-pacer";
	char path[200], number[32];
	int status;

	(void)state;
	if (geteuid() != 0 || access("/sys/fs/cgroup/memory/memory.limit_in_bytes", W_OK) < 0)
		skip();
	assert_true(mkdir(group, 0755) == 0 || errno == EEXIST);
	(void)snprintf(path, sizeof path, "%s/memory.limit_in_bytes", group);
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(write(fd, "67108864", 8), 8);
	(void)close(fd);
	pid_t child = fork();

	if (child == 0) {
		(void)snprintf(path, sizeof path, "%s/cgroup.procs", group);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		int n = snprintf(number, sizeof number, "%d", getpid());

		if (write(fd, number, (size_t)n) != n)
			_exit(1);
		if (tt_pacer_memory_limit() != 64 * SAMPLE_MIB)
			_exit(2);
		_exit(tt_pacer_default_budget() == 16 * SAMPLE_MIB ? 0 : 3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	for (unsigned i = 0; i < 100 && rmdir(group) < 0; i++)
		usleep(10000);
	assert_int_equal(status, 0);
}

static void test_the_default_budget_is_48_mib_at_most(void **state)
{
	(void)state;
	assert_in_range(tt_pacer_default_budget(), SAMPLE_MIB, 48 * SAMPLE_MIB);
	assert_true(tt_pacer_memory_limit() >= tt_pacer_default_budget());
}

#define BOTH(test)                                                  \
	{#test " (ring)", test, set_up_uring, tear_down, NULL},     \
	{                                                           \
#test " (twin)", test, set_up_twin, tear_down, NULL \
	}
#define TWIN(test) cmocka_unit_test_setup_teardown(test, set_up_twin, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_a_charge_is_taken_and_given_back),
		BOTH(test_who_asks_for_more_than_is_there_sleeps),
		BOTH(test_nobody_slips_past_a_sleeper),
		BOTH(test_a_window_is_written_back_and_dropped),
		BOTH(test_a_file_larger_than_the_budget_goes_through),
		BOTH(test_a_window_that_shall_stay_stays),
		BOTH(test_a_batch_comes_back_clean_and_paid),
		BOTH(test_an_empty_batch_comes_back),
		BOTH(test_batches_overlap_with_windows),
		BOTH(test_a_bad_descriptor_is_the_verdict),
		BOTH(test_eight_threads_stay_within_the_budget),
		BOTH(test_eight_writers_stay_within_the_budget),
		TWIN(test_windows_fit_the_budget),
		TWIN(test_free_is_safe_right_after_the_last_batch),
		TWIN(test_an_error_of_any_window_is_the_verdict),
		TWIN(test_the_first_error_stays),
		TWIN(test_errors_of_fsync_and_fdatasync_are_verdicts),
		TWIN(test_a_wait_that_did_nothing_is_repeated),
		TWIN(test_a_window_that_never_gets_clean_is_given_up),
		TWIN(test_the_default_budget_is_a_quarter_of_a_small_cgroup),
		TWIN(test_the_default_budget_is_48_mib_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
