/* SPDX-License-Identifier: MIT */
/*
 * The integer that bounds dirty bytes: taken before writing, given back when the pages are clean.
 * Internal to cache/.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct tt_pacer_budget {
	uint64_t total_bytes;
	/* guarded by lock */
	pthread_mutex_t lock;
	pthread_cond_t freed;
	uint64_t used_bytes, peak_bytes, wait_ns;
	unsigned waiters;
};

void tt_pacer_budget_init(struct tt_pacer_budget *budget, uint64_t total_bytes);
void tt_pacer_budget_deinit(struct tt_pacer_budget *budget); /* asserts that everything came back */

bool tt_pacer_budget_try(struct tt_pacer_budget *budget, uint64_t bytes);
uint64_t tt_pacer_budget_take(
	struct tt_pacer_budget *budget, uint64_t bytes); /* sleeps; returns how long, in ns */
void tt_pacer_budget_release(struct tt_pacer_budget *budget, uint64_t bytes);

/* A window size near `wish_bytes` that this budget can carry: at most a quarter of it, a multiple
 * of 2 MiB if that leaves any, else of 64 KiB. */
uint64_t tt_pacer_budget_window(const struct tt_pacer_budget *budget, uint64_t wish_bytes);

void tt_pacer_budget_stats(struct tt_pacer_budget *budget, uint64_t *ret_peak_bytes,
	uint64_t *ret_wait_ns, uint64_t *ret_used_bytes);
