/* SPDX-License-Identifier: MIT */
/*
 * See mechanism.h. The table is read from the top: the first row of the operation that has the
 * size, all facts that it needs and none that it must not have is the answer. The last row of each
 * operation asks for nothing.
 */
#include "cache/mechanism.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>

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
		"the memory of the files is all there is"}},
	{READ,      ANY,            DIRECT | DIRECT_READ,       DIRTY,      {TT_MECHANISM_DIRECT, "O_DIRECT",
		"asked for by --cache=direct"}},
	{READ,      ANY,            ASKABLE | CACHESTAT | DONTNEED, 0,      {TT_MECHANISM_BEHIND, "cachestat, trailing DONTNEED",
		"it may be asked what is resident; what was not goes again"}},
	{READ,      ANY,            ASKABLE | DONTNEED,         0,          {TT_MECHANISM_BEHIND, "mincore, trailing DONTNEED",
		"cachestat tells nothing here, mincore names the pages"}},
	{READ,      ANY,            DONTCACHE_READ,             0,          {TT_MECHANISM_UNCACHED, "RWF_DONTCACHE",
		"what is resident may not be asked; this leaves it alone"}},
	{READ,      ANY,            DIRECT_READ,                DIRTY,      {TT_MECHANISM_DIRECT, "O_DIRECT",
		"what is resident may not be asked; this brings in nothing"}},
	{READ,      ANY,            0,                          0,          {TT_MECHANISM_STAYS, "ordinary reads, pages stay",
		"what is resident may not be asked, and nothing leaves it alone; the pages are counted"}},

	{NEW,       ANY,            KEEP,                       0,          {TT_MECHANISM_ORDINARY, "ordinary writes",
		"asked for by --cache=keep"}},
	{NEW,       ANY,            0,                          CACHE,      {TT_MECHANISM_ORDINARY, "ordinary writes, no cache of its own",
		"the memory of the files is all there is"}},
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

	{OVERWRITE, ANY,            KEEP,                       0,          {TT_MECHANISM_ORDINARY, "ordinary writes",
		"asked for by --cache=keep"}},
	{OVERWRITE, ANY,            0,                          CACHE,      {TT_MECHANISM_ORDINARY, "ordinary writes, no cache of its own",
		"the memory of the files is all there is"}},
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

#define MECHANISM_SMALL_BYTES  (UINT64_C(64) << 10)
#define MECHANISM_MEDIUM_BYTES (UINT64_C(4) << 20)

enum tt_mechanism_size tt_mechanism_size_of(uint64_t bytes)
{
	if (bytes < MECHANISM_SMALL_BYTES)
		return TT_MECHANISM_SMALL;
	return bytes <= MECHANISM_MEDIUM_BYTES ? TT_MECHANISM_MEDIUM : TT_MECHANISM_LARGE;
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
	const size_t count = sizeof mechanism_rows / sizeof *mechanism_rows;

	for (size_t i = 0; i < count; i++) {
		const struct mechanism_row *row = &mechanism_rows[i];

		if (row->operation == operation && (row->sizes & 1u << size)
			&& (facts & row->needs) == row->needs && (facts & row->lacks) == 0)
			return &row->is;
	}
	assert(false); /* the last row of each operation fits */
	return &mechanism_rows[0].is;
}

const char *tt_mechanism_describe(
	enum tt_mechanism_operation operation, unsigned facts, char *buffer, size_t size)
{
	/* The largest of each kind of size, and what is said of it. */
	static const struct {
		enum tt_mechanism_size size;
		unsigned facts;
		const char *below;
	} kinds[] = {
		{TT_MECHANISM_SMALL, WHOLE, "below 64 KiB"},
		{TT_MECHANISM_MEDIUM, WHOLE, "to 1 MiB"},
		{TT_MECHANISM_MEDIUM, 0, "to 4 MiB"},
		{TT_MECHANISM_LARGE, 0, "above"},
	};
	const size_t count = sizeof kinds / sizeof *kinds;
	size_t used = 0;

	buffer[0] = '\0';
	for (size_t i = 0, next; i < count && used < size; i = next) {
		const char *words =
			tt_mechanism_choose(operation, kinds[i].size, facts | kinds[i].facts)
				->words;

		for (next = i + 1; next < count; next++) {
			if (tt_mechanism_choose(
				    operation, kinds[next].size, facts | kinds[next].facts)
					->words
				!= words)
				break;
		}
		const bool is_all = i == 0 && next == count;
		int n = snprintf(buffer + used, size - used, "%s%s%s%s", i > 0 ? ", " : "",
			is_all ? "" : kinds[next - 1].below, is_all ? "" : " ", words);

		used += n > 0 ? (size_t)n : 0;
	}
	return buffer;
}
