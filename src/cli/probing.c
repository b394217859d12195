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
#include "cli/probereads.h"
#include "sys/direct.h"
#include "sys/fd.h"
#include "sys/granularity.h"
#include "tree/listing.h"
#include "tree/stage.h"
#include "tree/sweep.h"

enum {
	PROBING_SWEEP_PATIENCE_NS = 500000000,
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

const char *tt_probing_error_text(int error)
{
	if (error == -ENOSPC)
		return "less than 64 MiB are free";
	/* The directory is open: it is no place for files (/proc). */
	return error == -ENOENT ? "no file can be made there" : tt_error_text(error);
}

static struct tt_probing_fact *probing_add(
	struct tt_probing *probing, const char *key, const char *words, enum tt_probe_answer answer)
{
	struct tt_probing_fact *fact = &probing->facts[probing->fact_count++];

	*fact = (struct tt_probing_fact){.key = key, .words = words, .answer = answer};
	return fact;
}

/* What follows from one answer of sys/probe, or why there is none. */
static void probing_give_reason(struct tt_probing_fact *fact, const struct tt_probe *probe,
	const char *no, const char *yes, bool has_cache)
{
	const char *why = fact->answer == TT_PROBE_YES ? yes : no;

	if (fact->answer == TT_PROBE_UNKNOWN && probe->tmpfile_error < 0) {
		snprintf(fact->reason, sizeof fact->reason, "not tried: %s",
			tt_probing_error_text(probe->tmpfile_error));
		return;
	}
	if (!has_cache)
		why = "no disk is behind it: nothing to leave";
	else if (fact->answer == TT_PROBE_UNKNOWN)
		why = "the trial told nothing";
	snprintf(fact->reason, sizeof fact->reason, "%s", why);
}

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

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		probing_give_reason(
			probing_add(probing, rows[i].key, rows[i].words, rows[i].answer), probe,
			rows[i].no, rows[i].yes, probing->has_cache);
	struct tt_probing_fact *ring = probing_add(probing, "io_uring", "io_uring", probe->ring);

	if (probe->ring_error < 0)
		snprintf(ring->reason, sizeof ring->reason, "%s: threads do its work",
			tt_error_text(probe->ring_error));
	else
		snprintf(ring->reason, sizeof ring->reason, "what waits long waits in its ring");
}

static const char *probing_untried_text(enum tt_facts_which which, int error)
{
	return which == TT_FACTS_CASE_INSENSITIVE && error == -ENOENT
		       ? "there is no name with a letter to look at"
		       : tt_probing_error_text(error);
}

static void probing_add_facts(struct tt_probing *probing, const struct tt_facts *facts)
{
	for (unsigned i = 0; i < TT_FACTS_COUNT; i++) {
		const struct tt_facts_answer *answer = &facts->answers[i];
		struct tt_probing_fact *fact =
			probing_add(probing, tt_facts_key(i), tt_facts_words(i), answer->answer);
		bool direct = i == TT_FACTS_DIRECT_READ || i == TT_FACTS_DIRECT_WRITE;
		char *reason = fact->reason;

		if (answer->answer == TT_PROBE_UNKNOWN && !answer->why)
			snprintf(reason, sizeof fact->reason, "not tried: %s",
				probing_untried_text(i, answer->error));
		else if (direct && !probing->has_cache && answer->answer == TT_PROBE_YES)
			snprintf(reason, sizeof fact->reason,
				"accepted, and not used: no disk is behind it");
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

static void probing_add_cells(struct tt_probing *probing, enum tt_mechanism_operation operation,
	bool own, const struct tt_mechanism_cell *cells, unsigned count, const char *why)
{
	for (unsigned i = 0; i < count; i++)
		probing->cells[probing->cell_count++] = (struct tt_probing_cell){
			.operation = operation,
			.own = own,
			.is = cells[i],
			.why = why ? why : cells[i].mechanism->why,
		};
}

static void probing_add_reads(struct tt_probing *probing, const struct tt_probereads *reads)
{
	const char *unseen = reads->seen ? NULL : "there is no file to ask: the first one tells";

	probing_add_cells(probing, TT_MECHANISM_READ, true, reads->own, reads->own_count, unseen);
	probing_add_cells(
		probing, TT_MECHANISM_READ, false, reads->other, reads->other_count, unseen);
}

/* What a run finds out when it comes to write there: the directory, not the file system. */
static unsigned probing_place_facts(const struct tt_probing *probing)
{
	switch (-probing->not_tried) {
	case EROFS:
		return TT_MECHANISM_IS_READ_ONLY;
	case EACCES:
	case EPERM:
	case ENOENT:
		return TT_MECHANISM_IS_CLOSED;
	default:
		return 0;
	}
}

/* Whose they are makes no difference to those that can be written at all. */
static void probing_add_writes(
	struct tt_probing *probing, enum tt_residency_method method, const struct tt_probe *probe)
{
	const unsigned facts =
		tt_mechanism_facts(TT_CACHE_LEAVE, method, probe) | probing_place_facts(probing);
	const uint64_t whole = tt_mechanism_whole_bytes(probing->dirty_budget_bytes);
	struct tt_mechanism_cell cells[TT_MECHANISM_MOST_CELLS];

	for (unsigned operation = TT_MECHANISM_NEW; operation <= TT_MECHANISM_OVERWRITE;
		operation++) {
		unsigned count = tt_mechanism_cells(operation, whole, facts, cells);

		for (int own = 1; own >= 0; own--)
			probing_add_cells(probing, operation, own, cells, count, NULL);
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

/* What a killed --probe may have left. NULL: no memory, and nothing is swept. */
static struct tt_sweep *probing_begin_sweep(int fd)
{
	struct tt_sweep *sweep = NULL;
	struct tt_listing names = {0};

	if (tt_sweep_new(&sweep) < 0)
		return NULL;
	probing_read_names(fd, &names);
	for (unsigned i = 0; i < names.count; i++) {
		const char *name = names.entries[i].name;

		if (strncmp(name, ".probe.tt-", 10) == 0 && tt_stage_is_temporary(name))
			(void)tt_sweep_name(sweep, fd, "", fd, name);
	}
	tt_listing_deinit(&names);
	return sweep;
}

/* One that was killed just now may have held its locks until now. */
static void probing_end_sweep(struct tt_sweep *sweep)
{
	if (sweep)
		(void)tt_sweep_again(sweep, PROBING_SWEEP_PATIENCE_NS, NULL);
	tt_sweep_free(sweep);
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
	probing->has_cache = tt_residency_method(fd) != TT_RESIDENCY_NONE;
	probing->page_bytes = tt_residency_page_bytes();
	probing->folio_bytes = tt_residency_folio_bytes();
	probing->memory_limit_bytes = tt_pacer_memory_limit();
	probing->dirty_budget_bytes = tt_pacer_default_budget();
}

static void probing_find_granularity(
	struct tt_probing *probing, const struct tt_probe *probe, int fd)
{
	probing->time_granularity_ns = probe->time_granularity_ns;
	if (probing->time_granularity_ns != 0)
		return;
	probing->time_granularity_ns = tt_granularity_guess(probing->device.fs_type, fd);
	probing->time_granularity_guessed = true;
}

static int probing_try(struct tt_probing *probing, int fd)
{
	const enum tt_residency_method method = tt_residency_method(fd);
	struct tt_probereads reads;
	struct tt_probe probe;
	struct tt_facts facts;
	int r = tt_probe_run(fd, &probe);

	if (r == 0)
		r = tt_probereads_try(fd, &reads);
	if (r == 0) {
		probing->direct = probe.tmpfile_error < 0 ? reads.direct : probe.direct;
		r = tt_facts_try(fd, &probing->direct, &facts);
	}
	if (r < 0)
		return r;
	probing->not_tried = facts.open_error;
	/* A refusal is one, whichever file was asked. */
	if (probe.dontcache_read == TT_PROBE_UNKNOWN && reads.dontcache_refused)
		probe.dontcache_read = TT_PROBE_NO;
	probing_find_granularity(probing, &probe, fd);
	probing_add_probe(probing, &probe);
	probing_add_facts(probing, &facts);
	probing_add_reads(probing, &reads);
	probing_add_writes(probing, method, &probe);
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
	struct tt_sweep *sweep = probing_begin_sweep(fd);

	probing_describe(ret_probing, fd);
	int r = probing_try(ret_probing, fd);

	probing_end_sweep(sweep);
	if (r < 0) {
		snprintf(message, size, "probing %s: %s", name, tt_error_text(r));
		return TT_EXIT_MEMORY;
	}
	if (ret_probing->not_tried < 0) {
		snprintf(message, size, "probing %s: nothing could be tried there: %s", name,
			tt_probing_error_text(ret_probing->not_tried));
		return TT_EXIT_PARTIAL;
	}
	return TT_EXIT_OK;
}
