/* SPDX-License-Identifier: MIT */
/*
 * See filter_parse.h. What parses and what does not is as rsync 3.5 has it.
 */
#include "tree/filter_parse.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "sys/fd.h"
#include "tree/filter_cvs.h"

enum {
	PARSE_MOST_DEPTH = 64,    /* a file that names itself */
	PARSE_MOST_POINTS = 1000, /* names to look for in every directory */
};

/* One rule, taken apart. */
struct parse_token {
	const char *begin; /* of the rule */
	uint32_t flags;
	const char *pattern; /* not ended by a NUL */
	size_t length;
};

__attribute__((format(printf, 4, 5))) static int parse_refuse(
	struct tt_filter_parser *parser, const char *rule, int length, const char *format, ...)
{
	char why[256];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof why, format, args);
	va_end(args);
	parser->error->is_file = false;
	if (parser->file)
		snprintf(parser->error->text, sizeof parser->error->text,
			"filter rule \"%.*s\" in %.400s, line %u: %s", length > 300 ? 300 : length,
			rule, parser->file, parser->line, why);
	else
		snprintf(parser->error->text, sizeof parser->error->text,
			"filter rule \"%.*s\": %s", length > 300 ? 300 : length, rule, why);
	return -EINVAL;
}

static int parse_refuse_file(
	struct tt_filter_parser *parser, const char *path, const char *why, int error)
{
	parser->error->is_file = true;
	if (parser->file)
		snprintf(parser->error->text, sizeof parser->error->text,
			"reading filter rules from %.400s, as %.400s, line %u, says: %s", path,
			parser->file, parser->line, why);
	else
		snprintf(parser->error->text, sizeof parser->error->text,
			"reading filter rules from %.800s: %s", path, why);
	return error;
}

/* ---- one rule ---- */

static bool parse_is_space(char c)
{
	return isspace((unsigned char)c);
}

/* The letter of the rule that `*text` begins with. *text is left before the modifiers: on the last
 * byte of the name, or on the comma. 0: there is no such rule. */
static char parse_name(const char **text)
{
	static const struct {
		const char *name;
		char letter;
	} names[] = {
		{"exclude", '-'},
		{"include", '+'},
		{"merge", '.'},
		{"dir-merge", ':'},
		{"hide", 'H'},
		{"show", 'S'},
		{"protect", 'P'},
		{"risk", 'R'},
		{"clear", '!'},
	};
	const char *s = *text;

	if (s[0] && strchr("-+.:HSPR!", s[0])) {
		*text = s[1] == ',' ? s + 1 : s;
		return s[0];
	}
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		size_t length = strlen(names[i].name);

		if (strncmp(s, names[i].name, length) != 0)
			continue;
		if (s[length] == ',')
			*text = s + length;
		else if (!s[length] || s[length] == '_' || parse_is_space(s[length]))
			*text = s + length - 1;
		else
			return 0;
		return names[i].letter;
	}
	return 0;
}

static uint32_t parse_letter_flags(char letter)
{
	switch (letter) {
	case ':':
		return TT_FILTER_RULE_MERGE | TT_FILTER_RULE_PER_DIR;
	case '.':
		return TT_FILTER_RULE_MERGE;
	case '+':
		return TT_FILTER_RULE_INCLUDE;
	case 'S':
		return TT_FILTER_RULE_INCLUDE | TT_FILTER_RULE_SENDER;
	case 'H':
		return TT_FILTER_RULE_SENDER;
	case 'R':
		return TT_FILTER_RULE_INCLUDE | TT_FILTER_RULE_RECEIVER;
	case 'P':
		return TT_FILTER_RULE_RECEIVER;
	case '!':
		return TT_FILTER_RULE_CLEAR;
	default:
		return 0;
	}
}

/* What one modifier adds to the rule, 0: it cannot stand there. */
static uint32_t parse_modifier(uint32_t flags, char letter, bool has_side)
{
	bool merge = (flags & TT_FILTER_RULE_MERGE) != 0;
	bool plain = (flags & TT_FILTER_RULE_NO_PREFIXES) != 0;

	switch (letter) {
	case '-':
		return merge && !plain ? TT_FILTER_RULE_NO_PREFIXES : 0;
	case '+':
		return merge && !plain ? TT_FILTER_RULE_NO_PREFIXES | TT_FILTER_RULE_INCLUDE : 0;
	case '/':
		return TT_FILTER_RULE_ABSOLUTE;
	case '!':
		return merge ? 0 : TT_FILTER_RULE_NEGATED;
	case 'C':
		return plain || has_side ? 0
					 : TT_FILTER_RULE_NO_PREFIXES | TT_FILTER_RULE_WORDS
						   | TT_FILTER_RULE_NO_INHERIT | TT_FILTER_RULE_CVS;
	case 'e':
		return merge ? TT_FILTER_RULE_EXCLUDE_SELF : 0;
	case 'n':
		return merge ? TT_FILTER_RULE_NO_INHERIT : 0;
	case 'w':
		return merge ? TT_FILTER_RULE_WORDS : 0;
	case 'p':
		return TT_FILTER_RULE_PERISHABLE;
	case 'r':
		return has_side ? 0 : TT_FILTER_RULE_RECEIVER;
	case 's':
		return has_side ? 0 : TT_FILTER_RULE_SENDER;
	case 'x':
		return TT_FILTER_RULE_XATTR;
	default:
		return 0;
	}
}

/* "RULE,MODIFIERS " of --filter. Leaves *text on the pattern. */
static int parse_prefix(
	struct tt_filter_parser *parser, struct parse_token *token, const char **text, bool words)
{
	const char *begin = *text, *s = begin;
	int shown = (int)strnlen(begin, 1000);
	char letter = parse_name(&s);
	bool has_side = letter && strchr("HSPR", letter);

	if (!letter)
		return parse_refuse(parser, begin, shown,
			"a rule begins with one of - + . : ! H S P R, or with its name");
	token->flags |= parse_letter_flags(letter);
	while (letter != '!' && *++s && *s != ' ' && *s != '_') {
		uint32_t adds;

		if (words && parse_is_space(*s)) {
			s--;
			break;
		}
		adds = parse_modifier(token->flags, *s, has_side);
		if (adds == 0)
			return parse_refuse(parser, begin, shown,
				"'%c' is no modifier that can stand there", *s);
		token->flags |= adds;
	}
	*text = *s ? s + 1 : s;
	return 0;
}

/* "- PATTERN" and "+ PATTERN" where a pattern alone is what is expected. */
static void parse_old_prefix(struct parse_token *token, const char **text)
{
	const char *s = *text;

	if (s[0] == '-' && s[1] == ' ')
		token->flags &= ~(uint32_t)TT_FILTER_RULE_INCLUDE;
	else if (s[0] == '+' && s[1] == ' ')
		token->flags |= TT_FILTER_RULE_INCLUDE;
	else if (s[0] == '!')
		token->flags |= TT_FILTER_RULE_CLEAR;
	if ((s[0] == '-' || s[0] == '+') && s[1] == ' ')
		*text = s + 2;
}

/* Takes the next rule from *text. Returns 1, 0 at the end, or -EINVAL. */
static int parse_token(struct tt_filter_parser *parser, struct parse_token *token,
	const char **text, uint32_t from, unsigned ways)
{
	bool words = (from & TT_FILTER_RULE_WORDS) != 0, old = false;
	const char *s = *text;

	while (words && parse_is_space(*s))
		s++;
	if (!*s)
		return 0;
	*token = (struct parse_token){.begin = s, .flags = from & TT_FILTER_RULE_INHERITED};
	if (from & TT_FILTER_RULE_NO_PREFIXES) {
		old = true;
		if (*s == '!' && (from & TT_FILTER_RULE_CVS))
			token->flags |= TT_FILTER_RULE_CLEAR;
	} else if (ways & TT_FILTER_PARSE_OLD_PREFIXES) {
		old = true;
		parse_old_prefix(token, &s);
	} else if (parse_prefix(parser, token, &s, words) < 0) {
		return -EINVAL;
	}
	int shown = (int)strnlen(token->begin, 1000);

	if ((from & TT_FILTER_RULE_SIDES) && (token->flags & TT_FILTER_RULE_SIDES))
		return parse_refuse(parser, token->begin, shown,
			"it names a side, and so does the rule that named this file");
	token->flags |= from & TT_FILTER_RULE_SIDES;
	token->pattern = s;
	token->length = strlen(s);
	if (words)
		for (token->length = 0; s[token->length] && !parse_is_space(s[token->length]);)
			token->length++;
	if (token->flags & TT_FILTER_RULE_CLEAR) {
		if (!old && token->length > 0)
			return parse_refuse(
				parser, token->begin, shown, "nothing can stand behind \"!\"");
		if (token->length > 1)
			token->flags &= ~(uint32_t)TT_FILTER_RULE_CLEAR;
	} else if (token->length == 0 && !(token->flags & TT_FILTER_RULE_CVS)) {
		return parse_refuse(parser, token->begin, shown, "its pattern or file is missing");
	}
	if (token->length >= PATH_MAX)
		return parse_refuse(parser, token->begin, shown, "it is longer than any path");
	*text = token->pattern + token->length;
	return 1;
}

/* ---- what a rule does ---- */

size_t tt_filter_parse_clean(char *path)
{
	const size_t root = path[0] == '/';
	size_t from = root, to = root, least = root; /* ".." does not take away what is before */

	while (path[from]) {
		size_t length = strcspn(path + from, "/");
		bool up = length == 2 && path[from] == '.' && path[from + 1] == '.';

		if (up && to > least) {
			while (to > least && path[--to] != '/')
				;
		} else if (length > 0 && !(length == 1 && path[from] == '.') && !(up && root)) {
			if (to > root)
				path[to++] = '/';
			memmove(path + to, path + from, length);
			to += length;
			if (up)
				least = to;
		}
		from += length + (path[from + length] == '/');
	}
	path[to] = '\0';
	return to;
}

static void parse_clear(struct tt_filter_parser *parser, struct tt_filter_rules *rules)
{
	const struct tt_filter_rule *end = rules->last ? rules->last->next : rules->head;

	for (const struct tt_filter_rule *rule = rules->head; rule != end; rule = rule->next) {
		if (rule->flags & TT_FILTER_RULE_PER_DIR)
			parser->points->items[rule->point].rule = NULL;
	}
	*rules = (struct tt_filter_rules){0};
}

static const char *parse_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A file to look for in every directory. A name that is there already stays where it is. */
static int parse_point(struct tt_filter_parser *parser, struct tt_filter_rules *rules,
	uint32_t flags, const char *path)
{
	struct tt_filter_points *points = parser->points;
	struct tt_filter_rule *rule;

	for (unsigned i = 0; i < points->count; i++) {
		if (points->items[i].rule && strcmp(points->items[i].name, parse_base(path)) == 0)
			return 0;
	}
	if (points->count == PARSE_MOST_POINTS)
		return parse_refuse(parser, path, (int)strlen(path),
			"more than %d files to look for in every directory", PARSE_MOST_POINTS);
	if (points->count == points->capacity) {
		unsigned capacity = points->capacity ? 2 * points->capacity : 4;
		struct tt_filter_point *items =
			tt_arena_take(parser->arena, capacity * sizeof *items);

		if (!items)
			return -ENOMEM;
		if (points->count > 0)
			memcpy(items, points->items, points->count * sizeof *items);
		points->items = items;
		points->capacity = capacity;
	}
	int r = tt_filter_rule_append(rules, parser->arena, flags, path, strlen(path), 0, &rule);

	if (r < 0)
		return r;
	rule->point = points->count;
	/* A file in the tree does not make anybody read above it. */
	points->items[points->count++] = (struct tt_filter_point){.rule = rule,
		.name = parse_base(rule->pattern),
		.is_new = !parser->open && strchr(rule->pattern, '/')};
	return 0;
}

static int parse_file_rule(
	struct tt_filter_parser *parser, struct tt_filter_rules *rules, struct parse_token *token)
{
	char path[PATH_MAX * 2];
	uint32_t flags = token->flags;
	size_t above = parser->above && *token->pattern != '/' && token->length > 0
			       ? strlen(parser->above)
			       : 0;

	if (token->length == 0) {
		token->pattern = ".cvsignore";
		token->length = strlen(token->pattern);
	}
	if (above + token->length >= sizeof path)
		return parse_refuse(parser, token->begin, 100, "it is longer than any path");
	if (above)
		memcpy(path, parser->above, above);
	memcpy(path + above, token->pattern, token->length);
	path[above + token->length] = '\0';
	if (above)
		tt_filter_parse_clean(path);
	if (flags & TT_FILTER_RULE_EXCLUDE_SELF) {
		const char *name = parse_base(path);
		/* rsync: of both sides whatever the rule says, and in a directory even under
		 * --delete-excluded. */
		uint32_t sides = parser->skip > 0 ? TT_FILTER_RULE_SIDES : 0;
		int r = tt_filter_rule_append(
			rules, parser->arena, sides, name, strlen(name), 0, NULL);

		if (r < 0)
			return r;
		flags &= ~(uint32_t)TT_FILTER_RULE_EXCLUDE_SELF;
	}
	return flags & TT_FILTER_RULE_PER_DIR ? parse_point(parser, rules, flags, path)
					      : tt_filter_parse_file(parser, rules, path, flags, 0);
}

int tt_filter_parse_text(struct tt_filter_parser *parser, struct tt_filter_rules *rules,
	const char *text, uint32_t flags, unsigned ways)
{
	struct parse_token token;
	int r;

	while ((r = parse_token(parser, &token, &text, flags, ways)) > 0) {
		if (token.flags & TT_FILTER_RULE_CLEAR)
			parse_clear(parser, rules);
		else if (token.flags & TT_FILTER_RULE_MERGE)
			r = parse_file_rule(parser, rules, &token);
		else
			r = tt_filter_rule_append(rules, parser->arena, token.flags, token.pattern,
				token.length, ways & TT_FILTER_PARSE_ANCHORED ? parser->skip : 0,
				NULL);
		if (r >= 0 && (token.flags & TT_FILTER_RULE_CVS)
			&& !(token.flags & TT_FILTER_RULE_MERGE))
			r = tt_filter_cvs_make(parser, token.flags);
		if (r < 0)
			return r;
	}
	return r;
}

/* ---- a file ---- */

static bool parse_ends_rule(const struct tt_filter_parser *parser, char c, bool words)
{
	if (words && parse_is_space(c))
		return true;
	return parser->filter->from0 ? c == '\0' : c == '\n' || c == '\r';
}

static int parse_lines(struct tt_filter_parser *parser, struct tt_filter_rules *rules, char *text,
	size_t bytes, uint32_t flags, unsigned ways)
{
	bool words = (flags & TT_FILTER_RULE_WORDS) != 0;
	int r = 0;

	for (size_t at = 0; at < bytes && r >= 0;) {
		size_t end = at;

		while (end < bytes && !parse_ends_rule(parser, text[end], words))
			end++;
		char last = text[end];

		text[end] = '\0';
		if (text[at] && (words || (text[at] != ';' && text[at] != '#')))
			r = tt_filter_parse_text(parser, rules, text + at, flags, ways);
		parser->line += last == '\n' || (parser->filter->from0 && end < bytes);
		at = end + 1;
	}
	return r;
}

int tt_filter_parse_content(struct tt_filter_parser *parser, struct tt_filter_rules *rules,
	char *text, size_t bytes, const char *path, uint32_t flags, unsigned ways)
{
	const char *outer_file = parser->file;
	unsigned outer_line = parser->line;

	parser->file = path;
	parser->line = 1;
	parser->depth++;
	int r = parse_lines(parser, rules, text, bytes, flags, ways);

	parser->depth--;
	parser->file = outer_file;
	parser->line = outer_line;
	return r;
}

static int parse_open(struct tt_filter_parser *parser, const char *path)
{
	if (parser->open)
		return parser->open(parser->open_context, path);
	if (strcmp(path, "-") != 0)
		return tt_fd_open_path(path, O_RDONLY);
	int fd = dup(STDIN_FILENO);

	return fd < 0 ? -errno : fd;
}

int tt_filter_parse_file(struct tt_filter_parser *parser, struct tt_filter_rules *rules,
	const char *path, uint32_t flags, unsigned ways)
{
	char *text = NULL;
	size_t bytes = 0;

	if (parser->depth == PARSE_MOST_DEPTH)
		return parse_refuse_file(
			parser, path, "files name each other without an end", -ELOOP);
	TT_FD_AUTO fd = parse_open(parser, path);
	int r = fd < 0 ? fd : parser->reader->read(parser->reader->context, fd, &text, &bytes);

	/* A directory of that name is nobody's rules (fopen(3) has no words for it, either). */
	if (r == -EISDIR)
		return 0;
	if (r < 0)
		return parse_refuse_file(parser, path,
			r == -EXDEV ? "it is outside of the tree" : tt_error_text(r), r);
	r = tt_filter_parse_content(parser, rules, text, bytes, path, flags, ways);
	free(text);
	return r;
}
