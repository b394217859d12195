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

/* Whether the answer of an attribute call is about the data: NFS and FUSE write them back before
 * they ask their server, and the error of that is told once, here (fs/fuse/dir.c,
 * fuse_do_setattr()). */
bool tt_apply_file_is_about_data(int error);
