/* SPDX-License-Identifier: MIT */
/*
 * See filter.h.
 */
#include "tree/filter.h"

#include <errno.h>
#include <stdlib.h>

#include "tree/filter_parse.h"

int tt_filter_new(const struct tt_filter_reader *reader, struct tt_filter **ret_filter)
{
	struct tt_filter *filter = calloc(1, sizeof(*filter));

	if (!filter)
		return -ENOMEM;
	filter->reader = *reader;
	pthread_mutex_init(&filter->cvs_lock, NULL);
	*ret_filter = filter;
	return 0;
}

void tt_filter_free(struct tt_filter *filter)
{
	if (!filter)
		return;
	pthread_mutex_destroy(&filter->cvs_lock);
	tt_arena_deinit(&filter->arena);
	tt_arena_deinit(&filter->cvs_arena);
	free(filter);
}

int tt_filter_add(struct tt_filter *filter, enum tt_filter_kind kind, const char *text,
	struct tt_filter_error *error)
{
	struct tt_filter_parser parser = {
		.filter = filter,
		.reader = &filter->reader,
		.arena = &filter->arena,
		.points = &filter->points,
		.error = error,
	};
	bool include = kind == TT_FILTER_INCLUDE || kind == TT_FILTER_INCLUDE_FROM;
	uint32_t flags = include ? TT_FILTER_RULE_INCLUDE : 0;
	unsigned ways = kind == TT_FILTER_RULE ? 0 : TT_FILTER_PARSE_OLD_PREFIXES;

	if (kind == TT_FILTER_EXCLUDE_FROM || kind == TT_FILTER_INCLUDE_FROM)
		return tt_filter_parse_file(&parser, &filter->rules, text, flags, ways);
	return tt_filter_parse_text(&parser, &filter->rules, text, flags, ways);
}

void tt_filter_set_from0(struct tt_filter *filter, bool from0)
{
	filter->from0 = from0;
}

void tt_filter_set_delete_excluded(struct tt_filter *filter, bool delete_excluded)
{
	filter->delete_excluded = delete_excluded;
}

bool tt_filter_is_empty(const struct tt_filter *filter)
{
	return !filter || !filter->rules.head;
}
