/* SPDX-License-Identifier: MIT */
/*
 * Rates are of the last five seconds, so that a change of pace shows; the mean is for the end.
 */
#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

void tt_progress_init(struct tt_progress *progress, unsigned human_readable)
{
	*progress = (struct tt_progress){.human_readable = human_readable};
}

/* Bytes per second since the oldest sample. */
static double progress_take_sample(
	struct tt_progress *progress, const struct tt_engine_progress *now)
{
	unsigned slot = progress->count % TT_PROGRESS_SAMPLES;
	uint64_t oldest_ns = 0, oldest_bytes = 0;

	if (progress->count >= TT_PROGRESS_SAMPLES) {
		oldest_ns = progress->samples[slot].time_ns;
		oldest_bytes = progress->samples[slot].bytes;
	}
	progress->samples[slot].time_ns = now->elapsed_ns;
	progress->samples[slot].bytes = now->bytes_done;
	progress->count++;
	if (now->elapsed_ns <= oldest_ns || now->bytes_done < oldest_bytes)
		return 0;
	return (double)(now->bytes_done - oldest_bytes)
	       / ((double)(now->elapsed_ns - oldest_ns) / 1e9);
}

/* "0:01:23" */
static void progress_format_time(double seconds, char *buffer, size_t size)
{
	uint64_t s = seconds < 0 ? 0 : seconds > 3.5e9 ? 3500000000u : (uint64_t)(seconds + 0.5);

	snprintf(buffer, size, "%" PRIu64 ":%02u:%02u", s / 3600, (unsigned)(s / 60 % 60),
		(unsigned)(s % 60));
}

/* Rates and sizes are for people here: always with a unit, of 1000 unless -hh asked for 1024. */
static int progress_level(const struct tt_progress *progress)
{
	return progress->human_readable > 2 ? 3 : 2;
}

struct progress_line {
	char *buffer;
	size_t room, used;
};

/* Appends a part if it fits whole. */
static void progress_add(struct progress_line *line, const char *part)
{
	size_t length = strlen(part), gap = line->used > 0 ? 2 : 0;

	if (line->used + gap + length > line->room)
		return;
	memcpy(line->buffer + line->used, "  ", gap);
	memcpy(line->buffer + line->used + gap, part, length + 1);
	line->used += gap + length;
}

const char *tt_progress_format(struct tt_progress *progress, const struct tt_engine_progress *now,
	unsigned columns, char *buffer, size_t size)
{
	int level = progress_level(progress), plain = progress->human_readable > 0;
	double rate = progress_take_sample(progress, now);
	struct progress_line line = {.buffer = buffer, .room = columns < size ? columns : size - 1};
	char part[160], a[40], b[40];

	if (size == 0)
		return buffer;
	buffer[0] = '\0';
	if (now->listing_complete && now->bytes_known > 0) {
		double share = (double)now->bytes_done / (double)now->bytes_known;
		snprintf(part, sizeof(part), "%3u%%", share > 1 ? 100 : (unsigned)(share * 100));
		progress_add(&line, part);
	}
	snprintf(part, sizeof(part), "%sB/s", tt_units_format_double(rate, level, a, sizeof(a)));
	progress_add(&line, part);
	if (now->listing_complete && rate > 0 && now->bytes_known >= now->bytes_done) {
		progress_format_time(
			(double)(now->bytes_known - now->bytes_done) / rate, a, sizeof(a));
		snprintf(part, sizeof(part), "ETA %s", a);
	} else {
		progress_format_time((double)now->elapsed_ns / 1e9, a, sizeof(a));
		snprintf(part, sizeof(part), "for %s", a);
	}
	progress_add(&line, part);
	snprintf(part, sizeof(part), "%s of %s%s files",
		tt_units_format(now->files_done, plain, a, sizeof(a)),
		tt_units_format(now->files_known, plain, b, sizeof(b)),
		now->listing_complete ? "" : "+");
	progress_add(&line, part);
	snprintf(part, sizeof(part), "%sB of %sB%s",
		tt_units_format(now->bytes_done, level, a, sizeof(a)),
		tt_units_format(now->bytes_known, level, b, sizeof(b)),
		now->listing_complete ? "" : "+");
	progress_add(&line, part);
	return buffer;
}

const char *tt_progress_format_total(const struct tt_progress *progress,
	const struct tt_engine_progress *now, char *buffer, size_t size)
{
	int level = progress_level(progress), plain = progress->human_readable > 0;
	double seconds = (double)now->elapsed_ns / 1e9;
	char files[40], bytes[40], rate[40], time[40];

	progress_format_time(seconds, time, sizeof(time));
	snprintf(buffer, size, "%s files  %sB  %sB/s  %s",
		tt_units_format(now->files_done, plain, files, sizeof(files)),
		tt_units_format(now->bytes_done, level, bytes, sizeof(bytes)),
		tt_units_format_double(seconds > 0 ? (double)now->bytes_done / seconds : 0, level,
			rate, sizeof(rate)),
		time);
	return buffer;
}
