/* SPDX-License-Identifier: MIT */
/*
 * See filter_dir.h. A set of rules is made when a directory has something to add, and keeps alive
 * the one above, which its lists end in.
 */
#include "tree/filter_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "sys/fd.h"
#include "tree/filter_parse.h"

struct tt_filter_dir {
	_Atomic unsigned references;
	struct tt_filter_dir *above; /* NULL: the rules of the command line */
	struct tt_filter *filter;
	enum tt_filter_side side;
	const char *root; /* of the transfer, without a '/' at its end; in the first one's arena */
	size_t root_length;
	struct tt_filter_points points;
	struct tt_arena arena;
};

/* A directory that is being entered. */
struct dir_entering {
	struct tt_filter_dir *above;
	const struct tt_filter_place *place;
	struct tt_filter_error *error;
	struct tt_filter_dir *rules; /* NULL: nothing to add so far */
	bool failed;                 /* a file could not be read */
};

/* An absolute path without links resolved, as rsync has it: "" for "/". */
static int dir_find_root(const char *path, char *root, size_t size)
{
	char here[PATH_MAX];

	/* The working directory is gone: whatever it was called. */
	if (*path != '/' && !getcwd(here, sizeof here))
		here[0] = '\0';
	if ((size_t)snprintf(
		    root, size, "%s%s%s", *path == '/' ? "" : here, *path == '/' ? "" : "/", path)
		>= size)
		return -ENAMETOOLONG;
	if (tt_filter_parse_clean(root) == 1)
		root[0] = '\0';
	return 0;
}

int tt_filter_dir_new(struct tt_filter *filter, enum tt_filter_side side, const char *root,
	struct tt_filter_dir **ret_rules)
{
	char path[PATH_MAX * 2];
	int r = dir_find_root(root, path, sizeof path);
	struct tt_filter_dir *rules = r < 0 ? NULL : calloc(1, sizeof *rules);

	if (!rules)
		return r < 0 ? r : -ENOMEM;
	rules->references = 1;
	rules->filter = filter;
	rules->side = side;
	rules->root = tt_arena_copy(&rules->arena, path, strlen(path));
	rules->root_length = strlen(path);
	rules->points = filter->points;
	/* Whatever is added to the list goes into a copy. */
	rules->points.capacity = rules->points.count;
	if (!rules->root) {
		tt_filter_dir_release(rules);
		return -ENOMEM;
	}
	*ret_rules = rules;
	return 0;
}

struct tt_filter_dir *tt_filter_dir_share(struct tt_filter_dir *rules)
{
	if (rules)
		atomic_fetch_add(&rules->references, 1);
	return rules;
}

void tt_filter_dir_release(struct tt_filter_dir *rules)
{
	while (rules && atomic_fetch_sub(&rules->references, 1) == 1) {
		struct tt_filter_dir *above = rules->above;

		tt_arena_deinit(&rules->arena);
		free(rules);
		rules = above;
	}
}

/* ---- entering a directory ---- */

static const struct tt_filter_points *dir_points(const struct dir_entering *entering)
{
	return entering->rules ? &entering->rules->points : &entering->above->points;
}

/* The directory gets rules of its own: until now only inherited ones. */
static int dir_begin(struct dir_entering *entering)
{
	struct tt_filter_dir *above = entering->above, *rules;

	if (entering->rules)
		return 0;
	rules = calloc(1, sizeof *rules);
	if (!rules)
		return -ENOMEM;
	rules->references = 1;
	rules->above = tt_filter_dir_share(above);
	rules->filter = above->filter;
	rules->side = above->side;
	rules->root = above->root;
	rules->root_length = above->root_length;
	entering->rules = rules;
	rules->points.count = rules->points.capacity = above->points.count;
	rules->points.items =
		tt_arena_take(&rules->arena, above->points.count * sizeof *rules->points.items);
	if (!rules->points.items)
		return -ENOMEM;
	for (unsigned i = 0; i < above->points.count; i++) {
		struct tt_filter_point *point = &rules->points.items[i];

		*point = above->points.items[i];
		point->rules.last = NULL;
		if (point->rule && (point->rule->flags & TT_FILTER_RULE_NO_INHERIT))
			point->rules.head = NULL;
	}
	return 0;
}

/* Whether rules that name these sides are about this tree. */
static bool dir_has_side(const struct tt_filter_dir *rules, uint32_t flags)
{
	flags &= TT_FILTER_RULE_SIDES;
	return flags == 0 || flags == TT_FILTER_RULE_SIDES
	       || flags
			  == (rules->side == TT_FILTER_SOURCE ? TT_FILTER_RULE_SENDER
							      : TT_FILTER_RULE_RECEIVER);
}

static void dir_fail(struct dir_entering *entering, const char *path, int error)
{
	if (entering->failed)
		return;
	entering->failed = true;
	entering->error->is_file = true;
	snprintf(entering->error->text, sizeof entering->error->text,
		"reading filter rules from %.800s: %s", path,
		error == -EXDEV ? "it is a link that leads out of the tree" : tt_error_text(error));
}

/* "Name in the directory of the tree", or -ENAMETOOLONG. */
static int dir_join(char *path, size_t size, const char *directory, const char *name)
{
	int n = snprintf(path, size, "%s%s%s", directory, *directory ? "/" : "", name);

	return (size_t)n < size ? 0 : -ENAMETOOLONG;
}

/* For files that rules in the tree name: with a '/' in it the path begins in the directory, without
 * at the top, as with rsync. */
static int dir_open_named(void *context, const char *name)
{
	const struct tt_filter_place *place = context;
	char path[PATH_MAX * 2];
	int r = 0;

	/* The top may be above the tree: "src" is in it, and the tree is what is in "src". */
	if (*name == '/' || (!strchr(name, '/') && strlen(place->path) != strlen(place->tree_path)))
		return -EXDEV;
	r = dir_join(path, sizeof path, strchr(name, '/') ? place->tree_path : "", name);
	if (r < 0)
		return r;
	tt_filter_parse_clean(path);
	return tt_fd_open_read_beneath(place->tree_fd, path);
}

/* Reads an open file with rules into the list of one point. A file that cannot be read is told of
 * and left out. Closes the descriptor. */
static int dir_take(struct dir_entering *entering, struct tt_filter_parser *parser, unsigned at,
	int fd, const char *path)
{
	struct tt_filter_points *points = &entering->rules->points;
	struct tt_filter_rules list = points->items[at].rules;
	char *text = NULL;
	size_t bytes = 0;
	int r = parser->reader->read(parser->reader->context, fd, &text, &bytes);

	tt_fd_close(fd);
	if (r == -EISDIR || r == -ENOMEM)
		return r == -ENOMEM ? r : 0;
	if (r < 0) {
		dir_fail(entering, path, r);
		return 0;
	}
	r = tt_filter_parse_content(parser, &list, text, bytes, path, points->items[at].rule->flags,
		TT_FILTER_PARSE_ANCHORED);
	free(text);
	/* Not by the pointer from before: what was read may have made more points. */
	entering->rules->points.items[at].rules = list;
	return r;
}

/* The file that is looked for in every directory. -ENOENT also for what is no file. */
static int dir_open(const struct tt_filter_place *place, const char *name)
{
	char path[PATH_MAX * 2];
	struct stat st;
	int fd = tt_fd_open_read(place->dir_fd, name);

	if (fd == -ELOOP && dir_join(path, sizeof path, place->tree_path, name) == 0)
		fd = tt_fd_open_read_beneath(place->tree_fd, path);
	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		tt_fd_close(fd);
		return -ENOENT;
	}
	return fd;
}

/* Whether the directories above the tree are to be looked through, and from where on: `path` gets
 * that directory, with a '/' at its end. `here` is the directory that is entered, likewise. */
static bool dir_is_above(const char *pattern, const char *here, char *path, size_t size)
{
	size_t length;

	if ((size_t)snprintf(path, size, "%s%s", *pattern == '/' ? "" : here, pattern) >= size)
		return false;
	tt_filter_parse_clean(path);
	length = (size_t)(strrchr(path, '/') + 1 - path);
	path[length] = '\0';
	return length < strlen(here) && strncmp(path, here, length) == 0;
}

/* Reads the file of one point in all directories from `path` to the one above `here`. */
static int dir_scan_above(struct dir_entering *entering, struct tt_filter_parser *parser,
	unsigned at, const char *here, char *path, size_t size)
{
	size_t length = strlen(path);
	int r = 0;

	while (r >= 0 && length < strlen(here)) {
		const char *name = entering->rules->points.items[at].name;

		if (length + strlen(name) >= size)
			return 0;
		strcpy(path + length, name);
		int fd = tt_fd_open_path(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);

		if (fd >= 0) {
			char file[PATH_MAX * 2];

			memcpy(file, path, strlen(path) + 1);
			path[length] = '\0';
			parser->skip = length;
			parser->above = path;
			r = dir_take(entering, parser, at, fd, file);
		} else if (fd != -ENOENT && fd != -ENOTDIR) {
			dir_fail(entering, path, fd);
		}
		struct tt_filter_point *point = &entering->rules->points.items[at];

		point->rules.last = NULL;
		if (point->rule->flags & TT_FILTER_RULE_NO_INHERIT)
			point->rules.head = NULL;
		/* One further down. */
		size_t next = length + strcspn(here + length, "/") + 1;

		if (next >= size)
			break;
		memcpy(path, here, next);
		path[next] = '\0';
		length = next;
	}
	return r;
}

static int dir_look_above(struct dir_entering *entering, unsigned at)
{
	char here[PATH_MAX * 2], path[PATH_MAX * 2];
	struct tt_filter_dir *above = entering->above;
	struct tt_filter_point *point = &entering->rules->points.items[at];
	struct tt_filter_parser parser = {
		.filter = above->filter,
		.reader = &entering->place->reader,
		.arena = &entering->rules->arena,
		.points = &entering->rules->points,
		.error = entering->error,
	};

	point->is_new = false;
	if ((size_t)snprintf(here, sizeof here, "%s/%s%s", above->root, entering->place->path,
		    *entering->place->path ? "/" : "")
			>= sizeof here
		|| !dir_is_above(point->rule->pattern, here, path, sizeof path))
		return 0;
	return dir_scan_above(entering, &parser, at, here, path, sizeof path);
}

/* Reads the file that one point is about, where there is one. */
static int dir_enter_point(struct dir_entering *entering, unsigned at)
{
	const struct tt_filter_place *place = entering->place;
	const struct tt_filter_point *point = &dir_points(entering)->items[at];
	char path[PATH_MAX * 2];
	int r = 0;

	if (!point->rule)
		return 0;
	if (point->is_new
		|| ((point->rule->flags & TT_FILTER_RULE_NO_INHERIT) && point->rules.head)) {
		r = dir_begin(entering);
		if (r >= 0 && point->is_new)
			r = dir_look_above(entering, at);
		if (r < 0)
			return r;
	}
	point = &dir_points(entering)->items[at];
	int fd = dir_open(place, point->name);

	if (fd == -ENOENT)
		return 0;
	(void)dir_join(path, sizeof path, place->path, point->name);
	if (fd < 0) {
		dir_fail(entering, path, fd);
		return 0;
	}
	r = dir_begin(entering);
	if (r < 0) {
		tt_fd_close(fd);
		return r;
	}
	struct tt_filter_dir *rules = entering->rules;
	struct tt_filter_parser parser = {
		.filter = rules->filter,
		.reader = &place->reader,
		.arena = &rules->arena,
		.points = &rules->points,
		.error = entering->error,
		.skip = rules->root_length + strlen(place->path) + (*place->path ? 2 : 1),
		.open = dir_open_named,
		.open_context = (void *)place,
	};

	return dir_take(entering, &parser, at, fd, path);
}

int tt_filter_dir_enter(struct tt_filter_dir *above, const struct tt_filter_place *place,
	struct tt_filter_error *error, struct tt_filter_dir **ret_rules)
{
	struct dir_entering entering = {.above = above, .place = place, .error = error};
	int r = 0;

	for (unsigned i = 0; above && r >= 0 && i < dir_points(&entering)->count; i++)
		r = dir_enter_point(&entering, i);
	if (r < 0) {
		tt_filter_dir_release(entering.rules);
		return r;
	}
	*ret_rules = entering.rules ? entering.rules : tt_filter_dir_share(above);
	return entering.failed;
}

/* ---- asking ---- */

struct dir_question {
	const struct tt_filter_dir *rules;
	struct tt_filter_path path;
	bool in_deleted;
};

static bool dir_rule_is_asked(const struct dir_question *question, uint32_t flags)
{
	if (flags & TT_FILTER_RULE_XATTR)
		return false;
	if ((flags & TT_FILTER_RULE_SIDES) == 0 && question->rules->filter->delete_excluded)
		flags |= TT_FILTER_RULE_SENDER;
	return dir_has_side(question->rules, flags);
}

/* 1: included, -1: excluded, 0: no rule says anything. */
static int dir_ask(const struct dir_question *question, const struct tt_filter_rule *rule)
{
	const struct tt_filter_dir *rules = question->rules;

	for (; rule; rule = rule->next) {
		int r = 0;

		if (question->in_deleted && (rule->flags & TT_FILTER_RULE_PERISHABLE))
			continue;
		if (rule->flags & TT_FILTER_RULE_PER_DIR)
			r = dir_ask(question, rules->points.items[rule->point].rules.head);
		else if (rule->flags & TT_FILTER_RULE_CVS)
			r = dir_ask(question, rules->filter->cvs.head);
		else if (dir_rule_is_asked(question, rule->flags)
			 && tt_filter_rule_matches(rule, &question->path))
			r = rule->flags & TT_FILTER_RULE_INCLUDE ? 1 : -1;
		if (r != 0)
			return r;
	}
	return 0;
}

bool tt_filter_dir_excludes(
	const struct tt_filter_dir *rules, const char *path, bool is_dir, bool in_deleted)
{
	char small[1024], *text = small;
	size_t length;
	bool excluded;

	if (!rules || tt_filter_is_empty(rules->filter) || !*path)
		return false;
	length = strlen(path);
	if (rules->root_length + length + 3 > sizeof small) {
		text = malloc(rules->root_length + length + 3);
		/* Without memory nothing can be told; leaving out and keeping are what can do no
		 * harm. */
		if (!text)
			return true;
	}
	memcpy(text, rules->root, rules->root_length);
	text[rules->root_length] = '/';
	memcpy(text + rules->root_length + 1, path, length + 1);
	struct dir_question question = {
		.rules = rules,
		.in_deleted = in_deleted,
		.path = {.full = text,
			.rooted = text + rules->root_length,
			.name = strrchr(text, '/') + 1,
			.end = text + rules->root_length + 1 + length,
			.is_dir = is_dir},
	};

	excluded = dir_ask(&question, rules->filter->rules.head) < 0;
	if (text != small)
		free(text);
	return excluded;
}
