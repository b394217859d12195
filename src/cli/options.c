/* SPDX-License-Identifier: MIT */
/*
 * The parser: walks argv, finds the row, does what its type says. All knowledge about single
 * options is in optiontable.c, except for what follows from several together (options_finish).
 */
#include "cli/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/units.h"
#include "cli/optiontable.h"
#include "cli/optionvalue.h"
#include "cli/rulereader.h"
#include "sys/fd.h"
#include "tree/filter.h"
#include "tree/idmap.h"
#include "tree/modes.h"

int tt_options_init(struct tt_options *options)
{
	*options = (struct tt_options){.human_readable = 1, .dirs = TT_OPTIONS_DIRS_UNSAID};
	options->engine.plan.is_super = geteuid() == 0;
	options->engine.meta.is_super = geteuid() == 0;
	options->engine.overrides_modes = tt_fd_overrides_modes();
	return tt_filter_new(&tt_rulereader, &options->filter);
}

void tt_options_deinit(struct tt_options *options)
{
	tt_filter_free(options->filter);
	tt_modes_free(options->modes);
	tt_idmap_free(options->users);
	tt_idmap_free(options->groups);
	free(options->operands);
	*options = (struct tt_options){0};
}

enum tt_exit tt_options_fail(char *message, enum tt_exit code, const char *format, ...)
{
	char raw[TT_OPTIONS_MESSAGE_SIZE / 5];
	va_list args;

	va_start(args, format);
	vsnprintf(raw, sizeof(raw), format, args);
	va_end(args);
	tt_log_escape(raw, message, TT_OPTIONS_MESSAGE_SIZE);
	return code;
}

/* One option as it stands on the command line. */
struct options_use {
	const struct tt_optiontable_row *row;
	const char *typed; /* "--no-perms", "-a", for messages */
	const char *value; /* or NULL */
	bool negated;
};

static enum tt_exit options_add_rule(struct tt_options *options, const char *typed,
	enum tt_filter_kind kind, const char *text, char *message)
{
	struct tt_filter_error error;
	int r = tt_filter_add(options->filter, kind, text, &error);

	if (r == -ENOMEM)
		return tt_options_fail(message, TT_EXIT_MEMORY, "%s: %s", typed, tt_error_text(r));
	if (r < 0)
		return tt_options_fail(message, error.is_file ? TT_EXIT_FILE_IO : TT_EXIT_USAGE,
			"%s: %s", typed, error.text);
	return TT_EXIT_OK;
}

/* -F once: files with rules; twice: these are left out. More often says nothing more. */
static enum tt_exit options_add_rule_files(
	struct tt_options *options, const char *typed, char *message)
{
	static const char *const rules[] = {"dir-merge /.rsync-filter", "exclude .rsync-filter"};

	if (options->rule_files == sizeof(rules) / sizeof(rules[0]))
		return TT_EXIT_OK;
	return options_add_rule(
		options, typed, TT_FILTER_RULE, rules[options->rule_files++], message);
}

/* -C stands behind all rules, wherever it was. */
static enum tt_exit options_finish_filter(struct tt_options *options, char *message)
{
	enum tt_exit code = TT_EXIT_OK;

	tt_filter_set_delete_excluded(options->filter, options->delete_excluded);
	if (options->cvs_exclude)
		code = options_add_rule(options, "-C", TT_FILTER_RULE, ":C", message);
	if (options->cvs_exclude && code == TT_EXIT_OK)
		code = options_add_rule(options, "-C", TT_FILTER_RULE, "-C", message);
	if (!tt_filter_is_empty(options->filter))
		options->engine.filter = options->filter;
	return code;
}

static void options_set_archive(struct tt_plan_policy *plan)
{
	plan->recursive = plan->links = plan->perms = plan->times = true;
	plan->owner = plan->group = plan->devices = plan->specials = true;
}

static enum tt_exit options_apply(
	struct tt_options *options, const struct options_use *use, char *message)
{
	void *field = (char *)options + use->row->offset;

	if (use->row->type == TT_OPTIONTABLE_REFUSED)
		return tt_options_fail(message, TT_EXIT_UNSUPPORTED,
			"option %s of rsync is not supported by tiptoe yet", use->typed);

	switch (use->row->type) {
	case TT_OPTIONTABLE_FLAG:
		*(bool *)field = !use->negated;
		return TT_EXIT_OK;
	case TT_OPTIONTABLE_COUNT:
		*(unsigned *)field = use->negated ? 0 : *(unsigned *)field + 1;
		return TT_EXIT_OK;
	case TT_OPTIONTABLE_PATTERN_EXCLUDE:
		return options_add_rule(
			options, use->typed, TT_FILTER_EXCLUDE, use->value, message);
	case TT_OPTIONTABLE_PATTERN_INCLUDE:
		return options_add_rule(
			options, use->typed, TT_FILTER_INCLUDE, use->value, message);
	case TT_OPTIONTABLE_EXCLUDE_FROM:
		return options_add_rule(
			options, use->typed, TT_FILTER_EXCLUDE_FROM, use->value, message);
	case TT_OPTIONTABLE_INCLUDE_FROM:
		return options_add_rule(
			options, use->typed, TT_FILTER_INCLUDE_FROM, use->value, message);
	case TT_OPTIONTABLE_FILTER:
		return options_add_rule(options, use->typed, TT_FILTER_RULE, use->value, message);
	case TT_OPTIONTABLE_RULE_FILES:
		return options_add_rule_files(options, use->typed, message);
	case TT_OPTIONTABLE_FROM0:
		tt_filter_set_from0(options->filter, !use->negated);
		return TT_EXIT_OK;
	case TT_OPTIONTABLE_PROBE:
		options->probe = true;
		options->probe_dir = use->value;
		return TT_EXIT_OK;
	case TT_OPTIONTABLE_ARCHIVE:
		options_set_archive(&options->engine.plan);
		return TT_EXIT_OK;
	case TT_OPTIONTABLE_APPEND:
		options->append = use->negated ? TT_INPLACE_NO : TT_INPLACE_APPEND;
		return TT_EXIT_OK;
	case TT_OPTIONTABLE_APPEND_VERIFY:
		options->append = TT_INPLACE_APPEND_VERIFY;
		return TT_EXIT_OK;
	case TT_OPTIONTABLE_NODES:
		options->engine.plan.devices = options->engine.plan.specials = !use->negated;
		return TT_EXIT_OK;
	case TT_OPTIONTABLE_DIRS:
		options->dirs = use->negated ? TT_OPTIONS_DIRS_NO : TT_OPTIONS_DIRS_YES;
		return TT_EXIT_OK;
	case TT_OPTIONTABLE_OLD_DIRS:
		options->dirs = TT_OPTIONS_DIRS_OLD;
		return TT_EXIT_OK;
	case TT_OPTIONTABLE_SUPER:
		options->engine.plan.is_super = options->engine.meta.is_super = !use->negated;
		return TT_EXIT_OK;
	case TT_OPTIONTABLE_IGNORE_MISSING:
		if (options->engine.missing != TT_MISSING_DELETE)
			options->engine.missing = TT_MISSING_IGNORE;
		return TT_EXIT_OK;
	case TT_OPTIONTABLE_DELETE_MISSING:
		options->engine.missing = TT_MISSING_DELETE;
		return TT_EXIT_OK;
	case TT_OPTIONTABLE_SIZE:
	case TT_OPTIONTABLE_WORKERS:
	case TT_OPTIONTABLE_CACHE:
	case TT_OPTIONTABLE_REFLINK:
	case TT_OPTIONTABLE_MAX_DELETE:
	case TT_OPTIONTABLE_MAX_SIZE:
	case TT_OPTIONTABLE_MIN_SIZE:
	case TT_OPTIONTABLE_WINDOW:
	case TT_OPTIONTABLE_CHMOD:
	case TT_OPTIONTABLE_CHOWN:
	case TT_OPTIONTABLE_USERMAP:
	case TT_OPTIONTABLE_GROUPMAP:
		return tt_optionvalue_set(options, use->row->type, use->typed, use->value, message);
	case TT_OPTIONTABLE_REFUSED:
		break;
	}
	return TT_EXIT_OK;
}

/* The row that "--no-NAME" turns off, NAME being long or one letter. A refused option is found
 * under --no- too. */
static const struct tt_optiontable_row *options_find_negated(const char *name, size_t length)
{
	const struct tt_optiontable_row *row = NULL;

	if (length <= 3 || strncmp(name, "no-", 3) != 0)
		return NULL;
	if (length == 4)
		row = tt_optiontable_find_short(name[3]);
	if (!row)
		row = tt_optiontable_find_long(name + 3, length - 3);
	return row && (row->negatable || row->type == TT_OPTIONTABLE_REFUSED) ? row : NULL;
}

/* --no-W is rsync's delta transfer, which is an option that tiptoe does not have. */
static bool options_is_delta_request(const char *name, size_t length)
{
	return (length == 4 && strncmp(name, "no-W", length) == 0)
	       || (length == 13 && strncmp(name, "no-whole-file", length) == 0);
}

static enum tt_exit options_parse_long(struct tt_options *options, const char *text,
	char *const *next, int *ret_used, char *message)
{
	const char *name = text + 2;
	size_t length = strcspn(name, "=");
	char typed[80], near[64];
	struct options_use use = {
		.row = tt_optiontable_find_long(name, length),
		.typed = typed,
		.value = name[length] == '=' ? name + length + 1 : NULL,
	};

	snprintf(typed, sizeof(typed), "--%.*s", (int)length, name);
	if (options_is_delta_request(name, length))
		return tt_options_fail(message, TT_EXIT_UNSUPPORTED,
			"option %s of rsync is not supported by tiptoe yet", typed);
	if (!use.row) {
		use.row = options_find_negated(name, length);
		use.negated = true;
	}
	if (!use.row) {
		char bare[64];
		snprintf(bare, sizeof(bare), "%.*s", (int)length, name);
		const char *suggestion = tt_optiontable_suggest(bare, near);
		return tt_options_fail(message, TT_EXIT_USAGE, "unknown option %s%s%s%s", typed,
			suggestion ? "; did you mean --" : "", suggestion ? suggestion : "",
			suggestion ? "?" : "");
	}
	if (use.row->type != TT_OPTIONTABLE_REFUSED) {
		if (use.value && !use.row->argument && use.row->type != TT_OPTIONTABLE_PROBE)
			return tt_options_fail(
				message, TT_EXIT_USAGE, "%s takes no argument", typed);
		if (!use.value && use.row->argument && !*next)
			return tt_options_fail(message, TT_EXIT_USAGE, "%s needs an argument: %s",
				typed, use.row->argument);
		if (!use.value && use.row->argument) {
			use.value = *next;
			*ret_used = 1;
		}
	}
	return options_apply(options, &use, message);
}

/* A bundle of short options. One that takes an argument takes the rest of the bundle, or the next
 * word: -fRULE, -f=RULE, -f RULE. */
static enum tt_exit options_parse_short(struct tt_options *options, const char *text,
	char *const *next, int *ret_used, char *message)
{
	for (const char *letter = text + 1; *letter; letter++) {
		char typed[] = {'-', *letter, '\0'};
		struct options_use use = {
			.row = tt_optiontable_find_short(*letter), .typed = typed};
		enum tt_exit code;

		if (!use.row && text[2])
			return tt_options_fail(
				message, TT_EXIT_USAGE, "unknown option %s in %s", typed, text);
		if (!use.row)
			return tt_options_fail(message, TT_EXIT_USAGE, "unknown option %s", typed);
		bool takes = use.row->argument && use.row->type != TT_OPTIONTABLE_REFUSED;

		if (takes && letter[1]) {
			use.value = letter + 1 + (letter[1] == '=');
		} else if (takes && *next) {
			use.value = *next;
			*ret_used = 1;
		} else if (takes) {
			return tt_options_fail(message, TT_EXIT_USAGE, "%s needs an argument: %s",
				typed, use.row->argument);
		}
		code = options_apply(options, &use, message);
		if (code != TT_EXIT_OK || takes)
			return code;
	}
	return TT_EXIT_OK;
}

/* rsync's rule: a colon before the first slash. A local name with a colon is written ./a:b. */
static bool options_is_remote(const char *operand)
{
	size_t plain = strcspn(operand, ":/");

	return (plain > 0 && operand[plain] == ':') || strncmp(operand, "rsync://", 8) == 0;
}

/* --probe DIR, --probe --json DIR, --probe=DIR. */
static enum tt_exit options_finish_probe(struct tt_options *options, char *message)
{
	if (options->operand_count + (options->probe_dir != NULL) > 1)
		return tt_options_fail(message, TT_EXIT_USAGE,
			"--probe copies nothing: it takes one directory and no SRC or DST");
	if (options->operand_count == 1)
		options->probe_dir = options->operands[0];
	if (!options->probe_dir || !*options->probe_dir)
		return tt_options_fail(message, TT_EXIT_USAGE, "--probe needs a directory");
	return TT_EXIT_OK;
}

/* What the engine's layers are to know of one another's options. */
static void options_share(struct tt_engine_policy *engine)
{
	engine->meta.perms = engine->plan.perms;
	engine->meta.executability = engine->plan.executability;
	engine->meta.times = engine->plan.times;
	engine->meta.omit_dir_times = engine->plan.omit_dir_times;
	engine->meta.omit_link_times = engine->plan.omit_link_times;
	engine->meta.atimes = engine->plan.atimes;
	engine->meta.exact_times = !engine->plan.has_window;
	engine->meta.exact_files = engine->plan.checksum;
	engine->meta.window_sec = engine->plan.window_sec;
	engine->meta.owner = engine->plan.owner;
	engine->meta.group = engine->plan.group;
}

/* -d, and its old form: -r with a filter behind all others. */
static enum tt_exit options_set_dirs(struct tt_options *options, char *message)
{
	struct tt_plan_policy *plan = &options->engine.plan;
	enum tt_exit code = TT_EXIT_OK;

	if (options->dirs == TT_OPTIONS_DIRS_OLD) {
		plan->recursive = true;
		code = options_add_rule(options, "--old-dirs", TT_FILTER_EXCLUDE, "/*/*", message);
	}
	plan->dirs = options->dirs == TT_OPTIONS_DIRS_YES && !plan->recursive;
	return code;
}

/* What several options mean together. */
static enum tt_exit options_finish(struct tt_options *options, char *message)
{
	struct tt_engine_policy *engine = &options->engine;
	int phases = options->delete_before + options->delete_during + options->delete_delay
		     + options->delete_after;

	enum tt_exit code = tt_optionvalue_finish(options, message);

	if (code != TT_EXIT_OK)
		return code;
	code = options_set_dirs(options, message);
	if (code == TT_EXIT_OK)
		code = options_finish_filter(options, message);
	if (code != TT_EXIT_OK)
		return code;
	engine->plan.atimes = options->atimes > 0;
	options_share(engine);
	engine->one_file_system = options->one_file_system > 0;
	engine->omit_mounts = options->one_file_system > 1;
	engine->silent = options->verbose == 0 && options->itemize == 0;
	engine->tell_removed = options->verbose > 1;
	engine->report_unchanged = options->verbose > 1 || options->itemize > 1;
	engine->plan.append = options->append != TT_INPLACE_NO;
	engine->inplace = engine->plan.append ? options->append
			  : options->inplace  ? TT_INPLACE_WHOLE
					      : TT_INPLACE_NO;

	if (engine->plan.append && options->whole_file)
		return tt_options_fail(
			message, TT_EXIT_USAGE, "--append cannot be used with --whole-file (-W)");
	if (engine->reflink == TT_CLONE_ALWAYS && (engine->sparse || engine->preallocate))
		return tt_options_fail(message, TT_EXIT_USAGE,
			"--reflink=always shares blocks as they are: it does not go with %s",
			engine->sparse ? "--sparse (-S)" : "--preallocate");
	if (engine->reflink == TT_CLONE_ALWAYS && engine->plan.append)
		return tt_options_fail(message, TT_EXIT_USAGE,
			"--reflink=always clones whole files: it does not go with --append");
	if (phases > 1)
		return tt_options_fail(message, TT_EXIT_USAGE,
			"only one of --delete-before, --delete-during, --delete-delay and "
			"--delete-after is possible");
	options->delete_any = options->delete_any || options->delete_excluded;
	if ((options->delete_any || phases) && !engine->plan.recursive && !engine->plan.dirs)
		return tt_options_fail(message, TT_EXIT_USAGE,
			"--delete does not work without --recursive (-r) or --dirs (-d)");
	if (options->delete_before)
		engine->delete_mode = TT_DELETE_BEFORE;
	else if (options->delete_delay)
		engine->delete_mode = TT_DELETE_DELAY;
	else if (options->delete_after)
		engine->delete_mode = TT_DELETE_AFTER;
	else if (options->delete_during || options->delete_any)
		engine->delete_mode = TT_DELETE_DURING;

	if (options->probe)
		return options_finish_probe(options, message);
	if (options->json)
		return tt_options_fail(message, TT_EXIT_USAGE, "--json needs --probe");
	for (unsigned i = 0; i < options->operand_count; i++) {
		if (options_is_remote(options->operands[i]))
			return tt_options_fail(message, TT_EXIT_UNSUPPORTED,
				"%s is on another machine, which is not supported by tiptoe yet (a "
				"local name with a colon is written ./%s)",
				options->operands[i], options->operands[i]);
		if (!*options->operands[i])
			return tt_options_fail(message, TT_EXIT_USAGE,
				"an empty name is neither SRC nor DST (\".\" is)");
	}
	if (options->operand_count == 0)
		return tt_options_fail(message, TT_EXIT_USAGE,
			"usage: tiptoe [OPTION]... SRC [SRC]... DST (see tiptoe --help)");
	if (options->operand_count == 1)
		return tt_options_fail(message, TT_EXIT_USAGE,
			"%s is to be copied, but where to? (tiptoe [OPTION]... SRC [SRC]... DST)",
			options->operands[0]);
	return TT_EXIT_OK;
}

enum tt_exit tt_options_parse(
	struct tt_options *options, int argc, char *const *argv, char *message)
{
	bool ended = false;

	*message = '\0';
	/* As with rsync, -h asks for help when it is alone. */
	if (argc == 2 && strcmp(argv[1], "-h") == 0) {
		options->show_help = true;
		return TT_EXIT_OK;
	}
	options->operands = calloc((size_t)argc + 1, sizeof(*options->operands));
	if (!options->operands)
		return tt_options_fail(message, TT_EXIT_MEMORY, "%s", tt_error_text(ENOMEM));

	for (int i = 1; i < argc; i++) {
		enum tt_exit code = TT_EXIT_OK;
		int used = 0;

		if (ended || argv[i][0] != '-' || !argv[i][1])
			options->operands[options->operand_count++] = argv[i];
		else if (strcmp(argv[i], "--") == 0)
			ended = true;
		else if (argv[i][1] == '-')
			code = options_parse_long(options, argv[i], argv + i + 1, &used, message);
		else
			code = options_parse_short(options, argv[i], argv + i + 1, &used, message);
		if (code != TT_EXIT_OK)
			return code;
		i += used;
	}
	if (options->show_help || options->show_version || options->dump_options)
		return TT_EXIT_OK;
	return options_finish(options, message);
}
