/* SPDX-License-Identifier: MIT */
/*
 * See mechanism.h. The table is read from the top: the first row of the operation that has the
 * size, all facts that it needs and none that it must not have is the answer. The last row of each
 * operation asks for nothing.
 */
#include "cache/mechanism.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define READ      TT_MECHANISM_READ
#define NEW       TT_MECHANISM_NEW
#define OVERWRITE TT_MECHANISM_OVERWRITE

#define SMALL  (1u << TT_MECHANISM_SMALL)
#define MEDIUM (1u << TT_MECHANISM_MEDIUM)
#define LARGE  (1u << TT_MECHANISM_LARGE)
#define ANY    (SMALL | MEDIUM | LARGE)

#define CACHE          TT_MECHANISM_HAS_CACHE
#define CACHESTAT      TT_MECHANISM_HAS_CACHESTAT
#define DONTNEED       TT_MECHANISM_HAS_DONTNEED
#define SYNC_RANGE     TT_MECHANISM_HAS_SYNC_RANGE
#define DONTCACHE_READ TT_MECHANISM_HAS_DONTCACHE_READ
#define DONTCACHE_NEW  TT_MECHANISM_HAS_DONTCACHE_NEW
#define DIRECT_READ    TT_MECHANISM_HAS_DIRECT_READ
#define DIRECT_WRITE   TT_MECHANISM_HAS_DIRECT_WRITE
#define KEEP           TT_MECHANISM_WANTS_KEEP
#define DIRECT         TT_MECHANISM_WANTS_DIRECT
#define FSYNC          TT_MECHANISM_WANTS_FSYNC
#define ASKABLE        TT_MECHANISM_IS_ASKABLE
#define DIRTY          TT_MECHANISM_IS_DIRTY
#define HOT            TT_MECHANISM_IS_HOT
#define WHOLE          TT_MECHANISM_IS_WHOLE
#define READ_ONLY      TT_MECHANISM_IS_READ_ONLY
#define CLOSED         TT_MECHANISM_IS_CLOSED

struct mechanism_row {
	enum tt_mechanism_operation operation;
	unsigned sizes, needs, lacks;
	struct tt_mechanism is;
};

/* clang-format off */
static const struct mechanism_row mechanism_rows[] = {
	/*         sizes           needs                       lacks       then */
	{READ,      ANY,            KEEP,                       0,          {TT_MECHANISM_ORDINARY, "ordinary reads",
		"asked for by --cache=keep"}},
	{READ,      ANY,            0,                          CACHE,      {TT_MECHANISM_ORDINARY, "ordinary reads, no cache of its own",
		"no disk is behind it: files are memory, or made when they are read"}},
	{READ,      ANY,            DIRECT | DIRECT_READ,       DIRTY,      {TT_MECHANISM_DIRECT, "O_DIRECT",
		"asked for by --cache=direct"}},
	{READ,      ANY,            ASKABLE | CACHESTAT | DONTNEED, 0,      {TT_MECHANISM_BEHIND, "cachestat, trailing DONTNEED",
		"it may be asked what is resident; what was not goes again"}},
	{READ,      ANY,            ASKABLE | DONTNEED,         0,          {TT_MECHANISM_BEHIND, "mincore, trailing DONTNEED",
		"cachestat tells nothing here, mincore names the pages"}},
	{READ,      ANY,            DONTCACHE_READ,             0,          {TT_MECHANISM_UNCACHED, "RWF_DONTCACHE",
		"what is resident may not be asked; this leaves it alone"}},
	{READ,      ANY,            DIRECT_READ,                DIRTY,      {TT_MECHANISM_DIRECT, "O_DIRECT",
		"what is resident may not be asked; this brings in nothing (not for what may be dirty)"}},
	{READ,      ANY,            0,                          0,          {TT_MECHANISM_STAYS, "ordinary reads, pages stay",
		"what is resident may not be asked, and nothing leaves it alone; such files are counted"}},

	{NEW,       ANY,            READ_ONLY,                  0,          {TT_MECHANISM_NOTHING, "nothing can be written",
		"the file system is read-only"}},
	{NEW,       ANY,            CLOSED,                     0,          {TT_MECHANISM_NOTHING, "nothing can be written",
		"no file can be made in this directory"}},
	{NEW,       ANY,            KEEP,                       0,          {TT_MECHANISM_ORDINARY, "ordinary writes",
		"asked for by --cache=keep"}},
	{NEW,       ANY,            0,                          CACHE,      {TT_MECHANISM_ORDINARY, "ordinary writes, no cache of its own",
		"no disk is behind it: nothing is written back"}},
	{NEW,       MEDIUM | LARGE, DIRECT | DIRECT_WRITE,      HOT,        {TT_MECHANISM_DIRECT, "O_DIRECT",
		"asked for by --cache=direct"}},
	{NEW,       ANY,            0,                          SYNC_RANGE, {TT_MECHANISM_DATASYNC, "fdatasync, then DONTNEED",
		"sync_file_range does nothing here"}},
	/* --fsync waits for each file anyway; the pages of a hot file are to stay. */
	{NEW,       SMALL | MEDIUM, WHOLE | DONTCACHE_NEW,      HOT | FSYNC, {TT_MECHANISM_UNCACHED, "RWF_DONTCACHE",
		"one write; the kernel drops it when it is on the disk"}},
	{NEW,       SMALL | MEDIUM, WHOLE,                      0,          {TT_MECHANISM_RANGE, "sync_file_range in batches, then DONTNEED",
		"small files are started and awaited together"}},
	{NEW,       ANY,            0,                          0,          {TT_MECHANISM_RANGE, "sync_file_range in windows, then DONTNEED",
		"no more than the budget may be dirty at a time"}},

	{OVERWRITE, ANY,            READ_ONLY,                  0,          {TT_MECHANISM_NOTHING, "nothing can be written",
		"the file system is read-only"}},
	{OVERWRITE, ANY,            KEEP,                       0,          {TT_MECHANISM_ORDINARY, "ordinary writes",
		"asked for by --cache=keep"}},
	{OVERWRITE, ANY,            0,                          CACHE,      {TT_MECHANISM_ORDINARY, "ordinary writes, no cache of its own",
		"no disk is behind it: nothing is written back"}},
	/* Never O_DIRECT: it would invalidate the pages of whoever has some there, and it wants the length of
	 * the file first, by which an unfinished one would look finished. */
	{OVERWRITE, ANY,            0,                          SYNC_RANGE, {TT_MECHANISM_DATASYNC, "fdatasync, then DONTNEED",
		"sync_file_range does nothing here"}},
	/* RWF_DONTCACHE leaves on ext4 what is written over; on xfs it took up to five times as long. */
	{OVERWRITE, SMALL | MEDIUM, WHOLE,                      0,          {TT_MECHANISM_RANGE, "sync_file_range in batches, then DONTNEED",
		"small files are started and awaited together"}},
	{OVERWRITE, ANY,            0,                          0,          {TT_MECHANISM_RANGE, "sync_file_range in windows, then DONTNEED",
		"no more than the budget may be dirty at a time"}},
};
/* clang-format on */

#define MECHANISM_ROWS (sizeof mechanism_rows / sizeof *mechanism_rows)
_Static_assert(MECHANISM_ROWS <= TT_MECHANISM_MOST_ROWS, "each row has a counter");

#define MECHANISM_SMALL_BYTES  (UINT64_C(64) << 10)
#define MECHANISM_MEDIUM_BYTES (UINT64_C(4) << 20)

enum tt_mechanism_size tt_mechanism_size_of(uint64_t bytes)
{
	if (bytes < MECHANISM_SMALL_BYTES)
		return TT_MECHANISM_SMALL;
	return bytes <= MECHANISM_MEDIUM_BYTES ? TT_MECHANISM_MEDIUM : TT_MECHANISM_LARGE;
}

uint64_t tt_mechanism_whole_bytes(uint64_t budget_bytes)
{
	return budget_bytes / 8 < TT_MECHANISM_WHOLE_BYTES ? budget_bytes / 8
							   : TT_MECHANISM_WHOLE_BYTES;
}

static unsigned mechanism_if(bool true_here, unsigned fact)
{
	return true_here ? fact : 0;
}

unsigned tt_mechanism_facts(
	enum tt_cache_mode mode, enum tt_residency_method method, const struct tt_probe *probe)
{
	const bool aligned = probe->direct.offset_bytes > 0;
	const bool counted = method == TT_RESIDENCY_CACHESTAT && probe->cachestat != TT_PROBE_NO;

	return mechanism_if(mode == TT_CACHE_KEEP, KEEP)
	       | mechanism_if(mode == TT_CACHE_DIRECT, DIRECT)
	       | mechanism_if(method != TT_RESIDENCY_NONE, CACHE) | mechanism_if(counted, CACHESTAT)
	       | mechanism_if(probe->drop_clean != TT_PROBE_NO, DONTNEED)
	       /* Without an experiment (the disk is nearly full, or has no unnamed files) it counts
		* as working where cachestat watches over it, else (overlayfs, an old kernel) as
		* not. */
	       | mechanism_if(probe->sync_file_range == TT_PROBE_YES
				      || (probe->sync_file_range == TT_PROBE_UNKNOWN && counted),
		       SYNC_RANGE)
	       /* Shown by the first read that is refused. */
	       | mechanism_if(probe->dontcache_read != TT_PROBE_NO, DONTCACHE_READ)
	       /* Not shown by anything. */
	       | mechanism_if(probe->dontcache_write == TT_PROBE_YES, DONTCACHE_NEW)
	       | mechanism_if(probe->dontcache_overwrite == TT_PROBE_YES,
		       TT_MECHANISM_HAS_DONTCACHE_OVERWRITE)
	       | mechanism_if(aligned, DIRECT_READ | DIRECT_WRITE);
}

const struct tt_mechanism *tt_mechanism_choose(
	enum tt_mechanism_operation operation, enum tt_mechanism_size size, unsigned facts)
{
	for (size_t i = 0; i < MECHANISM_ROWS; i++) {
		const struct mechanism_row *row = &mechanism_rows[i];

		if (row->operation == operation && (row->sizes & 1u << size)
			&& (facts & row->needs) == row->needs && (facts & row->lacks) == 0)
			return &row->is;
	}
	assert(false); /* the last row of each operation fits */
	return &mechanism_rows[0].is;
}

const struct tt_mechanism *tt_mechanism_choose_for(enum tt_mechanism_operation operation,
	uint64_t size_bytes, uint64_t whole_bytes, unsigned facts)
{
	return tt_mechanism_choose(operation, tt_mechanism_size_of(size_bytes),
		facts | mechanism_if(size_bytes <= whole_bytes, WHOLE));
}

unsigned tt_mechanism_cells(enum tt_mechanism_operation operation, uint64_t whole_bytes,
	unsigned facts, struct tt_mechanism_cell ret_cells[TT_MECHANISM_MOST_CELLS])
{
	const uint64_t small = MECHANISM_SMALL_BYTES - 1;
	const uint64_t ends[TT_MECHANISM_MOST_CELLS] = {whole_bytes < small ? whole_bytes : small,
		whole_bytes < small ? small : whole_bytes, MECHANISM_MEDIUM_BYTES, UINT64_MAX};
	unsigned count = 0;
	uint64_t from = 0;

	for (unsigned i = 0; i < TT_MECHANISM_MOST_CELLS; i++) {
		const struct tt_mechanism *mechanism =
			tt_mechanism_choose_for(operation, ends[i], whole_bytes, facts);

		if (count == 0 || strcmp(ret_cells[count - 1].mechanism->words, mechanism->words))
			ret_cells[count++] = (struct tt_mechanism_cell){
				.from_bytes = from, .mechanism = mechanism};
		ret_cells[count - 1].to_bytes = ends[i];
		from = ends[i] + 1;
	}
	return count;
}

void tt_mechanism_use(struct tt_mechanism_uses *uses, const struct tt_mechanism *mechanism)
{
	for (size_t i = 0; mechanism && i < MECHANISM_ROWS; i++) {
		if (&mechanism_rows[i].is == mechanism)
			atomic_fetch_add_explicit(&uses->files[i], 1, memory_order_relaxed);
	}
}

/* All rows that do the same to the same, told at the first one of them; 0 at the others. */
static uint64_t mechanism_count(const struct tt_mechanism_uses *uses, size_t row)
{
	const struct mechanism_row *self = &mechanism_rows[row];
	uint64_t files = 0;

	for (size_t i = 0; i < MECHANISM_ROWS; i++) {
		const struct mechanism_row *other = &mechanism_rows[i];

		if (other->operation != self->operation
			|| strcmp(other->is.words, self->is.words) != 0)
			continue;
		if (i < row)
			return 0;
		files += atomic_load_explicit(&uses->files[i], memory_order_relaxed);
	}
	return files;
}

const char *tt_mechanism_describe(const struct tt_mechanism_uses *uses, char *buffer, size_t size)
{
	static const char *const done[] = {"read", "written", "overwritten"};
	size_t used = 0;

	buffer[0] = '\0';
	for (size_t i = 0; i < MECHANISM_ROWS && used < size; i++) {
		uint64_t files = mechanism_count(uses, i);

		if (files == 0)
			continue;
		int n = snprintf(buffer + used, size - used, "%s%llu file%s %s: %s",
			used > 0 ? "; " : "", (unsigned long long)files, files == 1 ? "" : "s",
			done[mechanism_rows[i].operation], mechanism_rows[i].is.words);

		used += n > 0 ? (size_t)n : 0;
	}
	return buffer;
}
