/* SPDX-License-Identifier: MIT */
/*
 * The shared pool of large buffers: 4 of 4 MiB, made when first wanted. With the workers' own small
 * ones it is the copy's whole memory (24 MiB).
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#define TT_POOL_BUFFER_BYTES (4u << 20)
#define TT_POOL_BUFFERS      4

struct tt_pool {
	pthread_mutex_t lock;
	pthread_cond_t returned;
	/* guarded by lock */
	void *free_buffers[TT_POOL_BUFFERS];
	unsigned free_count, made_count;
};

void tt_pool_init(struct tt_pool *pool);
void tt_pool_deinit(struct tt_pool *pool); /* asserts that everything came back */

/* A page-aligned buffer, or NULL if all are in use (or, with `wait`, only when there is no memory).
 * Any thread. */
void *tt_pool_take(struct tt_pool *pool, bool wait);
void tt_pool_give(struct tt_pool *pool, void *buffer); /* accepts NULL */
