/* SPDX-License-Identifier: MIT */
/*
 * See pool.h.
 */
#include "copy/pool.h"

#include <assert.h>
#include <stdlib.h>

void tt_pool_init(struct tt_pool *pool)
{
	*pool = (struct tt_pool){0};
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->returned, NULL);
}

void tt_pool_deinit(struct tt_pool *pool)
{
	assert(pool->free_count == pool->made_count);
	for (unsigned i = 0; i < pool->free_count; i++)
		free(pool->free_buffers[i]);
	pthread_mutex_destroy(&pool->lock);
	pthread_cond_destroy(&pool->returned);
}

void *tt_pool_take(struct tt_pool *pool, bool wait)
{
	void *buffer = NULL;

	pthread_mutex_lock(&pool->lock);
	while (wait && pool->free_count == 0 && pool->made_count == TT_POOL_BUFFERS)
		pthread_cond_wait(&pool->returned, &pool->lock);
	if (pool->free_count > 0) {
		buffer = pool->free_buffers[--pool->free_count];
	} else if (pool->made_count < TT_POOL_BUFFERS) {
		buffer = aligned_alloc(4096, TT_POOL_BUFFER_BYTES);
		if (buffer)
			pool->made_count++;
	}
	pthread_mutex_unlock(&pool->lock);
	return buffer;
}

void tt_pool_give(struct tt_pool *pool, void *buffer)
{
	if (!buffer)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->free_buffers[pool->free_count++] = buffer;
	pthread_cond_signal(&pool->returned);
	pthread_mutex_unlock(&pool->lock);
}
