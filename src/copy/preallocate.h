/* SPDX-License-Identifier: MIT */
/*
 * --preallocate: space for the whole length of a file, or for none of it: a disk that has not
 * enough is left as it was, since what is copied may have holes and fit all the same.
 *
 * Other files must not find the disk full meanwhile: one at a time asks what is free and takes it
 * (`lock`, NULL: nobody else does), and a file with holes, which can do without, leaves a part.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Before the content: allocates [from_bytes, size_bytes), of which the file has nothing yet. Its
 * length stays. `holes`: not all of it will be written. Returns 0 or a negative errno. */
int tt_preallocate_ahead(
	int fd, uint64_t from_bytes, uint64_t size_bytes, bool holes, pthread_mutex_t *lock);

/* After the content, in place, where the holes of the source have been punched into what was there:
 * every hole below `size_bytes` is filled with space that reads as zeros. If that fails, what is a
 * hole of the source behind `start_bytes` is one again. Moves the source's file offset. Returns 0
 * or a negative errno. */
int tt_preallocate_holes(
	int from_fd, int to_fd, uint64_t start_bytes, uint64_t size_bytes, pthread_mutex_t *lock);
