/* SPDX-License-Identifier: MIT */
/*
 * tiptoe: copies directory trees as rsync does, leaves the page cache as found. Everything but
 * this file is a library.
 *
 *	base/error.c		exit codes and their words
 *	base/log.c		lines for people, names escaped
 *	base/units.c		sizes in, numbers out
 *	base/hash.c		XXH3 from libxxhash
 *	base/arena.c		memory that goes all at once
 *	sys/facility.c		which calls this process was refused
 *	sys/fd.c		descriptors, whole reads and writes
 *	sys/fiemap.c		space that is not written
 *	sys/ring.c		io_uring, named like system calls
 *	sys/ring_twin.c		the same with threads instead
 *	sys/probe.c		what the kernel really does
 *	sys/facts.c		what a file system can do
 *	sys/facts_names.c	the same for its names
 *	sys/granularity.c	how finely times are kept
 *	sys/tempname.c		what temporaries are called
 *	sys/temporary.c		a file for an experiment
 *	sys/residency.c		which pages are in memory
 *	sys/device.c		the disk under a file
 *	sys/direct.c		O_DIRECT and its alignment
 *	tree/entry.c		one name and its attributes
 *	tree/listing.c		one directory and its twin
 *	tree/filter.c		which names are left out
 *	tree/filter_rule.c	one rule, does it match
 *	tree/filter_parse.c	the language of the rules
 *	tree/filter_cvs.c	what CVS ignores
 *	tree/filter_dir.c	rules from files in the trees
 *	tree/wildmatch.c	rsync's wildcards
 *	tree/meta.c		owner, mode, times in order
 *	tree/modes.c		what --chmod makes of modes
 *	tree/idmap.c		which owner stands for which
 *	tree/stage.c		temporaries and their atomic arrival
 *	tree/sweep.c		those that dead runs left
 *	tree/linkset.c		which names are one inode
 *	cache/mechanism.c	which means for which file
 *	tree/alias.c		names that differ only here
 *	cache/neutral.c		leaves the cache as found
 *	cache/neutral_drop.c	asks pages to go, counts
 *	cache/neutral_turn.c	who reads a file of several names
 *	cache/neutral_whole.c	small files read at once
 *	cache/neutral_written.c	the same for the destination
 *	cache/neutral_updated.c	the same for files in place
 *	cache/pacer.c		bounds dirty pages per disk
 *	cache/pacer_budget.c	how many dirty bytes are allowed
 *	copy/copy.c		chooses how to copy one
 *	copy/clone.c		shares blocks where that works
 *	copy/offload.c		copies inside a file server
 *	copy/preallocate.c	space before there is content
 *	copy/unwritten.c	the same preallocated space
 *	copy/extents.c		where the data between holes is
 *	copy/pool.c		the one pool of buffers
 *	copy/writer.c		paced windows of one file
 *	copy/stream.c		large files through the ring
 *	sync/operands.c		the roots from the command line
 *	sync/mkpath.c		directories above the destination
 *	sync/order.c		which name of a file leads
 *	sync/planner.c		the walk in rsync's order
 *	sync/planner_entries.c	names in one directory become jobs
 *	sync/turn.c		nobody else of us is to read the same file
 *	sync/prune.c		directories with nothing in them
 *	sync/verify.c		counts what is left at the end
 *	sync/rules.c		filter rules of both trees
 *	sync/lister.c		directories ahead of need
 *	sync/share.c		many hands for one large directory
 *	sync/compare.c		contents under -c
 *	sync/dir.c		one directory in progress
 *	sync/deleter.c		what the source does not have
 *	sync/delayed.c		what is deleted only at the end
 *	sync/moved.c		sources that have been copied go
 *	sync/volume.c		one file system and its means
 *	sync/plan.c		what to do about one
 *	sync/reason.c		why it failed, in words
 *	sync/engine.c		one run from end to end
 *	sync/crew.c		the workers, who does what
 *	sync/lane.c		one disk's jobs and batches
 *	sync/branch.c		planning several disks at once
 *	sync/apply.c		does what plan has decided
 *	sync/apply_file.c	the same for regular files
 *	sync/apply_inplace.c	files written under their own names
 *	sync/arrive.c		a batch gets its names
 *	sync/finish.c		directories after their last child
 *	cli/options.c		argv to policies
 *	cli/rulereader.c	files with filter rules
 *	cli/optionvalue.c	what stands behind an option's =
 *	cli/optiontable.c	one row per option, help
 *	cli/report.c		rsync's lines, stats, status line
 *	cli/progress.c		rate, remaining time, files
 *	cli/control.c		signals, timers, the engine's thread
 *	cli/probing.c		the answers of --probe
 *	cli/probereads.c	how files would be read
 *	cli/probetable.c	the same for people
 *	cli/probejson.c		the same for programs
 *	cli/main.c		this: from argv to exit
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/control.h"
#include "cli/options.h"
#include "cli/optiontable.h"
#include "cli/probejson.h"
#include "cli/probetable.h"
#include "cli/report.h"

/* A closed standard descriptor would be the number of the first file that is opened, and our lines
 * would be written into it. */
static void main_open_standard_fds(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			/* Read-only: a write to a closed output fails as it should. */
			if (open("/dev/null", O_RDONLY) != fd)
				_exit(TT_EXIT_FILE_IO);
}

/* Few heaps for all threads, grown in large steps: they allocate little, and a heap of each
 * thread's own grows page by page, with a system call each (glibc 2.36, malloc/arena.c). With one
 * alone they wait for each other. */
static void main_tune_heap(void)
{
	mallopt(M_ARENA_MAX, 2);
	mallopt(M_TOP_PAD, 1 << 20);
	mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

static enum tt_exit main_complain(const char *what, enum tt_exit code)
{
	fprintf(stderr, "tiptoe: %s\n", what);
	return code;
}

/* Ends what was printed through stdio. */
static enum tt_exit main_finish_stdout(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return TT_EXIT_OK;
	fprintf(stderr, "tiptoe: writing to standard output: %s\n", tt_error_text(errno));
	return TT_EXIT_FILE_IO;
}

static enum tt_exit main_show(const struct tt_options *options)
{
	if (options->dump_options)
		tt_optiontable_dump(stdout);
	else if (options->show_help)
		tt_optiontable_print_help(stdout);
	else
		puts("tiptoe  version " TIPTOE_VERSION);
	return main_finish_stdout();
}

static enum tt_exit main_probe(const struct tt_options *options)
{
	char message[TT_OPTIONS_MESSAGE_SIZE];
	struct tt_probing probing;
	enum tt_exit code = tt_probing_run(options->probe_dir, &probing, message, sizeof(message));

	if (code == TT_EXIT_OK || code == TT_EXIT_PARTIAL) {
		if (!options->json)
			tt_probetable_write(stdout, &probing);
		else if (tt_probejson_write(stdout, &probing) < 0 && !ferror(stdout))
			return main_complain(tt_error_text(ENOMEM), TT_EXIT_MEMORY);
		enum tt_exit written = main_finish_stdout();

		if (written != TT_EXIT_OK)
			return written;
	}
	return code == TT_EXIT_OK ? code : main_complain(message, code);
}

/* The last line, in the form that scripts know from rsync. */
static void main_print_verdict(struct tt_report *report, enum tt_exit code)
{
	char line[256];

	if (code == TT_EXIT_OK)
		return;
	snprintf(line, sizeof(line), "tiptoe %s: %s (code %d)",
		code == TT_EXIT_VANISHED ? "warning" : "error", tt_error_exit_text(code),
		(int)code);
	tt_report_error(report, line);
}

static enum tt_exit main_run_engine(const struct tt_options *options, struct tt_report *report)
{
	const struct tt_engine_events events = {.event = tt_report_event, .context = report};
	unsigned sources = options->operand_count - 1;
	struct tt_engine *engine = NULL;
	struct tt_engine_stats stats;
	enum tt_exit code = TT_EXIT_OK;
	int r;

	r = tt_engine_new(&options->engine, options->operands, sources, options->operands[sources],
		&report->log, &events, &engine);
	if (r < 0) {
		tt_log_line(&report->log, TT_LOG_ERROR, "starting: %s", tt_error_text(r));
		return TT_EXIT_MEMORY;
	}
	tt_report_begin(report);
	r = tt_control_run(engine, report, options->progress && !options->quiet,
		options->human_readable, &code);
	if (r < 0) {
		tt_log_line(&report->log, TT_LOG_ERROR, "starting: %s", tt_error_text(r));
		code = TT_EXIT_MEMORY;
	} else {
		tt_engine_stats(engine, &stats);
		/* rsync gives no totals when it did not get as far as a list, or was interrupted.
		 */
		if (code == TT_EXIT_OK || code == TT_EXIT_PARTIAL || code == TT_EXIT_VANISHED
			|| code == TT_EXIT_MAX_DELETE)
			tt_report_end(report, &stats);
	}
	tt_engine_free(engine);
	return code;
}

static enum tt_exit main_copy(const struct tt_options *options)
{
	const struct tt_report_policy policy = {
		.verbose = options->verbose,
		.itemize = options->itemize,
		.human_readable = options->human_readable,
		.quiet = options->quiet,
		.stats = options->stats,
		.dry_run = options->engine.dry_run,
		.recursive = options->engine.plan.recursive,
		.dirs = options->engine.plan.dirs,
		.prune_empty_dirs = options->engine.prune_empty_dirs,
		.verify_cache = options->engine.verify_cache,
		.delete_mode = options->engine.delete_mode,
		.update = options->engine.plan.update,
		.existing = options->engine.plan.existing,
		.ignore_existing = options->engine.plan.ignore_existing,
		.append = options->engine.plan.append,
	};
	struct tt_report report;
	enum tt_exit code;
	int r;

	if (tt_report_init(&report, &policy, STDOUT_FILENO, STDERR_FILENO) < 0)
		return main_complain(tt_error_text(ENOMEM), TT_EXIT_MEMORY);
	code = main_run_engine(options, &report);
	r = tt_report_flush(&report);
	if (r < 0) {
		tt_log_line(&report.log, TT_LOG_ERROR, "writing to standard output: %s",
			tt_error_text(r));
		if (code == TT_EXIT_OK)
			code = TT_EXIT_FILE_IO;
	}
	main_print_verdict(&report, code);
	tt_report_deinit(&report);
	return code;
}

int main(int argc, char **argv)
{
	char message[TT_OPTIONS_MESSAGE_SIZE];
	struct tt_options options;
	enum tt_exit code;
	const char *ring;

	main_open_standard_fds();
	signal(SIGPIPE, SIG_IGN);
	/* Which bytes of a name can be shown. */
	setlocale(LC_CTYPE, "");

	if (tt_options_init(&options) < 0)
		return main_complain(tt_error_text(ENOMEM), TT_EXIT_MEMORY);
	code = tt_options_parse(&options, argc, argv, message);
	if (code != TT_EXIT_OK) {
		main_complain(message, code);
		fprintf(stderr, "tiptoe error: %s (code %d)\n", tt_error_exit_text(code),
			(int)code);
		tt_options_deinit(&options);
		return (int)code;
	}
	ring = getenv("TIPTOE_RING");
	options.engine.no_ring = ring && strcmp(ring, "off") == 0;
	if (ring && ring[0] != '\0' && strcmp(ring, "off") != 0 && strcmp(ring, "on") != 0) {
		tt_options_deinit(&options);
		return (int)main_complain("TIPTOE_RING is neither on nor off", TT_EXIT_USAGE);
	}
	options.engine.meta.umask_bits = umask(0);
	main_tune_heap();

	if (options.show_help || options.show_version || options.dump_options) {
		code = main_show(&options);
	} else if (options.probe_dir) {
		code = main_probe(&options);
	} else {
		code = main_copy(&options);
	}
	tt_options_deinit(&options);
	return (int)code;
}
