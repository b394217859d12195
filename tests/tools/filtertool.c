/* SPDX-License-Identifier: MIT */
/*
 * filtertool [--exclude=PATTERN | --include=PATTERN]...
 *
 * Reads paths, one a line, directories with a '/' behind, each directory before what it holds.
 * Writes those that the filter lets through, leaving out what is below an excluded directory. An
 * empty line ends a round: then the rules of a new round follow, one option a line, up to an empty
 * line, if the first argument is "-".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tree/filter.h"

static void add_rule(struct tt_filter *filter, const char *option)
{
	bool include = strncmp(option, "--include=", 10) == 0;
	int r;

	if (!include && strncmp(option, "--exclude=", 10) != 0) {
		(void)fprintf(stderr, "filtertool: %s?\n", option);
		exit(1);
	}
	r = tt_filter_add(filter, include, option + 10);
	if (r < 0)
		(void)printf("refused %s\n", option);
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

static void filter_paths(const struct tt_filter *filter)
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
		if (!tt_filter_is_excluded(filter, line, is_dir)) {
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
	struct tt_filter *filter = NULL;
	char *line = NULL;
	size_t size = 0;

	if (argc == 2 && strcmp(argv[1], "-") == 0) {
		while (!feof(stdin) && tt_filter_new(&filter) == 0) {
			while (read_line(&line, &size))
				add_rule(filter, line);
			filter_paths(filter);
			(void)printf("%%%%\n");
			tt_filter_free(filter);
			filter = NULL;
		}
		free(line);
		return 0;
	}
	if (tt_filter_new(&filter) < 0)
		return 1;
	for (int i = 1; i < argc; i++)
		add_rule(filter, argv[i]);
	filter_paths(filter);
	tt_filter_free(filter);
	return 0;
}
