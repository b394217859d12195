/* SPDX-License-Identifier: MIT */
/*
 * What the files of the engine share: the run, its directories, its jobs. Internal to sync/.
 *
 * A directory is a node from the moment its parent was listed until everything in it has arrived:
 *
 *	waiting -> listing -> listed -> (planned) -> finished
 *
 * `pending` counts what the node waits for before it can be finished: its own planning, its jobs,
 *its child directories. Everything that is marked so is guarded by the run's one lock; the rest of
 *a node belongs to the worker that lists it, then to the engine thread that plans it, and does not
 *change after.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cache/neutral.h"
#include "cache/pacer.h"
#include "copy/copy.h"
#include "sync/engine.h"
#include "sync/plan.h"
#include "tree/entry.h"
#include "tree/listing.h"

struct tt_branch;
struct tt_delayed;
struct tt_device_table;
struct tt_filter_dir;
struct tt_inplace;
struct tt_lane;
struct tt_linkset;
struct tt_linkset_group;
struct tt_moved;
struct tt_share;
struct tt_sweep;
struct tt_volume;

enum tt_dir_state {
	TT_DIR_WAITING,
	TT_DIR_LISTING,
	TT_DIR_LISTED
};

struct tt_dir {
	struct tt_dir *parent; /* NULL for the root of the transfer */
	char *path;            /* relative to the root; "" for the root; behind the node */
	const char *name;      /* last component, inside path */
	unsigned depth, index; /* position: index among its siblings in rsync's order */
	struct tt_entry entry; /* the source directory (name and link unset) */
	struct tt_entry existing;
	unsigned mount;  /* at the destination: one number for all that can be links of one inode */
	bool exists;     /* the destination has a directory of this name */
	bool no_descent; /* only the directory itself (-d; -x at a mount point; the destination
			    itself) */
	bool is_target; /* its attributes are ours to set: false for a root that only collects named
			   sources */
	const char *destination_name; /* for a root with one file: its name at the destination; else
					 NULL */

	unsigned layer_count;
	uint16_t *layers; /* indices into the parent's layers, not for the root; behind the node */
	int *source_fds;  /* by layer, -1: not open; behind the node; owned */
	int destination_fd;
	struct tt_filter_dir **source_rules; /* by layer; behind the node; owned as those below */
	struct tt_filter_dir *destination_rules; /* NULL: there are none */
	struct tt_volume *from, *to; /* to: NULL under -n for a directory that is not there */
	struct tt_listing source, destination;
	bool *layer_is_named; /* root only: this layer holds a source named on the command line, not
				 contents; owned */
	int list_error;       /* some of it could not be read: no deletions afterwards */
	struct tt_dir **children;
	unsigned child_count;

	/* guarded by the run's lock */
	enum tt_dir_state state;
	unsigned heap_index; /* in the queue of directories to be listed, plus 1; 0: not in it */
	unsigned pending;
	unsigned jobs;          /* part of pending that still needs the listings */
	unsigned entries_ahead; /* its share of the run's */
	bool planned, changed, failed;
};

struct tt_task {
	const struct tt_entry *wanted, *existing;
	struct tt_plan_action action;
	struct tt_linkset_group *group; /* with -H, for an inode with several names */
	bool is_follower;
};

/* Planning stops ahead at so many that nobody has done yet, for each disk, and goes on at half of
 * them. */
enum {
	TT_MOST_JOBS = 256,
	TT_MOST_TASKS = 8192
};

#define TT_JOB_TASKS 64
#define TT_JOB_BYTES (UINT64_C(4) << 20)

struct tt_job {
	struct tt_job *next;
	struct tt_dir *dir;
	unsigned count;
	uint64_t bytes;
	struct tt_task tasks[TT_JOB_TASKS];
};

/* One new file between its last write and its final name. */
struct tt_arrival {
	struct tt_pacer_file paced; /* fd, verdict */
	struct tt_dir *dir;
	const struct tt_entry *wanted;
	struct tt_linkset_group *group;
	struct tt_neutral_old old;
	uint64_t size_bytes, literal_bytes, cloned_bytes;
	bool discard;               /* something failed already: only clean up */
	bool is_new;                /* the destination did not have the name */
	struct tt_inplace *inplace; /* written under its own name; NULL: under `temp`; owned */
	char temp[256];
};

struct tt_batch {
	struct tt_pacer_batch paced;
	struct tt_batch *outer; /* in the middle of whose arrival this one arrives, by one worker */
	struct tt_volume *volume;
	uint64_t bytes;
	unsigned held; /* guarded by the run's lock: tt_arrive_hold() */
	struct tt_arrival *arrivals[TT_PACER_BATCH_FILES]; /* owned */
};

struct tt_worker {
	struct tt_engine *engine;
	pthread_t thread;
	bool is_alone; /* has a lane's space_lock */
	bool has_turn; /* turn.h */
	struct tt_copy_worker copy;
	struct tt_neutral_stats cache_stats;
	struct tt_engine_stats stats; /* rsync's part and ours, added up at the end */
	struct tt_batch *arriving;    /* whose arrival it is in the middle of, innermost */
	struct tt_batch *batch;       /* being filled */
	struct tt_writer_hooks hooks;
};

enum {
	TT_HEAP_CAPACITY_START = 256,
	TT_SPARE_LISTINGS = 64,
	TT_SPARE_ENTRIES = 256, /* larger ones are not kept */
	TT_SPARE_BYTES = 16384,
};

struct tt_engine {
	/* constant during the run */
	struct tt_engine_policy policy;
	const char *const *sources;
	unsigned source_count;
	const char *destination;
	const struct tt_log *log;
	struct tt_engine_events events;
	unsigned worker_count; /* of the first disk; the engine thread's own stands behind them */
	unsigned most_workers; /* of all disks together: each needs descriptors */
	unsigned most_entries_ahead, most_dirs_ahead;
	unsigned batch_fds;        /* for files on their way */
	_Atomic uint64_t start_ns; /* 0: not begun; progress may be asked before */
	struct tt_device_table *devices;
	struct tt_linkset *links;
	struct tt_sweep *sweep;
	struct tt_pool pool;
	struct tt_worker *workers;
	int root_destination_fd;
	char *destination_name; /* of a single file; owned */
	char **missing;         /* names of sources that are not there, to be deleted; owned */
	unsigned missing_count;
	uint64_t destination_dev_key, destination_ino; /* identity of the destination root */
	_Atomic int64_t keep_budget_pages;

	/* any thread */
	_Atomic bool stop; /* leave off: asked to, or fatal */
	_Atomic int fatal; /* enum tt_exit, first one */
	_Atomic bool asked_to_stop;
	_Atomic bool disk_full;
	_Atomic bool source_failed; /* a source file could not be read: no deletions afterwards */
	_Atomic int deleting_error; /* of a walk that only deletes */
	_Atomic bool list_failed;   /* a source directory could not be read: no deletions */
	_Atomic uint64_t errors, vanished;
	_Atomic unsigned mounts;               /* that were met at the destination */
	_Atomic unsigned told_of_loss, untold; /* errors of file systems that are gone (reason.h) */
	_Atomic uint64_t files_known, files_done, bytes_known, bytes_done;
	_Atomic bool listing_complete;
	_Atomic uint64_t list_ns;     /* until then */
	_Atomic unsigned batch_files; /* so many at most in one; less with more disks */

	/* guarded by lock */
	pthread_mutex_t lock;
	pthread_cond_t work_ready;  /* workers */
	pthread_cond_t batch_ready; /* workers that need a batch, or all of them back */
	pthread_cond_t plan_ready;  /* the engine thread */
	pthread_cond_t share_ready; /* owners of shares that others still work on */
	struct tt_dir **heap;       /* directories to be listed, nearest in rsync's order first */
	unsigned heap_count, heap_capacity;
	struct tt_listing spare[TT_SPARE_LISTINGS]; /* empty, with memory */
	unsigned spare_count;
	struct tt_share *shares;            /* large listings that idle workers may help with */
	unsigned listings;                  /* directories that are being listed now */
	unsigned entries_ahead, dirs_ahead; /* listed or being listed, and not yet planned */
	struct tt_moved *moved;             /* names of the source that go at the end */
	struct tt_inplace *claims; /* files with several names that are being written in place */
	struct tt_lane *lanes;     /* one for each disk that is written to */
	unsigned lane_count;
	unsigned most_busy, most_batches; /* workers and batches for one of them */
	unsigned idle_workers;
	unsigned plan_waits;                 /* so many planners sleep on plan_ready */
	const struct tt_dir *plan_waits_for; /* until this one is listed; NULL: for anything */
	bool listing_rests; /* enough is listed; nobody goes on before half of it is planned */
	unsigned unlisted;  /* directories known and not yet listed */
	bool no_more_work, root_finished;
	struct tt_volume *volumes;

	/* Held by whoever plans: the engine thread, or the thread of a branch (branch.h). Before
	 * `lock`; given up while one sleeps. */
	pthread_mutex_t turn;
	/* guarded by turn */
	struct tt_branch *branch;   /* whose turn it is */
	struct tt_branch *branches; /* in the order of what is told; the first one tells at once */
	struct tt_branch *told;     /* complete; freed at the end */
	unsigned branch_count;
	size_t kept_bytes; /* of what is not told yet */
	bool io_error;     /* no deletions any more */
	bool said_no_deletions;
	struct tt_delayed *delayed, **delayed_last; /* deletions until the end */
	bool deleting_pass, copying_pass; /* what the present walk over the trees is for; constant
					     while workers list */
	struct tt_engine_stats stats;
	struct tt_neutral_stats cache_stats;
};

/* Whoever plans sleeps until `dir` is listed, or with NULL until something of the run has changed;
 * others may plan meanwhile. With the lock held. */
void tt_engine_wait_plan(struct tt_engine *engine, const struct tt_dir *dir);

/* `dir` is listed, or with NULL something else has changed that it may wait for. With the lock
 * held. */
void tt_engine_wake_plan(struct tt_engine *engine, const struct tt_dir *dir);

/* There is work for so many workers. With the lock held. */
void tt_engine_wake_workers(struct tt_engine *engine, unsigned count);

/* Counts and reports one failure: "verb path: reason". `dir` and `name` make the path; name NULL:
 * the directory itself. Any thread. */
void tt_engine_fail(struct tt_engine *engine, const char *verb, const struct tt_dir *dir,
	const char *name, int error);

/* A source name that is gone (-ENOENT, -ESTALE): counted apart, exit code 24. Any thread. */
void tt_engine_vanished(struct tt_engine *engine, const struct tt_dir *dir, const char *name);

/* Ends the run with this exit code, without losing what is complete. Any thread. */
void tt_engine_abort(struct tt_engine *engine, enum tt_exit code);

/* The disk is full, or the quota, also after everything on its way has arrived: no data, no
 * deletions any more, exit code 11. Any thread. */
void tt_engine_full(struct tt_engine *engine);

/* Writes the path of `name` in `dir` relative to the root of the transfer: at most `size` bytes.
 * Returns `buffer`. */
const char *tt_engine_path(const struct tt_dir *dir, const char *name, char *buffer, size_t size);
