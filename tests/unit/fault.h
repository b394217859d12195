/* SPDX-License-Identifier: MIT */
/*
 * Faults for the calls that wait: the linker sends the calls of sys/ and cache/ here (--wrap, see
 * meson.build), and one rule answers them with an error, a short count, a delay or nothing at all.
 * The program itself knows nothing of it. What goes through io_uring is not seen: use the twin.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum fault_call {
	FAULT_NONE,
	FAULT_READ,       /* pread, preadv2 */
	FAULT_WRITE,      /* pwrite, pwritev2 */
	FAULT_SYNC_RANGE, /* sync_file_range */
	FAULT_FSYNC,      /* fsync */
	FAULT_FDATASYNC,  /* fdatasync */
};

struct fault_rule {
	enum fault_call call;
	unsigned skip;       /* calls that go through before */
	unsigned count;      /* calls that are answered; 0: all */
	int error;           /* positive errno; 0: not an error */
	bool nothing;        /* answer 0 and do nothing */
	size_t most_bytes;   /* of a read or write; 0: as many as asked for */
	unsigned delay_usec; /* before the call */
};

/* From now on; replaces the rule before. Not while calls are being made. */
void fault_set(const struct fault_rule *rule);
void fault_clear(void);

/* Calls that were answered by the rule. */
unsigned fault_hits(void);
