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
struct tt_idmap;
struct tt_modes;

enum tt_options_dirs {
	TT_OPTIONS_DIRS_UNSAID,
	TT_OPTIONS_DIRS_NO,
	TT_OPTIONS_DIRS_YES,
	TT_OPTIONS_DIRS_OLD, /* as -r with a filter */
};

struct tt_options {
	struct tt_engine_policy engine;
	struct tt_filter *filter; /* owned; engine.filter points to it when it has rules */
	struct tt_modes *modes;   /* owned, and so are these: the engine's policy points to them */
	struct tt_idmap *users, *groups;

	unsigned verbose;        /* -v */
	unsigned itemize;        /* -i */
	unsigned human_readable; /* 1 by default, as rsync */
	unsigned one_file_system;
	unsigned atimes;
	bool quiet;
	bool stats;
	bool progress;
	bool show_help;
	bool show_version;
	bool dump_options;

	/* Until the end of parsing only: which --delete-WHEN was asked for. */
	bool delete_any, delete_before, delete_during, delete_delay, delete_after, delete_excluded;
	bool cvs_exclude;
	unsigned rule_files; /* -F */
	enum tt_options_dirs dirs;
	const char *usermap, *groupmap, *chown; /* borrowed */
	bool open_noatime;                      /* is what tiptoe does wherever it may */
	bool whole_file;                        /* -W is what tiptoe does between local trees */
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

/* Writes the message, with what the user typed made safe, and returns `code`. */
__attribute__((format(printf, 3, 4))) enum tt_exit tt_options_fail(
	char *message, enum tt_exit code, const char *format, ...);

/* Reads the command line. argv's strings are borrowed. `message` (TT_OPTIONS_MESSAGE_SIZE bytes)
 * gets one line for people when the result is not TT_EXIT_OK. Returns TT_EXIT_OK, TT_EXIT_USAGE,
 * TT_EXIT_UNSUPPORTED (an option of rsync's, or a remote operand) or TT_EXIT_MEMORY. */
enum tt_exit tt_options_parse(
	struct tt_options *options, int argc, char *const *argv, char *message);
