/* SPDX-License-Identifier: MIT */
/*
 * XXH3 from libxxhash; nobody else includes its header.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* 64-bit XXH3 of a buffer, for tables in memory. Any thread. */
uint64_t tt_hash_64(const void *data, size_t size);

/* XXH3-128 of a stream. The digest is in the canonical (big-endian) form. */
struct tt_hash_digest {
	uint8_t bytes[16];
};

struct tt_hash;

/* Returns 0 or -ENOMEM. One thread at a time per object. */
int tt_hash_new(struct tt_hash **ret_hash);
void tt_hash_reset(struct tt_hash *hash);
void tt_hash_update(struct tt_hash *hash, const void *data, size_t size);
void tt_hash_digest(const struct tt_hash *hash, struct tt_hash_digest *ret_digest);
void tt_hash_free(struct tt_hash *hash); /* accepts NULL */
