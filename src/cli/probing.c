/* SPDX-License-Identifier: MIT */
/*
 * See probing.h.
 */
#include "cli/probing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/log.h"
#include "cache/pacer.h"
#include "copy/writer.h"
#include "sys/direct.h"
#include "sys/fd.h"
#include "sys/granularity.h"
#include "tree/listing.h"
#include "tree/stage.h"

enum {
	PROBING_MOST_LOOKS = 64, /* at names, for a regular file */
};

const char *tt_probing_answer_text(enum tt_probe_answer answer)
{
	static const char *const texts[] = {"unknown", "no", "yes"};

	return texts[answer];
}

const char *tt_probing_operation_text(enum tt_mechanism_operation operation)
{
	static const char *const texts[] = {"read", "new", "overwrite"};

	return texts[operation];
}

/* ---- facts ---- */

static const char *probing_error_text(int error)
{
	return error == -ENOSPC ? "less than 64 MiB are free" : tt_error_text(error);
}

static struct tt_probing_fact *probing_add(
	struct tt_probing *probing, const char *key, const char *words, enum tt_probe_answer answer)
{
	struct tt_probing_fact *fact = &probing->facts[probing->fact_count++];

	*fact = (struct tt_probing_fact){.key = key, .words = words, .answer = answer};
	return fact;
}

/* What follows from the answers of sys/probe, by enum tt_probe_answer. */
static void probing_add_probe(struct tt_probing *probing, const struct tt_probe *probe)
{
	const struct {
		const char *key, *words;
		enum tt_probe_answer answer;
		const char *no, *yes;
	} rows[] = {
		{"cachestat", "cachestat tells residency", probe->cachestat,
			"mincore is asked, of files that it tells of",
			"files are asked before they are touched"},
		{"sync_file_range", "sync_file_range writes back", probe->sync_file_range,
			"it does nothing: fdatasync paces",
			"windows are written back as they fill"},
		{"drop_clean", "clean pages go when asked", probe->drop_clean,
			"pages stay: there is nothing to drop", "pages go behind the copy"},
		{"drop_during_writeback", "also during writeback", probe->drop_writeback,
			"they go after it", "they may be asked at once"},
		{"dontcache_read", "RWF_DONTCACHE reads", probe->dontcache_read,
			"refused, or pages stay", "reads leave nothing behind"},
		{"dontcache_write", "RWF_DONTCACHE new files", probe->dontcache_write,
			"refused, or pages stay", "writes leave nothing behind"},
		{"dontcache_overwrite", "RWF_DONTCACHE overwrites", probe->dontcache_overwrite,
			"refused, or pages stay", "overwrites leave nothing behind"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tt_probing_fact *fact =
			probing_add(probing, rows[i].key, rows[i].words, rows[i].answer);

		if (rows[i].answer != TT_PROBE_UNKNOWN)
			snprintf(fact->reason, sizeof fact->reason, "%s",
				rows[i].answer == TT_PROBE_YES ? rows[i].yes : rows[i].no);
		else if (probe->tmpfile_error < 0)
			snprintf(fact->reason, sizeof fact->reason, "not tried: %s",
				probing_error_text(probe->tmpfile_error));
		else
			snprintf(fact->reason, sizeof fact->reason, "the trial told nothing");
	}
	struct tt_probing_fact *ring = probing_add(probing, "io_uring", "io_uring", probe->ring);

	if (probe->ring_error < 0)
		snprintf(ring->reason, sizeof ring->reason, "%s: threads do its work",
			tt_error_text(probe->ring_error));
	else
		snprintf(ring->reason, sizeof ring->reason, "what waits long waits in its ring");
}

static void probing_add_facts(struct tt_probing *probing, const struct tt_facts *facts)
{
	for (unsigned i = 0; i < TT_FACTS_COUNT; i++) {
		const struct tt_facts_answer *answer = &facts->answers[i];
		struct tt_probing_fact *fact =
			probing_add(probing, tt_facts_key(i), tt_facts_words(i), answer->answer);
		bool direct = i == TT_FACTS_DIRECT_READ || i == TT_FACTS_DIRECT_WRITE;
		char *reason = fact->reason;

		if (answer->answer == TT_PROBE_UNKNOWN)
			snprintf(reason, sizeof fact->reason, "not tried: %s",
				probing_error_text(answer->error));
		else if (answer->why)
			snprintf(reason, sizeof fact->reason, "%s", answer->why);
		else if (answer->error < 0)
			snprintf(reason, sizeof fact->reason, "%s", tt_error_text(answer->error));
		else if (direct && probing->direct.offset_bytes > 0)
			snprintf(reason, sizeof fact->reason,
				"aligned to %u (memory), %u (offsets)",
				probing->direct.memory_bytes, probing->direct.offset_bytes);
	}
}

/* ---- mechanisms ---- */

static void probing_add_cells(
	struct tt_probing *probing, enum tt_mechanism_operation operation, bool own, unsigned facts)
{
	const uint64_t small = (UINT64_C(64) << 10) - 1, medium = UINT64_C(4) << 20;
	const uint64_t whole = tt_writer_whole_bytes(probing->dirty_budget_bytes);
	const uint64_t ends[] = {
		whole < small ? whole : small, whole < small ? small : whole, medium, UINT64_MAX};
	uint64_t from = 0;

	for (unsigned i = 0; i < sizeof ends / sizeof *ends; i++) {
		const struct tt_mechanism *mechanism =
			tt_mechanism_choose(operation, tt_mechanism_size_of(ends[i]),
				facts | (ends[i] <= whole ? TT_MECHANISM_IS_WHOLE : 0));
		struct tt_probing_cell *last = &probing->cells[probing->cell_count - (i > 0)];

		if (i > 0 && strcmp(last->mechanism->words, mechanism->words) == 0) {
			last->to_bytes = ends[i];
		} else {
			probing->cells[probing->cell_count++] = (struct tt_probing_cell){
				.operation = operation,
				.own = own,
				.from_bytes = from,
				.to_bytes = ends[i],
				.mechanism = mechanism,
			};
		}
		from = ends[i] + 1;
	}
}

static void probing_choose(
	struct tt_probing *probing, enum tt_residency_method method, const struct tt_probe *probe)
{
	unsigned facts = tt_mechanism_facts(TT_CACHE_LEAVE, method, probe);

	for (unsigned operation = TT_MECHANISM_READ; operation <= TT_MECHANISM_OVERWRITE;
		operation++) {
		for (int own = 1; own >= 0; own--) {
			/* Root may ask about everybody's files, and whoever may write to one. */
			bool askable = own || operation != TT_MECHANISM_READ || geteuid() == 0;

			probing_add_cells(probing, operation, own,
				facts | (askable ? TT_MECHANISM_IS_ASKABLE : 0));
		}
	}
}

/* ---- the rest ---- */

/* Names are read with a descriptor of their own: it has a place in the directory. */
static void probing_read_names(int fd, struct tt_listing *names)
{
	TT_FD_AUTO own = tt_fd_open_dir(fd, ".");

	if (own >= 0)
		(void)tt_listing_read_names(names, own);
}

/* What a killed --probe may have left. */
static void probing_sweep(int fd)
{
	struct tt_listing names = {0};

	probing_read_names(fd, &names);
	for (unsigned i = 0; i < names.count; i++) {
		const char *name = names.entries[i].name;

		if (strncmp(name, ".probe.tt-", 10) == 0 && tt_stage_is_temporary(name))
			(void)tt_stage_sweep(fd, name);
	}
	tt_listing_deinit(&names);
}

/* Without a temporary: a file that is there says how it is aligned. */
static void probing_look_for_direct(int fd, struct tt_direct *direct)
{
	struct tt_listing names = {0};

	probing_read_names(fd, &names);
	for (unsigned i = 0; i < names.count && i < PROBING_MOST_LOOKS; i++) {
		TT_FD_AUTO file = S_ISREG(names.entries[i].mode)
					  ? tt_fd_open_read(fd, names.entries[i].name)
					  : -1;

		if (file < 0)
			continue;
		tt_direct_ask(file, direct);
		break;
	}
	tt_listing_deinit(&names);
}

static void probing_describe(struct tt_probing *probing, int fd)
{
	struct tt_device_table *devices = NULL;
	struct utsname system;
	struct statvfs fs;

	if (uname(&system) == 0)
		snprintf(probing->kernel, sizeof probing->kernel, "%.64s", system.release);
	if (tt_device_table_new(&devices) == 0)
		(void)tt_device_get(devices, fd, &probing->device);
	tt_device_table_free(devices);
	if (fstatvfs(fd, &fs) == 0) {
		probing->read_only = fs.f_flag & ST_RDONLY;
		probing->free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	}
	probing->page_bytes = tt_residency_page_bytes();
	probing->folio_bytes = tt_residency_folio_bytes();
	probing->memory_limit_bytes = tt_pacer_memory_limit();
	probing->dirty_budget_bytes = tt_pacer_default_budget();
}

static int probing_try(struct tt_probing *probing, int fd)
{
	struct tt_probe probe;
	struct tt_facts facts;
	int r = tt_probe_run(fd, &probe);

	if (r == 0) {
		probing->direct = probe.direct;
		if (probe.tmpfile_error < 0)
			probing_look_for_direct(fd, &probing->direct);
		r = tt_facts_try(fd, &probing->direct, &facts);
	}
	if (r < 0)
		return r;
	probing->not_tried = facts.open_error;
	probing->time_granularity_ns = probe.time_granularity_ns;
	if (probing->time_granularity_ns == 0) {
		probing->time_granularity_ns = tt_granularity_guess(probing->device.fs_type, fd);
		probing->time_granularity_guessed = true;
	}
	probing_add_probe(probing, &probe);
	probing_add_facts(probing, &facts);
	probing_choose(probing, tt_residency_method(fd), &probe);
	return 0;
}

enum tt_exit tt_probing_run(
	const char *path, struct tt_probing *ret_probing, char *message, size_t size)
{
	char name[1024];
	TT_FD_AUTO fd = tt_fd_open_path(path, O_RDONLY | O_DIRECTORY);

	*ret_probing = (struct tt_probing){.path = path};
	tt_log_escape(path, name, sizeof(name));
	if (fd < 0) {
		snprintf(message, size, "--probe takes a directory: opening %s: %s", name,
			tt_error_text(fd));
		return TT_EXIT_SELECT;
	}
	probing_sweep(fd);
	probing_describe(ret_probing, fd);
	int r = probing_try(ret_probing, fd);

	if (r < 0) {
		snprintf(message, size, "probing %s: %s", name, tt_error_text(r));
		return TT_EXIT_MEMORY;
	}
	if (ret_probing->not_tried < 0) {
		snprintf(message, size, "probing %s: nothing could be tried there: %s", name,
			probing_error_text(ret_probing->not_tried));
		return TT_EXIT_PARTIAL;
	}
	return TT_EXIT_OK;
}
