/* SPDX-License-Identifier: MIT */
/*
 * --verify-cache: after the run, opens every regular file of the destination again and counts its
 * resident pages. Internal to sync/.
 */
#pragma once

#include "sync/state.h"

/* Counts into the run's statistics (verify_files, verify_pages). Engine thread, after everything
 * has arrived. */
void tt_verify_run(struct tt_engine *engine);
