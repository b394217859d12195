/* SPDX-License-Identifier: MIT */
/*
 * Work on one large directory that idle workers join in: thousands of statx in one directory would
 * otherwise be done by one thread while the others have nothing left to do. Internal to sync/.
 */
#pragma once

#include "sync/state.h"

/* A range of items, done in pieces by whoever has time. On the owner's stack while it is shared. */
struct tt_share {
	void (*run)(void *context, unsigned from, unsigned to); /* several threads at once */
	void *context;
	/* guarded by the run's lock */
	struct tt_share *next;
	unsigned at, end; /* not begun yet */
	unsigned busy;    /* pieces that are being done */
};

/* Does [from, to) with the help of idle workers and returns when all of it is done. Small ranges
 * are done here. Any thread, without the lock. */
void tt_share_run(struct tt_engine *engine, unsigned from, unsigned to,
	void (*run)(void *context, unsigned from, unsigned to), void *context);

/* A worker with nothing else to do: does one piece if there is any. With the lock held, which is
 * given up meanwhile. Returns whether there was one. */
bool tt_share_help(struct tt_engine *engine);
