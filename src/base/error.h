/* SPDX-License-Identifier: MIT */
/*
 * Exit codes, and the words for errors.
 *
 * Functions return 0, a negative errno, or a documented positive outcome. The process exits with
 * rsync's codes, so that scripts written for rsync go on working (rsync(1), EXIT VALUES).
 */
#pragma once

enum tt_exit {
	TT_EXIT_OK = 0,
	TT_EXIT_USAGE = 1,       /* syntax or usage error */
	TT_EXIT_PROTOCOL = 2,    /* protocol incompatibility */
	TT_EXIT_SELECT = 3,      /* errors selecting input or output files, dirs */
	TT_EXIT_UNSUPPORTED = 4, /* requested action not supported */
	TT_EXIT_FILE_IO = 11,    /* error in file I/O */
	TT_EXIT_SIGNAL = 20,     /* SIGINT, SIGTERM, SIGHUP */
	TT_EXIT_MEMORY = 22,     /* memory could not be allocated */
	TT_EXIT_PARTIAL = 23,    /* partial transfer due to error */
	TT_EXIT_VANISHED = 24,   /* source files vanished before they could be copied */
	TT_EXIT_MAX_DELETE = 25, /* --max-delete stopped deletions */
};

/* What an exit code means, one line without a full stop. Any thread. The string is static. */
const char *tt_error_exit_text(enum tt_exit code);

/* The kernel's words for a (positive or negative) errno. Any thread. The string is static. */
const char *tt_error_text(int errnum);
