/* SPDX-License-Identifier: MIT */
/*
 * See probetable.h.
 */
#include "cli/probetable.h"

#include <string.h>

#include "base/log.h"
#include "base/units.h"

enum {
	TABLE_WIDTH = 80,
	TABLE_WHY = 29, /* column of the third text */
};

/* 64K, 4M, 1.5G: binary, as --dirty-limit takes them. */
static const char *table_size(uint64_t bytes, char *buffer, size_t size)
{
	static const char units[] = "\0KMGTP";
	unsigned unit = 0;
	uint64_t tenths = bytes * 10;

	if (bytes > UINT64_MAX / 10)
		tenths = UINT64_MAX;
	while (tenths >= 10240 && unit < 5) {
		tenths /= 1024;
		unit++;
	}
	if (tenths % 10 == 0 || unit == 0)
		snprintf(buffer, size, "%llu%.1s", (unsigned long long)(tenths / 10), units + unit);
	else
		snprintf(buffer, size, "%llu.%llu%.1s", (unsigned long long)(tenths / 10),
			(unsigned long long)(tenths % 10), units + unit);
	return buffer;
}

static const char *table_time(uint64_t ns, char *buffer, size_t size)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	unsigned unit = 0;

	while (ns >= 1000 && unit < 3) {
		ns /= 1000;
		unit++;
	}
	snprintf(buffer, size, "%llu %s", (unsigned long long)ns, units[unit]);
	return buffer;
}

/* Continues at column `column`, broken at spaces. */
static void table_wrap(FILE *stream, int column, const char *text)
{
	int used = column;

	while (*text) {
		int word = (int)strcspn(text, " ");

		if (used > column && used + 1 + word > TABLE_WIDTH) {
			fprintf(stream, "\n%*s", column, "");
			used = column;
		}
		used += fprintf(stream, "%s%.*s", used > column ? " " : "", word, text);
		text += word;
		text += strspn(text, " ");
	}
	fputc('\n', stream);
}

static void table_head(FILE *stream, const struct tt_probing *probing)
{
	const struct tt_device *device = &probing->device;
	char name[4096], free_size[32], ahead[32], page[32], folio[32], limit[32], budget[32];

	fprintf(stream, "Directory    ");
	table_wrap(stream, 13, tt_log_escape(probing->path, name, sizeof name));
	fprintf(stream, "File system  %s (%u:%u), %s free%s\n",
		device->fs_type[0] ? device->fs_type : "of unknown type", device->fs_major,
		device->fs_minor, table_size(probing->free_bytes, free_size, sizeof free_size),
		probing->read_only ? ", read-only" : "");
	table_size(device->read_ahead_bytes, ahead, sizeof ahead);
	if (!probing->has_cache)
		fprintf(stream,
			"Disk         none: files are memory, or made when they are read\n");
	else if (device->has_disk)
		fprintf(stream, "Disk         %s, read-ahead %s\n", device->disk_name, ahead);
	else
		fprintf(stream, "Disk         none that could be found, read-ahead %s\n", ahead);
	fprintf(stream, "Kernel       Linux %s, pages of %s, folios of up to %s\n", probing->kernel,
		table_size(probing->page_bytes, page, sizeof page),
		table_size(probing->folio_bytes, folio, sizeof folio));
	table_size(probing->memory_limit_bytes, limit, sizeof limit);
	table_size(probing->dirty_budget_bytes, budget, sizeof budget);
	if (probing->has_cache && !probing->read_only)
		fprintf(stream, "Memory       %s, so at most %s may be dirty on this disk\n", limit,
			budget);
	else
		fprintf(stream, "Memory       %s\n", limit);
	if (probing->time_granularity_ns > 0)
		fprintf(stream, "Times        kept to %s%s\n",
			table_time(probing->time_granularity_ns, page, sizeof page),
			probing->time_granularity_guessed ? " (not tried: by its type)" : "");
	else
		fprintf(stream,
			"Times        compared in whole seconds, for want of knowing better\n");
}

static void table_facts(FILE *stream, const struct tt_probing *probing)
{
	fprintf(stream, "\n%-30s%-9s%s\n", "what", "answer", "what follows, or why not");
	for (unsigned i = 0; i < probing->fact_count; i++) {
		const struct tt_probing_fact *fact = &probing->facts[i];

		fprintf(stream, "%-30s%-*s", fact->words, fact->reason[0] ? 9 : 0,
			tt_probing_answer_text(fact->answer));
		table_wrap(stream, 39, fact->reason);
	}
}

static void table_range(const struct tt_probing_cell *cell, char *buffer, size_t size)
{
	char text[32];

	const struct tt_mechanism_cell *is = &cell->is;

	if (is->from_bytes == 0 && is->to_bytes == UINT64_MAX)
		snprintf(buffer, size, "any size");
	else if (is->to_bytes == UINT64_MAX)
		snprintf(buffer, size, "above %s",
			table_size(is->from_bytes - 1, text, sizeof text));
	else
		snprintf(buffer, size, "to %s",
			table_size((is->to_bytes + 1023) / 1024 * 1024, text, sizeof text));
}

static const char *table_what(const struct tt_probing_cell *cell)
{
	switch (cell->operation) {
	case TT_MECHANISM_READ:
		return cell->own ? "read one's own" : "read others'";
	case TT_MECHANISM_NEW:
		return "write new files";
	case TT_MECHANISM_OVERWRITE:
		break;
	}
	return "overwrite";
}

static void table_mechanisms(FILE *stream, const struct tt_probing *probing)
{
	const struct tt_probing_cell *before = NULL;
	char range[32];

	fprintf(stream, "\n%-17s%-12s%s\n", "what is done", "size", "how, and why");
	for (unsigned i = 0; i < probing->cell_count; i++) {
		const struct tt_probing_cell *cell = &probing->cells[i];

		/* Whose they are makes a difference for reading only. */
		if (cell->operation != TT_MECHANISM_READ && !cell->own)
			continue;
		bool same =
			before && before->operation == cell->operation && before->own == cell->own;

		table_range(cell, range, sizeof range);
		fprintf(stream, "%-17s%-12s", same ? "" : table_what(cell), range);
		table_wrap(stream, TABLE_WHY, cell->is.mechanism->words);
		fprintf(stream, "%*s", TABLE_WHY, "");
		table_wrap(stream, TABLE_WHY, cell->why);
		before = cell;
	}
}

void tt_probetable_write(FILE *stream, const struct tt_probing *probing)
{
	table_head(stream, probing);
	table_facts(stream, probing);
	table_mechanisms(stream, probing);
}
