/* SPDX-License-Identifier: MIT */
/*
 * Every test runs on io_uring (if this kernel gives it) and on the twin: the same results.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "check.h"
#include "sample.h"
#include "scratch.h"
#include "sys/ring.h"

struct fixture {
	struct scratch scratch;
	struct tt_ring *ring;
};

static int set_up(void **state, bool no_uring, unsigned depth, unsigned workers)
{
	static struct fixture fixture;
	const struct tt_ring_config config = {
		.depth = depth, .workers = workers, .no_uring = no_uring};
	int refusal = 1;

	scratch_open(&fixture.scratch);
	assert_int_equal(tt_ring_new(&config, &fixture.ring, &refusal), 0);
	assert_int_equal(tt_ring_is_twin(fixture.ring), refusal != 0);
	if (no_uring)
		assert_true(tt_ring_is_twin(fixture.ring));
	*state = &fixture;
	return 0;
}

static int set_up_uring(void **state)
{
	return set_up(state, getenv("TIPTOE_RING") != NULL, 8, 4);
}

static int set_up_twin(void **state)
{
	return set_up(state, true, 8, 4);
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(tt_ring_in_flight(fixture->ring), 0);
	tt_ring_free(fixture->ring);
	scratch_close(&fixture->scratch);
	return 0;
}

/* One request and its result. */
static int64_t perform(struct tt_ring *ring, struct tt_ring_request request)
{
	struct tt_ring_completion completion = {0};

	request.token = &request;
	assert_int_equal(tt_ring_submit(ring, &request), 0);
	assert_int_equal(tt_ring_in_flight(ring), 1);
	assert_int_equal(tt_ring_wait(ring, true, &completion), 1);
	assert_ptr_equal(completion.token, &request);
	assert_int_equal(tt_ring_in_flight(ring), 0);
	return completion.result;
}

static void test_what_is_written_is_read(void **state)
{
	struct fixture *fixture = *state;
	unsigned char out[8192], in[8192] = {0};
	int fd = sample_open(&fixture->scratch, "file");

	sample_fill(out, 4096, sizeof out);
	assert_int_equal(perform(fixture->ring, (struct tt_ring_request){.op = TT_RING_WRITE,
							.fd = fd,
							.buffer = out,
							.offset = 4096,
							.length = sizeof out}),
		sizeof out);
	assert_int_equal(perform(fixture->ring, (struct tt_ring_request){.op = TT_RING_READ,
							.fd = fd,
							.buffer = in,
							.offset = 8192,
							.length = sizeof in}),
		4096);
	assert_memory_equal(in, out + 4096, 4096);
	assert_int_equal(perform(fixture->ring, (struct tt_ring_request){.op = TT_RING_READ,
							.fd = fd,
							.buffer = in,
							.offset = 12288,
							.length = 1}),
		0);
	(void)close(fd);
}

static void test_a_synced_range_is_clean_and_can_be_dropped(void **state)
{
	struct fixture *fixture = *state;
	int fd = sample_open(&fixture->scratch, "file");

	sample_write(fd, 0, SAMPLE_MIB);
	assert_int_equal(sample_count_resident(fd), 256);
	assert_int_equal(perform(fixture->ring, (struct tt_ring_request){.op = TT_RING_SYNC_RANGE,
							.fd = fd,
							.flags = SYNC_FILE_RANGE_WRITE}),
		0);
	assert_int_equal(perform(fixture->ring, (struct tt_ring_request){.op = TT_RING_SYNC_RANGE,
							.fd = fd,
							.flags = SYNC_FILE_RANGE_WAIT_BEFORE}),
		0);
	assert_int_equal(
		perform(fixture->ring, (struct tt_ring_request){.op = TT_RING_DROP, .fd = fd}), 0);
	assert_int_equal(sample_count_resident(fd), 0);
	assert_true(sample_is(fd, 0, SAMPLE_MIB));
	(void)close(fd);
}

static void test_only_the_range_is_dropped(void **state)
{
	struct fixture *fixture = *state;
	int fd = sample_new(&fixture->scratch, "file", 64 * SAMPLE_PAGE);

	for (unsigned i = 0; i < 64; i++)
		sample_touch(fd, i);
	assert_int_equal(perform(fixture->ring, (struct tt_ring_request){.op = TT_RING_DROP,
							.fd = fd,
							.offset = 16 * SAMPLE_PAGE,
							.length = 16 * SAMPLE_PAGE}),
		0);
	assert_int_equal(sample_count_resident(fd), 48);
	assert_true(sample_is_resident(fd, 15));
	assert_false(sample_is_resident(fd, 16));
	assert_false(sample_is_resident(fd, 31));
	assert_true(sample_is_resident(fd, 32));
	(void)close(fd);
}

static void test_fsync_and_fdatasync_answer(void **state)
{
	struct fixture *fixture = *state;
	int fd = sample_open(&fixture->scratch, "file");

	sample_write(fd, 0, 4096);
	assert_int_equal(
		perform(fixture->ring, (struct tt_ring_request){.op = TT_RING_FDATASYNC, .fd = fd}),
		0);
	assert_int_equal(
		perform(fixture->ring, (struct tt_ring_request){.op = TT_RING_FSYNC, .fd = fd}), 0);
	(void)close(fd);
}

static void test_errors_are_negative_errnos(void **state)
{
	static const enum tt_ring_op ops[] = {TT_RING_READ, TT_RING_WRITE, TT_RING_SYNC_RANGE,
		TT_RING_DROP, TT_RING_FSYNC, TT_RING_FDATASYNC};
	struct fixture *fixture = *state;
	char byte = 0;

	for (unsigned i = 0; i < sizeof ops / sizeof *ops; i++) {
		assert_int_equal(
			perform(fixture->ring,
				(struct tt_ring_request){
					.op = ops[i], .fd = -1, .buffer = &byte, .length = 1}),
			-EBADF);
	}
	scratch_write(&fixture->scratch, "file", "text");
	int fd = openat(fixture->scratch.fd, "file", O_RDONLY | O_CLOEXEC);

	assert_int_equal(
		perform(fixture->ring,
			(struct tt_ring_request){
				.op = TT_RING_WRITE, .fd = fd, .buffer = &byte, .length = 1}),
		-EBADF);
	(void)close(fd);
}

static void test_more_than_the_depth_is_busy(void **state)
{
	struct fixture *fixture = *state;
	struct tt_ring_completion completion;
	unsigned tokens[8], seen = 0;
	int fd = sample_open(&fixture->scratch, "file");
	struct tt_ring_request request = {.op = TT_RING_DROP, .fd = fd};

	for (unsigned i = 0; i < 8; i++) {
		request.token = &tokens[i];
		assert_int_equal(tt_ring_submit(fixture->ring, &request), 0);
	}
	assert_int_equal(tt_ring_submit(fixture->ring, &request), -EBUSY);
	assert_int_equal(tt_ring_in_flight(fixture->ring), 8);
	tt_ring_start(fixture->ring);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(tt_ring_wait(fixture->ring, true, &completion), 1);
		assert_int_equal(completion.result, 0);
		seen |= 1u << ((unsigned *)completion.token - tokens);
	}
	assert_int_equal(seen, 255);
	assert_int_equal(tt_ring_wait(fixture->ring, false, &completion), 0);
	assert_int_equal(tt_ring_submit(fixture->ring, &request), 0);
	assert_int_equal(tt_ring_wait(fixture->ring, true, &completion), 1);
	(void)close(fd);
}

static void test_every_completion_comes_once(void **state)
{
	enum {
		COUNT = 2000
	};
	struct fixture *fixture = *state;
	struct tt_ring_completion completion;
	static unsigned char came[COUNT], data[COUNT];
	unsigned submitted = 0, pulled = 0;
	int fd = sample_open(&fixture->scratch, "file");

	memset(came, 0, sizeof came);
	sample_fill(data, 0, sizeof data);
	while (pulled < COUNT) {
		struct tt_ring_request request = {.op = TT_RING_WRITE,
			.fd = fd,
			.buffer = &data[submitted],
			.offset = submitted,
			.length = 1,
			.token = &came[submitted]};

		if (submitted < COUNT && tt_ring_submit(fixture->ring, &request) == 0) {
			submitted++;
			continue;
		}
		assert_int_equal(tt_ring_wait(fixture->ring, true, &completion), 1);
		assert_int_equal(completion.result, 1);
		assert_int_equal((*(unsigned char *)completion.token)++, 0);
		pulled++;
	}
	assert_int_equal(tt_ring_in_flight(fixture->ring), 0);
	assert_true(sample_is(fd, 0, COUNT));
	(void)close(fd);
}

static void *wake_later(void *argument)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	tt_ring_wake(argument);
	return NULL;
}

static void test_a_wake_ends_the_wait(void **state)
{
	struct fixture *fixture = *state;
	struct tt_ring_completion completion;
	pthread_t thread;

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&thread, NULL, wake_later, fixture->ring), 0);
		assert_int_equal(tt_ring_wait(fixture->ring, true, &completion), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
}

static void test_a_wake_before_the_wait_is_not_lost(void **state)
{
	struct fixture *fixture = *state;
	struct tt_ring_completion completion;

	tt_ring_wake(fixture->ring);
	tt_ring_wake(fixture->ring);
	assert_int_equal(tt_ring_wait(fixture->ring, true, &completion), 0);
	/* A completion is not lost to it either. */
	int fd = sample_open(&fixture->scratch, "file");

	tt_ring_wake(fixture->ring);
	struct tt_ring_request request = {.op = TT_RING_DROP, .fd = fd, .token = &fd};

	assert_int_equal(tt_ring_submit(fixture->ring, &request), 0);
	while (tt_ring_in_flight(fixture->ring) > 0)
		assert_true(tt_ring_wait(fixture->ring, true, &completion) >= 0);
	assert_ptr_equal(completion.token, &fd);
	(void)close(fd);
}

static void test_an_operation_may_sleep_and_is_not_waited_for(void **state)
{
	struct fixture *fixture = *state;
	struct tt_ring_completion completion;
	uint64_t count = 0;
	int ends[2];
	char byte = 0;

	if (tt_ring_is_twin(fixture->ring)) /* pread(2) of a pipe is ESPIPE */
		return;
	assert_int_equal(pipe(ends), 0);
	struct tt_ring_request slow = {.op = TT_RING_READ,
		.fd = ends[0],
		.buffer = &count,
		.offset = UINT64_MAX,
		.length = 1,
		.token = &count};

	assert_int_equal(tt_ring_submit(fixture->ring, &slow), 0);
	assert_int_equal(tt_ring_wait(fixture->ring, false, &completion), 0);
	struct tt_ring_request quick = {
		.op = TT_RING_DROP, .fd = fixture->scratch.fd, .token = &byte};

	assert_int_equal(tt_ring_submit(fixture->ring, &quick), 0);
	assert_int_equal(tt_ring_wait(fixture->ring, true, &completion), 1);
	assert_ptr_equal(completion.token, &byte);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(tt_ring_wait(fixture->ring, true, &completion), 1);
	assert_ptr_equal(completion.token, &count);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void test_free_waits_for_what_is_in_flight(void **state)
{
	enum {
		BYTES = 1 << 20
	};
	struct fixture *fixture = *state;
	const struct tt_ring_config config = {
		.depth = 4, .workers = 2, .no_uring = tt_ring_is_twin(fixture->ring)};
	unsigned char *data = malloc(BYTES);
	struct tt_ring *ring;
	int fd = sample_open(&fixture->scratch, "file");

	assert_non_null(data);
	sample_fill(data, 0, BYTES);
	assert_int_equal(tt_ring_new(&config, &ring, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		struct tt_ring_request request = {.op = TT_RING_WRITE,
			.fd = fd,
			.buffer = data + i * (BYTES / 4),
			.offset = i * (BYTES / 4),
			.length = BYTES / 4,
			.token = data};

		assert_int_equal(tt_ring_submit(ring, &request), 0);
	}
	tt_ring_free(ring);
	memset(data, 0, BYTES);
	free(data);
	assert_true(sample_is(fd, 0, BYTES));
	(void)close(fd);
	tt_ring_free(NULL);
}

static void test_nothing_is_left_open(void **state)
{
	struct fixture *fixture = *state;
	const struct tt_ring_config config = {
		.depth = 1024, .workers = 1, .no_uring = tt_ring_is_twin(fixture->ring)};
	unsigned before = sample_open_fds();
	struct tt_ring *ring;

	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(tt_ring_new(&config, &ring, NULL), 0);
		tt_ring_free(ring);
	}
	assert_int_equal(sample_open_fds(), before);
}

#define BOTH(test)                                                  \
	{#test " (ring)", test, set_up_uring, tear_down, NULL},     \
	{                                                           \
#test " (twin)", test, set_up_twin, tear_down, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_what_is_written_is_read),
		BOTH(test_a_synced_range_is_clean_and_can_be_dropped),
		BOTH(test_only_the_range_is_dropped),
		BOTH(test_fsync_and_fdatasync_answer),
		BOTH(test_errors_are_negative_errnos),
		BOTH(test_more_than_the_depth_is_busy),
		BOTH(test_every_completion_comes_once),
		BOTH(test_a_wake_ends_the_wait),
		BOTH(test_a_wake_before_the_wait_is_not_lost),
		BOTH(test_an_operation_may_sleep_and_is_not_waited_for),
		BOTH(test_free_waits_for_what_is_in_flight),
		BOTH(test_nothing_is_left_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
