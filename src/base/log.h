/* SPDX-License-Identifier: MIT */
/*
 * Where lines for people go. The sink is set by the program; the library never writes to a
 * descriptor itself.
 *
 * Every name that comes from a file system passes tt_log_escape() on its way into a line: a control
 * byte in a name must not become a terminal escape sequence (rsync 3.5.0, CWE-117).
 */
#pragma once

#include <stddef.h>

enum tt_log_level {
	TT_LOG_ERROR,   /* something failed; counts towards the exit code where it was counted */
	TT_LOG_WARNING, /* nothing was lost, but the user should know */
	TT_LOG_INFO,    /* shown by default */
	TT_LOG_VERBOSE, /* shown with -v */
};

struct tt_log {
	/* Called with one line without newline, from any thread, possibly from several at once. */
	void (*write)(void *context, enum tt_log_level level, const char *line);
	void *context;
	enum tt_log_level threshold; /* lines above this level are not formatted */
};

/* Formats one line and gives it to the sink. `log` may be NULL: nothing happens. Any thread. */
void tt_log_line(const struct tt_log *log, enum tt_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A name made safe for a terminal or a log: control bytes (0-31 except tab) become \#ooo with three
 * octal digits, as rsync writes them; so do bytes that are no character in the process's LC_CTYPE,
 * the controls U+0080..U+009F, and a backslash that would read as such an escape. Other bytes stay
 * (127 too, as with rsync). Writes at most `size` bytes with the final NUL, cuts what does not fit.
 * Returns `buffer`. Any thread. */
const char *tt_log_escape(const char *name, char *buffer, size_t size);
