/* SPDX-License-Identifier: MIT */
/*
 * See writer.h. A window is a range of offsets without holes. What was charged and then not written
 * (a file that shrank) goes back at the end.
 */
#include "copy/writer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cache/mechanism.h"
#include "cache/pacer.h"
#include "sys/fd.h"

#define WRITER_MOST_BYTES  (UINT64_C(4) << 20)
#define WRITER_BLOCK_BYTES UINT64_C(65536) /* the largest */

bool tt_writer_is_whole(const struct tt_pacer *pacer, uint64_t size_bytes)
{
	return size_bytes <= tt_mechanism_whole_bytes(tt_pacer_budget_bytes(pacer));
}

uint64_t tt_writer_most_bytes(const struct tt_writer *writer)
{
	if (!writer->pacer)
		return WRITER_MOST_BYTES;
	uint64_t most = tt_pacer_budget_bytes(writer->pacer) / 8 & ~UINT64_C(4095);

	return most < WRITER_MOST_BYTES ? most : WRITER_MOST_BYTES;
}

static void writer_hand_over(struct tt_writer *writer)
{
	uint64_t bytes = writer->written_bytes - writer->window_start_bytes;

	if (bytes > 0) {
		assert(writer->charged_bytes >= tt_pacer_round(bytes));
		writer->charged_bytes -= tt_pacer_round(bytes);
		/* Without memory for a window its charge goes with the file's batch: nothing is
		 * lost. */
		(void)tt_pacer_submit_window(
			writer->pacer, writer->file, writer->window_start_bytes, bytes);
	}
	writer->window_start_bytes = writer->written_bytes;
}

static void writer_release_rest(struct tt_writer *writer)
{
	tt_pacer_release(writer->pacer, writer->charged_bytes);
	writer->charged_bytes = 0;
}

static void writer_sleep(struct tt_writer *writer, uint64_t bytes)
{
	if (writer->hooks)
		writer->hooks->before_sleep(writer->hooks->context);
	tt_pacer_charge(writer->pacer, bytes);
}

void tt_writer_begin(struct tt_writer *writer, int fd, uint64_t size_bytes, struct tt_pacer *pacer,
	struct tt_pacer_file *file, const struct tt_writer_hooks *hooks, int rwf_flags)
{
	*writer = (struct tt_writer){
		.fd = fd, .pacer = pacer, .file = file, .hooks = hooks, .rwf_flags = rwf_flags};
	if (!pacer)
		return;
	/* One that says it is empty may be a file that does not know (/proc, FUSE): charged as it
	 * comes. */
	writer->whole = size_bytes > 0 && tt_writer_is_whole(pacer, size_bytes);
	if (writer->whole) {
		if (!tt_pacer_try_charge(pacer, size_bytes))
			writer_sleep(writer, size_bytes);
		file->charged_bytes += tt_pacer_round(size_bytes);
	}
}

int tt_writer_begin_direct(struct tt_writer *writer, int fd, uint64_t size_bytes,
	struct tt_pacer *pacer, struct tt_pacer_file *file, const struct tt_writer_hooks *hooks)
{
	struct tt_direct direct;

	tt_direct_ask(fd, &direct);
	if (direct.offset_bytes == 0)
		return -EOPNOTSUPP;
	int r = tt_direct_set(fd, true);

	if (r < 0)
		return r;
	if (ftruncate(fd, (off_t)size_bytes) < 0) {
		r = -errno;
		(void)tt_direct_set(fd, false);
		return r;
	}
	*writer = (struct tt_writer){.fd = fd,
		.pacer = pacer,
		.file = file,
		.hooks = hooks,
		.is_direct = true,
		.was_direct = true,
		.direct = direct};
	return 0;
}

void tt_writer_leave_direct(struct tt_writer *writer, const char *why)
{
	if (!writer->is_direct)
		return;
	writer->is_direct = false;
	writer->refusal = why;
	(void)tt_direct_set(writer->fd, false);
}

void tt_writer_in_place(struct tt_writer *writer, uint64_t start_bytes, uint64_t old_bytes)
{
	writer->window_start_bytes = start_bytes;
	writer->written_bytes = start_bytes;
	writer->clear_bytes = old_bytes;
}

/* Pages of the range leave the cache with their content; the partial ones at its ends are zeroed
 * there. */
static int writer_punch(struct tt_writer *writer, uint64_t from, uint64_t to)
{
	if (from < to && writer->error == 0)
		writer->error = tt_fd_allocate(
			writer->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, to - from);
	return writer->error;
}

int tt_writer_clear(struct tt_writer *writer, uint64_t end_bytes)
{
	return writer_punch(writer, writer->written_bytes,
		end_bytes < writer->clear_bytes ? end_bytes : writer->clear_bytes);
}

int tt_writer_clear_rest(struct tt_writer *writer, uint64_t size_bytes)
{
	uint64_t from = writer->written_bytes;
	bool is_clear = from >= size_bytes || from >= writer->clear_bytes;

	/* A part of a block is not given back, unless the range goes on behind the end. */
	return is_clear ? writer->error
			: writer_punch(writer, from,
				(size_bytes / WRITER_BLOCK_BYTES + 1) * WRITER_BLOCK_BYTES);
}

bool tt_writer_try_charge(struct tt_writer *writer, uint64_t bytes)
{
	if (!writer->pacer || writer->whole || writer->is_direct)
		return true;
	if (!tt_pacer_try_charge(writer->pacer, bytes))
		return false;
	writer->charged_bytes += tt_pacer_round(bytes);
	return true;
}

void tt_writer_charge(struct tt_writer *writer, uint64_t bytes)
{
	if (tt_writer_try_charge(writer, bytes))
		return;
	writer_hand_over(writer);
	writer_release_rest(writer);
	writer_sleep(writer, bytes);
	writer->charged_bytes += tt_pacer_round(bytes);
}

void tt_writer_wrote(struct tt_writer *writer, uint64_t offset, uint64_t bytes)
{
	bool windows = writer->pacer && !writer->whole;

	if (offset != writer->written_bytes) {         /* behind a hole */
		(void)tt_writer_clear(writer, offset); /* told at the end */
		if (windows)
			writer_hand_over(writer);
		writer->window_start_bytes = offset;
	}
	writer->written_bytes = offset + bytes;
	if (!windows)
		return;
	uint64_t window = tt_pacer_window_bytes(writer->pacer);

	if (writer->written_bytes - writer->window_start_bytes >= window)
		writer_hand_over(writer);
}

void tt_writer_wrote_direct(struct tt_writer *writer, uint64_t offset, uint64_t bytes)
{
	if (writer->pacer)
		writer_hand_over(writer);
	writer->window_start_bytes = writer->written_bytes = offset + bytes;
}

void tt_writer_skip(struct tt_writer *writer, uint64_t end_bytes)
{
	if (writer->pacer && !writer->whole)
		writer_hand_over(writer);
	writer->window_start_bytes = end_bytes;
	writer->written_bytes = end_bytes;
}

void tt_writer_untouched(struct tt_writer *writer)
{
	if (!writer->pacer || !writer->whole)
		return;
	tt_pacer_release(writer->pacer, writer->file->charged_bytes);
	writer->file->charged_bytes = 0;
}

void tt_writer_end(struct tt_writer *writer)
{
	tt_writer_leave_direct(writer, NULL);
	if (!writer->pacer || writer->whole)
		return;
	writer_hand_over(writer);
	writer_release_rest(writer);
}
