/* SPDX-License-Identifier: MIT */
/*
 * The line of --progress: how far the run is, how fast, and how long it will take. Text only;
 * cli/report.c keeps it on the terminal.
 */
#pragma once

#include <stddef.h>

#include "sync/engine.h"

#define TT_PROGRESS_SAMPLES 25 /* at five per second: the rate of the last five seconds */

struct tt_progress {
	unsigned human_readable;
	struct {
		uint64_t time_ns, bytes;
	} samples[TT_PROGRESS_SAMPLES];
	unsigned count; /* of samples ever taken */
};

void tt_progress_init(struct tt_progress *progress, unsigned human_readable);

/* Takes one sample and writes the line, at most `columns` characters (all ASCII) and `size` bytes.
 * What fits least is left out first. Returns `buffer`. One thread. */
const char *tt_progress_format(struct tt_progress *progress, const struct tt_engine_progress *now,
	unsigned columns, char *buffer, size_t size);

/* The line for the end of a run, or for where there is no terminal: totals and the mean rate. */
const char *tt_progress_format_total(const struct tt_progress *progress,
	const struct tt_engine_progress *now, char *buffer, size_t size);
