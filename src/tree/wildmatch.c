/* SPDX-License-Identifier: MIT */
/*
 * The matcher keeps two places to return to, one for the last `*` and one for the last `**`: no
 * pattern makes it exponential.
 *
 * The corners (a class without a name, a range that is the wrong way round, ...) are those that
 * rsync 3.5 shows; tests/differential/filter_random.py compares with it.
 */
#include <ctype.h>
#include <string.h>

#include "tree/wildmatch.h"

static bool wildmatch_class_has(const char *name, size_t length, unsigned char c)
{
	static const struct {
		const char *name;
		int (*has)(int c);
	} classes[] = {
		{"alnum", isalnum},
		{"alpha", isalpha},
		{"blank", isblank},
		{"cntrl", iscntrl},
		{"digit", isdigit},
		{"graph", isgraph},
		{"lower", islower},
		{"print", isprint},
		{"punct", ispunct},
		{"space", isspace},
		{"upper", isupper},
		{"xdigit", isxdigit},
	};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (strlen(classes[i].name) == length && memcmp(classes[i].name, name, length) == 0)
			return c < 128 && classes[i].has(c) != 0;
	}
	return false;
}

/* One character of a bracket; NULL at the end of the pattern. */
static const char *wildmatch_class_char(const char *p, unsigned char *ret_c)
{
	if (*p == '\\')
		p++;
	if (!*p)
		return NULL;
	*ret_c = (unsigned char)*p;
	return p + 1;
}

/* `p` is behind '['. Returns what follows ']', or NULL for a bracket without an end. */
static const char *wildmatch_class(const char *p, unsigned char c, bool *ret_matches)
{
	bool negated = *p == '!' || *p == '^', found = false;

	p += negated;
	for (bool first = true; first || *p != ']'; first = false) {
		unsigned char low, high;

		if (p[0] == '[' && p[1] == ':') {
			const char *end = strchr(p + 2, ']');

			if (!end)
				return NULL;
			if (end > p + 2 && end[-1] == ':') {
				found |= wildmatch_class_has(p + 2, (size_t)(end - 1 - (p + 2)), c);
				p = end + 1;
				continue;
			}
		}
		p = wildmatch_class_char(p, &low);
		if (!p)
			return NULL;
		found |= low == c; /* also of a range that is the wrong way round */
		high = low;
		if (p[0] == '-' && p[1] && p[1] != ']') {
			p = wildmatch_class_char(p + 1, &high);
			if (!p)
				return NULL;
		}
		found |= low <= c && c <= high;
	}
	*ret_matches = found != negated;
	return p + 1;
}

/* One element that is no star against one character. Returns the rest of the pattern, or NULL for
 * no match. */
static const char *wildmatch_one(const char *p, unsigned char c)
{
	bool matches;

	switch (*p) {
	case '\0':
		return NULL;
	case '?':
		return c != '/' ? p + 1 : NULL;
	case '[':
		p = wildmatch_class(p + 1, c, &matches);
		return p && matches && c != '/' ? p : NULL;
	case '\\':
		p++;
		return *p && (unsigned char)*p == c ? p + 1 : NULL;
	default:
		return (unsigned char)*p == c ? p + 1 : NULL;
	}
}

bool tt_wildmatch(const char *pattern, const char *text)
{
	const char *star = NULL,
		   *star_text = NULL; /* behind the last `*`, and what it may take next */
	const char *wide = NULL, *wide_text = NULL; /* the same for `**` */
	const char *p = pattern, *t = text;

	for (;;) {
		const char *next;

		if (*p == '*') {
			const char *begin = p;

			while (*p == '*')
				p++;
			if (p - begin > 1) {
				wide = p;
				wide_text = t;
				star = NULL;
			} else {
				star = p;
				star_text = t;
			}
			continue;
		}
		if (!*t && !*p)
			return true;
		next = *t ? wildmatch_one(p, (unsigned char)*t) : NULL;
		if (next) {
			p = next;
			t++;
		} else if (star && *star_text && *star_text != '/') {
			p = star;
			t = ++star_text;
		} else if (wide && *wide_text) {
			p = wide;
			t = ++wide_text;
			star = NULL;
		} else {
			return false;
		}
	}
}
