/* SPDX-License-Identifier: MIT */
/*
 * The language of filter rules: from text, or a file of it, to lists of rules. Internal to the
 * filter_*.c files.
 */
#pragma once

#include <pthread.h>

#include "base/arena.h"
#include "tree/filter.h"
#include "tree/filter_rule.h"

/* A name to look for in every directory, and the rules that were found under it so far. */
struct tt_filter_point {
	const struct tt_filter_rule *rule; /* that stands for it; NULL: it was cleared */
	const char *name;                  /* the file's, without directories */
	struct tt_filter_rules rules;
	bool is_new; /* the directories above the first one are still to be looked through */
};

struct tt_filter_points {
	struct tt_filter_point *items;
	unsigned count, capacity;
};

struct tt_filter {
	struct tt_filter_reader reader;
	bool from0, delete_excluded;
	struct tt_arena arena;
	struct tt_filter_rules rules;
	struct tt_filter_points points;

	/* The CVS rules are made when they are asked for first, perhaps by a file in the tree. */
	pthread_mutex_t cvs_lock; /* guards them until they are made */
	bool cvs_made;
	struct tt_arena cvs_arena;
	struct tt_filter_rules cvs;
};

/* Where rules come from: what decides how names of files in them are meant. */
struct tt_filter_parser {
	struct tt_filter *filter; /* its settings; its cvs rules */
	const struct tt_filter_reader *reader;
	struct tt_arena *arena;
	struct tt_filter_points *points;
	struct tt_filter_error *error;

	/* Rules of a directory: its absolute path has so many bytes with a '/' at both ends, and
	 * patterns that begin with '/' begin there. 0: of the command line. */
	size_t skip;
	const char *above; /* the directories above the tree are being looked through: this one,
			      with a '/' at its end; else NULL */
	/* Opens a file that a rule in the tree names, which must not lead out of it; NULL: the path
	 * is the user's own. Returns a descriptor or a negative errno. */
	int (*open)(void *context, const char *path);
	void *open_context;

	/* where we are, for messages */
	const char *file; /* NULL: the command line */
	unsigned line;
	unsigned depth; /* files in files */
};

enum {
	TT_FILTER_PARSE_OLD_PREFIXES = 1 << 0, /* only "- ", "+ " and "!" */
	TT_FILTER_PARSE_ANCHORED = 1 << 1,     /* patterns begin in the parser's directory */
};

/* One rule, or with TT_FILTER_RULE_WORDS any number of them. `flags`: TT_FILTER_RULE_* of the rule
 * that the text comes from. Returns 0, -ENOMEM, -EINVAL (with the parser's error), or a negative
 * errno of a file that it names (likewise). */
int tt_filter_parse_text(struct tt_filter_parser *parser, struct tt_filter_rules *rules,
	const char *text, uint32_t flags, unsigned ways);

/* A whole file whose rules stand in this place; "-": standard input. Returns as above. */
int tt_filter_parse_file(struct tt_filter_parser *parser, struct tt_filter_rules *rules,
	const char *path, uint32_t flags, unsigned ways);

/* The same for what was read of a file: `bytes` with a NUL behind them, which are changed. `path`
 * is what it is called in messages. */
int tt_filter_parse_content(struct tt_filter_parser *parser, struct tt_filter_rules *rules,
	char *text, size_t bytes, const char *path, uint32_t flags, unsigned ways);

/* Makes "a//./b/../c" of it "a/c"; an absolute path stays one. Returns its length. In place. */
size_t tt_filter_parse_clean(char *path);
