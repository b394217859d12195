/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "check.h"

static void as_hex(const struct tt_hash_digest *digest, char out[33])
{
	for (int i = 0; i < 16; i++)
		(void)sprintf(out + 2 * i, "%02x", digest->bytes[i]);
}

static void test_values_are_those_of_xxhsum(void **state)
{
	struct tt_hash *hash = NULL;
	struct tt_hash_digest digest;
	char hex[33];

	(void)state;
	/* printf tiptoe | xxhsum -H3 and -H2 */
	assert_int_equal(tt_hash_64("tiptoe", 6), 0x364997591d590c72U);
	assert_int_equal(tt_hash_new(&hash), 0);
	tt_hash_update(hash, "tip", 3);
	tt_hash_update(hash, "", 0);
	tt_hash_update(hash, "toe", 3);
	tt_hash_digest(hash, &digest);
	as_hex(&digest, hex);
	assert_string_equal(hex, "5cf570c5ab55d2257882868c457a8dd7");
	tt_hash_free(hash);
}

static void test_reset_forgets_what_was_hashed(void **state)
{
	struct tt_hash *hash = NULL;
	struct tt_hash_digest fresh, again;

	(void)state;
	assert_int_equal(tt_hash_new(&hash), 0);
	tt_hash_digest(hash, &fresh);
	tt_hash_update(hash, "x", 1);
	tt_hash_digest(hash, &again);
	assert_memory_not_equal(fresh.bytes, again.bytes, 16);
	tt_hash_reset(hash);
	tt_hash_digest(hash, &again);
	assert_memory_equal(fresh.bytes, again.bytes, 16);
	tt_hash_free(hash);
	tt_hash_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_are_those_of_xxhsum),
		cmocka_unit_test(test_reset_forgets_what_was_hashed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
