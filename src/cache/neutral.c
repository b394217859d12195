/* SPDX-License-Identifier: MIT */
/*
 * The source's side of leave-as-found. See neutral.h; the destination's side is in
 * neutral_written.c.
 */
#include "cache/neutral.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cache/neutral_drop.h"
#include "sys/fd.h"

#define NEUTRAL_WINDOW_BYTES (UINT64_C(8) << 20)
#define NEUTRAL_DIRECT_BYTES (UINT64_C(4) << 20) /* no request is longer */

enum {
	NEUTRAL_PAUSE_NS = 5000000, /* for read-ahead that is in flight to end */
	NEUTRAL_MOST_PAUSES = 20,
};

static uint64_t neutral_pages(uint64_t bytes)
{
	const uint64_t page = tt_residency_page_bytes();

	return (bytes + page - 1) / page;
}

static struct tt_neutral_segment *neutral_segment(struct tt_neutral_reader *reader, uint64_t number)
{
	return &reader->segments[number % 3];
}

/* Looks at one segment. Whatever cannot be found out counts as somebody else's. */
static void neutral_look(struct tt_neutral_reader *reader, uint64_t number)
{
	struct tt_neutral_segment *segment = neutral_segment(reader, number);
	uint64_t offset = number * TT_NEUTRAL_SEGMENT_BYTES;
	uint64_t bytes = reader->size_bytes > offset ? reader->size_bytes - offset : 0;
	struct tt_residency count;

	if (bytes > TT_NEUTRAL_SEGMENT_BYTES)
		bytes = TT_NEUTRAL_SEGMENT_BYTES;
	segment->number = number;
	segment->found = TT_NEUTRAL_FOUND_NOTHING;
	if (bytes == 0)
		return;
	int r = tt_residency_count(reader->fd, reader->fs->method, offset, bytes, &count);

	if (r < 0) {
		segment->found = TT_NEUTRAL_FOUND_UNKNOWN;
		reader->unknown = true;
		reader->all_ours = false;
		return;
	}
	reader->stats->found_resident += count.resident_pages;
	if (reader->mode == TT_CACHE_DROP || count.resident_pages == 0)
		return;
	reader->all_ours = false;
	if (count.resident_pages >= neutral_pages(bytes)) {
		segment->found = TT_NEUTRAL_FOUND_ALL;
		return;
	}
	segment->found = TT_NEUTRAL_FOUND_SOME;
	if (tt_residency_map(reader->fd, offset, neutral_pages(bytes), segment->bits) < 0)
		segment->found = TT_NEUTRAL_FOUND_ALL;
}

/* The mechanism for this file, as far as is known by now. What has been read with O_DIRECT in part
 * counts as that. */
static enum tt_mechanism_kind neutral_choose(struct tt_neutral_reader *reader)
{
	if (reader->unknown)
		reader->facts &= ~(unsigned)TT_MECHANISM_IS_ASKABLE;
	if (!reader->fs->dontcache_read)
		reader->facts &= ~(unsigned)TT_MECHANISM_HAS_DONTCACHE_READ;
	const struct tt_mechanism *mechanism = tt_mechanism_choose(
		TT_MECHANISM_READ, tt_mechanism_size_of(reader->size_bytes), reader->facts);

	if (!reader->was_direct)
		reader->mechanism = mechanism;
	return mechanism->kind;
}

/* Finds out whether O_DIRECT is possible. */
static bool neutral_ask_alignment(struct tt_neutral_reader *reader)
{
	tt_direct_ask(reader->fd, &reader->direct);
	if (reader->direct.offset_bytes == 0)
		tt_direct_guess(reader->fd, &reader->direct);
	if (reader->direct.offset_bytes == 0)
		return false;
	reader->facts |= TT_MECHANISM_HAS_DIRECT_READ;
	return true;
}

/* The same, and whether it would flush what somebody writes. */
static void neutral_ask_direct(struct tt_neutral_reader *reader)
{
	struct stat st;

	if (reader->refusal) /* it was tried */
		return;
	if (!neutral_ask_alignment(reader))
		return;
	reader->fs->direct_seen = true;
	if (fstat(reader->fd, &st) < 0
		|| tt_residency_may_be_dirty(reader->fd, reader->fs->method, &st, 0, 0))
		reader->facts |= TT_MECHANISM_IS_DIRTY;
}

/* Uses O_DIRECT if the table says so, and else says why not if it was asked for. */
static void neutral_enter_direct(struct tt_neutral_reader *reader)
{
	const unsigned asked = reader->facts;

	if (neutral_choose(reader) == TT_MECHANISM_DIRECT) {
		if (tt_direct_set(reader->fd, true) == 0) {
			reader->is_direct = reader->was_direct = true;
			reader->stats->files_read_direct++;
			return;
		}
		reader->facts &= ~(unsigned)TT_MECHANISM_HAS_DIRECT_READ;
		(void)neutral_choose(reader);
	}
	if (!(reader->facts & TT_MECHANISM_WANTS_DIRECT))
		return;
	if (!(reader->facts & TT_MECHANISM_HAS_CACHE))
		reader->refusal = "it has no page cache of its own";
	else if (!(asked & TT_MECHANISM_HAS_DIRECT_READ))
		reader->refusal = "it does not say how requests must be aligned";
	else if (reader->facts & TT_MECHANISM_IS_DIRTY)
		reader->refusal = "pages of it may be dirty, and would be flushed";
	else
		reader->refusal = "the kernel refuses it";
}

void tt_neutral_reader_leave_direct(struct tt_neutral_reader *reader, const char *why)
{
	if (!reader->is_direct)
		return;
	reader->is_direct = false;
	reader->facts &= ~(unsigned)TT_MECHANISM_HAS_DIRECT_READ;
	reader->refusal = why;
	/* Refused before anything came that way. */
	if (reader->passed_bytes == reader->begin_bytes) {
		reader->was_direct = false;
		reader->stats->files_read_direct--;
		(void)neutral_choose(reader);
	}
	/* What is known about the segments ahead was found out all along: it serves from here on.
	 */
	(void)tt_direct_set(reader->fd, false);
}

/* Just before a read, since a segment is looked at long before. Only the pages of the request are
 * flushed by it. */
static void neutral_watch_dirty(struct tt_neutral_reader *reader, uint64_t offset)
{
	struct tt_residency count;

	if (reader->is_direct && !reader->unknown && reader->fs->method == TT_RESIDENCY_CACHESTAT
		&& tt_residency_count(
			   reader->fd, reader->fs->method, offset, NEUTRAL_DIRECT_BYTES, &count)
			   == 0
		&& count.dirty_pages + count.writeback_pages > 0)
		tt_neutral_reader_leave_direct(
			reader, "pages of it have become dirty, and would be flushed");
}

int tt_neutral_reader_flags(const struct tt_neutral_reader *reader)
{
	return reader->active && reader->unknown && !reader->is_direct ? TT_FD_DONTCACHE : 0;
}

/* Nobody may look: what is to be done then, or nothing but to count it. */
static void neutral_settle_unknown(struct tt_neutral_reader *reader)
{
	if (reader->is_direct || !reader->active)
		return;
	if (neutral_choose(reader) != TT_MECHANISM_STAYS)
		return;
	neutral_ask_direct(reader);
	neutral_enter_direct(reader);
	if (reader->is_direct)
		return;
	reader->active = false;
	reader->stats->files_unknown++;
}

void tt_neutral_reader_refused(struct tt_neutral_reader *reader)
{
	reader->fs->dontcache_read = false;
	neutral_settle_unknown(reader);
}

static bool neutral_bit(const struct tt_neutral_segment *segment, uint64_t page)
{
	return segment->bits[page / 64] >> (page % 64) & 1;
}

static void neutral_drop(struct tt_neutral_reader *reader, uint64_t from, uint64_t to)
{
	reader->left_pages +=
		tt_neutral_drop(reader->fd, reader->fs->method, from, to, reader->stats);
}

/* Drops the runs of absent pages of one segment between two page numbers within it. */
static void neutral_drop_absent(struct tt_neutral_reader *reader,
	const struct tt_neutral_segment *segment, uint64_t from, uint64_t to)
{
	const uint64_t page = tt_residency_page_bytes();
	const uint64_t base = segment->number * TT_NEUTRAL_SEGMENT_BYTES;

	while (from < to) {
		while (from < to && neutral_bit(segment, from))
			from++;
		uint64_t run = from;

		while (from < to && !neutral_bit(segment, from))
			from++;
		if (from > run)
			neutral_drop(reader, base + run * page, base + from * page);
	}
}

/* Drops [from, to), which lies in one segment. */
static void neutral_drop_part(struct tt_neutral_reader *reader, uint64_t from, uint64_t to)
{
	const uint64_t page = tt_residency_page_bytes();
	const struct tt_neutral_segment *segment =
		neutral_segment(reader, from / TT_NEUTRAL_SEGMENT_BYTES);

	/* In a hole nothing was read, so nothing is ours. */
	if (segment->number != from / TT_NEUTRAL_SEGMENT_BYTES)
		return;
	switch (segment->found) {
	case TT_NEUTRAL_FOUND_NOTHING:
		neutral_drop(reader, from, to);
		break;
	case TT_NEUTRAL_FOUND_SOME:
		neutral_drop_absent(reader, segment, (from % TT_NEUTRAL_SEGMENT_BYTES) / page,
			(from % TT_NEUTRAL_SEGMENT_BYTES) / page + neutral_pages(to - from));
		break;
	case TT_NEUTRAL_FOUND_ALL:
	case TT_NEUTRAL_FOUND_UNKNOWN:
		break;
	}
}

/* Drops up to `to`, segment by segment. */
static void neutral_drop_until(struct tt_neutral_reader *reader, uint64_t to)
{
	while (reader->dropped_bytes < to) {
		uint64_t edge = (reader->dropped_bytes / TT_NEUTRAL_SEGMENT_BYTES + 1)
				* TT_NEUTRAL_SEGMENT_BYTES;

		if (edge > to || reader->mode == TT_CACHE_DROP)
			edge = to;
		if (reader->left_pages > 0 && tt_neutral_drop_too_dear(reader->stats))
			; /* it stays, and is counted */
		else if (reader->mode == TT_CACHE_DROP)
			neutral_drop(reader, reader->dropped_bytes, edge);
		else
			neutral_drop_part(reader, reader->dropped_bytes, edge);
		reader->dropped_bytes = edge;
	}
}

/* Before the first look; a source is never tried. */
static unsigned neutral_facts(enum tt_cache_mode mode, const struct tt_neutral_fs *fs)
{
	return TT_MECHANISM_IS_ASKABLE
	       | tt_mechanism_facts(mode, fs->method, &(const struct tt_probe){0});
}

void tt_neutral_reader_begin(struct tt_neutral_reader *reader, int fd, uint64_t size_bytes,
	enum tt_cache_mode mode, struct tt_neutral_fs *fs, struct tt_neutral_stats *stats)
{
	tt_neutral_reader_begin_at(reader, fd, 0, size_bytes, mode, fs, stats);
}

void tt_neutral_reader_begin_at(struct tt_neutral_reader *reader, int fd, uint64_t start_bytes,
	uint64_t size_bytes, enum tt_cache_mode mode, struct tt_neutral_fs *fs,
	struct tt_neutral_stats *stats)
{
	const uint64_t edge = start_bytes / TT_NEUTRAL_SEGMENT_BYTES * TT_NEUTRAL_SEGMENT_BYTES;

	reader->fd = fd;
	reader->fs = fs;
	reader->stats = stats;
	reader->mode = mode;
	reader->size_bytes = size_bytes;
	reader->start_bytes = edge;
	reader->looked_bytes = edge;
	reader->dropped_bytes = edge;
	reader->facts = neutral_facts(mode, fs);
	reader->unknown = false;
	reader->was_direct = false;
	reader->active = neutral_choose(reader) != TT_MECHANISM_ORDINARY && size_bytes > 0;
	reader->all_ours = true;
	reader->left_pages = 0;
	reader->begin_bytes = reader->passed_bytes = start_bytes;
	for (unsigned i = 0; i < 3; i++)
		reader->segments[i].number = UINT64_MAX;
	reader->is_direct = false;
	reader->refusal = NULL;
	if (mode == TT_CACHE_DIRECT && size_bytes > 0) {
		if (reader->active)
			neutral_ask_direct(reader);
		neutral_enter_direct(reader);
	}
	tt_neutral_reader_ahead(reader, start_bytes);
}

void tt_neutral_reader_untouched(struct tt_neutral_reader *reader)
{
	if (reader->unknown && !reader->active && reader->mode != TT_CACHE_KEEP)
		reader->stats->files_unknown--;
	if (reader->was_direct)
		reader->stats->files_read_direct--;
	reader->mechanism = NULL;
	reader->refusal = NULL;
	if (reader->mode != TT_CACHE_DROP)
		reader->active = false;
}

/* Over a long hole: nothing in it is read, so nothing in it need be looked at. */
static void neutral_jump(struct tt_neutral_reader *reader, uint64_t offset)
{
	const uint64_t first = offset / TT_NEUTRAL_SEGMENT_BYTES * TT_NEUTRAL_SEGMENT_BYTES;

	if (first <= reader->looked_bytes + TT_NEUTRAL_SEGMENT_BYTES)
		return;
	neutral_drop_until(reader, reader->mode == TT_CACHE_DROP ? first : reader->looked_bytes);
	reader->looked_bytes = reader->dropped_bytes = first;
	reader->all_ours = false;
}

void tt_neutral_reader_ahead(struct tt_neutral_reader *reader, uint64_t offset)
{
	if (!reader->active)
		return;
	if (!reader->unknown)
		neutral_jump(reader, offset);
	/* The segment that the reader is in, and the next: read-ahead is at most 16 MiB ahead. */
	uint64_t until = (offset / TT_NEUTRAL_SEGMENT_BYTES + 2) * TT_NEUTRAL_SEGMENT_BYTES;

	while (reader->looked_bytes < until && reader->looked_bytes < reader->size_bytes
		&& !reader->unknown) {
		/* Only after a hole was skipped: what is known about the segment that makes room is
		 * used first. */
		if (reader->looked_bytes >= reader->start_bytes + 3 * TT_NEUTRAL_SEGMENT_BYTES)
			neutral_drop_until(
				reader, reader->looked_bytes - 2 * TT_NEUTRAL_SEGMENT_BYTES);
		neutral_look(reader, reader->looked_bytes / TT_NEUTRAL_SEGMENT_BYTES);
		reader->looked_bytes += TT_NEUTRAL_SEGMENT_BYTES;
	}
	if (reader->unknown)
		neutral_settle_unknown(reader);
	neutral_watch_dirty(reader, offset);
}

/* The length is rounded up: behind the end there is nothing to come. */
static ssize_t neutral_pread_direct(
	struct tt_neutral_reader *reader, void *buffer, size_t size, uint64_t offset)
{
	const size_t align = reader->direct.offset_bytes;
	const size_t rounded = (size + align - 1) / align * align;
	struct stat st;

	if (!tt_direct_fits(&reader->direct, buffer, offset, rounded)) {
		/* Behind a short read, which there is at the end of the file only. */
		if (fstat(reader->fd, &st) == 0 && offset >= (uint64_t)st.st_size)
			return 0;
		return -EINVAL;
	}
	tt_direct_touch(buffer, rounded);
	ssize_t got = tt_fd_pread(reader->fd, buffer, rounded, offset, 0);

	return got > (ssize_t)size ? (ssize_t)size : got;
}

ssize_t tt_neutral_reader_pread(
	struct tt_neutral_reader *reader, void *buffer, size_t size, uint64_t offset)
{
	tt_neutral_reader_ahead(reader, offset);
	if (!reader->is_direct) {
		int flags = tt_neutral_reader_flags(reader);
		ssize_t got = tt_fd_pread(reader->fd, buffer, size, offset, flags);

		if (got != -EOPNOTSUPP || flags == 0)
			return got;
		tt_neutral_reader_refused(reader);
	}
	if (reader->is_direct) {
		ssize_t got = neutral_pread_direct(reader, buffer, size, offset);

		if (got != -EINVAL)
			return got;
		tt_neutral_reader_leave_direct(reader, "a request could not be aligned");
		tt_neutral_reader_ahead(reader, offset);
	}
	return tt_fd_pread(reader->fd, buffer, size, offset, 0);
}

void tt_neutral_reader_passed(struct tt_neutral_reader *reader, uint64_t offset)
{
	reader->passed_bytes = offset;
	if (!reader->active || reader->unknown)
		return;
	uint64_t edge = offset / tt_residency_folio_bytes() * tt_residency_folio_bytes();

	if (edge >= reader->dropped_bytes + NEUTRAL_WINDOW_BYTES)
		neutral_drop_until(reader, edge);
}

/* A reader that was stopped has read-ahead in flight behind it, whose pages are locked and would
 * stay (mm/truncate.c skips them): waits for it, drops again. */
static void neutral_drop_ahead(struct tt_neutral_reader *reader, uint64_t end)
{
	uint64_t from =
		reader->passed_bytes / tt_residency_folio_bytes() * tt_residency_folio_bytes();

	if (from < reader->start_bytes)
		from = reader->start_bytes;

	for (unsigned i = 0; i < NEUTRAL_MOST_PAUSES && reader->left_pages > 0; i++) {
		nanosleep(&(struct timespec){.tv_nsec = NEUTRAL_PAUSE_NS}, NULL);
		/* Of what is behind nothing is left: it had been read, so it was not locked. */
		reader->left_pages = 0;
		reader->dropped_bytes = from;
		neutral_drop_until(reader, end);
	}
}

/* squashfs reads whole blocks of 128 KiB, and fills pages behind the end of the file with what
 * comes (fs/squashfs/file.c, squashfs_readahead, Linux 6.18): of a file of 16 KiB 28 pages were
 * left that it does not have. They are nobody's, unless somebody appends. */
static void neutral_drop_beyond(struct tt_neutral_reader *reader, uint64_t end)
{
	struct tt_residency count;
	struct stat st;

	if (reader->fs->method == TT_RESIDENCY_CACHESTAT
		&& (tt_residency_count(reader->fd, reader->fs->method, end, 0, &count) < 0
			|| count.resident_pages == 0))
		return;
	if (fstat(reader->fd, &st) == 0 && (uint64_t)st.st_size == reader->size_bytes)
		neutral_drop(reader, end, 0);
}

void tt_neutral_reader_end(struct tt_neutral_reader *reader)
{
	if (reader->is_direct)
		(void)tt_direct_set(reader->fd, false);
	reader->is_direct = false;
	if (!reader->active || reader->unknown)
		return;
	/* Up to the page that holds the last byte, not to wherever the end is by now: what was
	 * appended meanwhile is the appender's. */
	uint64_t end = neutral_pages(reader->size_bytes) * tt_residency_page_bytes();

	neutral_drop_until(reader, end);
	if (reader->left_pages > 0 && reader->passed_bytes < reader->size_bytes)
		neutral_drop_ahead(reader, end);
	/* What would not go may have been read-ahead in flight: once more, now that all is quiet.
	 */
	if (reader->left_pages > 0 && reader->all_ours && reader->looked_bytes >= end
		&& !tt_neutral_drop_too_dear(reader->stats)) {
		reader->left_pages = tt_neutral_drop(
			reader->fd, reader->fs->method, reader->start_bytes, end, reader->stats);
		reader->left_pages = tt_neutral_drop_left(reader->fd, reader->fs->method,
			reader->start_bytes, end, reader->left_pages, reader->stats);
	}
	neutral_drop_beyond(reader, end);
	reader->stats->left += reader->left_pages;
}

const struct tt_mechanism *tt_neutral_foresee(
	int fd, uint64_t size_bytes, bool askable, struct tt_neutral_fs *fs)
{
	struct tt_neutral_stats nothing = {0};
	struct tt_neutral_reader reader = {
		.fd = fd,
		.fs = fs,
		.stats = &nothing,
		.size_bytes = size_bytes,
		.facts = neutral_facts(TT_CACHE_LEAVE, fs),
		.unknown = !askable,
	};
	char byte;

	/* Behind all that a file can hold: the flag is judged, nothing is read, no time is set
	 * (mm/filemap.c, filemap_read). */
	if (neutral_choose(&reader) == TT_MECHANISM_UNCACHED
		&& tt_fd_pread(fd, &byte, 1, INT64_MAX - 1, TT_FD_DONTCACHE) == -EOPNOTSUPP)
		fs->dontcache_read = false;
	if (neutral_choose(&reader) == TT_MECHANISM_STAYS && neutral_ask_alignment(&reader)) {
		neutral_enter_direct(&reader);
		tt_neutral_reader_end(&reader);
	}
	return reader.mechanism;
}
