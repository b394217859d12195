/* SPDX-License-Identifier: MIT */
/*
 * One run: from a list of sources and a destination to a tree that equals them.
 *
 *	listing (workers) -> plan (engine thread) -> copy (workers) -> writeback (pacer) -> arrive
 *(workers) -> finish
 *
 * The engine owns its threads. tt_engine_run() is called once, from a thread of its own or the
 *caller's, and returns the exit code. While it runs, any thread may ask tt_engine_progress() and
 *tt_engine_stop().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "cache/policy.h"
#include "copy/clone.h"
#include "sync/plan.h"
#include "tree/meta.h"

struct tt_engine;
struct tt_filter;

/* Which files are written under their own names, and from where. */
enum tt_engine_inplace {
	TT_INPLACE_NO,            /* all arrive whole */
	TT_INPLACE_WHOLE,         /* --inplace */
	TT_INPLACE_APPEND,        /* --append: what is there stays, unseen */
	TT_INPLACE_APPEND_VERIFY, /* --append-verify: if it is the same */
};

enum tt_engine_delete {
	TT_DELETE_NONE,
	TT_DELETE_BEFORE,
	TT_DELETE_DURING,
	TT_DELETE_DELAY, /* found during, deleted after */
	TT_DELETE_AFTER
};

/* What becomes of sources that are named and not there. */
enum tt_engine_missing {
	TT_MISSING_IS_ERROR,
	TT_MISSING_IGNORE, /* --ignore-missing-args */
	TT_MISSING_DELETE, /* --delete-missing-args */
};

struct tt_engine_policy {
	struct tt_plan_policy plan;
	struct tt_meta_policy meta;
	struct tt_cache_policy cache;
	struct tt_filter *filter; /* may be NULL; borrowed for the run */
	enum tt_engine_delete delete_mode;
	bool has_max_delete; /* --max-delete */
	uint64_t max_delete;
	bool force;         /* --force: directories with contents make way */
	bool ignore_errors; /* --ignore-errors: of reading, where something is to be deleted */
	bool remove_source_files;
	bool tell_removed; /* the sources' names then */
	bool mkpath;       /* --mkpath */
	enum tt_engine_missing missing;
	enum tt_engine_inplace inplace;
	bool dry_run;          /* -n */
	bool one_file_system;  /* -x */
	bool omit_mounts;      /* -xx: nor the directories that others are mounted on */
	bool prune_empty_dirs; /* -m */
	bool sparse;           /* -S: make holes of zeros; holes of the source are always kept */
	bool preallocate;      /* --preallocate */
	bool no_seek_hole; /* --no-seek-hole: what the source says about its holes is not believed
			    */
	enum tt_clone_mode reflink; /* --reflink */
	bool fsync;                 /* --fsync */
	bool verify_cache; /* --verify-cache: after the run, open everything that was touched again
			      and count its resident pages */
	unsigned workers;  /* 0: chosen by the engine */
	bool no_ring;      /* TIPTOE_RING=off */
	bool overrides_modes;  /* permission bits do not hold this process up (tt_fd) */
	bool silent;           /* nobody wants to hear of items and deletions */
	bool report_unchanged; /* tell entries that are as they should be, too (-ii, -vv) */
};

/* What is told while the run goes on, in rsync's order, from the engine thread only. Strings are
 * valid during the call. */
enum tt_event_kind {
	TT_EVENT_CREATED_ROOT, /* path: the destination directory, which did not exist */
	TT_EVENT_CREATED_PATH, /* the same with directories above it: count */
	TT_EVENT_ITEM,         /* one entry that was planned */
	TT_EVENT_DELETED, /* path (with mode to tell directories) is deleted, or would be under -n
			   */
	TT_EVENT_SKIP_NONREG, /* a special file, symlink or device that the options leave out */
	TT_EVENT_SKIP_DIR,    /* a directory without -r */
};

struct tt_event {
	enum tt_event_kind kind;
	const char *path; /* relative to the root of the transfer, without trailing '/'; "." for the
			     root itself */
	const char *link; /* symlink target; or the leader's path when item has TT_ITEM_HARD_LINK;
			     else NULL */
	uint32_t mode;    /* type and permissions of the source entry */
	uint64_t size_bytes;
	int64_t mtime_sec;
	uint32_t item; /* TT_ITEM_* */
	enum tt_plan_kind plan_kind;
	unsigned count;
};

struct tt_engine_events {
	void (*event)(void *context, const struct tt_event *event);
	void *context;
};

/* Regular files, and their pages that are resident. */
struct tt_verify_count {
	uint64_t files, pages;
	uint64_t unknown; /* files that could not be asked */
};

/* Counters for --stats. The first part has rsync's meaning. */
struct tt_engine_stats {
	uint64_t files, regular, directories, links, devices, specials; /* seen */
	uint64_t created, created_regular, created_directories, created_links, created_devices,
		created_specials;
	uint64_t deleted, deleted_regular, deleted_directories, deleted_links, deleted_devices,
		deleted_specials;
	uint64_t transferred;       /* regular files whose content was transferred */
	uint64_t total_bytes;       /* sum of sizes of all regular files and links seen */
	uint64_t transferred_bytes; /* sum of sizes of transferred files */
	uint64_t literal_bytes;     /* bytes really written (holes not counted) */
	uint64_t list_ns;           /* time until the last directory was listed */
	uint64_t elapsed_ns;
	/* ours */
	uint64_t cloned_bytes;         /* of content that shares its blocks with the source */
	uint64_t pages_found_resident; /* of sources and replaced files, before we touched them */
	uint64_t pages_dropped;
	uint64_t pages_not_dropped; /* would not go when asked */
	uint64_t pages_left;        /* resident because of us after the last drop */
	uint64_t pages_kept_hot;    /* of replaced files that were resident, kept on purpose */
	uint64_t files_read_direct, files_written_direct; /* with O_DIRECT */
	uint64_t files_unknown;                           /* residency could not be found out */
	uint64_t drop_calls;                              /* POSIX_FADV_DONTNEED, of all threads */
	uint64_t drop_ns;          /* time in those that did not go through a ring */
	uint64_t peak_dirty_bytes; /* highest charge of all pacers together */
	uint64_t pacer_wait_ns;    /* sum over workers */
	/* with verify_cache: what is there at the end */
	struct tt_verify_count verify_destination, verify_sources;
	char mechanisms[4096];      /* one line per file system: "ext4 on loop0 (8:1): 3 files read:
				       cachestat, trailing DONTNEED; 3 files written: ..." */
	char refusals[1024];        /* one line per call that this process was refused, see
				       tt_facility_describe() */
	uint64_t skipped_deletions; /* because of max_delete */
	uint64_t errors;            /* files that failed */
	uint64_t vanished;
};

struct tt_engine_progress {
	uint64_t files_done, files_known; /* entries finished, entries listed so far */
	uint64_t bytes_done, bytes_known; /* of content that is to be transferred */
	bool listing_complete;
	uint64_t elapsed_ns;
};

/* `sources` and `destination` are paths as the user wrote them, with rsync's meaning of a trailing
 * slash. They, the policy's borrowed parts, the log and the events' context must live until
 * tt_engine_free(). Returns 0 or -ENOMEM. */
int tt_engine_new(const struct tt_engine_policy *policy, const char *const *sources,
	unsigned source_count, const char *destination, const struct tt_log *log,
	const struct tt_engine_events *events, struct tt_engine **ret_engine);

/* Runs to the end. Returns the exit code: 0, 1, 3, 11, 20, 22, 23, 24, 25. One call per engine. */
enum tt_exit tt_engine_run(struct tt_engine *engine);

/* Asks for an orderly stop: what is complete arrives, everything else is removed, exit code 20. Any
 * thread; not a signal handler. */
void tt_engine_stop(struct tt_engine *engine);

/* A consistent enough picture for people. Any thread. */
void tt_engine_progress(struct tt_engine *engine, struct tt_engine_progress *ret_progress);

/* After the run. */
void tt_engine_stats(const struct tt_engine *engine, struct tt_engine_stats *ret_stats);

void tt_engine_free(struct tt_engine *engine); /* accepts NULL */
