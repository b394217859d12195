/* SPDX-License-Identifier: MIT */
/*
 * One rule of a filter, and lists of them. What kind of match a pattern needs is found once, when
 * the rule is made. Internal to the filter_*.c files.
 *
 * Lists share their ends: a directory's own rules stand before those that it inherits, which are
 * its parent's and do not change any more. Rules live in the arena of whoever read them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum {
	/* what the rule says */
	TT_FILTER_RULE_INCLUDE = 1 << 0,
	TT_FILTER_RULE_SENDER = 1 << 1, /* these two: neither is both sides, see filter_dir.h */
	TT_FILTER_RULE_RECEIVER = 1 << 2,
	TT_FILTER_RULE_ABSOLUTE = 1
				  << 3, /* matched against the path from the root of the machine */
	TT_FILTER_RULE_NEGATED = 1 << 4,
	TT_FILTER_RULE_PERISHABLE = 1 << 5,
	TT_FILTER_RULE_XATTR = 1 << 6, /* about names of attributes: never of files */
	TT_FILTER_RULE_CVS = 1 << 7,   /* the place of the CVS rules; of a file: it is read as CVS
					  does */
	TT_FILTER_RULE_CLEAR = 1 << 8,
	/* of files with rules */
	TT_FILTER_RULE_MERGE = 1 << 9,
	TT_FILTER_RULE_PER_DIR = 1 << 10,
	TT_FILTER_RULE_NO_PREFIXES = 1 << 11,
	TT_FILTER_RULE_WORDS = 1 << 12,
	TT_FILTER_RULE_NO_INHERIT = 1 << 13,
	TT_FILTER_RULE_EXCLUDE_SELF = 1 << 14,
	/* what the pattern is */
	TT_FILTER_RULE_DIRS_ONLY = 1 << 16, /* ended in '/' */
	TT_FILTER_RULE_ANCHORED = 1 << 17,  /* began with '/' */
	TT_FILTER_RULE_PATH = 1 << 18,      /* matched against the path, not the last component */
	TT_FILTER_RULE_WILD = 1 << 19,      /* has wildcards; else compared as it is */
	TT_FILTER_RULE_ANY_DEPTH = 1 << 20, /* has `**` */
	TT_FILTER_RULE_STAR_BEGIN =
		1 << 21, /* begins with `**`, which may match the '/' before the whole path too */
	TT_FILTER_RULE_STAR_END =
		1 << 22, /* ends with `***`: a directory is matched as if its name ended in '/' */

	TT_FILTER_RULE_SIDES = TT_FILTER_RULE_SENDER | TT_FILTER_RULE_RECEIVER,
	/* What the rules in a file have from the rule that names the file. */
	TT_FILTER_RULE_INHERITED = TT_FILTER_RULE_ABSOLUTE | TT_FILTER_RULE_INCLUDE
				   | TT_FILTER_RULE_NEGATED | TT_FILTER_RULE_PERISHABLE,
};

struct tt_filter_rule {
	const struct tt_filter_rule *next;
	uint32_t flags;
	unsigned slashes;
	unsigned point; /* PER_DIR: which of the directory's lists stands here */
	size_t skip;    /* ANCHORED in a directory: its path with a '/' at both ends is so long */
	char pattern[]; /* without the slashes that ANCHORED and DIRS_ONLY stand for */
};

struct tt_filter_rules {
	const struct tt_filter_rule *head;
	struct tt_filter_rule *last; /* of the list's own; those behind it are inherited */
};

/* A path as rules are held against it: "/root/of/the/machine/path/in/transfer". The text is the
 * caller's, with room for two bytes behind its end, and is as before afterwards. */
struct tt_filter_path {
	char *full;
	char *rooted; /* in it: the '/' before the path in the transfer */
	char *name;   /* in it: the last component */
	char *end;
	bool is_dir;
};

/* A rule for this pattern (`length` bytes), at the end of the list's own. `skip`: see above, 0 for
 * a rule that does not belong to a directory. Returns 0 or -ENOMEM. */
int tt_filter_rule_append(struct tt_filter_rules *rules, struct tt_arena *arena, uint32_t flags,
	const char *pattern, size_t length, size_t skip, struct tt_filter_rule **ret_rule);

/* Whether the pattern fits, or does not if the rule is negated. Any thread. */
bool tt_filter_rule_matches(const struct tt_filter_rule *rule, const struct tt_filter_path *path);
