/* SPDX-License-Identifier: MIT */
/*
 * See turn.h.
 */
#include "sync/turn.h"

#include "sync/arrive.h"
#include "sync/volume.h"

void tt_turn_take(
	struct tt_turn *turn, struct tt_worker *worker, struct tt_volume *volume, uint64_t ino)
{
	*turn = (struct tt_turn){0};
	if (worker->has_turn || worker->engine->policy.cache.mode == TT_CACHE_KEEP
		|| volume->neutral.method == TT_RESIDENCY_NONE)
		return;
	bool taken = tt_neutral_turn_try(&volume->turns, &turn->turn, ino);

	if (!taken && worker->arriving)
		return;
	worker->has_turn = true;
	turn->volume = volume;
	turn->worker = worker;
	if (taken)
		return;
	tt_arrive_submit(worker);
	tt_neutral_turn_wait(&volume->turns, &turn->turn, ino);
}

void tt_turn_end(struct tt_turn *turn)
{
	if (!turn->volume)
		return;
	tt_neutral_turn_end(&turn->volume->turns, &turn->turn);
	turn->worker->has_turn = false;
}
