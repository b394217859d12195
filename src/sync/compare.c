/* SPDX-License-Identifier: MIT */
/*
 * See compare.h.
 */
#include "sync/compare.h"

#include <errno.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "sync/turn.h"
#include "sync/volume.h"
#include "sys/fd.h"

/* A folio is dropped after the first RWF_DONTCACHE read that touches it, so pieces are as large as
 * those reads must be. */
#define COMPARE_PIECE_BYTES TT_POOL_BUFFER_BYTES

static int compare_digest(struct tt_engine *engine, struct tt_worker *worker,
	const struct tt_dir *dir, int dir_fd, const struct tt_entry *entry,
	struct tt_volume *volume, void *buffer, struct tt_hash_digest *ret_digest)
{
	struct tt_neutral_reader reader;
	struct tt_hash *hash;
	struct tt_turn turn;
	ssize_t got = 1;
	TT_FD_AUTO fd = tt_fd_open_read(dir_fd, entry->name);

	if (fd < 0)
		return fd;
	int r = tt_hash_new(&hash);

	if (r < 0)
		return r;
	tt_turn_take(&turn, worker, volume, entry->ino);
	tt_neutral_reader_begin(&reader, fd, entry->size_bytes, engine->policy.cache.mode,
		&volume->neutral, &worker->cache_stats);
	for (uint64_t offset = 0; got > 0 && !atomic_load(&engine->stop);
		offset += (uint64_t)(got > 0 ? got : 0)) {
		got = tt_neutral_reader_pread(&reader, buffer, COMPARE_PIECE_BYTES, offset);
		if (got > 0) {
			tt_hash_update(hash, buffer, (size_t)got);
			tt_neutral_reader_passed(&reader, offset + (uint64_t)got);
		}
	}
	tt_neutral_reader_end(&reader);
	tt_turn_end(&turn);
	if (entry->size_bytes > 0)
		tt_mechanism_use(&volume->uses, reader.mechanism);
	tt_volume_tell_no_direct(engine, volume, dir, entry->name, false, reader.refusal);
	tt_hash_digest(hash, ret_digest);
	tt_hash_free(hash);
	return got < 0 ? (int)got : 0;
}

void tt_compare_listing(struct tt_engine *engine, struct tt_worker *worker, struct tt_dir *dir)
{
	void *buffer = NULL;

	for (unsigned i = 0; i < dir->source.count && !atomic_load(&engine->stop); i++) {
		struct tt_entry *entry = &dir->source.entries[i];
		struct tt_hash_digest ours, theirs;

		if (!S_ISREG(entry->mode) || entry->twin == TT_ENTRY_NONE)
			continue;
		const struct tt_entry *twin = &dir->destination.entries[entry->twin];

		if (!S_ISREG(twin->mode) || twin->size_bytes != entry->size_bytes)
			continue;
		if (!buffer)
			buffer = tt_pool_take(&engine->pool, true);
		if (!buffer)
			return;
		if (compare_digest(engine, worker, dir, dir->source_fds[entry->layer], entry,
			    dir->from, buffer, &ours)
				== 0
			&& compare_digest(engine, worker, dir, dir->destination_fd, twin, dir->to,
				   buffer, &theirs)
				   == 0
			&& memcmp(&ours, &theirs, sizeof ours) == 0)
			entry->flags |= TT_ENTRY_SAME_DATA;
	}
	tt_pool_give(&engine->pool, buffer);
}
