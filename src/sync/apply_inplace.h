/* SPDX-License-Identifier: MIT */
/*
 * --inplace, --append, --append-verify: what is different about a file that is written under its
 * own name. It goes the way of all files (apply_file.c, then a batch, then arrive.c); here is what
 * these ask for on the way. Internal to sync/.
 */
#pragma once

#include <sys/types.h>

#include "sync/state.h"

/* What a failure leaves under the name, the worst last. */
enum tt_inplace_rest {
	TT_INPLACE_REST_PART,    /* of a new file */
	TT_INPLACE_REST_LONGER,  /* the old content, behind it some of what it lacked */
	TT_INPLACE_REST_MIXTURE, /* of the old and the new content */
};

/* What an arrival that is written in place has besides. */
struct tt_inplace {
	uint64_t old_bytes;        /* length before; 0 for a file that was made */
	uint64_t start_bytes;      /* what is below stays as it is */
	bool is_anew;              /* the old content makes way for the new from the beginning */
	enum tt_inplace_rest rest; /* of all tries */
	struct timespec old_mtime;
	int64_t source_sec; /* the source's mtime when it was opened; its entry may be gone later */
	bool is_source;     /* the source under another name: there is nothing to write */
	/* set when the content is on the disk */
	struct tt_entry wanted;
	const struct tt_entry *existing; /* NULL: made */
	/* guarded by the run's lock */
	struct tt_inplace *next; /* of the run's claims */
	bool claimed;
	dev_t dev;
	ino_t ino;
};

/* Whether the task's file is to be written in place: there is nothing else under the name. */
bool tt_inplace_is_asked(const struct tt_engine *engine, const struct tt_task *task);

/* Opens or makes `name` in `dir` for the new arrival: its descriptor, `old`, and `inplace` but
 * for the attributes. A file with several names is waited for while another
 * of them is being written. `source` is what fstat says of the source. Returns 0 or a negative
 * errno. Any worker. */
int tt_inplace_open(struct tt_worker *worker, struct tt_dir *dir, const struct tt_task *task,
	const char *name, const struct stat *source, struct tt_arrival *arrival);

/* Copies what is missing, or all; `request` is without reader and writer, which are made here. Of
 * what is there at most `most_bytes` stay: what an earlier try may have written does not count. As
 * tt_copy_content(). */
int tt_inplace_copy(struct tt_worker *worker, struct tt_arrival *arrival, struct tt_volume *from,
	struct tt_copy_request *request, uint64_t most_bytes, struct tt_copy_result *ret_result);

/* After tt_inplace_copy(): what this try may have left, of a file that had `old_bytes` before all
 * tries. */
enum tt_inplace_rest tt_inplace_rest(
	const struct tt_engine *engine, const struct tt_inplace *inplace, uint64_t old_bytes);

/* The content is on the disk: gives the file its attributes, the time that says so last. Returns
 * whether it is a file that has arrived. */
bool tt_inplace_arrive(struct tt_worker *worker, struct tt_arrival *arrival);

/* The file has arrived or failed, which is then to be seen from its time. Leaves its pages as they
 * were found. */
void tt_inplace_leave(struct tt_worker *worker, const struct tt_arrival *arrival,
	const struct tt_volume *volume, bool good);

/* After a failure was told: what is under the name now. */
void tt_inplace_tell(struct tt_engine *engine, const struct tt_dir *dir, const char *name,
	enum tt_inplace_rest rest);

/* Ends what open has begun, but for the descriptor. Accepts an arrival that is not in place. */
void tt_inplace_deinit(struct tt_engine *engine, struct tt_arrival *arrival);
