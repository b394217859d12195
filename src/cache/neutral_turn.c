/* SPDX-License-Identifier: MIT */
/*
 * See neutral_turn.h. There are never more turns than workers: a list is enough.
 */
#include "cache/neutral_turn.h"

#include <assert.h>
#include <stddef.h>

void tt_neutral_turns_init(struct tt_neutral_turns *turns)
{
	*turns = (struct tt_neutral_turns){0};
	pthread_mutex_init(&turns->lock, NULL);
	pthread_cond_init(&turns->ended, NULL);
}

void tt_neutral_turns_deinit(struct tt_neutral_turns *turns)
{
	assert(!turns->first);
	pthread_mutex_destroy(&turns->lock);
	pthread_cond_destroy(&turns->ended);
}

static bool turn_take(struct tt_neutral_turns *turns, struct tt_neutral_turn *turn, uint64_t ino)
{
	for (const struct tt_neutral_turn *other = turns->first; other; other = other->next) {
		if (other->ino == ino)
			return false;
	}
	turn->ino = ino;
	turn->next = turns->first;
	turns->first = turn;
	return true;
}

bool tt_neutral_turn_try(struct tt_neutral_turns *turns, struct tt_neutral_turn *turn, uint64_t ino)
{
	pthread_mutex_lock(&turns->lock);
	bool taken = turn_take(turns, turn, ino);

	pthread_mutex_unlock(&turns->lock);
	return taken;
}

void tt_neutral_turn_wait(
	struct tt_neutral_turns *turns, struct tt_neutral_turn *turn, uint64_t ino)
{
	pthread_mutex_lock(&turns->lock);
	turns->waiters++;
	while (!turn_take(turns, turn, ino))
		pthread_cond_wait(&turns->ended, &turns->lock);
	turns->waiters--;
	pthread_mutex_unlock(&turns->lock);
}

void tt_neutral_turn_end(struct tt_neutral_turns *turns, struct tt_neutral_turn *turn)
{
	pthread_mutex_lock(&turns->lock);
	struct tt_neutral_turn **at = &turns->first;

	while (*at != turn)
		at = &(*at)->next;
	*at = turn->next;
	if (turns->waiters > 0)
		pthread_cond_broadcast(&turns->ended);
	pthread_mutex_unlock(&turns->lock);
}
