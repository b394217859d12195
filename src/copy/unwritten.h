/* SPDX-License-Identifier: MIT */
/*
 * Space that a source has preallocated and not written: the copy gets the same by fallocate(2)
 * instead of by zeros that somebody would have to write. Content never depends on it: data is found
 * by SEEK_DATA, which knows what is dirty in the page cache, and allocating what has data already
 * changes nothing.
 */
#pragma once

#include <stdbool.h>

struct stat;

/* Whether there are more blocks than the length needs: some lie behind the end, or hold the map of
 * a fragmented file. */
bool tt_unwritten_has_surplus(const struct stat *st);

/* The same, and the file system will not take them back of its own accord. `st`: of `fd`. */
bool tt_unwritten_is_behind_end(int fd, const struct stat *st);

/* Gives `to_fd`, which has its content and its length and nothing behind it, the unwritten extents
 * of `from_fd`, those behind the end too. `before` is what fstat said of the source. Nothing is
 * asked when its number of blocks says that there can be none and `holes` are not known either. A
 * file system that cannot tell or cannot allocate is no error: the zeros are a hole then. Returns 0
 * or a negative errno of writing (-ENOSPC). */
int tt_unwritten_copy(int from_fd, int to_fd, const struct stat *before, bool holes);
