/* SPDX-License-Identifier: MIT */
/*
 * The table {file system} x {read, new file, overwrite} x {size} x {whose file}: which mechanism
 * moves a file's content so that the page cache stays as it was. A pure function over what was
 * found out by trying; everybody who reads, writes, or prints what is used asks here.
 *
 * What was measured for each cell is in tiptoe-internals(7); tests/bench/mechanisms makes it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cache/policy.h"
#include "sys/probe.h"
#include "sys/residency.h"

enum tt_mechanism_operation {
	TT_MECHANISM_READ,
	TT_MECHANISM_NEW,       /* blocks that do not exist yet: a temporary */
	TT_MECHANISM_OVERWRITE, /* blocks that do */
};

enum tt_mechanism_size {
	TT_MECHANISM_SMALL,  /* below 64 KiB */
	TT_MECHANISM_MEDIUM, /* to 4 MiB */
	TT_MECHANISM_LARGE,
};

/* What is known of the file system, of the user's wish, and of the file: bits. */
enum tt_mechanism_fact {
	TT_MECHANISM_HAS_CACHE = 1 << 0,      /* a page cache (tmpfs is one) */
	TT_MECHANISM_HAS_CACHESTAT = 1 << 1,  /* it tells the truth here; else mincore is asked */
	TT_MECHANISM_HAS_DONTNEED = 1 << 2,   /* clean pages go when asked */
	TT_MECHANISM_HAS_SYNC_RANGE = 1 << 3, /* sync_file_range writes and waits */
	TT_MECHANISM_HAS_DONTCACHE_READ = 1 << 4, /* RWF_DONTCACHE is accepted and leaves nothing */
	TT_MECHANISM_HAS_DONTCACHE_NEW = 1 << 5,
	TT_MECHANISM_HAS_DONTCACHE_OVERWRITE = 1 << 6, /* known, and used for nothing */
	TT_MECHANISM_HAS_DIRECT_READ = 1 << 7,         /* O_DIRECT */
	TT_MECHANISM_HAS_DIRECT_WRITE = 1 << 8,
	/* of the user */
	TT_MECHANISM_WANTS_KEEP = 1 << 9,    /* --cache=keep */
	TT_MECHANISM_WANTS_DIRECT = 1 << 10, /* --cache=direct */
	TT_MECHANISM_WANTS_FSYNC = 1 << 11,  /* --fsync */
	/* of the file */
	TT_MECHANISM_IS_ASKABLE = 1
				  << 12, /* one's own, or one may write to it: residency is told */
	TT_MECHANISM_IS_DIRTY = 1 << 13, /* pages of it may be dirty, by somebody else */
	TT_MECHANISM_IS_HOT =
		1 << 14, /* what is overwritten or replaced is resident and stays so */
	TT_MECHANISM_IS_WHOLE = 1 << 15, /* written and awaited in one piece, without windows */
	/* of the directory, for --probe: a run meets the error itself */
	TT_MECHANISM_IS_READ_ONLY = 1 << 16,
	TT_MECHANISM_IS_CLOSED = 1 << 17, /* no file can be made in it */
};

enum tt_mechanism_kind {
	TT_MECHANISM_ORDINARY, /* plain calls, nothing before and nothing after */
	TT_MECHANISM_STAYS,    /* the same for want of anything better: pages are left, the file is
				  counted */
	TT_MECHANISM_BEHIND,   /* look before reading, DONTNEED behind the reader */
	TT_MECHANISM_UNCACHED, /* RWF_DONTCACHE */
	TT_MECHANISM_DIRECT,   /* O_DIRECT */
	TT_MECHANISM_RANGE,    /* sync_file_range starts and waits, then DONTNEED */
	TT_MECHANISM_DATASYNC, /* fdatasync, then DONTNEED */
	TT_MECHANISM_NOTHING,  /* it cannot be done */
};

struct tt_mechanism {
	enum tt_mechanism_kind kind;
	const char *words; /* for people: --stats, --probe, -v */
	const char *why;   /* this and nothing else: --probe */
};

/* Files up to here are written whole, if the budget allows that. With 4 MiB it was not faster
 * (ext4, xfs). */
#define TT_MECHANISM_WHOLE_BYTES (UINT64_C(1) << 20)

enum tt_mechanism_size tt_mechanism_size_of(uint64_t bytes);

/* Files of at most so many bytes are written whole on a budget of dirty bytes. */
uint64_t tt_mechanism_whole_bytes(uint64_t budget_bytes);

/* What a file system's answers mean, as facts: unknown ones count as what is mostly so and shows
 * itself when it is not. `probe` may be all zeros: never tried, as on a source. */
unsigned tt_mechanism_facts(
	enum tt_cache_mode mode, enum tt_residency_method method, const struct tt_probe *probe);

/* The cell. There is one for all arguments. Any thread. */
const struct tt_mechanism *tt_mechanism_choose(
	enum tt_mechanism_operation operation, enum tt_mechanism_size size, unsigned facts);

/* The same for a file of `size_bytes`, where files of up to `whole_bytes` are written whole. */
const struct tt_mechanism *tt_mechanism_choose_for(enum tt_mechanism_operation operation,
	uint64_t size_bytes, uint64_t whole_bytes, unsigned facts);

/* Files of [from_bytes, to_bytes], UINT64_MAX: without end. */
struct tt_mechanism_cell {
	uint64_t from_bytes, to_bytes;
	const struct tt_mechanism *mechanism;
};

#define TT_MECHANISM_MOST_CELLS 4

/* All sizes of one operation, neighbours of one mechanism as one cell. Returns how many. */
unsigned tt_mechanism_cells(enum tt_mechanism_operation operation, uint64_t whole_bytes,
	unsigned facts, struct tt_mechanism_cell ret_cells[TT_MECHANISM_MOST_CELLS]);

/* How many files went which way; begins as all zeros. */
#define TT_MECHANISM_MOST_ROWS 32

struct tt_mechanism_uses {
	_Atomic uint64_t files[TT_MECHANISM_MOST_ROWS];
};

/* Counts one. NULL: nothing was moved. Any thread. */
void tt_mechanism_use(struct tt_mechanism_uses *uses, const struct tt_mechanism *mechanism);

/* In words: "12 files read: cachestat, trailing DONTNEED; 2 files written: RWF_DONTCACHE"; empty
 * if nothing was used. Returns `buffer`. */
const char *tt_mechanism_describe(const struct tt_mechanism_uses *uses, char *buffer, size_t size);
