/* SPDX-License-Identifier: MIT */
/*
 * The table of mechanisms, cell by cell: what is used on the file systems that there are, and what
 * each fact changes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "cache/mechanism.h"
#include "check.h"

#define CACHE      TT_MECHANISM_HAS_CACHE
#define CACHESTAT  TT_MECHANISM_HAS_CACHESTAT
#define DONTNEED   TT_MECHANISM_HAS_DONTNEED
#define RANGE      TT_MECHANISM_HAS_SYNC_RANGE
#define UNCACHED_R TT_MECHANISM_HAS_DONTCACHE_READ
#define UNCACHED_N TT_MECHANISM_HAS_DONTCACHE_NEW
#define UNCACHED_O TT_MECHANISM_HAS_DONTCACHE_OVERWRITE
#define DIRECT_R   TT_MECHANISM_HAS_DIRECT_READ
#define DIRECT_W   TT_MECHANISM_HAS_DIRECT_WRITE
#define OWN        TT_MECHANISM_IS_ASKABLE
#define HOT        TT_MECHANISM_IS_HOT
#define DIRTY      TT_MECHANISM_IS_DIRTY
#define WHOLE      TT_MECHANISM_IS_WHOLE

/* Linux 6.18. */
#define EXT4    (CACHE | CACHESTAT | DONTNEED | RANGE | UNCACHED_R | UNCACHED_N | DIRECT_R | DIRECT_W)
#define XFS     (EXT4 | UNCACHED_O)
#define BTRFS   (CACHE | CACHESTAT | DONTNEED | RANGE)
#define OVERLAY (CACHE | DONTNEED)
#define TMPFS   0u

struct cell {
	const char *what;
	enum tt_mechanism_operation operation;
	unsigned facts;
	/* below 64 KiB, to 4 MiB, above: the first letter of the kind */
	const char *wanted;
};

/* o ordinary, s stays, b behind, u uncached, d direct, r range, f fdatasync, n nothing */
static char letter(enum tt_mechanism_kind kind)
{
	return "osbudrfn"[kind];
}

static const struct cell cells[] = {
	{"ext4, own", TT_MECHANISM_READ, EXT4 | OWN, "bbb"},
	{"ext4, somebody else's", TT_MECHANISM_READ, EXT4, "uuu"},
	{"btrfs, own", TT_MECHANISM_READ, BTRFS | OWN, "bbb"},
	{"btrfs, somebody else's", TT_MECHANISM_READ, BTRFS, "sss"},
	{"btrfs, somebody else's, aligned", TT_MECHANISM_READ, BTRFS | DIRECT_R, "ddd"},
	{"btrfs, somebody else's, dirty", TT_MECHANISM_READ, BTRFS | DIRECT_R | DIRTY, "sss"},
	{"overlay, own", TT_MECHANISM_READ, OVERLAY | OWN, "bbb"},
	{"overlay, somebody else's", TT_MECHANISM_READ, OVERLAY, "sss"},
	{"tmpfs", TT_MECHANISM_READ, TMPFS | OWN, "ooo"},
	{"keep", TT_MECHANISM_READ, EXT4 | OWN | TT_MECHANISM_WANTS_KEEP, "ooo"},
	{"nothing goes when asked", TT_MECHANISM_READ, (EXT4 | OWN) & ~(unsigned)DONTNEED, "uuu"},
	{"ext4, somebody else's, refused", TT_MECHANISM_READ, EXT4 & ~(unsigned)UNCACHED_R, "ddd"},
	{"direct", TT_MECHANISM_READ, EXT4 | OWN | TT_MECHANISM_WANTS_DIRECT, "ddd"},
	{"direct, somebody else's", TT_MECHANISM_READ, EXT4 | TT_MECHANISM_WANTS_DIRECT, "ddd"},
	{"direct, dirty", TT_MECHANISM_READ, EXT4 | OWN | DIRTY | TT_MECHANISM_WANTS_DIRECT, "bbb"},
	{"direct, not possible", TT_MECHANISM_READ, BTRFS | OWN | TT_MECHANISM_WANTS_DIRECT, "bbb"},

	{"ext4", TT_MECHANISM_NEW, EXT4, "uur"},
	{"ext4, hot", TT_MECHANISM_NEW, EXT4 | HOT, "rrr"},
	{"ext4, fsync", TT_MECHANISM_NEW, EXT4 | TT_MECHANISM_WANTS_FSYNC, "rrr"},
	{"xfs", TT_MECHANISM_NEW, XFS, "uur"},
	{"btrfs", TT_MECHANISM_NEW, BTRFS, "rrr"},
	{"overlay", TT_MECHANISM_NEW, OVERLAY, "fff"},
	{"tmpfs", TT_MECHANISM_NEW, TMPFS, "ooo"},
	{"keep", TT_MECHANISM_NEW, EXT4 | TT_MECHANISM_WANTS_KEEP, "ooo"},
	{"direct", TT_MECHANISM_NEW, EXT4 | TT_MECHANISM_WANTS_DIRECT, "udd"},
	{"direct, hot", TT_MECHANISM_NEW, EXT4 | HOT | TT_MECHANISM_WANTS_DIRECT, "rrr"},
	{"direct, not possible", TT_MECHANISM_NEW, OVERLAY | TT_MECHANISM_WANTS_DIRECT, "fff"},

	{"ext4", TT_MECHANISM_OVERWRITE, EXT4, "rrr"},
	{"xfs", TT_MECHANISM_OVERWRITE, XFS, "rrr"},
	{"xfs, hot", TT_MECHANISM_OVERWRITE, XFS | HOT, "rrr"},
	{"btrfs", TT_MECHANISM_OVERWRITE, BTRFS, "rrr"},
	{"overlay", TT_MECHANISM_OVERWRITE, OVERLAY, "fff"},
	{"tmpfs", TT_MECHANISM_OVERWRITE, TMPFS, "ooo"},
	{"direct", TT_MECHANISM_OVERWRITE, EXT4 | TT_MECHANISM_WANTS_DIRECT, "rrr"},

	{"read-only", TT_MECHANISM_READ, EXT4 | OWN | TT_MECHANISM_IS_READ_ONLY, "bbb"},
	{"read-only", TT_MECHANISM_NEW, EXT4 | TT_MECHANISM_IS_READ_ONLY, "nnn"},
	{"read-only", TT_MECHANISM_OVERWRITE, TMPFS | TT_MECHANISM_IS_READ_ONLY, "nnn"},
	{"closed", TT_MECHANISM_NEW, EXT4 | TT_MECHANISM_IS_CLOSED, "nnn"},
	{"closed", TT_MECHANISM_OVERWRITE, EXT4 | TT_MECHANISM_IS_CLOSED, "rrr"},
};

static void test_the_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
		char got[4] = "";

		for (unsigned size = 0; size < 3; size++) {
			unsigned facts = cells[i].facts | (size < 2 ? WHOLE : 0u);

			got[size] =
				letter(tt_mechanism_choose(cells[i].operation, size, facts)->kind);
		}
		if (strcmp(got, cells[i].wanted) != 0)
			fail_msg("operation %d on %s: %s, wanted %s", (int)cells[i].operation,
				cells[i].what, got, cells[i].wanted);
	}
}

/* Whatever is known, there is an answer, and it has words. */
static void test_every_cell_has_an_answer(void **state)
{
	(void)state;
	for (unsigned facts = 0; facts < 1u << 18; facts++) {
		for (unsigned cell = 0; cell < 9; cell++) {
			const struct tt_mechanism *is =
				tt_mechanism_choose(cell / 3, cell % 3, facts);

			assert_true(is->words && is->words[0]);
			/* O_DIRECT never against what is known. */
			if (is->kind == TT_MECHANISM_DIRECT && cell / 3 == TT_MECHANISM_READ)
				assert_int_equal(facts & (DIRECT_R | DIRTY), DIRECT_R);
			else if (is->kind == TT_MECHANISM_DIRECT)
				assert_int_equal(facts & (DIRECT_W | HOT), DIRECT_W);
		}
	}
}

static void test_sizes(void **state)
{
	(void)state;
	assert_int_equal(tt_mechanism_size_of(0), TT_MECHANISM_SMALL);
	assert_int_equal(tt_mechanism_size_of(65535), TT_MECHANISM_SMALL);
	assert_int_equal(tt_mechanism_size_of(65536), TT_MECHANISM_MEDIUM);
	assert_int_equal(tt_mechanism_size_of(4 << 20), TT_MECHANISM_MEDIUM);
	assert_int_equal(tt_mechanism_size_of((4 << 20) + 1), TT_MECHANISM_LARGE);
}

static void test_facts_of_a_probe(void **state)
{
	const struct tt_probe nothing = {0};
	const struct tt_probe all = {
		.cachestat = TT_PROBE_YES,
		.sync_file_range = TT_PROBE_YES,
		.drop_clean = TT_PROBE_YES,
		.dontcache_read = TT_PROBE_YES,
		.dontcache_write = TT_PROBE_YES,
		.dontcache_overwrite = TT_PROBE_YES,
		.direct = {512, 512},
	};
	const struct tt_probe none = {
		.cachestat = TT_PROBE_NO,
		.sync_file_range = TT_PROBE_NO,
		.drop_clean = TT_PROBE_NO,
		.dontcache_read = TT_PROBE_NO,
		.dontcache_write = TT_PROBE_NO,
		.dontcache_overwrite = TT_PROBE_NO,
	};

	(void)state;
	assert_int_equal(tt_mechanism_facts(TT_CACHE_LEAVE, TT_RESIDENCY_CACHESTAT, &all), XFS);
	assert_int_equal(tt_mechanism_facts(TT_CACHE_DROP, TT_RESIDENCY_CACHESTAT, &none), CACHE);
	/* What was never tried: what shows itself when it is not so. */
	assert_int_equal(tt_mechanism_facts(TT_CACHE_LEAVE, TT_RESIDENCY_CACHESTAT, &nothing),
		CACHE | CACHESTAT | DONTNEED | RANGE | UNCACHED_R);
	assert_int_equal(tt_mechanism_facts(TT_CACHE_LEAVE, TT_RESIDENCY_MINCORE, &all),
		XFS & ~(unsigned)CACHESTAT);
	assert_false(tt_mechanism_facts(TT_CACHE_LEAVE, TT_RESIDENCY_NONE, &nothing) & CACHE);
	assert_true(tt_mechanism_facts(TT_CACHE_KEEP, TT_RESIDENCY_CACHESTAT, &all)
		    & TT_MECHANISM_WANTS_KEEP);
}

/* Neighbours that are moved alike are one cell, and the cells are all sizes. */
static void test_cells(void **state)
{
	struct tt_mechanism_cell got[TT_MECHANISM_MOST_CELLS];
	const uint64_t mib = 1 << 20;

	(void)state;
	assert_int_equal(tt_mechanism_cells(TT_MECHANISM_READ, mib, EXT4 | OWN, got), 1);
	assert_true(got[0].from_bytes == 0 && got[0].to_bytes == UINT64_MAX);
	assert_int_equal(letter(got[0].mechanism->kind), 'b');
	assert_int_equal(tt_mechanism_cells(TT_MECHANISM_NEW, mib, EXT4, got), 2);
	assert_int_equal(letter(got[0].mechanism->kind), 'u');
	assert_true(got[0].to_bytes == mib && got[1].from_bytes == mib + 1);
	assert_int_equal(letter(got[1].mechanism->kind), 'r');
	assert_true(got[1].to_bytes == UINT64_MAX);
	/* On a budget so small that not even all small files are whole. */
	assert_int_equal(tt_mechanism_cells(TT_MECHANISM_NEW, 32768, BTRFS, got), 2);
	assert_true(got[0].to_bytes == 32768);
	for (uint64_t bytes = 0; bytes < 3 * mib; bytes += 4096) {
		const struct tt_mechanism *is =
			tt_mechanism_choose_for(TT_MECHANISM_NEW, bytes, mib, XFS);

		(void)tt_mechanism_cells(TT_MECHANISM_NEW, mib, XFS, got);
		assert_ptr_equal(is, got[bytes > got[0].to_bytes].mechanism);
	}
	assert_true(tt_mechanism_whole_bytes(48 * mib) == mib);
	assert_true(tt_mechanism_whole_bytes(mib) == mib / 8);
}

static void test_uses_are_counted_and_told(void **state)
{
	struct tt_mechanism_uses uses = {0};
	char words[512];

	(void)state;
	assert_string_equal(tt_mechanism_describe(&uses, words, sizeof words), "");
	tt_mechanism_use(&uses, NULL);
	assert_string_equal(tt_mechanism_describe(&uses, words, sizeof words), "");
	for (unsigned i = 0; i < 3; i++)
		tt_mechanism_use(&uses, tt_mechanism_choose(TT_MECHANISM_READ, 0, EXT4 | OWN));
	/* For two reasons, but the same. */
	tt_mechanism_use(&uses, tt_mechanism_choose(TT_MECHANISM_READ, 0, BTRFS | DIRECT_R));
	tt_mechanism_use(&uses,
		tt_mechanism_choose(TT_MECHANISM_READ, 0, XFS | OWN | TT_MECHANISM_WANTS_DIRECT));
	tt_mechanism_use(&uses, tt_mechanism_choose(TT_MECHANISM_NEW, 0, EXT4 | WHOLE));
	assert_string_equal(tt_mechanism_describe(&uses, words, sizeof words),
		"2 files read: O_DIRECT; 3 files read: cachestat, trailing DONTNEED; "
		"1 file written: RWF_DONTCACHE");
	/* Too little room is not written over. */
	assert_int_equal(strlen(tt_mechanism_describe(&uses, words, 20)), 19);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_table),
		cmocka_unit_test(test_every_cell_has_an_answer),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_facts_of_a_probe),
		cmocka_unit_test(test_cells),
		cmocka_unit_test(test_uses_are_counted_and_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
