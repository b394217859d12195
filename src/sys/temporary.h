/* SPDX-License-Identifier: MIT */
/*
 * A file for an experiment, which nobody sees and which is gone with its descriptor.
 *
 * Unnamed (O_TMPFILE) where the file system can; elsewhere (FAT, FUSE, NFS) it has a name for the
 * moment between two system calls. A run that is killed in that moment leaves the name; it has the
 * form of all temporaries, so that the next run into the directory removes it.
 */
#pragma once

#include "sys/tempname.h"

/* Returns the descriptor (O_RDWR | O_CLOEXEC, locked with flock), or a negative errno: -ENOSPC also
 * if less than 64 MiB are free, so that no experiment takes the last of a disk. *ret_error (may be
 * NULL) is why there are no unnamed files here, or 0. Any thread. */
int tt_temporary_open(int dir_fd, int *ret_error);

/* A name for an experiment about names. Random. */
void tt_temporary_name(char ret_name[TT_TEMPNAME_SIZE]);
