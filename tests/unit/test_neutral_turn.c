/* SPDX-License-Identifier: MIT */
#include "cache/neutral_turn.h"

#include <stdatomic.h>

#include "check.h"

static struct tt_neutral_turns turns;

static int set_up(void **state)
{
	(void)state;
	tt_neutral_turns_init(&turns);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tt_neutral_turns_deinit(&turns);
	return 0;
}

static void test_one_file_has_one_turn(void **state)
{
	struct tt_neutral_turn first, second, other;

	(void)state;
	assert_true(tt_neutral_turn_try(&turns, &first, 7));
	assert_false(tt_neutral_turn_try(&turns, &second, 7));
	assert_true(tt_neutral_turn_try(&turns, &other, 8));
	tt_neutral_turn_end(&turns, &first);
	assert_true(tt_neutral_turn_try(&turns, &second, 7));
	tt_neutral_turn_end(&turns, &other);
	tt_neutral_turn_end(&turns, &second);
}

enum {
	READERS = 8,
	ROUNDS = 2000,
};

static _Atomic unsigned inside, most_inside, done;

static void *reader(void *unused)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct tt_neutral_turn turn;

		if (!tt_neutral_turn_try(&turns, &turn, 7))
			tt_neutral_turn_wait(&turns, &turn, 7);
		unsigned now = atomic_fetch_add(&inside, 1) + 1;

		if (now > atomic_load(&most_inside))
			atomic_store(&most_inside, now);
		atomic_fetch_sub(&inside, 1);
		tt_neutral_turn_end(&turns, &turn);
		atomic_fetch_add(&done, 1);
	}
	return unused;
}

static void test_everybody_gets_a_turn_and_nobody_shares_it(void **state)
{
	pthread_t threads[READERS];

	(void)state;
	for (unsigned i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader, NULL), 0);
	for (unsigned i = 0; i < READERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(done, READERS * ROUNDS);
	assert_int_equal(most_inside, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one_file_has_one_turn),
		TEST(test_everybody_gets_a_turn_and_nobody_shares_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
