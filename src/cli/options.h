/* SPDX-License-Identifier: MIT */
/*
 * The command line: from argv to the policies that the layers below obey. The struct of all options
 * is known to cli/ only.
 *
 * Parsing follows rsync's rules: options may follow operands, "--" ends them, short ones bundle
 * (-avxi), an argument is `--opt=value` or `--opt value`, later options override earlier ones,
 * names are never abbreviated.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "sync/engine.h"

#define TT_OPTIONS_MESSAGE_SIZE 4096

struct tt_filter;

struct tt_options {
	struct tt_engine_policy engine;
	struct tt_filter *filter; /* owned; engine.filter points to it when it has rules */

	unsigned verbose;        /* -v */
	unsigned itemize;        /* -i */
	unsigned human_readable; /* 1 by default, as rsync */
	unsigned one_file_system;
	bool quiet;
	bool stats;
	bool progress;
	bool show_help;
	bool show_version;
	bool dump_options;

	/* Until the end of parsing only: which --delete-WHEN was asked for. */
	bool delete_any, delete_before, delete_during, delete_after, delete_excluded;
	bool cvs_exclude;
	unsigned rule_files; /* -F */
	bool whole_file;     /* -W is what tiptoe does between local trees */
	bool inplace;
	enum tt_engine_inplace append;
	bool probe, json;
	const char *probe_dir; /* the one operand, or what stands behind --probe= */

	/* Owned array of borrowed strings; the last one is the destination. */
	const char **operands;
	unsigned operand_count;
};

/* The values before any option. Returns 0 or -ENOMEM. */
int tt_options_init(struct tt_options *options);
void tt_options_deinit(struct tt_options *options);

/* Reads the command line. argv's strings are borrowed. `message` (TT_OPTIONS_MESSAGE_SIZE bytes)
 * gets one line for people when the result is not TT_EXIT_OK. Returns TT_EXIT_OK, TT_EXIT_USAGE,
 * TT_EXIT_UNSUPPORTED (an option of rsync's, or a remote operand) or TT_EXIT_MEMORY. */
enum tt_exit tt_options_parse(
	struct tt_options *options, int argc, char *const *argv, char *message);
