/* SPDX-License-Identifier: MIT */
/*
 * What to do about one name: a pure function of the source entry, the destination entry and the
 * policy. No I/O, no clock, so a table of cases tests it completely.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tt_entry;

struct tt_plan_policy {
	bool recursive;          /* -r */
	bool links;              /* -l: copy symbolic links as links */
	bool perms;              /* -p */
	bool times;              /* -t */
	bool owner;              /* -o */
	bool group;              /* -g */
	bool devices;            /* --devices (half of -D) */
	bool specials;           /* --specials (the other half) */
	bool hard_links;         /* -H */
	bool checksum;           /* -c: TT_ENTRY_SAME_DATA decides */
	bool size_only;          /* --size-only */
	bool ignore_times;       /* -I */
	bool update;             /* -u: keep destination files that are newer */
	bool existing;           /* --existing: create nothing new */
	bool ignore_existing;    /* --ignore-existing: change no existing file */
	bool append;             /* --append: change no file that is not shorter */
	bool is_super;           /* may chown and mknod; -o and --devices do nothing otherwise */
	uint64_t granularity_ns; /* of times at the destination; 0: whole seconds */
};

enum tt_plan_kind {
	TT_PLAN_SKIP, /* nothing, no line (excluded by policy; a reason may be reported at higher
			 verbosity) */
	TT_PLAN_SKIP_NONREG, /* nothing; "skipping non-regular file" */
	TT_PLAN_SKIP_DIR,    /* nothing; "skipping directory" */
	TT_PLAN_SKIP_LONG,   /* nothing, and never a word: differs, but --append cannot mend that */
	TT_PLAN_KEEP,        /* is as it should be; a line only with -ii */
	TT_PLAN_ATTRIBUTES,  /* content is right, attributes are set */
	TT_PLAN_COPY,        /* content of a regular file is transferred */
	TT_PLAN_SYMLINK,     /* made, or made anew */
	TT_PLAN_NODE,        /* device, fifo, socket made, or made anew */
	TT_PLAN_DIRECTORY,   /* made, if it is not there; its attributes are set when its last child
				has arrived */
};

/* Bits of an itemised line, with the letters of rsync's -i after the first two. */
enum {
	TT_ITEM_NEW = 1 << 0,      /* all '+' */
	TT_ITEM_CHECKSUM = 1 << 1, /* c: content differs by checksum, or a link's target, or a
				      node's device number */
	TT_ITEM_SIZE = 1 << 2,     /* s */
	TT_ITEM_TIME = 1 << 3,     /* t: times differ, will be set */
	TT_ITEM_TIME_NOW = 1 << 4, /* T: will be set to the time of transfer (no -t) */
	TT_ITEM_PERMS = 1 << 5,    /* p */
	TT_ITEM_OWNER = 1 << 6,    /* o */
	TT_ITEM_GROUP = 1 << 7,    /* g */
	TT_ITEM_TRANSFER = 1 << 8, /* '>' in the first column */
	TT_ITEM_LOCAL = 1 << 9, /* 'c' in the first column: created or changed without a transfer of
				   content */
	TT_ITEM_HARD_LINK = 1 << 10, /* 'h' in the first column */
	TT_ITEM_MISSING_DATA =
		1 << 11, /* item without any change that is shown nevertheless (a name at -v) */
};

struct tt_plan_action {
	enum tt_plan_kind kind;
	uint32_t item; /* TT_ITEM_* bits; 0 and not NEW: nothing to show */
	bool make_way; /* the destination has something of another type under the name: remove it
			* first (a directory with all it holds only if that is allowed) */
	bool exists;   /* the destination has the name with the same type */
};

/* `existing` is NULL if the destination does not have the name. Any thread. */
void tt_plan_entry(const struct tt_plan_policy *policy, const struct tt_entry *wanted,
	const struct tt_entry *existing, struct tt_plan_action *ret_action);
