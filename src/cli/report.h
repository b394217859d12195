/* SPDX-License-Identifier: MIT */
/*
 * Everything that a run prints: rsync's lines for events, the blocks at the end, messages of the
 * log, and the status line of --progress kept below them.
 *
 * Standard output is collected in one buffer and written when it is full, before anything goes to
 * standard error (so that the two stay in order), when it has been idle for a while, and at the
 * end; to a terminal line by line. A failed write is remembered and what follows is thrown away:
 * the copying goes on, and the exit code tells. One lock (`lock`, a leaf) is around all of it.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "sync/engine.h"

#define TT_REPORT_ITEM_SIZE   12
#define TT_REPORT_STATUS_SIZE 256

struct tt_report_policy {
	unsigned verbose;
	unsigned itemize;
	unsigned human_readable;
	bool quiet;
	bool stats;
	bool dry_run;
	bool recursive, dirs;
	bool prune_empty_dirs;
	bool verify_cache;
	enum tt_engine_delete delete_mode;
	bool update, existing, ignore_existing; /* to say at -vv why something is left alone */
	bool append;                            /* rsync says otherwise then how it copies */
};

struct tt_report {
	struct tt_report_policy policy; /* does not change */
	int out_fd, err_fd;
	bool out_is_terminal;
	bool out_is_file; /* never blocks for long */
	atomic_bool hurried;
	struct tt_log log; /* give this to the engine */

	pthread_mutex_t lock; /* guards what follows */
	char *buffer;
	size_t used;
	int out_error; /* negative errno of the first failed write, or 0 */
	uint64_t last_line_ns;
	bool said_delta;
	char status[TT_REPORT_STATUS_SIZE]; /* "" : none */
	bool status_shown;
};

/* Borrows the descriptors. Returns 0 or -ENOMEM. */
int tt_report_init(
	struct tt_report *report, const struct tt_report_policy *policy, int out_fd, int err_fd);
void tt_report_deinit(struct tt_report *report);

/* The first line, before the engine runs. */
void tt_report_begin(struct tt_report *report);

/* struct tt_engine_events.event; `context` is the report. Any thread. */
void tt_report_event(void *context, const struct tt_event *event);

/* What follows the last event: --stats, totals, ours. Writes out everything. */
void tt_report_end(struct tt_report *report, const struct tt_engine_stats *stats);

/* One line to standard error, after what is in the buffer. Any thread. */
void tt_report_error(struct tt_report *report, const char *line);

/* For the control loop: one line to standard error beside the order of the others. Returns false if
 * another thread is in the middle of printing. */
bool tt_report_try_notice(struct tt_report *report, const char *line);

/* One line to standard output. Any thread. */
void tt_report_line(struct tt_report *report, const char *line);

/* Shows `status` (shorter than the terminal is wide) below all lines, "" to remove it. Does nothing
 * where standard output is no terminal, or while another thread is in the middle of printing. */
void tt_report_set_status(struct tt_report *report, const char *status);

/* The run is to end: from now on a reader of standard output who does not read is not waited for.
 * Any thread, does not lock. */
void tt_report_hurry(struct tt_report *report);

/* For the control loop: writes out lines that have waited for 200 ms, as far as that does not
 * block. */
void tt_report_flush_idle(struct tt_report *report);

/* Writes out everything. Returns 0, or the negative errno of the first write that ever failed. */
int tt_report_flush(struct tt_report *report);

/* The eleven letters of rsync's itemised line for an entry; the form of `event->item` is in
 * sync/plan.h. Any thread. */
void tt_report_item(const struct tt_event *event, char ret_item[TT_REPORT_ITEM_SIZE]);
