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

/* Gives `to_fd`, which has its content and its length, the unwritten extents of `from_fd`, those
 * behind the end too. `before` is what fstat said of the source. Nothing is asked when its number
 * of blocks says that there can be none and `holes` are not known either. A file system that cannot
 * tell or cannot allocate is no error: the zeros are a hole then. Returns 0 or a negative errno of
 * writing (-ENOSPC). */
int tt_unwritten_copy(int from_fd, int to_fd, const struct stat *before, bool holes);
