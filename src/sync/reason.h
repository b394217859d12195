/* SPDX-License-Identifier: MIT */
/*
 * Why something failed, in words, and whether it is news: where the kernel's word for it says
 * little, a closer look is taken here, and a file system that has stopped to take anything is not
 * named once for each of a million files. Internal to sync/.
 */
#pragma once

#include "sync/state.h"

#define TT_REASON_SIZE 1024

/* Puts the reason into `buffer` (TT_REASON_SIZE bytes) or returns the kernel's words. `name` in
 * `dir`, or NULL for the directory itself; what has that name at the destination is looked at, if
 * the error asks for that. Any thread. */
const char *tt_reason_text(const struct tt_dir *dir, const char *name, int error, char *buffer);

/* Whether an error in the directory is to be told. Those that say that a whole file system is gone
 * or read-only are, ten times in a run, and none of a volume that has been given up. Any thread. */
bool tt_reason_is_news(struct tt_engine *engine, const struct tt_dir *dir, int error);

/* A new file or directory could not be made, or get its name. After sixteen in a row on one volume,
 * with errors that are not the name's fault, it is given up, which is told once. Any thread. */
void tt_reason_refused(struct tt_engine *engine, const struct tt_dir *dir, int error);

/* One was made. */
void tt_reason_taken(const struct tt_dir *dir);

/* Whether the directory's volume has been given up: then it is not even tried. Counts an error that
 * is not told. */
bool tt_reason_gave_up(struct tt_engine *engine, const struct tt_dir *dir);

/* At the end: how many were not told. */
void tt_reason_finish(struct tt_engine *engine);
