/* SPDX-License-Identifier: MIT */
/*
 * XXH3 behind two small calls. The state of a stream is a heap object because libxxhash wants it
 * aligned to 64 bytes, which XXH3_createState() takes care of.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/hash.h"

struct tt_hash {
	XXH3_state_t *state;
};

_Static_assert(sizeof(XXH128_canonical_t) == sizeof(struct tt_hash_digest),
	"the canonical form is the digest");

uint64_t tt_hash_64(const void *data, size_t size)
{
	return XXH3_64bits(data, size);
}

int tt_hash_new(struct tt_hash **ret_hash)
{
	struct tt_hash *hash = calloc(1, sizeof(*hash));

	if (!hash)
		return -ENOMEM;
	hash->state = XXH3_createState();
	if (!hash->state) {
		free(hash);
		return -ENOMEM;
	}
	tt_hash_reset(hash);
	*ret_hash = hash;
	return 0;
}

/* The results of these three are errors only for a null state. */
void tt_hash_reset(struct tt_hash *hash)
{
	(void)XXH3_128bits_reset(hash->state);
}

void tt_hash_update(struct tt_hash *hash, const void *data, size_t size)
{
	(void)XXH3_128bits_update(hash->state, data, size);
}

void tt_hash_digest(const struct tt_hash *hash, struct tt_hash_digest *ret_digest)
{
	XXH128_canonical_t canonical;

	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(hash->state));
	memcpy(ret_digest->bytes, canonical.digest, sizeof(ret_digest->bytes));
}

void tt_hash_free(struct tt_hash *hash)
{
	if (!hash)
		return;
	(void)XXH3_freeState(hash->state);
	free(hash);
}
