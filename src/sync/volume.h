/* SPDX-License-Identifier: MIT */
/*
 * One file system that the run reads or writes: how residency is asked there, which mechanism
 * writes new files, and the pacer of its disk. Internal to sync/.
 */
#pragma once

#include "cache/mechanism.h"
#include "cache/neutral.h"
#include "cache/neutral_turn.h"
#include "cache/pacer.h"
#include "copy/clone.h"
#include "sync/state.h"
#include "sys/device.h"
#include "sys/probe.h"

struct tt_volume {
	struct tt_volume *next;
	uint32_t dev_major, dev_minor;
	struct tt_device device;
	struct tt_neutral_fs neutral;
	struct tt_neutral_turns turns;
	bool is_destination; /* has been prepared for writing */
	bool is_tried;       /* ... or is being prepared */
	bool paced;          /* writes are charged and awaited */
	unsigned facts;      /* TT_MECHANISM_*; those of the file are added for each */
	enum tt_pacer_sync sync;
	bool can_count;
	struct tt_pacer *pacer; /* of the disk; shared between volumes; NULL when not paced */
	bool owns_pacer;
	_Atomic unsigned refusals; /* files that it would not take, in a row (reason.h) */
	struct tt_lane *lane;      /* of the disk, once it is a destination */
	struct tt_probe probe;
	uint64_t granularity_ns;        /* of times: tried if it is a destination, else guessed */
	_Atomic bool told_no_direct[2]; /* reading, writing */
	_Atomic uint64_t small_files;   /* new, too small for the O_DIRECT that was asked for */
	struct tt_mechanism_uses uses;  /* what files were read and written with */
	struct tt_clone_memory clones;  /* what is cloned to it */
};

/* The volume of an open file or directory; `near` (may be NULL) is a guess that is mostly right.
 * Any thread. Returns NULL without memory. */
struct tt_volume *tt_volume_get(struct tt_engine *engine, int fd, struct tt_volume *near);

/* The same where the device number is known. */
struct tt_volume *tt_volume_find(struct tt_engine *engine, uint32_t dev_major, uint32_t dev_minor,
	int fd, struct tt_volume *near);

/* Makes a volume ready to be written to: probes it by trying in `dir_fd`, starts its disk's pacer.
 * Never under -n. Whoever plans; others may plan meanwhile. Returns 0 or a negative errno. */
int tt_volume_prepare(struct tt_engine *engine, struct tt_volume *volume, int dir_fd);

/* The mechanism for writing a file of this size here. `has` and `lacks`: facts of the file, more
 * and fewer than the file system has. Any thread. */
const struct tt_mechanism *tt_volume_choose(const struct tt_volume *volume,
	enum tt_mechanism_operation operation, uint64_t size_bytes, unsigned has, unsigned lacks);

/* Why a new file that was to be written with O_DIRECT is not, apart from its size, or NULL. `hot`:
 * what it replaces is resident. Any thread. */
const char *tt_volume_why_undirect(const struct tt_volume *volume, bool hot);

/* Under --cache=direct: says at -v why a file was not read or written so. Once for the file system
 * if it is a matter of that. `why` NULL: nothing to say. Any thread. */
void tt_volume_tell_no_direct(struct tt_engine *engine, struct tt_volume *volume,
	const struct tt_dir *dir, const char *name, bool writing, const char *why);

/* After the run: what is said once, with a number. Engine thread. */
void tt_volume_tell_small(struct tt_engine *engine);

/* The options as they hold for what is planned in the directory. Whoever plans. */
struct tt_plan_policy tt_volume_plan_policy(
	const struct tt_engine *engine, const struct tt_dir *dir);

/* After the run: adds the pacers' figures and a line per volume to the statistics. */
void tt_volume_report(struct tt_engine *engine, struct tt_engine_stats *stats);

/* Frees all volumes of the run and ends their pacers. */
void tt_volume_free_all(struct tt_engine *engine);
