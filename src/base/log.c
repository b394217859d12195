/* SPDX-License-Identifier: MIT */
/*
 * Formatting of one line, and the escaping of names.
 *
 * Escaped are the bytes that rsync 3.5.0 escapes (measured): controls below 32 except tab, bytes
 * that are no character of the locale (LC_CTYPE; without setlocale() that is every byte above 127),
 * and the backslash of what reads as an escape. One thing more than rsync: the C1 controls
 * U+0080..U+009F, since U+009B begins a terminal's control sequence as ESC [ does.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

void tt_log_line(const struct tt_log *log, enum tt_log_level level, const char *format, ...)
{
	char buffer[2048];
	char *line = buffer, *heap = NULL;
	va_list args;
	int length;

	if (!log || !log->write || level > log->threshold)
		return;

	va_start(args, format);
	length = vsnprintf(buffer, sizeof(buffer), format, args);
	va_end(args);
	if (length < 0)
		return;

	if ((size_t)length >= sizeof(buffer)) {
		heap = malloc((size_t)length + 1);
		/* Without memory the line arrives cut: better than not at all. */
		if (heap) {
			va_start(args, format);
			vsnprintf(heap, (size_t)length + 1, format, args);
			va_end(args);
			line = heap;
		}
	}
	log->write(log->context, level, line);
	free(heap);
}

static bool log_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* How many bytes at `s` are one character that may stay; 0: the byte is to be escaped. */
static size_t log_plain_length(const char *s)
{
	unsigned char c = (unsigned char)*s;
	mbstate_t state = {0};
	wchar_t wide;
	size_t length;

	if (c == '\\')
		return s[1] == '#' && log_is_digit(s[2]) && log_is_digit(s[3]) && log_is_digit(s[4])
			       ? 0
			       : 1;
	if (c < 0x80)
		return c >= 32 || c == '\t';

	/* The C locale of glibc >= 2.35 maps every byte to something; rsync's isprint() says no. */
	if (MB_CUR_MAX == 1)
		return 0;
	length = mbrtowc(&wide, s, strlen(s), &state);
	if (length == 0 || length > MB_CUR_MAX) /* also (size_t)-1 and -2 */
		return 0;
	return wide < 0xa0 ? 0 : length;
}

const char *tt_log_escape(const char *name, char *buffer, size_t size)
{
	size_t used = 0;

	if (size == 0)
		return buffer;
	while (*name) {
		size_t length = log_plain_length(name);
		unsigned char c = (unsigned char)*name;

		if (length == 0) {
			if (size - used <= 5)
				break;
			buffer[used++] = '\\';
			buffer[used++] = '#';
			buffer[used++] = (char)('0' + (c >> 6));
			buffer[used++] = (char)('0' + ((c >> 3) & 7));
			buffer[used++] = (char)('0' + (c & 7));
			name++;
			continue;
		}
		if (size - used <= length)
			break;
		memcpy(buffer + used, name, length);
		used += length;
		name += length;
	}
	buffer[used] = '\0';
	return buffer;
}
