/* SPDX-License-Identifier: MIT */
/*
 * The temporaries of dead runs, and those that only seem to be somebody's.
 *
 * A run that was killed a moment ago holds its locks a little longer: its threads are still on
 * their way out of the kernel, and requests that its io_uring had given to the disk keep the open
 * file, with the lock on it, until they are done (Linux 6.18: the ring goes in a work of the
 * kernel's own, io_ring_exit_work(), after the process has been waited for). So what is locked when
 * it is met is remembered and looked at again at the end of the run. It may be a live run's as
 * well, which nobody waits for: all of it is bounded.
 *
 * A thread on its way out may also be making one last temporary, after the next run has listed the
 * directory (seen 10 to 35 ms after that run had begun, Linux 6.18, busy machine). It does so where
 * there was something left to do, so where a run that has met temporaries has made something, it
 * looks for more.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tt_sweep;

/* Returns 0 or -ENOMEM. */
int tt_sweep_new(struct tt_sweep **ret_sweep);
void tt_sweep_free(struct tt_sweep *sweep); /* accepts NULL */

/* Removes the temporary `name` from the directory `dir_fd`, as tt_stage_sweep() does and with its
 * answers. One that is in use is remembered, up to some thousands: `path` is the directory's,
 * relative to `root_fd` and "" for that itself. Any thread. */
int tt_sweep_name(
	struct tt_sweep *sweep, int root_fd, const char *path, int dir_fd, const char *name);

/* Something was made in the directory `path`, relative to `root_fd`. Some hundreds are remembered,
 * which is more than a run is at work in. Any thread. */
void tt_sweep_note(struct tt_sweep *sweep, int root_fd, const char *path);

/* Looks again at what is remembered, and if there was any temporary, for more of them, until
 * nothing is left, but no longer than `patience_ns` and not after *stop is true (may be NULL): then
 * once. Returns how many are still in use. Paths are opened anew, links in them are not followed;
 * directories that have gone are no error. One thread, when no other uses it. */
unsigned tt_sweep_again(struct tt_sweep *sweep, uint64_t patience_ns, const _Atomic bool *stop);
