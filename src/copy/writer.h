/* SPDX-License-Identifier: MIT */
/*
 * The paced end of a copy: charges before bytes are written and hands windows over when they are.
 * Used by the plain loop and by the stream alike, so that there is one place that knows when to
 * sleep.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sys/direct.h"

struct tt_pacer;
struct tt_pacer_file;

/* Before a worker sleeps for the budget it must hand over what it holds; the worker's owner does
 * that. */
struct tt_writer_hooks {
	void (*before_sleep)(void *context);
	void *context;
};

struct tt_writer {
	int fd;                     /* borrowed */
	struct tt_pacer *pacer;     /* NULL: not paced */
	struct tt_pacer_file *file; /* with pacer */
	const struct tt_writer_hooks *hooks;
	int rwf_flags;           /* RWF_DONTCACHE or 0 */
	bool is_direct;          /* O_DIRECT is on; nothing is charged meanwhile */
	bool was_direct;         /* ... or has been: the file may be longer than what was written */
	struct tt_direct direct; /* alignment then */
	const char *refusal;     /* why it did not stay on up to the tail, or NULL */
	bool whole;              /* small file: charged once, goes with its batch, no windows */
	uint64_t clear_bytes; /* in place: the file had so many bytes before; what is skipped below
				 becomes a hole */
	int error;            /* of clearing, negative errno */
	uint64_t window_start_bytes;
	uint64_t written_bytes; /* end of what has been written in order */
	uint64_t charged_bytes; /* of the present window, a little ahead of what is written */
};

/* Whether a file of this size is written whole, without windows, on this budget. */
bool tt_writer_is_whole(const struct tt_pacer *pacer, uint64_t size_bytes);

/* Begins a file. Small files are charged here: may sleep. */
void tt_writer_begin(struct tt_writer *writer, int fd, uint64_t size_bytes, struct tt_pacer *pacer,
	struct tt_pacer_file *file, const struct tt_writer_hooks *hooks, int rwf_flags);

/* The same with O_DIRECT: nothing becomes dirty, so nothing is charged until
 * tt_writer_leave_direct(). The file gets its length at once: writes beyond the end would wait for
 * each other. Not for a file of which somebody has pages: they would go. Returns 0, or a negative
 * errno (-EOPNOTSUPP: this file cannot): nothing has begun then. */
int tt_writer_begin_direct(struct tt_writer *writer, int fd, uint64_t size_bytes,
	struct tt_pacer *pacer, struct tt_pacer_file *file, const struct tt_writer_hooks *hooks);

/* From here on the ordinary way. With no write in flight. `why`: for people, constant; NULL for the
 * tail of a file, which is always written so. */
void tt_writer_leave_direct(struct tt_writer *writer, const char *why);

/* [offset, offset + bytes) has been written with O_DIRECT, in order of offsets. */
void tt_writer_wrote_direct(struct tt_writer *writer, uint64_t offset, uint64_t bytes);

/* After begin, for a file that is written in place: what is below `start_bytes` stays as it is, and
 * of the `old_bytes` that the file has now nothing else shows through the holes of the new content.
 */
void tt_writer_in_place(struct tt_writer *writer, uint64_t start_bytes, uint64_t old_bytes);

/* Everything below `end_bytes` has come there by other means than writing (a clone): nothing of it
 * is to be cleared. */
void tt_writer_skip(struct tt_writer *writer, uint64_t end_bytes);

/* After the last write of a file in place: what it held between there and `end_bytes` becomes a
 * hole. Returns 0 or the first error of all clearing. */
int tt_writer_clear(struct tt_writer *writer, uint64_t end_bytes);

/* The same to the end of the file, whose length is `size_bytes` by now: the block that it ends in
 * goes as well. */
int tt_writer_clear_rest(struct tt_writer *writer, uint64_t size_bytes);

/* Whether a charge for `bytes` more (at most 4 MiB, at most an eighth of the budget) is there
 * without sleeping; it is taken then. */
bool tt_writer_try_charge(struct tt_writer *writer, uint64_t bytes);

/* The same, sleeping. Everything that was charged before must have been written: it is handed over
 * first. */
void tt_writer_charge(struct tt_writer *writer, uint64_t bytes);

/* The most that may be charged at once. */
uint64_t tt_writer_most_bytes(const struct tt_writer *writer);

/* [offset, offset + bytes) has been written, in order of offsets. */
void tt_writer_wrote(struct tt_writer *writer, uint64_t offset, uint64_t bytes);

/* Nothing is written: what was charged when it began goes back now, not with the file's batch. */
void tt_writer_untouched(struct tt_writer *writer);

/* After the last write, also on failure: hands over the rest. */
void tt_writer_end(struct tt_writer *writer);
