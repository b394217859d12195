/* SPDX-License-Identifier: MIT */
/*
 * Leave as found: the one place that decides which pages go and which stay.
 *
 * Source. A file is looked at in segments of 32 MiB. Each is looked at before read-ahead can reach
 *it (one whole segment ahead; the first two before the first read), and what was not resident then
 *is ours and is dropped behind the reader:
 *
 *	|  dropped  |  trailing window, 8 MiB  | reader ->   read-ahead, 8 to 16 MiB | looked at |
 *not looked at
 *
 * Found nothing: all of it is dropped. Found everything: left alone. Found some: a bit per page,
 *and each run of pages that was absent is dropped. Dirty or writeback pages in a range: somebody is
 *writing there, DONTNEED would flush his data: the range is cut smaller and smaller and only clean
 *parts go. May not know: read with RWF_DONTCACHE where the file system has it, else with O_DIRECT,
 *else leave.
 *
 * O_DIRECT reads bring nothing in and leave what is there. But they flush dirty pages of their
 *range (mm/filemap.c, kiocb_write_and_wait), so the reader goes on the ordinary way where there are
 *some.
 *
 * Windows end at folio edges: DONTNEED skips a folio that reaches past the range (mm/filemap.c,
 *find_lock_entries, Linux 5.12 and later), so a cut folio would stay.
 *
 * Destination. Dropped after its writeback. If the file that is replaced was resident, the same
 *offsets of the new one are resident afterwards.
 *
 * Not promised: pages that another process reads inside the trailing window while it is being
 *dropped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cache/mechanism.h"
#include "cache/policy.h"
#include "sys/residency.h"

/* What is known about the file system that a file is on. */
struct tt_neutral_fs {
	enum tt_residency_method method;
	_Atomic bool dontcache_read; /* RWF_DONTCACHE is worth trying; cleared by the reader that
					was refused */
	_Atomic bool direct_seen;    /* O_DIRECT was possible for some file here */
};

/* Counted per thread and added up at the end of the run. Pages. */
struct tt_neutral_stats {
	uint64_t found_resident; /* before we came */
	uint64_t dropped;
	uint64_t not_dropped; /* would not go when asked: mapped, or dirty */
	uint64_t left;        /* resident because of us after the last drop of their file; of those
				 that nobody may count it is not known: files_unknown */
	uint64_t kept_hot;    /* of replaced files, kept on purpose */
	uint64_t files_unknown; /* nobody could say what of them was resident: read without
				   RWF_DONTCACHE, replaced, or written and dropped unseen */
	uint64_t files_read_direct, files_written_direct; /* with O_DIRECT, wholly or in part */
	uint64_t drop_calls;                              /* of DONTNEED */
	uint64_t drop_ns;                                 /* time spent in them */
	uint64_t failed_drop_ns;                          /* the part of it that left pages */
	uint64_t patience_ns;                             /* waited for pages that would not go */
	uint64_t start_ns; /* of the run, CLOCK_MONOTONIC: dropping what will not go may cost at
			      most 5 % of it */
};

#define TT_NEUTRAL_SEGMENT_BYTES (UINT64_C(32) << 20)
#define TT_NEUTRAL_SEGMENT_WORDS 128 /* bits for 4 KiB pages */

enum tt_neutral_found {
	TT_NEUTRAL_FOUND_NOTHING, /* all pages that appear are ours */
	TT_NEUTRAL_FOUND_ALL,
	TT_NEUTRAL_FOUND_SOME,
	TT_NEUTRAL_FOUND_UNKNOWN, /* may not know */
};

struct tt_neutral_segment {
	uint64_t number; /* offset / TT_NEUTRAL_SEGMENT_BYTES */
	enum tt_neutral_found found;
	uint64_t bits[TT_NEUTRAL_SEGMENT_WORDS]; /* with FOUND_SOME */
};

struct tt_neutral_reader {
	int fd; /* borrowed */
	struct tt_neutral_fs *fs;
	struct tt_neutral_stats *stats;
	enum tt_cache_mode mode;
	uint64_t size_bytes;
	uint64_t start_bytes;   /* of the first segment */
	uint64_t looked_bytes;  /* segments below this offset have been looked at */
	uint64_t dropped_bytes; /* everything below is done with */
	uint64_t begin_bytes;   /* where the reading begins */
	uint64_t passed_bytes;  /* everything below has been read */
	unsigned facts;         /* TT_MECHANISM_*, as far as is known by now */
	bool active;            /* false: nothing to do for this file */
	bool unknown;
	bool is_direct;          /* O_DIRECT is on: see tt_neutral_reader_leave_direct() */
	bool was_direct;         /* ... or has been, for some of the file */
	struct tt_direct direct; /* its alignment */
	const struct tt_mechanism *mechanism; /* what this file was read with; NULL: not at all */
	const char *refusal; /* why O_DIRECT was wanted and was not used, or not to the end; or
				NULL */
	bool all_ours;       /* nothing was found in any segment so far */
	uint64_t left_pages; /* of ours, that would not go so far */
	struct tt_neutral_segment segments[3];
};

/* Before the first read of `fd`. `size_bytes` may be a hint. Descriptor, fs and stats are borrowed
 * until the end. Any thread, one at a time per reader. */
void tt_neutral_reader_begin(struct tt_neutral_reader *reader, int fd, uint64_t size_bytes,
	enum tt_cache_mode mode, struct tt_neutral_fs *fs, struct tt_neutral_stats *stats);

/* The same for a reader that begins at `start_bytes`: what is before the segment which holds that
 * byte is not looked at and not dropped. */
void tt_neutral_reader_begin_at(struct tt_neutral_reader *reader, int fd, uint64_t start_bytes,
	uint64_t size_bytes, enum tt_cache_mode mode, struct tt_neutral_fs *fs,
	struct tt_neutral_stats *stats);

/* RWF_* flags for reads of this file; with RWF_DONTCACHE reads must be of at least 4 MiB, aligned
 * to 2 MiB, or of the whole file (a folio is dropped after the first read that touches it, and read
 * again by the next). */
int tt_neutral_reader_flags(const struct tt_neutral_reader *reader);

/* A read with those flags said EOPNOTSUPP: not on this file system. The caller reads again without.
 */
void tt_neutral_reader_refused(struct tt_neutral_reader *reader);

/* While reader->is_direct, whoever reads by himself aligns buffer, offset and length to
 * reader->direct. He calls this when that is not possible (-EINVAL from the kernel included), and
 * reads on the ordinary way. `why` is for people, constant. */
void tt_neutral_reader_leave_direct(struct tt_neutral_reader *reader, const char *why);

/* Reads like pread(2), with the looks and flags that the file asks for. If `buffer` is aligned to
 * 4 KiB there must be room for `size` rounded up to 64 KiB, for O_DIRECT. Returns bytes or a
 * negative errno. */
ssize_t tt_neutral_reader_pread(
	struct tt_neutral_reader *reader, void *buffer, size_t size, uint64_t offset);

/* Before a read at `offset`: looks at what read-ahead may reach from there. What lies a segment or
 * more below has been read: after a long hole it is dropped here. */
void tt_neutral_reader_ahead(struct tt_neutral_reader *reader, uint64_t offset);

/* Everything below `offset` has been read: drops behind, at folio edges, in windows of 8 MiB. */
void tt_neutral_reader_passed(struct tt_neutral_reader *reader, uint64_t offset);

/* In place of the reads: nothing of the file was or will be read. */
void tt_neutral_reader_untouched(struct tt_neutral_reader *reader);

/* After the last read. Drops the rest and counts what is left. */
void tt_neutral_reader_end(struct tt_neutral_reader *reader);

/* How a run would read this file of `size_bytes`, if nobody is writing to it; for --probe. The same
 * choice as a reader's, made without reading. `askable`: residency is told. Remembers in `fs` if
 * RWF_DONTCACHE is refused. */
const struct tt_mechanism *tt_neutral_foresee(
	int fd, uint64_t size_bytes, bool askable, struct tt_neutral_fs *fs);

/* Which pages of a file that is about to be replaced were resident. */
struct tt_neutral_old {
	uint64_t pages;          /* looked at: of the old file's size */
	uint64_t resident_pages; /* 0: nothing to keep, bits is NULL */
	uint64_t *bits;          /* owned; NULL when all or none were resident */
};

/* Looks at the open old file. Not knowing counts as not resident. Files above 64 GiB are not looked
 * at page by page: they count as not resident unless they are wholly so. Any thread. Returns 0 or
 * -ENOMEM. */
int tt_neutral_old_look(struct tt_neutral_old *old, int fd, uint64_t size_bytes,
	const struct tt_neutral_fs *fs, struct tt_neutral_stats *stats);
void tt_neutral_old_deinit(struct tt_neutral_old *old);

/* After writeback of the written file `fd` is done: drops its pages except those that `old` (may be
 * NULL) had, within what `keep_budget_pages` still allows (shared by all threads, counted down; may
 * be NULL: no limit). Counts what is left. Any thread. */
void tt_neutral_written(int fd, uint64_t size_bytes, const struct tt_neutral_old *old,
	const struct tt_neutral_fs *fs, _Atomic int64_t *keep_budget_pages,
	struct tt_neutral_stats *stats);

/* Whether that page was resident. */
static inline bool tt_neutral_old_had(const struct tt_neutral_old *old, uint64_t page)
{
	if (page >= old->pages || old->resident_pages == 0)
		return false;
	return !old->bits || (old->bits[page / 64] >> (page % 64) & 1);
}

/* For a file that is written in place, while it is being written: drops the pages of the clean
 * window [from, to) that `old` did not have. Counts nothing, looks at nothing. Any thread. */
void tt_neutral_updated_window(
	int fd, uint64_t from_bytes, uint64_t to_bytes, const struct tt_neutral_old *old);

/* After writeback of a file that was written in place from `from_bytes` on: of these pages those
 * that `old` had stay, or are read back if the writing took them away (holes), and the others go.
 * Counts what is left. Any thread. */
void tt_neutral_updated(int fd, uint64_t from_bytes, uint64_t size_bytes,
	const struct tt_neutral_old *old, const struct tt_neutral_fs *fs,
	struct tt_neutral_stats *stats);

/* Adds `from` to `to`. */
void tt_neutral_stats_add(struct tt_neutral_stats *to, const struct tt_neutral_stats *from);
