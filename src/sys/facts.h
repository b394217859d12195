/* SPDX-License-Identifier: MIT */
/*
 * What one file system can do besides caching (probe.h), found out by trying on temporaries that
 * are gone afterwards (temporary.h), for people and programs that ask with --probe. No run waits
 * for it.
 *
 * Where nothing may be written, what can be known without is known, and the rest says why it was
 * not tried.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sys/probe.h"

enum tt_facts_which {
	TT_FACTS_UNNAMED,     /* files without a name, O_TMPFILE */
	TT_FACTS_REFLINK,     /* FICLONE between two files of it */
	TT_FACTS_DIRECT_READ, /* O_DIRECT */
	TT_FACTS_DIRECT_WRITE,
	TT_FACTS_FALLOCATE,
	TT_FACTS_PUNCH_HOLE,
	TT_FACTS_SEEK_HOLE, /* SEEK_DATA and SEEK_HOLE tell the truth, of a file just written */
	TT_FACTS_RENAME_NOREPLACE, /* renameat2 */
	TT_FACTS_CASE_INSENSITIVE, /* FILE and file are one name */
	TT_FACTS_COUNT
};

struct tt_facts_answer {
	enum tt_probe_answer answer;
	int error;       /* the negative errno behind NO or UNKNOWN, or 0 */
	const char *why; /* more than the errno says, or NULL */
};

struct tt_facts {
	struct tt_facts_answer answers[TT_FACTS_COUNT];
	int open_error; /* why there was no temporary: nothing that needs one was tried; or 0 */
};

/* "O_TMPFILE", ... for people; "unnamed_files", ... for programs. */
const char *tt_facts_words(enum tt_facts_which which);
const char *tt_facts_key(enum tt_facts_which which);

/* Tries everything in the open directory; under a second. `direct` is how O_DIRECT must be aligned,
 * for the two that need it. The directory's times are as they were afterwards, if they may be set.
 * Any thread. Returns 0, or -ENOMEM. */
int tt_facts_try(int dir_fd, const struct tt_direct *direct, struct tt_facts *ret_facts);

/* Internal to facts: what names do. The first makes none, and so knows less; it is for where there
 * are unnamed files, and where nothing can be written (open_error). */
void tt_facts_look_at_names(int dir_fd, struct tt_facts *facts);
void tt_facts_try_names(int dir_fd, struct tt_facts *facts);
