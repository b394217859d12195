/* SPDX-License-Identifier: MIT */
/*
 * One row per option. The order is that of --help. Rows of type REFUSED are the options of
 * rsync 3.5 that tiptoe does not have yet: they are refused by name, never ignored and never taken
 * for a typing error. Below the table: a row by name, the nearest name, --help, --dump-options.
 */
#include "cli/optiontable.h"

#include <string.h>

#include "cli/options.h"

#define AT(field) offsetof(struct tt_options, field)
#define REFUSED(name, letter)                                                                \
	{                                                                                    \
		.long_name = (name), .short_name = (letter), .type = TT_OPTIONTABLE_REFUSED, \
		.group = TT_OPTIONTABLE_OTHER, .since = "-",                                 \
	}

#define T(type) TT_OPTIONTABLE_##type

#define FLAG    TT_OPTIONTABLE_FLAG
#define COUNT   TT_OPTIONTABLE_COUNT
#define WHAT    TT_OPTIONTABLE_WHAT
#define HOW     TT_OPTIONTABLE_HOW
#define DELETE  TT_OPTIONTABLE_DELETE
#define OUTPUT  TT_OPTIONTABLE_OUTPUT
#define CACHE   TT_OPTIONTABLE_CACHE_GROUP
#define OTHER   TT_OPTIONTABLE_OTHER
#define EXCLUDE TT_OPTIONTABLE_PATTERN_EXCLUDE
#define INCLUDE TT_OPTIONTABLE_PATTERN_INCLUDE
#define EXFROM  TT_OPTIONTABLE_EXCLUDE_FROM
#define INFROM  TT_OPTIONTABLE_INCLUDE_FROM
#define FILTER  TT_OPTIONTABLE_FILTER
#define FFILES  TT_OPTIONTABLE_RULE_FILES
#define FROM0   TT_OPTIONTABLE_FROM0
#define ARCHIVE TT_OPTIONTABLE_ARCHIVE
#define NODES   TT_OPTIONTABLE_NODES
#define APPEND  TT_OPTIONTABLE_APPEND
#define VERIFY  TT_OPTIONTABLE_APPEND_VERIFY
#define SIZE    TT_OPTIONTABLE_SIZE
#define WORKERS TT_OPTIONTABLE_WORKERS
#define MODE    TT_OPTIONTABLE_CACHE
#define REFLINK TT_OPTIONTABLE_REFLINK
#define PROBE   TT_OPTIONTABLE_PROBE

/* clang-format off */
const struct tt_optiontable_row tt_optiontable[] = {
	{"archive", 'a', NULL, ARCHIVE, 0, WHAT, "the same as -rlptgoD (not -H)", "0.1", false},
	{"recursive", 'r', NULL, FLAG, AT(engine.plan.recursive), WHAT, "go into directories", "0.1", true},
	{"dirs", 'd', NULL, T(DIRS), 0, WHAT, "copy directories, but not what is in them", "0.1", true},
	{"old-dirs", 0, NULL, T(OLD_DIRS), 0, WHAT, "the same by -r --exclude='/*/*'", "0.1", false},
	{"old-d", 0, NULL, T(OLD_DIRS), 0, WHAT, "the same as --old-dirs", "0.1", false},
	{"links", 'l', NULL, FLAG, AT(engine.plan.links), WHAT, "copy symbolic links as symbolic links", "0.1", true},
	{"hard-links", 'H', NULL, FLAG, AT(engine.plan.hard_links), WHAT, "names of one inode stay names of one inode", "0.1", true},
	{"perms", 'p', NULL, FLAG, AT(engine.plan.perms), WHAT, "keep permissions", "0.1", true},
	{"executability", 'E', NULL, FLAG, AT(engine.plan.executability), WHAT, "without -p: keep whether a file can be executed", "0.1", false},
	{"chmod", 0, "CHMOD", T(CHMOD), 0, WHAT, "change permissions on the way, as chmod(1) would; D or F in front: of directories or files only", "0.1", false},
	{"times", 't', NULL, FLAG, AT(engine.plan.times), WHAT, "keep modification times", "0.1", true},
	{"omit-dir-times", 'O', NULL, FLAG, AT(engine.plan.omit_dir_times), WHAT, "not those of directories", "0.1", true},
	{"omit-link-times", 'J', NULL, FLAG, AT(engine.plan.omit_link_times), WHAT, "not those of symbolic links", "0.1", true},
	{"atimes", 'U', NULL, COUNT, AT(atimes), WHAT, "keep times of access", "0.1", true},
	{"open-noatime", 0, NULL, FLAG, AT(open_noatime), WHAT, "do not change times of access by reading (always so where it is permitted)", "0.1", true},
	{"owner", 'o', NULL, FLAG, AT(engine.plan.owner), WHAT, "keep the owner (super-user only)", "0.1", true},
	{"group", 'g', NULL, FLAG, AT(engine.plan.group), WHAT, "keep the group", "0.1", true},
	{"chown", 0, "USER:GROUP", T(CHOWN), 0, WHAT, "everything becomes theirs; either may be missing", "0.1", false},
	{"usermap", 0, "STRING", T(USERMAP), 0, WHAT, "owners that become others: FROM:TO,... by name, pattern, number or range", "0.1", false},
	{"groupmap", 0, "STRING", T(GROUPMAP), 0, WHAT, "the same for groups", "0.1", false},
	{"super", 0, NULL, T(SUPER), 0, WHAT, "try what only the super-user may; --no-super: do not, as super-user", "0.1", true},
	{NULL, 'D', NULL, NODES, 0, WHAT, "the same as --devices --specials", "0.1", true},
	{"devices", 0, NULL, FLAG, AT(engine.plan.devices), WHAT, "copy device nodes (super-user only)", "0.1", true},
	{"specials", 0, NULL, FLAG, AT(engine.plan.specials), WHAT, "copy fifos and sockets", "0.1", true},
	{"numeric-ids", 0, NULL, FLAG, AT(engine.meta.numeric_ids), WHAT, "owners and groups by number, not by name", "0.1", true},
	{"one-file-system", 'x', NULL, COUNT, AT(one_file_system), WHAT, "do not cross into other file systems; twice: leave out their mount points, too", "0.1", true},
	{"max-size", 0, "SIZE", T(MAX_SIZE), 0, WHAT, "copy no files that are larger", "0.1", false},
	{"min-size", 0, "SIZE", T(MIN_SIZE), 0, WHAT, "copy no files that are smaller", "0.1", false},
	{"prune-empty-dirs", 'm', NULL, FLAG, AT(engine.prune_empty_dirs), WHAT, "leave out directories with nothing but directories in them", "0.1", true},
	{"exclude", 0, "PATTERN", EXCLUDE, 0, WHAT, "leave out names that match", "0.1", false},
	{"include", 0, "PATTERN", INCLUDE, 0, WHAT, "do not leave out names that match; the first match of all patterns wins", "0.1", false},
	{"exclude-from", 0, "FILE", EXFROM, 0, WHAT, "the same for the patterns in a file (-: standard input)", "0.1", false},
	{"include-from", 0, "FILE", INFROM, 0, WHAT, "the same for the patterns in a file (-: standard input)", "0.1", false},
	{"filter", 'f', "RULE", FILTER, 0, WHAT, "add a rule: exclude, include, hide, show, protect, risk, merge, dir-merge, clear", "0.1", false},
	{NULL, 'F', NULL, FFILES, 0, WHAT, "rules in files called .rsync-filter hold for the directories they are in; twice: these files are left out", "0.1", false},
	{"cvs-exclude", 'C', NULL, FLAG, AT(cvs_exclude), WHAT, "leave out what CVS ignores, and what files called .cvsignore name", "0.1", false},
	{"from0", '0', NULL, FROM0, 0, WHAT, "rules in files end with a NUL, not with a line", "0.1", true},

	{"checksum", 'c', NULL, FLAG, AT(engine.plan.checksum), HOW, "compare contents, not size and time", "0.1", true},
	{"size-only", 0, NULL, FLAG, AT(engine.plan.size_only), HOW, "a file of the same size is the same", "0.1", false},
	{"ignore-times", 'I', NULL, FLAG, AT(engine.plan.ignore_times), HOW, "copy also files of the same size and time", "0.1", false},
	{"modify-window", '@', "NUM", T(WINDOW), 0, HOW, "times so many seconds apart are the same (by default as finely as DST keeps them)", "0.1", false},
	{"update", 'u', NULL, FLAG, AT(engine.plan.update), HOW, "keep files that are newer in DST", "0.1", false},
	{"existing", 0, NULL, FLAG, AT(engine.plan.existing), HOW, "make no new files in DST", "0.1", false},
	{"ignore-non-existing", 0, NULL, FLAG, AT(engine.plan.existing), HOW, "the same as --existing", "0.1", false},
	{"ignore-existing", 0, NULL, FLAG, AT(engine.plan.ignore_existing), HOW, "change no files that DST has", "0.1", false},
	{"whole-file", 'W', NULL, FLAG, AT(whole_file), HOW, "copy files whole (always so between local trees)", "0.1", false},
	{"sparse", 'S', NULL, FLAG, AT(engine.sparse), HOW, "make holes of long runs of zeros (holes of the source are always kept)", "0.1", true},
	{"inplace", 0, NULL, FLAG, AT(inplace), HOW, "write into the files of DST themselves, not into new ones that replace them", "0.1", true},
	{"append", 0, NULL, APPEND, 0, HOW, "only write what files of DST are too short; what they have is not looked at (implies --inplace)", "0.1", true},
	{"append-verify", 0, NULL, VERIFY, 0, HOW, "the same if what they have is the beginning of the file, else write it anew", "0.1", false},
	{"preallocate", 0, NULL, FLAG, AT(engine.preallocate), HOW, "allocate the whole length of a file before it is written", "0.1", false},
	{"no-seek-hole", 0, NULL, FLAG, AT(engine.no_seek_hole), HOW, "read everything, do not ask the source where its holes are", "0.1", false},
	{"reflink", 0, "WHEN", REFLINK, AT(engine.reflink), HOW, "share blocks with the source: auto (where that works and disturbs nobody, default), always (or fail), never", "0.1", false},
	{"mkpath", 0, NULL, FLAG, AT(engine.mkpath), HOW, "make the directories above DST, too", "0.1", true},
	{"fsync", 0, NULL, FLAG, AT(engine.fsync), HOW, "fsync every written file", "0.1", false},
	{"dry-run", 'n', NULL, FLAG, AT(engine.dry_run), HOW, "only show what would be done", "0.1", false},

	{"delete", 0, NULL, FLAG, AT(delete_any), DELETE, "delete in DST what SRC does not have", "0.1", false},
	{"del", 0, NULL, FLAG, AT(delete_during), DELETE, "the same as --delete-during", "0.1", false},
	{"delete-before", 0, NULL, FLAG, AT(delete_before), DELETE, "delete before anything is copied", "0.1", false},
	{"delete-during", 0, NULL, FLAG, AT(delete_during), DELETE, "delete while copying (default of --delete)", "0.1", false},
	{"delete-delay", 0, NULL, FLAG, AT(delete_delay), DELETE, "find what to delete while copying, delete it when everything is copied", "0.1", false},
	{"delete-after", 0, NULL, FLAG, AT(delete_after), DELETE, "delete when everything is copied", "0.1", false},
	{"delete-excluded", 0, NULL, FLAG, AT(delete_excluded), DELETE, "deletion; rules that name no side protect nothing", "0.1", false},
	{"max-delete", 0, "NUM", T(MAX_DELETE), 0, DELETE, "delete no more than so many names", "0.1", false},
	{"force", 0, NULL, FLAG, AT(engine.force), DELETE, "directories with contents make way for what is none, without --delete too", "0.1", true},
	{"ignore-errors", 0, NULL, FLAG, AT(engine.ignore_errors), DELETE, "delete even if some of SRC could not be read", "0.1", true},
	{"remove-source-files", 0, NULL, FLAG, AT(engine.remove_source_files), DELETE, "remove from SRC what has been copied, or was there already; not directories", "0.1", false},
	{"ignore-missing-args", 0, NULL, T(IGNORE_MISSING), 0, DELETE, "a SRC that is not there is no error", "0.1", false},
	{"delete-missing-args", 0, NULL, T(DELETE_MISSING), 0, DELETE, "and its copy in DST is deleted", "0.1", false},

	{"verbose", 'v', NULL, COUNT, AT(verbose), OUTPUT, "names of what is copied and a summary; twice for more", "0.1", true},
	{"quiet", 'q', NULL, FLAG, AT(quiet), OUTPUT, "only errors", "0.1", false},
	{"itemize-changes", 'i', NULL, COUNT, AT(itemize), OUTPUT, "one line per change, saying what changed; twice for unchanged files too", "0.1", true},
	{"human-readable", 'h', NULL, COUNT, AT(human_readable), OUTPUT, "numbers in units of 1000; twice in units of 1024", "0.1", true},
	{"stats", 0, NULL, FLAG, AT(stats), OUTPUT, "counts at the end, with what was done to the page cache", "0.1", false},
	{"progress", 0, NULL, FLAG, AT(progress), OUTPUT, "one line with rate, remaining time and files", "0.1", true},

	{"cache", 0, "POLICY", MODE, AT(engine.cache.mode), CACHE, "what becomes of cached pages: leave (as found, default), keep (do nothing about them), drop (everything touched goes), direct (leave, with O_DIRECT where possible)", "0.1", false},
	{"dirty-limit", 0, "SIZE", SIZE, AT(engine.cache.dirty_limit_bytes), CACHE, "at most so many bytes not yet on disk (default 48M, less in a small memory cgroup)", "0.1", false},
	{"verify-cache", 0, NULL, FLAG, AT(engine.verify_cache), CACHE, "count the resident pages of both trees at the end", "0.1", false},
	{"probe", 0, NULL, PROBE, 0, CACHE, "show what the kernel can do on the file system of the one directory that is named; copies nothing", "0.1", false},
	{"json", 0, NULL, FLAG, AT(json), CACHE, "with --probe: for programs", "0.1", false},

	{"workers", 0, "N", WORKERS, AT(engine.workers), OTHER, "threads that list and copy, 1 to 256, for each disk", "0.1", false},
	{"version", 'V', NULL, FLAG, AT(show_version), OTHER, "show the version", "0.1", false},
	{"help", 0, NULL, FLAG, AT(show_help), OTHER, "show this text (so does -h alone)", "0.1", false},
	{"dump-options", 0, NULL, FLAG, AT(dump_options), OTHER, NULL, "0.1", false},

	REFUSED("8-bit-output", '8'),
	REFUSED("acls", 'A'),
	REFUSED("address", 0),
	REFUSED("backup", 'b'),
	REFUSED("backup-dir", 0),
	REFUSED("block-size", 'B'),
	REFUSED("blocking-io", 0),
	REFUSED("bwlimit", 0),
	REFUSED("cc", 0),
	REFUSED("checksum-choice", 0),
	REFUSED("checksum-seed", 0),
	REFUSED("compare-dest", 0),
	REFUSED("compress", 'z'),
	REFUSED("compress-choice", 0),
	REFUSED("compress-level", 0),
	REFUSED("compress-threads", 0),
	REFUSED("config", 0),
	REFUSED("confine-root", 0),
	REFUSED("contimeout", 0),
	REFUSED("copy-as", 0),
	REFUSED("copy-dest", 0),
	REFUSED("copy-devices", 0),
	REFUSED("copy-dirlinks", 'k'),
	REFUSED("copy-links", 'L'),
	REFUSED("copy-unsafe-links", 0),
	REFUSED("crtimes", 'N'),
	REFUSED("daemon", 0),
	REFUSED("debug", 0),
	REFUSED("delay-updates", 0),
	REFUSED("detach", 0),
	REFUSED("dparam", 0),
	REFUSED("drop-D", 0),
	REFUSED("early-input", 0),
	REFUSED("fake-super", 0),
	REFUSED("files-from", 0),
	REFUSED("fuzzy", 'y'),
	REFUSED("i-r", 0),
	REFUSED("iconv", 0),
	REFUSED("implied-dirs", 0),
	REFUSED("inc-recursive", 0),
	REFUSED("info", 0),
	REFUSED("insecure-links", 0),
	REFUSED("ipv4", '4'),
	REFUSED("ipv6", '6'),
	REFUSED("keep-dirlinks", 'K'),
	REFUSED("link-dest", 0),
	REFUSED("list-only", 0),
	REFUSED("log-file", 0),
	REFUSED("log-file-format", 0),
	REFUSED("log-format", 0),
	REFUSED("max-alloc", 0),
	REFUSED("motd", 0),
	REFUSED("msgs2stderr", 0),
	REFUSED("munge-links", 0),
	REFUSED("old-args", 0),
	REFUSED("only-write-batch", 0),
	REFUSED("out-format", 0),
	REFUSED("outbuf", 0),
	REFUSED("partial", 0),
	REFUSED("partial-dir", 0),
	REFUSED("password-file", 0),
	REFUSED("port", 0),
	REFUSED("protect-args", 0),
	REFUSED("protocol", 0),
	REFUSED("read-batch", 0),
	REFUSED("relative", 'R'),
	REFUSED("remote-option", 'M'),
	REFUSED("rsh", 'e'),
	REFUSED("rsync-path", 0),
	REFUSED("safe-links", 0),
	REFUSED("secluded-args", 's'),
	REFUSED("sender", 0),
	REFUSED("server", 0),
	REFUSED("skip-compress", 0),
	REFUSED("sockopts", 0),
	REFUSED("stderr", 0),
	REFUSED("stop-after", 0),
	REFUSED("stop-at", 0),
	REFUSED("suffix", 0),
	REFUSED("temp-dir", 'T'),
	REFUSED("time-limit", 0),
	REFUSED("timeout", 0),
	REFUSED("trust-sender", 0),
	REFUSED("write-batch", 0),
	REFUSED("write-devices", 0),
	REFUSED("xattrs", 'X'),
	REFUSED("zc", 0),
	REFUSED("zl", 0),
	REFUSED("zt", 0),
	REFUSED(NULL, 'P'),
	{0},
};
/* clang-format on */

#define TABLE_WIDTH     80
#define TABLE_COLUMN    30 /* where the help texts begin */
#define TABLE_NAME_SIZE 64

static bool table_is_end(const struct tt_optiontable_row *row)
{
	return !row->long_name && !row->short_name;
}

const struct tt_optiontable_row *tt_optiontable_find_long(const char *name, size_t length)
{
	for (const struct tt_optiontable_row *row = tt_optiontable; !table_is_end(row); row++)
		if (row->long_name && strlen(row->long_name) == length
			&& memcmp(row->long_name, name, length) == 0)
			return row;
	return NULL;
}

const struct tt_optiontable_row *tt_optiontable_find_short(char name)
{
	for (const struct tt_optiontable_row *row = tt_optiontable; !table_is_end(row); row++)
		if (name && row->short_name == name)
			return row;
	return NULL;
}

bool tt_optiontable_is_documented(const struct tt_optiontable_row *row)
{
	return row->type != TT_OPTIONTABLE_REFUSED && row->help;
}

/* Edit distance (insert, delete, replace, swap of neighbours); both shorter than TABLE_NAME_SIZE.
 */
static unsigned table_distance(const char *a, const char *b)
{
	unsigned rows[3][TABLE_NAME_SIZE];
	unsigned *before = rows[0], *last = rows[1], *now = rows[2];
	size_t a_length = strlen(a), b_length = strlen(b);

	for (size_t j = 0; j <= b_length; j++)
		last[j] = (unsigned)j;
	memcpy(before, last, sizeof(rows[0]));
	for (size_t i = 1; i <= a_length; i++) {
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= b_length; j++) {
			unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);

			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]
				&& before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
		unsigned *spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[b_length];
}

const char *tt_optiontable_suggest(const char *name, char *buffer)
{
	/* One letter in five may be wrong: with so many names, more would suggest anything. */
	unsigned best = 1 + (unsigned)strlen(name) / 5;
	bool found = false;

	if (strlen(name) >= TABLE_NAME_SIZE)
		return NULL;
	for (const struct tt_optiontable_row *row = tt_optiontable; !table_is_end(row); row++) {
		/* An option that would be refused is no help. */
		for (int negated = 0; negated <= row->negatable; negated++) {
			char candidate[TABLE_NAME_SIZE];
			unsigned distance;

			if (!row->long_name || !tt_optiontable_is_documented(row))
				continue;
			snprintf(candidate, sizeof(candidate), "%s%s", negated ? "no-" : "",
				row->long_name);
			/* The beginning of a name is no typing error, but rsync does not
			 * abbreviate. */
			distance = strlen(name) > 2 && strncmp(candidate, name, strlen(name)) == 0
					   ? 1
					   : table_distance(name, candidate);
			if (distance < best || (distance == best && !found)) {
				best = distance;
				found = true;
				strcpy(buffer, candidate);
			}
		}
	}
	return found ? buffer : NULL;
}

/* Prints `text` from column `used` on, broken at spaces, continued at TABLE_COLUMN. */
static void table_print_wrapped(FILE *stream, const char *text, int used)
{
	if (used >= TABLE_COLUMN) {
		fputc('\n', stream);
		used = 0;
	}
	fprintf(stream, "%*s", TABLE_COLUMN - used, "");
	used = TABLE_COLUMN;
	while (*text) {
		int word = (int)strcspn(text, " ");

		if (used > TABLE_COLUMN && used + 1 + word > TABLE_WIDTH) {
			fprintf(stream, "\n%*s", TABLE_COLUMN, "");
			used = TABLE_COLUMN;
		} else if (used > TABLE_COLUMN) {
			fputc(' ', stream);
			used++;
		}
		fprintf(stream, "%.*s", word, text);
		used += word;
		text += word;
		text += strspn(text, " ");
	}
	fputc('\n', stream);
}

void tt_optiontable_print_help(FILE *stream)
{
	static const char *const titles[TT_OPTIONTABLE_GROUPS] = {
		[TT_OPTIONTABLE_WHAT] = "What is copied",
		[TT_OPTIONTABLE_HOW] = "How it is decided and done",
		[TT_OPTIONTABLE_DELETE] = "Deletion",
		[TT_OPTIONTABLE_OUTPUT] = "Output",
		[TT_OPTIONTABLE_CACHE_GROUP] = "Page cache and writing",
		[TT_OPTIONTABLE_OTHER] = "Other",
	};

	fputs("tiptoe copies directory trees as rsync does, leaves the page cache as it found\n"
	      "it and never piles up dirty pages.\n\n"
	      "Usage: tiptoe [OPTION]... SRC [SRC]... DST\n"
	      "  or   tiptoe --probe DIR\n\n"
	      "\"SRC/\" stands for what is in SRC, \"SRC\" for the directory itself.\n",
		stream);
	for (int group = 0; group < TT_OPTIONTABLE_GROUPS; group++) {
		fprintf(stream, "\n%s:\n", titles[group]);
		for (const struct tt_optiontable_row *row = tt_optiontable; !table_is_end(row);
			row++) {
			char name[TABLE_NAME_SIZE];
			char letter[] = {'-', row->short_name, row->long_name ? ',' : ' ', '\0'};

			if ((int)row->group != group || !tt_optiontable_is_documented(row))
				continue;
			int used = snprintf(name, sizeof(name), "  %-3s %s%s%s%s",
				row->short_name ? letter : "", row->long_name ? "--" : "",
				row->long_name ? row->long_name : "", row->argument ? "=" : "",
				row->argument ? row->argument : "");
			fputs(name, stream);
			table_print_wrapped(stream, row->help, used);
		}
	}
	fputs("\nWhat an option turned on, --no-OPTION turns off: --no-perms, --no-p, --no-D;\n"
	      "possible for -r -d -l -H -p -t -O -J -U --open-noatime -o -g --super -D\n"
	      "--devices --specials --numeric-ids -x -m -0 -c -S --inplace --append\n"
	      "--mkpath --force --ignore-errors -v -i -h --progress. See tiptoe(1).\n",
		stream);
}

void tt_optiontable_dump(FILE *stream)
{
	static const char *const types[] = {"flag", "count", "size", "workers", "cache", "reflink",
		"text", "exclude", "include", "exclude-from", "include-from", "filter",
		"rule-files", "from0", "archive", "nodes", "append", "append-verify", "dirs",
		"old-dirs", "super", "ignore-missing", "delete-missing", "number", "size", "size",
		"window", "chmod", "chown", "usermap", "groupmap", "refused"};
	static const char *const groups[] = {"what", "how", "delete", "output", "cache", "other"};

	for (const struct tt_optiontable_row *row = tt_optiontable; !table_is_end(row); row++) {
		char letter[] = {row->short_name ? row->short_name : '-', '\0'};

		/* The hidden ones are not for the manuals, thus not for those who check them. */
		if (row->type != TT_OPTIONTABLE_REFUSED && !row->help)
			continue;
		fprintf(stream, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			row->long_name ? row->long_name : "-", letter,
			row->argument ? row->argument : "-", types[row->type], groups[row->group],
			row->since, row->negatable ? "negatable" : "-",
			row->help ? row->help : "-");
	}
}
