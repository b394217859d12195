/* SPDX-License-Identifier: MIT */
/*
 * The thread twin of ring.c: same contract, seen only by ring.c. See ring.h.
 */
#pragma once

#include "sys/ring.h"

struct tt_ring_twin;

int tt_ring_twin_new(unsigned depth, unsigned workers, struct tt_ring_twin **ret_twin);
void tt_ring_twin_free(struct tt_ring_twin *twin);
void tt_ring_twin_submit(struct tt_ring_twin *twin, const struct tt_ring_request *request);
int tt_ring_twin_wait(struct tt_ring_twin *twin, bool wait, struct tt_ring_completion *ret);
void tt_ring_twin_wake(struct tt_ring_twin *twin);
