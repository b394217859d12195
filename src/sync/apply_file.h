/* SPDX-License-Identifier: MIT */
/*
 * The content of one regular file: opened, copied into a temporary, given its attributes, put into
 * the worker's batch. Internal to sync/.
 */
#pragma once

#include "sync/state.h"

/* Takes over the task's share of the directory: it is released when the file has arrived or failed.
 */
void tt_apply_file(struct tt_worker *worker, struct tt_dir *dir, const struct tt_task *task);
