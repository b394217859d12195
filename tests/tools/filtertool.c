/* SPDX-License-Identifier: MIT */
/*
 * filtertool - ROOT
 *
 * In rounds, each ended by an empty line: first options, one a line (--exclude=PATTERN,
 * --include=PATTERN, --filter=RULE); then paths in a source tree at ROOT, one a line, directories
 * with a '/' behind, each directory before what it holds. Writes the paths that the filter lets
 * through, leaving out what is below an excluded directory, and a line with %%.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tree/filter_dir.h"

/* No files here. */
static int read_nothing(void *context, int fd, char **ret_text, size_t *ret_bytes)
{
	(void)context;
	(void)fd;
	(void)ret_text;
	(void)ret_bytes;
	return -EIO;
}

static void add_rule(struct tt_filter *filter, const char *option)
{
	static const struct {
		const char *name;
		enum tt_filter_kind kind;
	} kinds[] = {{"--exclude=", TT_FILTER_EXCLUDE}, {"--include=", TT_FILTER_INCLUDE},
		{"--filter=", TT_FILTER_RULE}};
	struct tt_filter_error error;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t length = strlen(kinds[i].name);

		if (strncmp(option, kinds[i].name, length) != 0)
			continue;
		if (tt_filter_add(filter, kinds[i].kind, option + length, &error) < 0)
			(void)printf("refused %s\n", option);
		return;
	}
	(void)fprintf(stderr, "filtertool: %s?\n", option);
	exit(1);
}

static bool read_line(char **line, size_t *size)
{
	ssize_t length = getline(line, size, stdin);

	if (length <= 0)
		return false;
	if ((*line)[length - 1] == '\n')
		(*line)[--length] = '\0';
	return length > 0;
}

static void filter_paths(const struct tt_filter_dir *rules)
{
	char *line = NULL, *hidden = NULL;
	size_t size = 0;

	while (read_line(&line, &size)) {
		size_t length = strlen(line);
		bool is_dir = line[length - 1] == '/';

		if (hidden && strncmp(line, hidden, strlen(hidden)) == 0)
			continue;
		if (is_dir)
			line[length - 1] = '\0';
		if (!tt_filter_dir_excludes(rules, line, is_dir, false)) {
			(void)printf("%s%s\n", line, is_dir ? "/" : "");
		} else if (is_dir) {
			free(hidden);
			line[length - 1] = '/';
			hidden = strdup(line);
		}
	}
	free(hidden);
	free(line);
}

int main(int argc, char **argv)
{
	const struct tt_filter_reader reader = {.read = read_nothing};
	struct tt_filter *filter = NULL;
	struct tt_filter_dir *rules = NULL;
	char *line = NULL;
	size_t size = 0;

	if (argc != 3 || strcmp(argv[1], "-") != 0) {
		(void)fprintf(stderr, "usage: filtertool - ROOT\n");
		return 1;
	}
	while (!feof(stdin) && tt_filter_new(&reader, &filter) == 0) {
		while (read_line(&line, &size))
			add_rule(filter, line);
		if (tt_filter_dir_new(filter, TT_FILTER_SOURCE, argv[2], &rules) < 0)
			return 1;
		filter_paths(rules);
		(void)printf("%%%%\n");
		tt_filter_dir_release(rules);
		tt_filter_free(filter);
	}
	free(line);
	return 0;
}
