/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/arena.h"
#include "check.h"

static void test_what_was_taken_stays_apart(void **state)
{
	enum {
		COUNT = 2000
	};
	static unsigned char *taken[COUNT];
	struct tt_arena arena = {0};

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		taken[i] = tt_arena_take(&arena, i % 97 + 1);
		assert_non_null(taken[i]);
		memset(taken[i], (int)(i & 255), i % 97 + 1);
	}
	for (size_t i = 0; i < COUNT; i++) {
		for (size_t k = 0; k < i % 97 + 1; k++)
			assert_int_equal(taken[i][k], i & 255);
	}
	tt_arena_deinit(&arena);
}

static void test_what_is_taken_is_aligned_even_behind_a_name(void **state)
{
	struct tt_arena arena = {0};

	(void)state;
	for (size_t i = 0; i < 500; i++) {
		assert_non_null(tt_arena_copy(&arena, "odd", i % 4));
		uintptr_t at = (uintptr_t)tt_arena_take(&arena, 1 + i % 40);

		assert_int_equal(at % _Alignof(max_align_t), 0);
	}
	tt_arena_deinit(&arena);
}

static void test_a_copy_ends_with_nul_and_no_sooner(void **state)
{
	struct tt_arena arena = {0};
	char *copy = tt_arena_copy(&arena, "a\0bcd", 4);

	(void)state;
	assert_memory_equal(copy, "a\0bc", 5);
	assert_string_equal(tt_arena_copy(&arena, "", 0), "");
	tt_arena_deinit(&arena);
}

static void test_something_larger_than_a_block_fits(void **state)
{
	struct tt_arena arena = {0};
	char *small = tt_arena_copy(&arena, "before", 6);
	char *large = tt_arena_take(&arena, 1 << 20);

	(void)state;
	assert_non_null(large);
	memset(large, 'x', 1 << 20);
	assert_string_equal(small, "before");
	assert_true(arena.total_bytes >= 1 << 20);
	assert_string_equal(tt_arena_copy(&arena, "behind", 6), "behind");
	tt_arena_deinit(&arena);
}

static void test_a_small_directory_costs_little(void **state)
{
	struct tt_arena arena = {0};

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_non_null(tt_arena_copy(&arena, "name", 4));
	assert_true(arena.total_bytes <= 1024);
	for (int i = 0; i < 100000; i++)
		assert_non_null(tt_arena_copy(&arena, "0123456789", 10));
	/* Not more than an eighth is wasted. */
	assert_true(arena.total_bytes <= 100003 * 11 / 8 * 9);
	tt_arena_deinit(&arena);
}

static void test_it_can_be_used_again(void **state)
{
	struct tt_arena arena = {0};

	(void)state;
	tt_arena_deinit(&arena);
	assert_non_null(tt_arena_take(&arena, 10));
	tt_arena_deinit(&arena);
	assert_null(arena.blocks);
	assert_int_equal(arena.total_bytes, 0);
	assert_non_null(tt_arena_take(&arena, 10));
	tt_arena_deinit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_taken_stays_apart),
		cmocka_unit_test(test_what_is_taken_is_aligned_even_behind_a_name),
		cmocka_unit_test(test_a_copy_ends_with_nul_and_no_sooner),
		cmocka_unit_test(test_something_larger_than_a_block_fits),
		cmocka_unit_test(test_a_small_directory_costs_little),
		cmocka_unit_test(test_it_can_be_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
