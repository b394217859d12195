/* SPDX-License-Identifier: MIT */
/*
 * What kind of match a rule needs is found once, when it is added. The matcher keeps two places to
 * return to, one for the last `*` and one for the last `**`: no pattern makes it exponential.
 *
 * The corners (a backslash counts only in a pattern with wildcards, "/" alone excludes nothing,
 * ...) are those that rsync 3.5 shows; tests/differential/filter_random.py compares with it.
 */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tree/filter.h"

struct filter_rule {
	bool include;
	bool dirs_only;  /* ended in '/' */
	bool anchored;   /* began with '/' */
	bool path;       /* is matched against the path, not the last component */
	bool wild;       /* has wildcards; else compared as it is */
	bool star_begin; /* begins with `**`, which may also match the '/' before the whole path */
	bool star_end;   /* ends with `***`: a directory is matched as if its name ended in '/' */
	bool any_depth;  /* has `**` */
	unsigned slashes;
	char *pattern;
};

struct tt_filter {
	struct filter_rule *rules;
	size_t count, capacity;
};

/* ---- matching ---- */

static bool filter_class_has(const char *name, size_t length, unsigned char c)
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
static const char *filter_class_char(const char *p, unsigned char *ret_c)
{
	if (*p == '\\')
		p++;
	if (!*p)
		return NULL;
	*ret_c = (unsigned char)*p;
	return p + 1;
}

/* `p` is behind '['. Returns what follows ']', or NULL for a bracket without an end. */
static const char *filter_match_class(const char *p, unsigned char c, bool *ret_matches)
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
				found |= filter_class_has(p + 2, (size_t)(end - 1 - (p + 2)), c);
				p = end + 1;
				continue;
			}
		}
		p = filter_class_char(p, &low);
		if (!p)
			return NULL;
		found |= low == c; /* also of a range that is the wrong way round */
		high = low;
		if (p[0] == '-' && p[1] && p[1] != ']') {
			p = filter_class_char(p + 1, &high);
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
static const char *filter_match_one(const char *p, unsigned char c)
{
	bool matches;

	switch (*p) {
	case '\0':
		return NULL;
	case '?':
		return c != '/' ? p + 1 : NULL;
	case '[':
		p = filter_match_class(p + 1, c, &matches);
		return p && matches && c != '/' ? p : NULL;
	case '\\':
		p++;
		return *p && (unsigned char)*p == c ? p + 1 : NULL;
	default:
		return (unsigned char)*p == c ? p + 1 : NULL;
	}
}

static bool filter_match(const char *pattern, const char *text)
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
		next = *t ? filter_match_one(p, (unsigned char)*t) : NULL;
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

static bool filter_rule_matches_text(const struct filter_rule *rule, const char *text)
{
	return rule->wild ? filter_match(rule->pattern, text) : strcmp(rule->pattern, text) == 0;
}

static bool filter_rule_matches_tail(const struct filter_rule *rule, const char *rooted)
{
	const char *text = rooted + strlen(rooted);

	for (unsigned slashes = 0; text > rooted; text--) {
		if (text[-1] == '/' && slashes++ == rule->slashes)
			return filter_rule_matches_text(rule, text);
	}
	return false;
}

/* `rooted` is the path with a '/' before it (and one behind it, if it is a directory and the rule
 * ends with `***`). */
static bool filter_rule_matches(const struct filter_rule *rule, const char *rooted)
{
	const char *text = rooted + 1;

	if (!rule->path)
		return filter_rule_matches_text(rule, strrchr(rooted, '/') + 1);
	if (rule->anchored)
		return filter_rule_matches_text(rule, text);
	if (rule->star_begin && filter_rule_matches_text(rule, rooted))
		return true;
	/* Not anchored: with `**` it may begin at any component, else it is held against as many of
	 * the last ones as it has (by its slashes, those in a bracket included). */
	if (!rule->any_depth)
		return filter_rule_matches_tail(rule, rooted);
	while (text) {
		if (filter_rule_matches_text(rule, text))
			return true;
		text = strchr(text, '/');
		if (text)
			text++;
	}
	return false;
}

bool tt_filter_is_excluded(const struct tt_filter *filter, const char *path, bool is_dir)
{
	char small[512], *rooted = small;
	size_t length;
	bool excluded = false;

	if (tt_filter_is_empty(filter))
		return false;
	length = strlen(path);
	if (length + 3 > sizeof(small)) {
		rooted = malloc(length + 3);
		/* Without memory nothing can be told; leaving out is what cannot do harm in a copy,
		 * and deletions do not ask for names that are excluded. */
		if (!rooted)
			return true;
	}
	rooted[0] = '/';
	memcpy(rooted + 1, path, length + 1);
	for (size_t i = 0; i < filter->count; i++) {
		const struct filter_rule *rule = &filter->rules[i];
		bool slash = is_dir && rule->star_end, matches;

		if (rule->dirs_only && !is_dir)
			continue;
		rooted[length + 1] = slash ? '/' : '\0';
		rooted[length + 2] = '\0';
		matches = filter_rule_matches(rule, rooted);
		if (matches) {
			excluded = !rule->include;
			break;
		}
	}
	if (rooted != small)
		free(rooted);
	return excluded;
}

/* ---- rules ---- */

int tt_filter_new(struct tt_filter **ret_filter)
{
	struct tt_filter *filter = calloc(1, sizeof(*filter));

	if (!filter)
		return -ENOMEM;
	*ret_filter = filter;
	return 0;
}

static void filter_clear(struct tt_filter *filter)
{
	for (size_t i = 0; i < filter->count; i++)
		free(filter->rules[i].pattern);
	filter->count = 0;
}

void tt_filter_free(struct tt_filter *filter)
{
	if (!filter)
		return;
	filter_clear(filter);
	free(filter->rules);
	free(filter);
}

bool tt_filter_is_empty(const struct tt_filter *filter)
{
	return !filter || filter->count == 0;
}

static int filter_compile(struct filter_rule *rule, bool include, const char *pattern)
{
	size_t length = strlen(pattern);

	*rule = (struct filter_rule){.include = include};
	if (*pattern == '/') {
		rule->anchored = true;
		pattern++;
		length--;
	}
	if (length > 1 && pattern[length - 1] == '/') {
		rule->dirs_only = true;
		length--;
	}
	rule->pattern = strndup(pattern, length);
	if (!rule->pattern)
		return -ENOMEM;
	rule->wild = strpbrk(rule->pattern, "*?[") != NULL;
	for (const char *p = rule->pattern; *p; p++)
		rule->slashes += *p == '/';
	rule->any_depth = strstr(rule->pattern, "**") != NULL;
	rule->path = rule->anchored || rule->slashes || rule->any_depth;
	rule->star_begin = strncmp(rule->pattern, "**", 2) == 0;
	rule->star_end = length >= 3 && strcmp(rule->pattern + length - 3, "***") == 0;
	return 0;
}

int tt_filter_add(struct tt_filter *filter, bool include, const char *pattern)
{
	struct filter_rule rule;
	int r;

	if (strcmp(pattern, "!") == 0) {
		filter_clear(filter);
		return 0;
	}
	if ((pattern[0] == '+' || pattern[0] == '-') && pattern[1] == ' ') {
		include = pattern[0] == '+';
		pattern += 2;
		if (!*pattern)
			return -EINVAL;
	}
	if (!*pattern)
		return 0;
	if (filter->count == filter->capacity) {
		size_t capacity = filter->capacity ? filter->capacity * 2 : 16;
		struct filter_rule *rules = reallocarray(filter->rules, capacity, sizeof(*rules));

		if (!rules)
			return -ENOMEM;
		filter->rules = rules;
		filter->capacity = capacity;
	}
	r = filter_compile(&rule, include, pattern);
	if (r < 0)
		return r;
	filter->rules[filter->count++] = rule;
	return 0;
}
