/* SPDX-License-Identifier: MIT */
/*
 * See optionvalue.h.
 */
#include "cli/optionvalue.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "tree/idmap.h"
#include "tree/modes.h"

#define OPTIONVALUE_WORKERS_MAX 256

static enum tt_exit optionvalue_set_cache(
	enum tt_cache_mode *mode, const char *typed, const char *value, char *message)
{
	static const struct {
		const char *name;
		enum tt_cache_mode mode;
	} modes[] = {{"leave", TT_CACHE_LEAVE}, {"keep", TT_CACHE_KEEP}, {"drop", TT_CACHE_DROP},
		{"direct", TT_CACHE_DIRECT}};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(value, modes[i].name) == 0) {
			*mode = modes[i].mode;
			return TT_EXIT_OK;
		}
	}
	return tt_options_fail(message, TT_EXIT_USAGE,
		"%s=%s is no policy: it takes leave, keep, drop or direct", typed, value);
}

static enum tt_exit optionvalue_set_reflink(
	enum tt_clone_mode *mode, const char *typed, const char *value, char *message)
{
	static const char *const names[] = {
		[TT_CLONE_AUTO] = "auto", [TT_CLONE_ALWAYS] = "always", [TT_CLONE_NEVER] = "never"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(value, names[i]) == 0) {
			*mode = (enum tt_clone_mode)i;
			return TT_EXIT_OK;
		}
	}
	return tt_options_fail(
		message, TT_EXIT_USAGE, "%s=%s: it takes auto, always or never", typed, value);
}

static enum tt_exit optionvalue_set_size(
	uint64_t *size, const char *typed, const char *value, char *message)
{
	int r = tt_units_parse_size(value, 'b', size);

	if (r == 0 && *size >= TT_CACHE_DIRTY_LEAST_BYTES)
		return TT_EXIT_OK;
	if (r == 0 && *size > 0)
		return tt_options_fail(message, TT_EXIT_USAGE,
			"%s=%s is too little to copy with: it takes at least 256K (is a suffix "
			"missing, as in 48M?)",
			typed, value);
	return tt_options_fail(message, TT_EXIT_USAGE,
		"%s=%s is %s: it takes a number of bytes above 0 with an optional suffix, as 500K, "
		"64M or 1.5GB",
		typed, value,
		r == -ERANGE ? "out of range"
		: r          ? "no size"
			     : "nothing");
}

static enum tt_exit optionvalue_set_workers(
	unsigned *workers, const char *typed, const char *value, char *message)
{
	int64_t number;

	if (tt_units_parse_number(value, 1, OPTIONVALUE_WORKERS_MAX, &number) < 0)
		return tt_options_fail(message, TT_EXIT_USAGE,
			"%s=%s: it takes a whole number from 1 to %d", typed, value,
			OPTIONVALUE_WORKERS_MAX);
	*workers = (unsigned)number;
	return TT_EXIT_OK;
}

static enum tt_exit optionvalue_set_limit(
	uint64_t *size, const char *typed, const char *value, char *message)
{
	int r = tt_units_parse_size(value, 'b', size);

	if (r == 0)
		return TT_EXIT_OK;
	return tt_options_fail(message, TT_EXIT_USAGE,
		"%s=%s is %s: it takes a number of bytes with an optional suffix and an optional "
		"+1 or -1, as 500K, 1.5GB or 2M-1",
		typed, value, r == -ERANGE ? "out of range" : "no size");
}

static enum tt_exit optionvalue_set_window(
	struct tt_plan_policy *plan, const char *typed, const char *value, char *message)
{
	int64_t window;

	if (tt_units_parse_number(value, INT_MIN, INT_MAX, &window) < 0)
		return tt_options_fail(message, TT_EXIT_USAGE,
			"%s=%s: it takes a whole number of seconds, or -1 for as finely as "
			"possible",
			typed, value);
	plan->has_window = window >= 0;
	plan->window_sec = window >= 0 ? window : 0;
	return TT_EXIT_OK;
}

/* A negative number deletes nothing, as 0 does. */
static enum tt_exit optionvalue_set_max_delete(
	struct tt_engine_policy *engine, const char *typed, const char *value, char *message)
{
	int64_t most;

	if (tt_units_parse_number(value, INT_MIN, INT_MAX, &most) < 0)
		return tt_options_fail(
			message, TT_EXIT_USAGE, "%s=%s: it takes a whole number", typed, value);
	engine->has_max_delete = true;
	engine->max_delete = most > 0 ? (uint64_t)most : 0;
	return TT_EXIT_OK;
}

static enum tt_exit optionvalue_add_modes(
	struct tt_options *options, const char *typed, const char *value, char *message)
{
	int r = tt_modes_add(&options->modes, value);

	if (r == -ENOMEM)
		return tt_options_fail(message, TT_EXIT_MEMORY, "%s: %s", typed, tt_error_text(r));
	if (r < 0)
		return tt_options_fail(message, TT_EXIT_USAGE,
			"%s=%s: it takes modes as chmod(1) does, as ug=rwX,o-w or D755,F644", typed,
			value);
	return TT_EXIT_OK;
}

/* --chown is the other two in one. */
static enum tt_exit optionvalue_set_owners(struct tt_options *options,
	enum tt_optiontable_type type, const char *typed, const char *value, char *message)
{
	const char **text = type == TT_OPTIONTABLE_USERMAP    ? &options->usermap
			    : type == TT_OPTIONTABLE_GROUPMAP ? &options->groupmap
							      : &options->chown;

	if (*text)
		return tt_options_fail(message, TT_EXIT_USAGE, "%s can be given only once", typed);
	*text = value;
	/* Where it stands: --no-o behind it takes the half of it back. */
	if (type == TT_OPTIONTABLE_USERMAP
		|| (type == TT_OPTIONTABLE_CHOWN && *value && *value != ':'))
		options->engine.plan.owner = true;
	if (type == TT_OPTIONTABLE_GROUPMAP
		|| (type == TT_OPTIONTABLE_CHOWN && strchr(value, ':') && strchr(value, ':')[1]))
		options->engine.plan.group = true;
	return TT_EXIT_OK;
}

enum tt_exit tt_optionvalue_set(struct tt_options *options, enum tt_optiontable_type type,
	const char *typed, const char *value, char *message)
{
	struct tt_plan_policy *plan = &options->engine.plan;

	if (type == TT_OPTIONTABLE_CACHE)
		return optionvalue_set_cache(&options->engine.cache.mode, typed, value, message);
	if (type == TT_OPTIONTABLE_REFLINK)
		return optionvalue_set_reflink(&options->engine.reflink, typed, value, message);
	if (type == TT_OPTIONTABLE_SIZE)
		return optionvalue_set_size(
			&options->engine.cache.dirty_limit_bytes, typed, value, message);
	if (type == TT_OPTIONTABLE_WORKERS)
		return optionvalue_set_workers(&options->engine.workers, typed, value, message);
	if (type == TT_OPTIONTABLE_MAX_DELETE)
		return optionvalue_set_max_delete(&options->engine, typed, value, message);
	if (type == TT_OPTIONTABLE_MAX_SIZE) {
		plan->has_max_size = true;
		return optionvalue_set_limit(&plan->max_size_bytes, typed, value, message);
	}
	if (type == TT_OPTIONTABLE_MIN_SIZE)
		return optionvalue_set_limit(&plan->min_size_bytes, typed, value, message);
	if (type == TT_OPTIONTABLE_WINDOW)
		return optionvalue_set_window(plan, typed, value, message);
	if (type == TT_OPTIONTABLE_CHMOD)
		return optionvalue_add_modes(options, typed, value, message);
	return optionvalue_set_owners(options, type, typed, value, message);
}

static enum tt_exit optionvalue_read_map(struct tt_options *options, enum tt_idmap_kind kind,
	const char *option, const char *text, struct tt_idmap **map, char *message)
{
	char problem[256] = "";
	int r = tt_idmap_new(
		kind, options->engine.meta.numeric_ids, text, problem, sizeof problem, map);

	if (r == -ENOMEM)
		return tt_options_fail(message, TT_EXIT_MEMORY, "%s: %s", option, tt_error_text(r));
	if (r < 0)
		return tt_options_fail(message, TT_EXIT_USAGE, "%s: %s", option, problem);
	return TT_EXIT_OK;
}

/* One half of --chown: everybody becomes this one. */
static enum tt_exit optionvalue_read_half(struct tt_options *options, enum tt_idmap_kind kind,
	const char *name, size_t length, struct tt_idmap **map, char *message)
{
	char *text;

	if (length == 0)
		return TT_EXIT_OK;
	if (asprintf(&text, "*:%.*s", (int)length, name) < 0)
		return tt_options_fail(
			message, TT_EXIT_MEMORY, "--chown: %s", tt_error_text(ENOMEM));
	enum tt_exit code = optionvalue_read_map(options, kind, "--chown", text, map, message);

	free(text);
	return code;
}

enum tt_exit tt_optionvalue_finish(struct tt_options *options, char *message)
{
	const char *chown = options->chown;
	enum tt_exit code = TT_EXIT_OK;

	if ((chown && *chown && *chown != ':' && options->usermap)
		|| (chown && strchr(chown, ':') && strchr(chown, ':')[1] && options->groupmap))
		return tt_options_fail(message, TT_EXIT_USAGE,
			"--chown cannot be used with --usermap or --groupmap for the same half");

	if (options->usermap)
		code = optionvalue_read_map(options, TT_IDMAP_USERS, "--usermap", options->usermap,
			&options->users, message);
	if (options->groupmap && code == TT_EXIT_OK)
		code = optionvalue_read_map(options, TT_IDMAP_GROUPS, "--groupmap",
			options->groupmap, &options->groups, message);
	if (chown && code == TT_EXIT_OK) {
		size_t user = strcspn(chown, ":");
		const char *group = chown[user] ? chown + user + 1 : "";

		code = optionvalue_read_half(
			options, TT_IDMAP_USERS, chown, user, &options->users, message);
		if (code == TT_EXIT_OK)
			code = optionvalue_read_half(options, TT_IDMAP_GROUPS, group, strlen(group),
				&options->groups, message);
	}
	options->engine.meta.modes = options->modes;
	options->engine.meta.users = options->users;
	options->engine.meta.groups = options->groups;
	return code;
}
