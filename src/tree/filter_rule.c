/* SPDX-License-Identifier: MIT */
/*
 * See filter_rule.h. The corners (a backslash counts only in a pattern with wildcards, "/" alone
 * matches nothing, ...) are those that rsync 3.5 shows.
 */
#include "tree/filter_rule.h"

#include <errno.h>
#include <string.h>

#include "tree/wildmatch.h"

static uint32_t rule_pattern_flags(const char *pattern, size_t length, unsigned slashes)
{
	uint32_t flags = 0;

	if (strpbrk(pattern, "*?["))
		flags |= TT_FILTER_RULE_WILD;
	if (strstr(pattern, "**"))
		flags |= TT_FILTER_RULE_ANY_DEPTH;
	if (slashes > 0 || (flags & TT_FILTER_RULE_ANY_DEPTH))
		flags |= TT_FILTER_RULE_PATH;
	if (strncmp(pattern, "**", 2) == 0)
		flags |= TT_FILTER_RULE_STAR_BEGIN;
	if (length >= 3 && strcmp(pattern + length - 3, "***") == 0)
		flags |= TT_FILTER_RULE_STAR_END;
	return flags;
}

int tt_filter_rule_append(struct tt_filter_rules *rules, struct tt_arena *arena, uint32_t flags,
	const char *pattern, size_t length, size_t skip, struct tt_filter_rule **ret_rule)
{
	struct tt_filter_rule *rule = tt_arena_take(arena, sizeof *rule + length + 1);

	if (!rule)
		return -ENOMEM;
	*rule = (struct tt_filter_rule){.flags = flags};
	if (flags & TT_FILTER_RULE_MERGE) {
		memcpy(rule->pattern, pattern, length);
		rule->pattern[length] = '\0';
	} else {
		if (length > 0 && *pattern == '/') {
			rule->flags |= TT_FILTER_RULE_ANCHORED | TT_FILTER_RULE_PATH;
			pattern++;
			length--;
			if (!(flags & TT_FILTER_RULE_ABSOLUTE))
				rule->skip = skip;
		}
		if (length > 1 && pattern[length - 1] == '/') {
			rule->flags |= TT_FILTER_RULE_DIRS_ONLY;
			length--;
		}
		memcpy(rule->pattern, pattern, length);
		rule->pattern[length] = '\0';
		for (const char *p = rule->pattern; *p; p++)
			rule->slashes += *p == '/';
		rule->flags |= rule_pattern_flags(rule->pattern, length, rule->slashes);
	}
	if (rules->last) {
		rule->next = rules->last->next;
		rules->last->next = rule;
	} else {
		rule->next = rules->head;
		rules->head = rule;
	}
	rules->last = rule;
	if (ret_rule)
		*ret_rule = rule;
	return 0;
}

static bool rule_matches_text(const struct tt_filter_rule *rule, const char *text)
{
	return rule->flags & TT_FILTER_RULE_WILD ? tt_wildmatch(rule->pattern, text)
						 : strcmp(rule->pattern, text) == 0;
}

/* Held against as many of the last components as the pattern has (by its slashes, those in a
 * bracket included). */
static bool rule_matches_tail(const struct tt_filter_rule *rule, const char *slash)
{
	const char *text = slash + strlen(slash);

	for (unsigned slashes = 0; text > slash; text--) {
		if (text[-1] == '/' && slashes++ == rule->slashes)
			return rule_matches_text(rule, text);
	}
	return false;
}

static bool rule_matches_path(const struct tt_filter_rule *rule, const struct tt_filter_path *path)
{
	bool absolute = (rule->flags & TT_FILTER_RULE_ABSOLUTE) != 0;
	const char *slash = absolute ? path->full : path->rooted; /* before the whole path */
	const char *text = slash + 1;

	if (!(rule->flags & TT_FILTER_RULE_PATH))
		return rule_matches_text(rule, path->name);
	if (rule->flags & TT_FILTER_RULE_ANCHORED)
		return rule_matches_text(rule, rule->skip > 0 ? path->full + rule->skip : text);
	if (rule->flags & TT_FILTER_RULE_STAR_BEGIN)
		return rule_matches_text(
			rule, absolute && path->full != path->rooted ? text : slash);
	if (!(rule->flags & TT_FILTER_RULE_ANY_DEPTH))
		return rule_matches_tail(rule, slash);
	/* With `**` it may begin at any component. */
	while (text) {
		if (rule_matches_text(rule, text))
			return true;
		text = strchr(text, '/');
		if (text)
			text++;
	}
	return false;
}

bool tt_filter_rule_matches(const struct tt_filter_rule *rule, const struct tt_filter_path *path)
{
	bool negated = (rule->flags & TT_FILTER_RULE_NEGATED) != 0, matches;

	if ((rule->flags & TT_FILTER_RULE_DIRS_ONLY) && !path->is_dir)
		return negated;
	if (path->is_dir && (rule->flags & TT_FILTER_RULE_STAR_END)) {
		memcpy(path->end, "/", 2);
		matches = rule_matches_path(rule, path);
		*path->end = '\0';
	} else {
		matches = rule_matches_path(rule, path);
	}
	return matches != negated;
}
