/* SPDX-License-Identifier: MIT */
/*
 * What this process has been refused: calls that an old kernel does not have (ENOSYS) or that a
 * sandbox forbids (EPERM, as docker's filter answers). Whoever makes such a call tries it, does
 * without where it is refused, and says so here; from then on nobody tries again: a refusal costs
 * one call and not one for each file.
 *
 * Kept for the process, not for a run: a kernel does not learn, and a seccomp filter is never
 * taken away. Nothing here is decided by a version number.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

enum tt_facility {
	TT_FACILITY_CACHESTAT,
	TT_FACILITY_MINCORE,
	TT_FACILITY_FADVISE,
	TT_FACILITY_SYNC_FILE_RANGE,
	TT_FACILITY_IO_URING,
	TT_FACILITY_OPENAT2,
	TT_FACILITY_STATX,
	TT_FACILITY_FCHMODAT2,
	TT_FACILITY_RENAMEAT2,
	TT_FACILITY_DIOALIGN,
	TT_FACILITY_FIEMAP,
	TT_FACILITY_FALLOCATE,
	TT_FACILITY_FICLONERANGE,
	TT_FACILITY_COUNT
};

/* Whether a negative errno may mean that the call itself is refused. EPERM can be the file's own
 * answer: only if the substitute then succeeds is it the call that was meant. */
static inline bool tt_facility_may_be_refusal(int error)
{
	return error == -ENOSYS || error == -EPERM;
}

/* Remembers the refusal; the first error stays. Any thread. */
void tt_facility_refuse(enum tt_facility facility, int error);

/* The negative errno of the refusal, or 0: not refused, or not tried yet. Any thread. */
int tt_facility_refusal(enum tt_facility facility);

static inline bool tt_facility_is_refused(enum tt_facility facility)
{
	return tt_facility_refusal(facility) != 0;
}

/* Whether a promise is weaker without it. */
bool tt_facility_weakens(enum tt_facility facility);

/* If it was refused, a line for people: "NAME is not available (REASON): what is done instead".
 * Returns whether it was. Any thread. */
bool tt_facility_describe(enum tt_facility facility, char *buffer, size_t size);
