/* SPDX-License-Identifier: MIT */
/*
 * The two tables of words. The texts of exit codes are those that scripts look for in rsync's last
 * line.
 */
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

const char *tt_error_exit_text(enum tt_exit code)
{
	switch (code) {
	case TT_EXIT_OK:
		return "success";
	case TT_EXIT_USAGE:
		return "syntax or usage error";
	case TT_EXIT_PROTOCOL:
		return "protocol incompatibility";
	case TT_EXIT_SELECT:
		return "errors selecting input/output files, dirs";
	case TT_EXIT_UNSUPPORTED:
		return "requested action not supported";
	case TT_EXIT_FILE_IO:
		return "error in file IO";
	case TT_EXIT_SIGNAL:
		return "received SIGINT, SIGTERM, or SIGHUP";
	case TT_EXIT_MEMORY:
		return "error allocating core memory buffers";
	case TT_EXIT_PARTIAL:
		return "some files/attrs were not transferred (see previous errors)";
	case TT_EXIT_VANISHED:
		return "some files vanished before they could be transferred";
	case TT_EXIT_MAX_DELETE:
		return "the --max-delete limit stopped deletions";
	}
	return "unexplained error";
}

const char *tt_error_text(int errnum)
{
	/* strerror() shares a buffer between threads; this one is a table (glibc 2.32). */
	const char *text = strerrordesc_np(abs(errnum));

	return text ? text : "Unknown error";
}
