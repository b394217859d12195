/* SPDX-License-Identifier: MIT */
/*
 * Which operations of faultfs go wrong, and how. A file of rules, one a line, read again whenever
 * it has changed (write it anew and rename it, so that no half of it is read):
 *
 *	OPERATION OUTCOME WHEN PATTERN
 *	write     EIO     3    *large*
 *
 * OPERATION: lookup getattr chmod chown truncate utimens (setattr: these four) readlink mknod mkdir
 * symlink link unlink rmdir rename open create read write flush fsync opendir readdir fsyncdir
 * fallocate lseek statfs, or any. OUTCOME: an errno's name; short=BYTES (a read or write
 * of no more); delay=MILLISECONDS. WHEN: N the Nth time only, N+ from then on, * always. PATTERN is
 * held against the last component, as fnmatch does; of a rename against both names. The first rule
 * that applies wins; each counts for itself.
 */
#pragma once

#include <stddef.h>

/* What a rule says about one operation. */
struct fault {
	int error;          /* errno, or 0 */
	size_t short_bytes; /* SIZE_MAX: all of it */
};

/* `rules` and `log` are paths, or NULL. Each fault is appended to the log as "OPERATION NAME
 * OUTCOME". */
void fault_begin(const char *rules, const char *log);

/* Judges one operation on a name; sleeps if a rule says so. `other`: a second name, or NULL. */
struct fault fault_judge(const char *operation, const char *name, const char *other);
