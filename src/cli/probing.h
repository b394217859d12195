/* SPDX-License-Identifier: MIT */
/*
 * --probe DIR: asks sys/probe, sys/facts, sys/device, cache/mechanism and probereads.c, and makes
 * of their answers what probetable.c prints for people and probejson.c for programs, so that both
 * say the same.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cache/mechanism.h"
#include "sys/device.h"
#include "sys/facts.h"

#define TT_PROBING_FACTS 24
#define TT_PROBING_CELLS 24

struct tt_probing_fact {
	const char *key;   /* for programs; never changes its meaning */
	const char *words; /* for people */
	enum tt_probe_answer answer;
	char reason[128]; /* what follows, or why not */
};

/* One cell of the table of mechanisms, for files of these sizes. */
struct tt_probing_cell {
	enum tt_mechanism_operation operation;
	bool own; /* of this user; else somebody else's */
	struct tt_mechanism_cell is;
	const char *why;
};

struct tt_probing {
	const char *path; /* borrowed */
	char kernel[80];
	struct tt_device device;
	bool read_only;
	bool has_cache; /* false: files are memory, or made when they are read */
	uint64_t free_bytes;
	uint64_t page_bytes, folio_bytes;
	uint64_t memory_limit_bytes, dirty_budget_bytes;
	struct tt_direct direct;       /* all zeros: unknown or impossible */
	uint64_t time_granularity_ns;  /* 0: unknown */
	bool time_granularity_guessed; /* by the type, not by trying */
	int not_tried;                 /* negative errno: nothing could be written, or 0 */
	unsigned fact_count, cell_count;
	struct tt_probing_fact facts[TT_PROBING_FACTS];
	struct tt_probing_cell cells[TT_PROBING_CELLS];
};

/* Why nothing could be tried, from not_tried. */
const char *tt_probing_error_text(int error);

/* Finds all of it out, in under a second. Returns TT_EXIT_OK; TT_EXIT_PARTIAL if nothing could be
 * tried (what is known without that is in *ret_probing); TT_EXIT_SELECT if it is no directory, or
 * TT_EXIT_MEMORY. With all but the first there is a line for people in `message`. */
enum tt_exit tt_probing_run(
	const char *path, struct tt_probing *ret_probing, char *message, size_t size);

const char *tt_probing_answer_text(enum tt_probe_answer answer);
const char *tt_probing_operation_text(enum tt_mechanism_operation operation);
