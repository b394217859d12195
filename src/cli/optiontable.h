/* SPDX-License-Identifier: MIT */
/*
 * The one table of options. From a row come the parser's behaviour, the line of --help, the
 * suggestion for an unknown option, and the line of --dump-options, against which tests hold the
 * man page and the completions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum tt_optiontable_type {
	TT_OPTIONTABLE_FLAG,    /* bool: true, or false when negated */
	TT_OPTIONTABLE_COUNT,   /* unsigned: one more, or 0 when negated */
	TT_OPTIONTABLE_SIZE,    /* uint64_t bytes, more than 0 */
	TT_OPTIONTABLE_WORKERS, /* unsigned, 1 to 256 */
	TT_OPTIONTABLE_CACHE,   /* enum tt_cache_mode */
	TT_OPTIONTABLE_REFLINK, /* enum tt_clone_mode */
	TT_OPTIONTABLE_PROBE,   /* bool; a directory may stand behind "=" */
	TT_OPTIONTABLE_PATTERN_EXCLUDE,
	TT_OPTIONTABLE_PATTERN_INCLUDE,
	TT_OPTIONTABLE_EXCLUDE_FROM,
	TT_OPTIONTABLE_INCLUDE_FROM,
	TT_OPTIONTABLE_FILTER,
	TT_OPTIONTABLE_RULE_FILES, /* -F, -FF */
	TT_OPTIONTABLE_FROM0,
	TT_OPTIONTABLE_ARCHIVE, /* several flags at once */
	TT_OPTIONTABLE_NODES,   /* --devices --specials */
	TT_OPTIONTABLE_APPEND,
	TT_OPTIONTABLE_APPEND_VERIFY,
	TT_OPTIONTABLE_DIRS,
	TT_OPTIONTABLE_OLD_DIRS,
	TT_OPTIONTABLE_SUPER,
	TT_OPTIONTABLE_IGNORE_MISSING,
	TT_OPTIONTABLE_DELETE_MISSING,
	TT_OPTIONTABLE_MAX_DELETE,
	TT_OPTIONTABLE_MAX_SIZE, /* these are read in optionvalue.c */
	TT_OPTIONTABLE_MIN_SIZE,
	TT_OPTIONTABLE_WINDOW,
	TT_OPTIONTABLE_CHMOD,
	TT_OPTIONTABLE_CHOWN,
	TT_OPTIONTABLE_USERMAP,
	TT_OPTIONTABLE_GROUPMAP,
	TT_OPTIONTABLE_REFUSED, /* rsync has it, tiptoe has not */
};

enum tt_optiontable_group {
	TT_OPTIONTABLE_WHAT,
	TT_OPTIONTABLE_HOW,
	TT_OPTIONTABLE_DELETE,
	TT_OPTIONTABLE_OUTPUT,
	TT_OPTIONTABLE_CACHE_GROUP,
	TT_OPTIONTABLE_OTHER,
	TT_OPTIONTABLE_GROUPS,
};

struct tt_optiontable_row {
	const char *long_name; /* NULL: only short */
	char short_name;       /* 0: only long */
	const char *argument;  /* its name in help, or NULL */
	enum tt_optiontable_type type;
	size_t offset; /* of the destination in struct tt_options */
	enum tt_optiontable_group group;
	const char *help; /* NULL: hidden */
	const char *since;
	bool negatable; /* --no-LONG and --no-SHORT */
};

/* The rows, ended by one with neither name. */
extern const struct tt_optiontable_row tt_optiontable[];

const struct tt_optiontable_row *tt_optiontable_find_long(const char *name, size_t length);
const struct tt_optiontable_row *tt_optiontable_find_short(char name);

/* The option that `name` (without dashes) was perhaps meant to be: "no-perms", "exclude". NULL if
 * nothing is near. The result is in `buffer` (64 bytes). */
const char *tt_optiontable_suggest(const char *name, char *buffer);

/* Whether tests and manuals should know the row: neither refused nor hidden. */
bool tt_optiontable_is_documented(const struct tt_optiontable_row *row);

/* --help, at most 80 columns. */
void tt_optiontable_print_help(FILE *stream);

/* One line per row, tab separated: long, short, argument, type, group, since, negatable, help; "-"
 * for what a row does not have. Refused rows have the type "refused". */
void tt_optiontable_dump(FILE *stream);
