/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "copy/pool.h"

static void test_there_are_four_and_they_are_apart(void **state)
{
	struct tt_pool pool;
	char *buffers[TT_POOL_BUFFERS];

	(void)state;
	tt_pool_init(&pool);
	for (unsigned i = 0; i < TT_POOL_BUFFERS; i++) {
		buffers[i] = tt_pool_take(&pool, false);
		assert_non_null(buffers[i]);
		assert_int_equal((uintptr_t)buffers[i] % 4096, 0);
		memset(buffers[i], (int)i, TT_POOL_BUFFER_BYTES);
	}
	assert_null(tt_pool_take(&pool, false));
	for (unsigned i = 0; i < TT_POOL_BUFFERS; i++) {
		assert_int_equal(buffers[i][0], i);
		assert_int_equal(buffers[i][TT_POOL_BUFFER_BYTES - 1], i);
		tt_pool_give(&pool, buffers[i]);
	}
	tt_pool_deinit(&pool);
}

static void test_no_more_are_made_than_are_wanted(void **state)
{
	struct tt_pool pool;

	(void)state;
	tt_pool_init(&pool);
	for (unsigned i = 0; i < 10; i++)
		tt_pool_give(&pool, tt_pool_take(&pool, true));
	assert_int_equal(pool.made_count, 1);
	tt_pool_give(&pool, NULL);
	tt_pool_deinit(&pool);
}

static void *give_later(void *argument)
{
	void **pool_and_buffer = argument;

	usleep(20000);
	tt_pool_give(pool_and_buffer[0], pool_and_buffer[1]);
	return NULL;
}

static void test_who_waits_gets_the_one_that_comes_back(void **state)
{
	struct tt_pool pool;
	void *buffers[TT_POOL_BUFFERS];
	pthread_t thread;

	(void)state;
	tt_pool_init(&pool);
	for (unsigned i = 0; i < TT_POOL_BUFFERS; i++)
		buffers[i] = tt_pool_take(&pool, true);
	void *argument[2] = {&pool, buffers[2]};

	assert_int_equal(pthread_create(&thread, NULL, give_later, argument), 0);
	assert_ptr_equal(tt_pool_take(&pool, true), buffers[2]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (unsigned i = 0; i < TT_POOL_BUFFERS; i++)
		tt_pool_give(&pool, buffers[i]);
	tt_pool_deinit(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_are_four_and_they_are_apart),
		cmocka_unit_test(test_no_more_are_made_than_are_wanted),
		cmocka_unit_test(test_who_waits_gets_the_one_that_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
