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
	bool recursive;       /* -r */
	bool dirs;            /* -d: directories, but not what is in them */
	bool links;           /* -l: copy symbolic links as links */
	bool perms;           /* -p */
	bool executability;   /* -E: without -p, whether a file can be executed */
	bool times;           /* -t */
	bool omit_dir_times;  /* -O */
	bool omit_link_times; /* -J */
	bool atimes;          /* -U */
	bool owner;           /* -o */
	bool group;           /* -g */
	bool devices;         /* --devices (half of -D) */
	bool specials;        /* --specials (the other half) */
	bool hard_links;      /* -H */
	bool checksum;        /* -c: TT_ENTRY_SAME_DATA decides */
	bool size_only;       /* --size-only */
	bool ignore_times;    /* -I */
	bool update;          /* -u: keep destination files that are newer */
	bool existing;        /* --existing: create nothing new */
	bool ignore_existing; /* --ignore-existing: change no existing file */
	bool append;          /* --append: change no file that is not shorter */
	bool has_window;      /* --modify-window of 0 or more: whole seconds, so far apart */
	int64_t window_sec;
	bool has_max_size; /* --max-size */
	uint64_t max_size_bytes;
	uint64_t min_size_bytes; /* --min-size; 0: none */
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
	TT_ITEM_ATIME = 1 << 12,      /* u: the time of the last access */
	TT_ITEM_OVER_SIZE = 1 << 13,  /* skipped because of --max-size */
	TT_ITEM_UNDER_SIZE = 1 << 14, /* skipped because of --min-size */
};

struct tt_plan_action {
	enum tt_plan_kind kind;
	uint32_t item; /* TT_ITEM_* bits; 0 and not NEW: nothing to show */
	bool make_way; /* the destination has something of another type under the name: remove it
			* first (a directory with all it holds only if that is allowed) */
	bool exists;   /* the destination has the name with the same type */
};

/* Whether something of this type and mode gets the source's time. Any thread. */
bool tt_plan_keeps_time(const struct tt_plan_policy *policy, uint32_t mode);

/* The bit for what is made anew and does not get that: with -t, rsync shows -J and -O as a change
 * of the time. Any thread. */
uint32_t tt_plan_made_now(const struct tt_plan_policy *policy, uint32_t mode);

/* `existing` is NULL if the destination does not have the name. Any thread. */
void tt_plan_entry(const struct tt_plan_policy *policy, const struct tt_entry *wanted,
	const struct tt_entry *existing, struct tt_plan_action *ret_action);
