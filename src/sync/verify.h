/* SPDX-License-Identifier: MIT */
/*
 * --verify-cache: after the run, opens every regular file of the destination and of the sources
 * again and counts its resident pages. Internal to sync/.
 */
#pragma once

#include "sync/state.h"

/* Counts into the run's statistics (verify_destination, verify_sources). Engine thread, after
 * everything has arrived. */
void tt_verify_run(struct tt_engine *engine);
