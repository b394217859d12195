/* SPDX-License-Identifier: MIT */
/*
 * Atomic arrival: content is written into a temporary beside the final name, and the name changes
 * hands in one rename.
 *
 * A temporary is called `.NAME.tt-XXXXXX` (NAME cut so that the whole fits NAME_MAX; X from
 * A-Za-z0-9), is created with O_EXCL and mode 0600, and is locked (flock, exclusive) as long as the
 * run that made it lives: the kernel drops the lock with the last descriptor, kill -9 included. A
 * later run that meets such a name in a directory that it writes to removes it if it can take the
 * lock, and only then.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define TT_STAGE_NAME_SIZE 256 /* NAME_MAX + 1 */

struct stat;

/* The permission bits that a temporary may have from the start: those of the final `mode` where
 * they tell its group nothing that they do not tell everybody, else the owner's only. The others
 * come with the rest of the attributes, when owner and group are right. */
mode_t tt_stage_early_mode(mode_t mode);

/* Creates and locks a temporary for `name` in `dir_fd`, with the permission bits of
 * tt_stage_early_mode(). `ret_temp` (TT_STAGE_NAME_SIZE bytes) gets its name, `ret_st` what fstat
 * says of it. The caller owns *ret_fd (O_RDWR | O_CLOEXEC). Tries again on a collision. Any thread.
 * Returns 0 or a negative errno. */
int tt_stage_create(int dir_fd, const char *name, mode_t mode, char *ret_temp, int *ret_fd,
	struct stat *ret_st);

/* A temporary name for something that is not opened (symbolic link, device). Not created. Random;
 * the caller tries again on EEXIST. */
void tt_stage_name(const char *name, char *ret_temp);

/* Gives the temporary its final name, replacing what is there. With `is_new` nobody had the name
 * when the directory was listed: what has it now is replaced only if it is spelled like this, else
 * -ENOTUNIQ (see alias.h). Returns 0 or a negative errno; the temporary is still there after a
 * failure. Any thread. */
int tt_stage_arrive(int dir_fd, const char *temp, const char *name, bool is_new);

/* The same for a temporary that is a hard link: if `name` is a link to the same inode, rename does
 * nothing and says 0 (rename(2)); the temporary is removed then. */
int tt_stage_arrive_link(int dir_fd, const char *temp, const char *name, bool is_new);

/* Whether `name` has the form of a temporary. Any thread. */
bool tt_stage_is_temporary(const char *name);

/* Removes a temporary of a dead run. Only a regular file or symbolic link or other non-directory of
 * that form; a regular file only if its lock can be taken (it is looked at again after locking:
 * same inode under the name). The directory keeps its time, if that is ours to set: of what belongs
 * in it nothing has changed, and it may be that nobody else sets it. Returns 0 if it was removed or
 * is gone, 1 if it is in use, or a negative errno. Any thread. */
int tt_stage_sweep(int dir_fd, const char *name);
