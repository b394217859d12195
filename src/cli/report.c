/* SPDX-License-Identifier: MIT */
/*
 * The lines were captured from rsync 3.5.0 (tests/unit/test_report.c has them).
 *
 * Two numbers have no counterpart without a network: "sent" is the number of content bytes that
 * were written, "received" is 0.
 */
#include "cli/report.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"

#define REPORT_BUFFER_SIZE (64 * 1024)
#define REPORT_IDLE_NS     (200 * 1000 * 1000u)
#define REPORT_PATIENCE_MS 200
#define REPORT_NUMBER_SIZE 40
/* A path escaped at its worst: five bytes for one. */
#define REPORT_NAME_SIZE (5 * 4096 + 1)

static const uint32_t report_changes = TT_ITEM_NEW | TT_ITEM_CHECKSUM | TT_ITEM_SIZE | TT_ITEM_TIME
				       | TT_ITEM_TIME_NOW | TT_ITEM_PERMS | TT_ITEM_OWNER
				       | TT_ITEM_GROUP | TT_ITEM_TRANSFER | TT_ITEM_ATIME;

/* --- output ---------------------------------------------------------------------------------- */

/* Inherited descriptors may be O_NONBLOCK, whoever made them so. */
static int report_write_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t written = write(fd, data, size);

		if (written < 0 && errno == EAGAIN) {
			struct pollfd ready = {.fd = fd, .events = POLLOUT};
			poll(&ready, 1, -1);
			continue;
		}
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		data += written;
		size -= (size_t)written;
	}
	return 0;
}

/* Writes the start of what is in the buffer. Returns how much, or a negative errno. A pipe that
 * polls as writable takes PIPE_BUF bytes without blocking (pipe(7)). */
static ssize_t report_write_some(struct tt_report *report, const char *data, size_t size)
{
	int r;

	if (!report->out_is_file) {
		struct pollfd ready = {.fd = report->out_fd, .events = POLLOUT};

		while (poll(&ready, 1, REPORT_PATIENCE_MS) == 0)
			if (report->hurried)
				return -EINTR;
		size = size < PIPE_BUF ? size : PIPE_BUF;
	}
	r = report_write_all(report->out_fd, data, size);
	return r < 0 ? r : (ssize_t)size;
}

/* Locked. */
static void report_write_out(struct tt_report *report)
{
	size_t done = 0;

	while (done < report->used && !report->out_error) {
		ssize_t n = report_write_some(report, report->buffer + done, report->used - done);

		if (n < 0)
			report->out_error = (int)n;
		else
			done += (size_t)n;
	}
	report->used = 0;
}

/* Locked. */
static void report_append(struct tt_report *report, const char *data, size_t size)
{
	report->last_line_ns = tt_clock_now_ns();
	while (size > 0) {
		size_t part = REPORT_BUFFER_SIZE - report->used;

		if (part > size)
			part = size;
		memcpy(report->buffer + report->used, data, part);
		report->used += part;
		data += part;
		size -= part;
		if (report->used == REPORT_BUFFER_SIZE)
			report_write_out(report);
	}
}

/* Locked. Takes the status line away, to be shown again by report_unlock(). */
static void report_hide_status(struct tt_report *report)
{
	if (report->status_shown && !report->out_error)
		report_write_all(report->out_fd, "\r\033[K", 4);
	report->status_shown = false;
}

static void report_show_status(struct tt_report *report)
{
	if (!report->status[0] || report->status_shown || report->out_error)
		return;
	report_write_all(report->out_fd, report->status, strlen(report->status));
	report->status_shown = true;
}

static void report_lock(struct tt_report *report)
{
	pthread_mutex_lock(&report->lock);
}

static void report_unlock(struct tt_report *report)
{
	if (report->out_is_terminal) {
		if (report->used > 0)
			report_hide_status(report);
		report_write_out(report);
		report_show_status(report);
	}
	pthread_mutex_unlock(&report->lock);
}

/* Locked. */
__attribute__((format(printf, 2, 3))) static void report_print(
	struct tt_report *report, const char *format, ...)
{
	char line[512];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (length >= (int)sizeof(line))
		length = sizeof(line) - 1;
	if (length > 0)
		report_append(report, line, (size_t)length);
}

static void report_put(struct tt_report *report, const char *text)
{
	report_append(report, text, strlen(text));
}

/* Locked. */
static void report_put_name(struct tt_report *report, const char *name)
{
	char escaped[REPORT_NAME_SIZE];

	report_put(report, tt_log_escape(name, escaped, sizeof(escaped)));
}

void tt_report_line(struct tt_report *report, const char *line)
{
	report_lock(report);
	report_put(report, line);
	report_put(report, "\n");
	report_unlock(report);
}

/* Locked. One write for the line, so that lines of several processes do not mix. */
static void report_write_error(struct tt_report *report, const char *line)
{
	size_t length = strlen(line);
	char *whole = malloc(length + 1);

	if (!whole) {
		report_write_all(report->err_fd, line, length);
		report_write_all(report->err_fd, "\n", 1);
		return;
	}
	memcpy(whole, line, length);
	whole[length] = '\n';
	report_write_all(report->err_fd, whole, length + 1);
	free(whole);
}

void tt_report_error(struct tt_report *report, const char *line)
{
	report_lock(report);
	report_hide_status(report);
	report_write_out(report);
	report_write_error(report, line);
	report_unlock(report);
}

bool tt_report_try_notice(struct tt_report *report, const char *line)
{
	if (pthread_mutex_trylock(&report->lock) != 0)
		return false;
	report_hide_status(report);
	report_write_error(report, line);
	report_unlock(report);
	return true;
}

static void report_log(void *context, enum tt_log_level level, const char *line)
{
	struct tt_report *report = context;
	char *prefixed = NULL;

	if (level >= TT_LOG_INFO) {
		if (!report->policy.quiet)
			tt_report_line(report, line);
		return;
	}
	if (asprintf(&prefixed, "tiptoe: %s%s", level == TT_LOG_WARNING ? "warning: " : "", line)
		< 0)
		prefixed = NULL;
	tt_report_error(report, prefixed ? prefixed : line);
	free(prefixed);
}

int tt_report_init(
	struct tt_report *report, const struct tt_report_policy *policy, int out_fd, int err_fd)
{
	struct stat st;

	*report = (struct tt_report){
		.policy = *policy,
		.out_fd = out_fd,
		.err_fd = err_fd,
		.out_is_terminal = isatty(out_fd),
		.log = {.write = report_log, .context = report},
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	report->log.threshold = policy->quiet         ? TT_LOG_WARNING
				: policy->verbose > 0 ? TT_LOG_VERBOSE
						      : TT_LOG_INFO;
	report->out_is_file = fstat(out_fd, &st) == 0 && S_ISREG(st.st_mode);
	report->buffer = malloc(REPORT_BUFFER_SIZE);
	return report->buffer ? 0 : -ENOMEM;
}

void tt_report_deinit(struct tt_report *report)
{
	free(report->buffer);
	report->buffer = NULL;
	pthread_mutex_destroy(&report->lock);
}

void tt_report_set_status(struct tt_report *report, const char *status)
{
	if (!report->out_is_terminal)
		return;
	/* The engine's thread may be waiting for a slow terminal; the control loop must not. */
	if (pthread_mutex_trylock(&report->lock) != 0)
		return;
	if (strcmp(status, report->status) != 0) {
		report_hide_status(report);
		snprintf(report->status, sizeof(report->status), "%s", status);
	}
	report_unlock(report);
}

void tt_report_flush_idle(struct tt_report *report)
{
	if (pthread_mutex_trylock(&report->lock) != 0)
		return;
	if (report->used > 0 && tt_clock_now_ns() - report->last_line_ns >= REPORT_IDLE_NS) {
		size_t done = 0;

		while (done < report->used && !report->out_error) {
			struct pollfd ready = {.fd = report->out_fd, .events = POLLOUT};
			ssize_t n;

			if (poll(&ready, 1, 0) != 1)
				break;
			n = report_write_some(report, report->buffer + done, report->used - done);
			if (n < 0)
				report->out_error = (int)n;
			else
				done += (size_t)n;
		}
		memmove(report->buffer, report->buffer + done, report->used - done);
		report->used -= done;
	}
	pthread_mutex_unlock(&report->lock);
}

void tt_report_hurry(struct tt_report *report)
{
	report->hurried = true;
}

int tt_report_flush(struct tt_report *report)
{
	int r;

	report_lock(report);
	if (report->used > 0)
		report_hide_status(report);
	report_write_out(report);
	r = report->out_error;
	report_unlock(report);
	return r;
}

/* --- events ---------------------------------------------------------------------------------- */

static char report_type_letter(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return 'f';
	case S_IFDIR:
		return 'd';
	case S_IFLNK:
		return 'L';
	case S_IFCHR:
	case S_IFBLK:
		return 'D';
	default:
		return 'S';
	}
}

void tt_report_item(const struct tt_event *event, char ret_item[TT_REPORT_ITEM_SIZE])
{
	uint32_t item = event->item;
	const uint32_t letters = report_changes & ~(uint32_t)(TT_ITEM_NEW | TT_ITEM_TRANSFER);

	ret_item[0] = item & TT_ITEM_HARD_LINK  ? 'h'
		      : item & TT_ITEM_TRANSFER ? '>'
		      : item & TT_ITEM_LOCAL    ? 'c'
						: '.';
	ret_item[1] = report_type_letter(event->mode);
	ret_item[11] = '\0';
	if (item & TT_ITEM_NEW) {
		memset(ret_item + 2, '+', 9);
		return;
	}
	if (!(item & letters) && ret_item[0] != '>') {
		memset(ret_item + 2, ' ', 9);
		return;
	}
	memset(ret_item + 2, '.', 9);
	if (item & TT_ITEM_CHECKSUM)
		ret_item[2] = 'c';
	if (item & TT_ITEM_SIZE)
		ret_item[3] = 's';
	if (item & TT_ITEM_TIME)
		ret_item[4] = 't';
	if (item & TT_ITEM_TIME_NOW)
		ret_item[4] = 'T';
	if (item & TT_ITEM_PERMS)
		ret_item[5] = 'p';
	if (item & TT_ITEM_OWNER)
		ret_item[6] = 'o';
	if (item & TT_ITEM_GROUP)
		ret_item[7] = 'g';
	if (item & TT_ITEM_ATIME)
		ret_item[8] = 'u';
}

/* The name as rsync shows it: directories end in a slash, the root is "./". */
static void report_put_entry(struct tt_report *report, const struct tt_event *event)
{
	report_put_name(report, event->path);
	if (S_ISDIR(event->mode))
		report_put(report, "/");
}

/* Whether the name was made a link to another name now (an existing link to it is not news). */
static bool report_is_linked_now(const struct tt_event *event)
{
	return (event->item & TT_ITEM_HARD_LINK) && event->link && event->plan_kind != TT_PLAN_KEEP;
}

/* What rsync appends to a name: "-> target" or "=> leader". */
static void report_put_link(struct tt_report *report, const struct tt_event *event)
{
	if (report_is_linked_now(event)) {
		report_put(report, " => ");
		report_put_name(report, event->link);
	} else if (S_ISLNK(event->mode) && event->link) {
		report_put(report, " -> ");
		report_put_name(report, event->link);
	}
}

/* rsync at -v names what was transferred or made, and directories whose attributes changed; files
 * whose attributes alone changed only at -vv. */
static bool report_is_named(const struct tt_event *event)
{
	uint32_t item = event->item;

	if (item & (TT_ITEM_NEW | TT_ITEM_TRANSFER | TT_ITEM_MISSING_DATA))
		return true;
	if (report_is_linked_now(event))
		return true;
	return (item & report_changes) && ((item & TT_ITEM_LOCAL) || S_ISDIR(event->mode));
}

/* -vv: the reason why a planned entry is left alone (TT_ITEM_NEW: the destination does not have
 * it). */
static void report_put_skipped(struct tt_report *report, const struct tt_event *event)
{
	const char *kind = S_ISDIR(event->mode) ? "directory" : "file";

	if (report->policy.verbose < 2)
		return;
	if (event->item & (TT_ITEM_OVER_SIZE | TT_ITEM_UNDER_SIZE)) {
		report_put_name(report, event->path);
		report_put(report, event->item & TT_ITEM_OVER_SIZE ? " is over max-size\n"
								   : " is under min-size\n");
	} else if (report->policy.existing && (event->item & TT_ITEM_NEW)) {
		report_print(report, "not creating new %s \"", kind);
		report_put_name(report, event->path);
		report_put(report, "\"\n");
	} else if (report->policy.ignore_existing || report->policy.update) {
		report_put_name(report, event->path);
		report_put(report, report->policy.ignore_existing ? " exists\n" : " is newer\n");
	}
}

static void report_put_item(struct tt_report *report, const struct tt_event *event)
{
	const struct tt_report_policy *policy = &report->policy;
	bool changed = event->item & report_changes;

	if (event->plan_kind == TT_PLAN_SKIP) {
		report_put_skipped(report, event);
		return;
	}
	if (policy->itemize > 0) {
		char item[TT_REPORT_ITEM_SIZE];

		if (!changed && !report_is_linked_now(event)
			&& !(event->item & TT_ITEM_MISSING_DATA) && policy->itemize < 2
			&& policy->verbose < 2)
			return;
		tt_report_item(event, item);
		report_print(report, "%s ", item);
		report_put_entry(report, event);
		report_put_link(report, event);
		report_put(report, "\n");
		return;
	}
	if (policy->verbose == 0)
		return;
	if (report_is_named(event)) {
		report_put_entry(report, event);
		report_put_link(report, event);
		report_put(report, "\n");
	} else if (policy->verbose > 1 && !S_ISDIR(event->mode)) {
		report_put_name(report, event->path);
		report_put(report, changed ? "\n" : " is uptodate\n");
	}
}

void tt_report_event(void *context, const struct tt_event *event)
{
	struct tt_report *report = context;
	const struct tt_report_policy *policy = &report->policy;

	if (policy->quiet)
		return;
	report_lock(report);
	if (policy->verbose > 1 && !report->said_delta && event->kind != TT_EVENT_CREATED_ROOT
		&& event->kind != TT_EVENT_CREATED_PATH) {
		report_put(report, policy->append
					   ? "delta-transmission enabled\n"
					   : "delta-transmission disabled for local transfer or "
					     "--whole-file\n");
		report->said_delta = true;
	}
	switch (event->kind) {
	case TT_EVENT_CREATED_ROOT:
		if (policy->verbose > 0 || policy->itemize > 0) {
			report_put(report, "created directory ");
			report_put_name(report, event->path);
			report_put(report, "\n");
		}
		break;
	case TT_EVENT_CREATED_PATH:
		if (policy->verbose > 0 || policy->itemize > 0) {
			report_print(report, "created %u director%s for ", event->count,
				event->count == 1 ? "y" : "ies");
			report_put_name(report, event->path);
			report_put(report, "\n");
		}
		break;
	case TT_EVENT_ITEM:
		report_put_item(report, event);
		break;
	case TT_EVENT_DELETED:
		if (policy->itemize == 0 && policy->verbose == 0)
			break;
		report_put(report, policy->itemize > 0 ? "*deleting   " : "deleting ");
		report_put_entry(report, event);
		report_put(report, "\n");
		break;
	case TT_EVENT_SKIP_NONREG:
		report_put(report, "skipping non-regular file \"");
		report_put_name(report, event->path);
		report_put(report, "\"\n");
		break;
	case TT_EVENT_SKIP_DIR:
		report_put(report, "skipping directory ");
		report_put_name(report, event->path);
		report_put(report, "\n");
		break;
	}
	report_unlock(report);
}

void tt_report_begin(struct tt_report *report)
{
	const struct tt_report_policy *policy = &report->policy;

	/* rsync needs the whole list before it can delete before or after, or leave out empty
	 * directories; and says nothing without -r or -d. */
	if (policy->quiet || policy->verbose == 0 || (!policy->recursive && !policy->dirs))
		return;
	if (!policy->recursive || policy->prune_empty_dirs
		|| policy->delete_mode == TT_DELETE_BEFORE
		|| policy->delete_mode == TT_DELETE_AFTER)
		tt_report_line(report, "building file list ... done");
	else
		tt_report_line(report, "sending incremental file list");
}

/* --- the end --------------------------------------------------------------------------------- */

/* "Number of files: 15 (reg: 8, dir: 3, link: 1, dev: 1, special: 2)" */
static void report_put_counts(
	struct tt_report *report, const char *title, uint64_t all, const uint64_t kinds[5])
{
	static const char *const names[5] = {"reg", "dir", "link", "dev", "special"};
	int level = report->policy.human_readable > 0;
	const char *separator = " (";
	char number[REPORT_NUMBER_SIZE];

	report_print(report, "Number of %s: %s", title,
		tt_units_format(all, level, number, sizeof(number)));
	for (int i = 0; i < 5; i++) {
		if (kinds[i] == 0)
			continue;
		report_print(report, "%s%s: %s", separator, names[i],
			tt_units_format(kinds[i], level, number, sizeof(number)));
		separator = ", ";
	}
	report_put(report, separator[0] == ',' ? ")\n" : "\n");
}

static void report_put_number(
	struct tt_report *report, const char *title, uint64_t value, int level, const char *unit)
{
	char number[REPORT_NUMBER_SIZE];

	report_print(report, "%s: %s%s\n", title,
		tt_units_format(value, level, number, sizeof(number)), unit);
}

static void report_put_stats(struct tt_report *report, const struct tt_engine_stats *s)
{
	int level = (int)report->policy.human_readable;
	int plain = level > 0;

	report_put(report, "\n");
	report_put_counts(report, "files", s->files,
		(const uint64_t[5]){s->regular, s->directories, s->links, s->devices, s->specials});
	report_put_counts(report, "created files", s->created,
		(const uint64_t[5]){s->created_regular, s->created_directories, s->created_links,
			s->created_devices, s->created_specials});
	report_put_counts(report, "deleted files", s->deleted,
		(const uint64_t[5]){s->deleted_regular, s->deleted_directories, s->deleted_links,
			s->deleted_devices, s->deleted_specials});
	report_put_number(report, "Number of regular files transferred", s->transferred, plain, "");
	report_put_number(report, "Total file size", s->total_bytes, level, " bytes");
	report_put_number(
		report, "Total transferred file size", s->transferred_bytes, level, " bytes");
	report_put_number(report, "Literal data", s->literal_bytes, level, " bytes");
	report_put_number(report, "Matched data", 0, level, " bytes");
	report_put_number(report, "File list size", 0, level, "");
	report_print(report, "File list generation time: %.3f seconds\n", (double)s->list_ns / 1e9);
	report_put(report, "File list transfer time: 0.000 seconds\n");
	report_put_number(report, "Total bytes sent", s->literal_bytes, level, "");
	report_put_number(report, "Total bytes received", 0, level, "");
}

static void report_put_totals(struct tt_report *report, const struct tt_engine_stats *s)
{
	int level = (int)report->policy.human_readable;
	/* rsync counts whole seconds and adds a half. */
	double seconds = (double)(s->elapsed_ns / 1000000000u) + 0.5;
	double moved = s->literal_bytes > 0 ? (double)s->literal_bytes : 1;
	char sent[REPORT_NUMBER_SIZE], total[REPORT_NUMBER_SIZE], rate[REPORT_NUMBER_SIZE],
		speedup[REPORT_NUMBER_SIZE];

	tt_units_format(s->literal_bytes, level, sent, sizeof(sent));
	tt_units_format(s->total_bytes, level, total, sizeof(total));
	tt_units_format_double((double)s->literal_bytes / seconds, level, rate, sizeof(rate));
	tt_units_format_double((double)s->total_bytes / moved, level > 0, speedup, sizeof(speedup));
	report_print(report, "\nsent %s bytes  received 0 bytes  %s bytes/sec\n", sent, rate);
	report_print(report, "total size is %s  speedup is %s%s\n", total, speedup,
		report->policy.dry_run ? " (DRY RUN)" : "");
}

static void report_put_lines(struct tt_report *report, const char *title, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");

		if (length > 0) {
			report_print(report, "%s: ", title);
			report_append(report, text, length);
			report_put(report, "\n");
		}
		text += length + (text[length] == '\n');
	}
}

/* What rsync has no lines for. */
static void report_put_ours(struct tt_report *report, const struct tt_engine_stats *s)
{
	int level = (int)report->policy.human_readable;
	int plain = level > 0;
	char number[REPORT_NUMBER_SIZE];

	report_put(report, "\n");
	report_put_number(report, "Cloned bytes", s->cloned_bytes, level, " bytes");
	report_put_number(report, "Pages found resident", s->pages_found_resident, plain, "");
	report_put_number(report, "Pages dropped", s->pages_dropped, plain, "");
	report_put_number(report, "Pages that would not go", s->pages_not_dropped, plain, "");
	report_print(report, "Pages left because of us: %s",
		tt_units_format(s->pages_left, plain, number, sizeof(number)));
	if (s->files_unknown > 0)
		report_print(report, ", not counting %s file%s of unknown residency",
			tt_units_format(s->files_unknown, plain, number, sizeof(number)),
			s->files_unknown == 1 ? "" : "s");
	report_put(report, "\n");
	report_put_number(report, "Pages kept hot in replaced files", s->pages_kept_hot, plain, "");
	report_put_number(report, "Files read with O_DIRECT", s->files_read_direct, plain, "");
	report_put_number(
		report, "Files written with O_DIRECT", s->files_written_direct, plain, "");
	report_put_number(report, "Files of unknown residency", s->files_unknown, plain, "");
	report_put_number(report, "Peak dirty bytes", s->peak_dirty_bytes, level, " bytes");
	report_print(report, "Time waited for the pacer: %.3f seconds\n",
		(double)s->pacer_wait_ns / 1e9);
	report_print(report, "DONTNEED: %s calls, %.3f seconds\n",
		tt_units_format(s->drop_calls, plain, number, sizeof(number)),
		(double)s->drop_ns / 1e9);
	report_put_lines(report, "Mechanism", s->mechanisms);
	report_put_lines(report, "Refused", s->refusals);
}

static void report_put_verified(
	struct tt_report *report, const char *what, const struct tt_verify_count *count)
{
	int plain = report->policy.human_readable > 0;
	char pages[REPORT_NUMBER_SIZE], files[REPORT_NUMBER_SIZE];

	report_print(report, "%s verified: %s resident pages in %s files", what,
		tt_units_format(count->pages, plain, pages, sizeof(pages)),
		tt_units_format(count->files, plain, files, sizeof(files)));
	if (count->unknown > 0)
		report_print(report, ", %s of which could not be asked",
			tt_units_format(count->unknown, plain, files, sizeof(files)));
	report_put(report, "\n");
}

void tt_report_end(struct tt_report *report, const struct tt_engine_stats *stats)
{
	const struct tt_report_policy *policy = &report->policy;

	report_lock(report);
	report_hide_status(report);
	report->status[0] = '\0';
	if (!policy->quiet) {
		if (policy->verbose > 1)
			report_print(report,
				"total: matches=0  hash_hits=0  false_alarms=0 data=%" PRIu64 "\n",
				stats->literal_bytes);
		if (policy->stats)
			report_put_stats(report, stats);
		if (policy->stats || policy->verbose > 0)
			report_put_totals(report, stats);
		if (policy->stats)
			report_put_ours(report, stats);
		if (policy->verify_cache) {
			report_put_verified(report, "Cache", &stats->verify_destination);
			report_put_verified(report, "Sources", &stats->verify_sources);
		}
	}
	report_write_out(report);
	report_unlock(report);
}
