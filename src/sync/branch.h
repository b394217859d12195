/* SPDX-License-Identifier: MIT */
/*
 * The plan walks both trees in rsync's order and sleeps while the disk that it writes to has enough
 * to do. Where the destination is made of several disks, that would hold up all of them at the pace
 * of the slowest: so what lies on another disk than the directory above it is a branch, walked by a
 * thread of its own.
 *
 *	told first                            told last
 *	D and what is before K  <-  branch K  <-  the rest of D
 *
 * One plans at a time: it has the turn (a mutex), and gives it up when it sleeps or waits for a
 * disk, so everything that belongs to "whoever plans" needs no other lock. What is told keeps
 * rsync's order: only the first branch that is not complete tells at once, the others' events are
 * kept, up to a number of bytes, then they wait.
 *
 * With -H the order of names decides which of them leads. No link reaches from one mount to
 * another, so names below different mount points are groups of their own, and each group is met in
 * the order of one branch.
 *
 * No branches under -n: nothing is written, so the plan never sleeps for a disk. Internal to sync/.
 */
#pragma once

#include "sync/state.h"

struct tt_branch;

/* The engine thread takes the turn, before anything is planned; and gives it back when all is. */
int tt_branch_begin(struct tt_engine *engine);
void tt_branch_end(struct tt_engine *engine);

/* Around what may have to wait for a disk: others may plan meanwhile. Nothing that belongs to
 * whoever plans is touched in between. */
struct tt_branch *tt_branch_pause(struct tt_engine *engine);
void tt_branch_resume(struct tt_engine *engine, struct tt_branch *mine);

/* A worker of this branch's own, without a thread: for what the plan does itself. */
struct tt_worker *tt_branch_worker(const struct tt_engine *engine);

/* Whether another branch is possible. */
bool tt_branch_may_fork(const struct tt_engine *engine);

/* Has `dir` walked by `walk` in a thread of its own. What is told there comes behind what `behind`
 * tells (NULL: the present branch), and before what is told after tt_branch_pass(). NULL: it could
 * not be; walk it in its turn. */
struct tt_branch *tt_branch_fork(struct tt_engine *engine, struct tt_branch *behind,
	struct tt_dir *dir, void (*walk)(struct tt_engine *, struct tt_dir *));

/* What comes behind the fork. */
struct tt_branch *tt_branch_rest(const struct tt_branch *fork);

/* The walk has come to the place of `fork`: from now on it tells what comes behind. */
void tt_branch_pass(struct tt_engine *engine, struct tt_branch *fork);

/* Tells the event now or in its turn. */
void tt_branch_tell(struct tt_engine *engine, const struct tt_event *event);

/* Sleeps until all that comes before has been planned. */
void tt_branch_await_first(struct tt_engine *engine);

/* The walk over the whole tree has ended: waits for the threads of its branches. */
void tt_branch_join(struct tt_engine *engine);
