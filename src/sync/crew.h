/* SPDX-License-Identifier: MIT */
/*
 * The workers: threads that list, copy, and let batches arrive, and what each of them does next.
 * Internal to sync/.
 */
#pragma once

#include "sync/state.h"

struct tt_lane;

/* So many may be busy with one disk, given the descriptors that there are; and how many files a
 * batch may hold. Before anything is started, and again when there is one more disk. */
void tt_crew_set_budgets(struct tt_engine *engine);

/* The first ones. Returns 0 or a negative errno. */
int tt_crew_start(struct tt_engine *engine);

/* As many more for one more disk, as far as descriptors and threads go. Whoever plans. */
void tt_crew_add(struct tt_engine *engine, struct tt_lane *lane);

/* Lets all end when their work is done, and adds up their statistics. */
void tt_crew_end(struct tt_engine *engine);

/* A worker without a thread: statistics and buffers of somebody who lists or links in between. */
void tt_crew_enlist(struct tt_engine *engine, struct tt_worker *worker);
void tt_crew_discharge(struct tt_engine *engine, struct tt_worker *worker);
