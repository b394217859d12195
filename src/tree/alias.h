/* SPDX-License-Identifier: MIT */
/*
 * Names that are one to the file system although they are spelled differently: FILE and file where
 * case does not count, or two forms of one accented letter. A copy of both would leave one of them,
 * with nobody told.
 */
#pragma once

#define TT_ALIAS_NAME_SIZE 256 /* NAME_MAX + 1 */

/* Looks who has `name` in the directory, which has answered that somebody does. Returns 0 if it is
 * there with this spelling, 1 if the directory has it under another (`ret_other`,
 * TT_ALIAS_NAME_SIZE bytes, gets that; "" if it cannot be found out), -ENOENT if nobody has it any
 * more, or another negative errno. May read the whole directory. Any thread. */
int tt_alias_look(int dir_fd, const char *name, char *ret_other);
