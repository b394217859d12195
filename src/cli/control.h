/* SPDX-License-Identifier: MIT */
/*
 * The control loop of the program: the engine works in a thread of its own while the calling one
 * waits for signals and timers.
 *
 * SIGINT, SIGTERM, SIGHUP: orderly stop, as often as they come. SIGUSR1: a line of progress on
 * standard error. SIGWINCH: the new width of the terminal. SIGHUP stays ignored where it was at the
 * start (nohup). Never does file I/O.
 */
#pragma once

#include <stdbool.h>

#include "cli/progress.h"
#include "cli/report.h"
#include "sync/engine.h"

/* Runs the engine to its end. Main thread. Returns 0 with the engine's exit code, or a negative
 * errno (nothing was run). */
int tt_control_run(struct tt_engine *engine, struct tt_report *report, bool show_progress,
	unsigned human_readable, enum tt_exit *ret_code);
