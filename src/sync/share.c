/* SPDX-License-Identifier: MIT */
/*
 * See share.h.
 */
#include "sync/share.h"

enum {
	SHARE_PIECE = 256 /* a few hundred microseconds of statx: long beside a wake-up */
};

bool tt_share_help(struct tt_engine *engine)
{
	struct tt_share *share = engine->shares;

	if (!share)
		return false;
	unsigned from = share->at;
	unsigned to = share->end - from > SHARE_PIECE ? from + SHARE_PIECE : share->end;

	share->at = to;
	share->busy++;
	if (to == share->end) /* nobody else needs to look at it */
		engine->shares = share->next;
	else
		tt_engine_wake_workers(engine, 1);
	pthread_mutex_unlock(&engine->lock);
	share->run(share->context, from, to);
	pthread_mutex_lock(&engine->lock);
	if (--share->busy == 0 && share->at == share->end)
		pthread_cond_broadcast(&engine->share_ready);
	return true;
}

void tt_share_run(struct tt_engine *engine, unsigned from, unsigned to,
	void (*run)(void *context, unsigned from, unsigned to), void *context)
{
	struct tt_share share = {.run = run, .context = context, .at = from, .end = to};

	if (to - from <= 2 * SHARE_PIECE) {
		run(context, from, to);
		return;
	}
	pthread_mutex_lock(&engine->lock);
	share.next = engine->shares;
	engine->shares = &share;
	/* The newest is the first in the list: mostly its owner works on its own. */
	while (share.at < share.end)
		tt_share_help(engine);
	while (share.busy > 0)
		pthread_cond_wait(&engine->share_ready, &engine->lock);
	pthread_mutex_unlock(&engine->lock);
}
