/* SPDX-License-Identifier: MIT */
/*
 * See facility.h. The same table, with more words, is in tiptoe-internals(7).
 */
#include "sys/facility.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/error.h"

static const struct {
	const char *name;
	const char *substitute;
	bool weakens;
} facility_table[TT_FACILITY_COUNT] = {
	[TT_FACILITY_CACHESTAT] = {"cachestat",
		"mincore finds the pages; which of them are dirty is not seen", true},
	[TT_FACILITY_MINCORE] = {"mincore",
		"cachestat finds the pages, or where that is missing too residency is unknown",
		true},
	[TT_FACILITY_FADVISE] = {"fadvise64",
		"pages stay where neither the ring nor RWF_DONTCACHE makes them go", true},
	[TT_FACILITY_SYNC_FILE_RANGE] = {"sync_file_range", "fdatasync awaits the disk", false},
	[TT_FACILITY_IO_URING] = {"io_uring", "threads do its work", false},
	[TT_FACILITY_OPENAT2] = {"openat2", "paths are walked name by name", false},
	[TT_FACILITY_STATX] = {"statx", "fstatat does its work", false},
	[TT_FACILITY_FCHMODAT2] = {"fchmodat2", "/proc/self/fd does its work", false},
	[TT_FACILITY_RENAMEAT2] = {"renameat2",
		"a new name is looked for before the rename, not with it", false},
	[TT_FACILITY_DIOALIGN] = {"STATX_DIOALIGN", "alignment for O_DIRECT is guessed", false},
	[TT_FACILITY_FIEMAP] = {"FIEMAP",
		"files are taken to be what O_DIRECT may not read, preallocated space for holes",
		false},
	[TT_FACILITY_FALLOCATE] = {"fallocate",
		"nothing is preallocated, and where a hole is to be a file is written anew", false},
	[TT_FACILITY_FICLONERANGE] = {"FICLONERANGE", "content is copied, not shared", false},
};

static _Atomic int facility_refusals[TT_FACILITY_COUNT]; /* facts about the kernel, no state */

void tt_facility_refuse(enum tt_facility facility, int error)
{
	int none = 0;

	atomic_compare_exchange_strong(&facility_refusals[facility], &none, error);
}

int tt_facility_refusal(enum tt_facility facility)
{
	return atomic_load_explicit(&facility_refusals[facility], memory_order_relaxed);
}

bool tt_facility_weakens(enum tt_facility facility)
{
	return facility_table[facility].weakens;
}

bool tt_facility_describe(enum tt_facility facility, char *buffer, size_t size)
{
	int refusal = tt_facility_refusal(facility);

	if (refusal == 0)
		return false;
	(void)snprintf(buffer, size, "%s is not available (%s): %s", facility_table[facility].name,
		tt_error_text(refusal), facility_table[facility].substitute);
	return true;
}
