/* SPDX-License-Identifier: MIT */
/*
 * What the running kernel does on one file system, found out by trying, never by version number.
 *
 * The experiment writes a temporary of 256 KiB (temporary.h) into the directory, so it is never
 * done under -n, on a source, or on a file system that has less than 64 MiB free. Without it
 * everything is unknown and the safe choice is made.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sys/direct.h"

enum tt_probe_answer {
	TT_PROBE_UNKNOWN, /* not tried, or the experiment failed */
	TT_PROBE_NO,
	TT_PROBE_YES,
};

struct tt_probe {
	enum tt_probe_answer
		cachestat; /* it exists and tells the truth here (overlayfs answers zeros) */
	enum tt_probe_answer sync_file_range; /* it starts writeback and waits for it (overlayfs:
						 silently nothing) */
	enum tt_probe_answer
		drop_clean; /* DONTNEED removes clean pages (tmpfs: nothing to remove) */
	enum tt_probe_answer drop_writeback; /* pages invalidated while under writeback are gone
						when it ends, without asking again */
	enum tt_probe_answer
		dontcache_read; /* RWF_DONTCACHE reads are accepted and leave nothing */
	enum tt_probe_answer dontcache_write; /* RWF_DONTCACHE writes of a new file are accepted and
						 leave nothing */
	enum tt_probe_answer
		dontcache_overwrite; /* the same for blocks that exist already (ext4: they stay) */
	struct tt_direct direct; /* alignment for O_DIRECT; all zeros: not possible, or not said */
	enum tt_probe_answer ring;    /* io_uring with SYNC_FILE_RANGE is allowed */
	uint64_t time_granularity_ns; /* 0: unknown */
	int time_error;               /* why, or 0 */
	int tmpfile_error; /* negative errno of the temporary if there could be no experiment, else
			      0 */
	int unnamed_error; /* why it was not an unnamed one (O_TMPFILE), or 0 */
	int ring_error;    /* negative errno if ring is NO */
};

/* Runs the whole experiment in the open directory. Takes well under a second. Any thread.
 * Returns 0 (answers that could not be had are UNKNOWN). */
int tt_probe_run(int dir_fd, struct tt_probe *ret_probe);

/* Only what a run must know before it writes new files: cachestat, sync_file_range, drop_clean,
 * dontcache_write, time_granularity_ns. A few milliseconds. */
int tt_probe_run_quick(int dir_fd, struct tt_probe *ret_probe);
