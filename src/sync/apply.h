/* SPDX-License-Identifier: MIT */
/*
 * Carries out what was planned, in workers: content, links, nodes, attributes. New files go through
 * a batch (arrive.h) to their final names. Internal to sync/.
 */
#pragma once

#include "sync/state.h"

/* Does all tasks of the job and frees it. */
void tt_apply_job(struct tt_worker *worker, struct tt_job *job);

/* Whether what has the task's name, or the directory, is immutable or append-only: no temporary can
 * get the name then, and in such a directory it could not even be removed again. */
bool tt_apply_is_pinned(const struct tt_dir *dir, const struct tt_task *task);

/* One task that was waiting for the leader of its hard-link group, which is settled now. */
struct tt_follower {
	struct tt_dir *dir;
	struct tt_task task;
};

/* Settles a group and serves the names that wait for it: they are linked, or the next one leads.
 * Any worker, or whoever plans when the leader needs no copy: there are mostly no followers then.
 */
void tt_apply_settle_group(struct tt_worker *worker, struct tt_linkset_group *group, bool arrived);
