/* SPDX-License-Identifier: MIT */
/*
 * Owner, group, mode and times of one inode, in the one order that keeps them: owner, then mode
 * (setuid and setgid last, chown clears them), then times. By descriptor; by name only for what
 * cannot be opened (symbolic links, devices, sockets, fifos), and then never through a link.
 *
 * Only what differs is set: a call that changes nothing still costs a journal transaction.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct stat;
struct tt_entry;
struct tt_idmap;
struct tt_modes;

struct tt_meta_policy {
	bool perms;           /* -p */
	bool times;           /* -t */
	bool omit_dir_times;  /* -O */
	bool omit_link_times; /* -J */
	bool atimes;          /* -U: of all but directories and links */
	bool owner;           /* -o, effective only for a super-user, as in rsync */
	bool group;           /* -g: for others than the super-user only groups they are in */
	bool numeric_ids;     /* ids are compared as numbers either way between two local trees */
	bool exact_times;     /* a fraction of a second is a difference, too */
	bool exact_files;     /* the same for regular files only */
	int64_t window_sec;   /* without exact_times: so many seconds are no difference */
	bool executability;   /* -E */
	const struct tt_modes *modes; /* --chmod, or NULL; borrowed */
	struct tt_idmap *users;       /* --usermap, or NULL; borrowed */
	struct tt_idmap *groups;      /* --groupmap, or NULL; borrowed */
	uint32_t umask_bits;          /* the process's umask at start, for files made without -p */
	bool is_super;                /* effective uid 0 at start */
};

/* Which step failed, for the message. */
enum tt_meta_step {
	TT_META_OWNER,
	TT_META_MODE,
	TT_META_TIMES
};

/* The words for a message: "setting owner of", ... */
const char *tt_meta_step_text(enum tt_meta_step step);

/* Makes of what a source entry is what it is to become: --chmod, --usermap, --groupmap. Once for
 * each entry, before anything is decided about it. Any thread. */
void tt_meta_adjust(const struct tt_meta_policy *policy, struct tt_entry *wanted);

/* The mode that `wanted` arrives with: its own under -p; without -p `existing`'s (or, with
 * `existing` NULL, the wanted permissions less the umask, without setuid, setgid and sticky bits),
 * as rsync; under -E `existing`'s with or without the right to execute. The type bits are
 * `wanted`'s. Any thread. */
uint32_t tt_meta_mode(const struct tt_meta_policy *policy, const struct tt_entry *wanted,
	const struct tt_entry *existing);

/* Whether this process, not being the super-user, is in the group. Where it is not, the lister sets
 * TT_ENTRY_SKIP_GROUP. Any thread. */
bool tt_meta_may_give_group(uint32_t gid);

/* Gives the open file or directory `fd` the attributes of `wanted`. `existing` is what the
 * destination name had before (for the mode without -p and the owner without -o), or NULL. Does one
 * fstat to see what is there already. Any thread. Returns 0, or a negative errno with *ret_step
 * written: later steps were still tried. -ESTALE if it is of another type than `wanted`; nothing
 * was tried then. */
int tt_meta_apply_fd(const struct tt_meta_policy *policy, int fd, const struct tt_entry *wanted,
	const struct tt_entry *existing, enum tt_meta_step *ret_step);

/* The same for a descriptor that `st` is known to describe: what fstat said when the file was made,
 * and nothing but its content has changed since. */
int tt_meta_apply_made(const struct tt_meta_policy *policy, int fd, const struct stat *st,
	const struct tt_entry *wanted, const struct tt_entry *existing,
	enum tt_meta_step *ret_step);

/* The same for the name `name` in `dir_fd`, never following a link. For symbolic links the mode is
 * not set (Linux has none). */
int tt_meta_apply_at(const struct tt_meta_policy *policy, int dir_fd, const char *name,
	const struct tt_entry *wanted, const struct tt_entry *existing,
	enum tt_meta_step *ret_step);
