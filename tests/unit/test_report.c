/* SPDX-License-Identifier: MIT */
/*
 * Lines of events, held against what rsync 3.5.0 printed for the same situation (captured with
 * LC_ALL=C.UTF-8, as root), and the blocks at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/report.h"

#define NEW     TT_ITEM_NEW
#define SUM     TT_ITEM_CHECKSUM
#define SIZE    TT_ITEM_SIZE
#define TIME    TT_ITEM_TIME
#define NOW     TT_ITEM_TIME_NOW
#define PERMS   TT_ITEM_PERMS
#define OWNER   TT_ITEM_OWNER
#define GROUP   TT_ITEM_GROUP
#define SEND    TT_ITEM_TRANSFER
#define LOCAL   TT_ITEM_LOCAL
#define HARD    TT_ITEM_HARD_LINK
#define NOTHING NULL

/* What is printed at -v, -vv, -i and -ii; NULL: no line. */
struct line_case {
	const char *situation;
	struct tt_event event;
	const char *v, *vv, *i, *ii;
};

#define ITEM(plan, type, name, bits, ...)                                                          \
	{                                                                                          \
		.kind = TT_EVENT_ITEM, .plan_kind = (plan), .mode = (type) | 0644, .path = (name), \
		.item = (bits), __VA_ARGS__                                                        \
	}

/* clang-format off */
static const struct line_case line_cases[] = {
	{"new file", ITEM(TT_PLAN_COPY, S_IFREG, "f", NEW | SEND),
		"f", "f", ">f+++++++++ f", ">f+++++++++ f"},
	{"new directory", ITEM(TT_PLAN_DIRECTORY, S_IFDIR, "d/sub", NEW | LOCAL),
		"d/sub/", "d/sub/", "cd+++++++++ d/sub/", "cd+++++++++ d/sub/"},
	{"new root", ITEM(TT_PLAN_DIRECTORY, S_IFDIR, ".", NEW | LOCAL),
		"./", "./", "cd+++++++++ ./", "cd+++++++++ ./"},
	{"new symbolic link", ITEM(TT_PLAN_SYMLINK, S_IFLNK, "l", NEW | LOCAL, .link = "f"),
		"l -> f", "l -> f", "cL+++++++++ l -> f", "cL+++++++++ l -> f"},
	{"new device", ITEM(TT_PLAN_NODE, S_IFCHR, "nod", NEW | LOCAL),
		"nod", "nod", "cD+++++++++ nod", "cD+++++++++ nod"},
	{"new block device", ITEM(TT_PLAN_NODE, S_IFBLK, "nod", NEW | LOCAL),
		"nod", "nod", "cD+++++++++ nod", "cD+++++++++ nod"},
	{"new fifo", ITEM(TT_PLAN_NODE, S_IFIFO, "p", NEW | LOCAL),
		"p", "p", "cS+++++++++ p", "cS+++++++++ p"},
	{"new socket", ITEM(TT_PLAN_NODE, S_IFSOCK, "sock", NEW | LOCAL),
		"sock", "sock", "cS+++++++++ sock", "cS+++++++++ sock"},
	{"new hard link", ITEM(TT_PLAN_ATTRIBUTES, S_IFREG, "f", NEW | LOCAL | HARD, .link = "hl"),
		"f => hl", "f => hl", "hf+++++++++ f => hl", "hf+++++++++ f => hl"},
	{"hard link to a file that changed", ITEM(TT_PLAN_ATTRIBUTES, S_IFREG, "hl", TIME | LOCAL | HARD, .link = "f"),
		"hl => f", "hl => f", "hf..t...... hl => f", "hf..t...... hl => f"},
	{"equal file that becomes a hard link", ITEM(TT_PLAN_ATTRIBUTES, S_IFREG, "hl", LOCAL | HARD, .link = "f"),
		"hl => f", "hl => f", "hf          hl => f", "hf          hl => f"},
	{"other file that becomes a hard link", ITEM(TT_PLAN_ATTRIBUTES, S_IFREG, "hl", SIZE | TIME | LOCAL | HARD, .link = "f"),
		"hl => f", "hl => f", "hf.st...... hl => f", "hf.st...... hl => f"},
	{"hard link that is there", ITEM(TT_PLAN_KEEP, S_IFREG, "hl", HARD, .link = "f"),
		NOTHING, "hl is uptodate", NOTHING, "hf          hl"},
	{"new hard link to a symbolic link", ITEM(TT_PLAN_SYMLINK, S_IFLNK, "l2", NEW | LOCAL | HARD, .link = "l"),
		"l2 => l", "l2 => l", "hL+++++++++ l2 => l", "hL+++++++++ l2 => l"},
	{"size and time", ITEM(TT_PLAN_COPY, S_IFREG, "f", SIZE | TIME | SEND),
		"f", "f", ">f.st...... f", ">f.st...... f"},
	{"time", ITEM(TT_PLAN_COPY, S_IFREG, "f", TIME | SEND),
		"f", "f", ">f..t...... f", ">f..t...... f"},
	{"time without -t", ITEM(TT_PLAN_COPY, S_IFREG, "f", NOW | SEND),
		"f", "f", ">f..T...... f", ">f..T...... f"},
	{"-c, other content", ITEM(TT_PLAN_COPY, S_IFREG, "f", SUM | SIZE | TIME | SEND),
		"f", "f", ">fcst...... f", ">fcst...... f"},
	{"-c, same content, other time", ITEM(TT_PLAN_ATTRIBUTES, S_IFREG, "f", TIME),
		NOTHING, "f", ".f..t...... f", ".f..t...... f"},
	{"-I, nothing differs", ITEM(TT_PLAN_COPY, S_IFREG, "f", SEND),
		"f", "f", ">f......... f", ">f......... f"},
	{"permissions", ITEM(TT_PLAN_ATTRIBUTES, S_IFREG, "d/x", PERMS),
		NOTHING, "d/x", ".f...p..... d/x", ".f...p..... d/x"},
	{"owner and group", ITEM(TT_PLAN_ATTRIBUTES, S_IFREG, "d/x", OWNER | GROUP),
		NOTHING, "d/x", ".f....og... d/x", ".f....og... d/x"},
	{"everything", ITEM(TT_PLAN_COPY, S_IFREG, "f", SUM | SIZE | TIME | PERMS | OWNER | GROUP | SEND),
		"f", "f", ">fcstpog... f", ">fcstpog... f"},
	{"directory's time", ITEM(TT_PLAN_ATTRIBUTES, S_IFDIR, ".", TIME),
		"./", "./", ".d..t...... ./", ".d..t...... ./"},
	{"directory's owner", ITEM(TT_PLAN_ATTRIBUTES, S_IFDIR, "d", OWNER | GROUP),
		"d/", "d/", ".d....og... d/", ".d....og... d/"},
	{"link's target", ITEM(TT_PLAN_SYMLINK, S_IFLNK, "l", SUM | TIME | LOCAL, .link = "g"),
		"l -> g", "l -> g", "cLc.t...... l -> g", "cLc.t...... l -> g"},
	{"link's target without -t", ITEM(TT_PLAN_SYMLINK, S_IFLNK, "l3", SUM | NOW | LOCAL, .link = "h2"),
		"l3 -> h2", "l3 -> h2", "cLc.T...... l3 -> h2", "cLc.T...... l3 -> h2"},
	{"link's time", ITEM(TT_PLAN_ATTRIBUTES, S_IFLNK, "l3", TIME, .link = "h"),
		NOTHING, "l3", ".L..t...... l3 -> h", ".L..t...... l3 -> h"},
	{"device's number", ITEM(TT_PLAN_NODE, S_IFCHR, "nod", SUM | TIME | LOCAL),
		"nod", "nod", "cDc.t...... nod", "cDc.t...... nod"},
	{"device's time", ITEM(TT_PLAN_ATTRIBUTES, S_IFCHR, "nod", TIME),
		NOTHING, "nod", ".D..t...... nod", ".D..t...... nod"},
	{"unchanged file", ITEM(TT_PLAN_KEEP, S_IFREG, "f", 0),
		NOTHING, "f is uptodate", NOTHING, ".f          f"},
	{"unchanged directory", ITEM(TT_PLAN_KEEP, S_IFDIR, "d", 0),
		NOTHING, NOTHING, NOTHING, ".d          d/"},
	{"unchanged link", ITEM(TT_PLAN_KEEP, S_IFLNK, "l", 0, .link = "f"),
		NOTHING, "l is uptodate", NOTHING, ".L          l -> f"},
	{"unchanged fifo", ITEM(TT_PLAN_KEEP, S_IFIFO, "p", 0),
		NOTHING, "p is uptodate", NOTHING, ".S          p"},
	{"left out by policy", ITEM(TT_PLAN_SKIP, S_IFREG, "f", 0),
		NOTHING, NOTHING, NOTHING, NOTHING},
	{"name of any bytes", ITEM(TT_PLAN_SYMLINK, S_IFLNK, "a\001\nb\\#001c\tz", NEW | LOCAL, .link = "\033["),
		"a\\#001\\#012b\\#134#001c\tz -> \\#033[", "a\\#001\\#012b\\#134#001c\tz -> \\#033[",
		"cL+++++++++ a\\#001\\#012b\\#134#001c\tz -> \\#033[", "cL+++++++++ a\\#001\\#012b\\#134#001c\tz -> \\#033["},
	{"deleted file", {.kind = TT_EVENT_DELETED, .mode = S_IFREG, .path = "x/z"},
		"deleting x/z", "deleting x/z", "*deleting   x/z", "*deleting   x/z"},
	{"deleted directory", {.kind = TT_EVENT_DELETED, .mode = S_IFDIR, .path = "x"},
		"deleting x/", "deleting x/", "*deleting   x/", "*deleting   x/"},
	{"created root", {.kind = TT_EVENT_CREATED_ROOT, .mode = S_IFDIR, .path = "new1"},
		"created directory new1", "created directory new1", "created directory new1", "created directory new1"},
	{"special file without -D", {.kind = TT_EVENT_SKIP_NONREG, .mode = S_IFIFO, .path = "p"},
		"skipping non-regular file \"p\"", "skipping non-regular file \"p\"",
		"skipping non-regular file \"p\"", "skipping non-regular file \"p\""},
	{"directory without -r", {.kind = TT_EVENT_SKIP_DIR, .mode = S_IFDIR, .path = "d"},
		"skipping directory d", "skipping directory d", "skipping directory d", "skipping directory d"},
};
/* clang-format on */

#define CASES (sizeof(line_cases) / sizeof(line_cases[0]))

/* A report that writes into a file in memory. */
struct fixture {
	struct tt_report report;
	int fd, err_fd;
	char text[8192];
};

static void fixture_start(struct fixture *f, const struct tt_report_policy *policy)
{
	f->fd = memfd_create("out", MFD_CLOEXEC);
	f->err_fd = memfd_create("err", MFD_CLOEXEC);
	assert_true(f->fd >= 0 && f->err_fd >= 0);
	assert_int_equal(tt_report_init(&f->report, policy, f->fd, f->err_fd), 0);
}

static const char *fixture_read(struct fixture *f, int fd)
{
	ssize_t n = pread(fd, f->text, sizeof(f->text) - 1, 0);

	assert_true(n >= 0);
	f->text[n] = '\0';
	return f->text;
}

static const char *fixture_finish(struct fixture *f)
{
	assert_int_equal(tt_report_flush(&f->report), 0);
	fixture_read(f, f->fd);
	tt_report_deinit(&f->report);
	close(f->fd);
	close(f->err_fd);
	return f->text;
}

static void check_line(
	const struct line_case *c, unsigned verbose, unsigned itemize, const char *expected)
{
	const struct tt_report_policy policy = {
		.verbose = verbose, .itemize = itemize, .human_readable = 1};
	struct fixture f;
	char wanted[256];

	fixture_start(&f, &policy);
	f.report.said_delta = true;
	tt_report_event(&f.report, &c->event);
	snprintf(wanted, sizeof(wanted), "%s%s", expected ? expected : "", expected ? "\n" : "");
	if (strcmp(fixture_finish(&f), wanted) != 0)
		fail_msg("%s: '%s' instead of '%s'", c->situation, f.text, wanted);
}

static void lines_at_v_are_those_of_rsync(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++)
		check_line(&line_cases[i], 1, 0, line_cases[i].v);
}

static void lines_at_vv_are_those_of_rsync(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++)
		check_line(&line_cases[i], 2, 0, line_cases[i].vv);
}

static void lines_at_i_are_those_of_rsync_with_or_without_v(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		check_line(&line_cases[i], 0, 1, line_cases[i].i);
		check_line(&line_cases[i], 1, 1, line_cases[i].i);
	}
}

static void lines_at_ii_are_those_of_rsync_and_so_with_vv(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		check_line(&line_cases[i], 0, 2, line_cases[i].ii);
		check_line(&line_cases[i], 2, 1, line_cases[i].ii);
		check_line(&line_cases[i], 2, 2, line_cases[i].ii);
	}
}

static void without_options_only_what_is_skipped_is_said(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		enum tt_event_kind kind = line_cases[i].event.kind;
		bool skipped = kind == TT_EVENT_SKIP_NONREG || kind == TT_EVENT_SKIP_DIR;

		check_line(&line_cases[i], 0, 0, skipped ? line_cases[i].v : NULL);
	}
}

static void quiet_is_quiet(void **state)
{
	const struct tt_report_policy policy = {
		.quiet = true, .verbose = 2, .itemize = 2, .stats = true, .verify_cache = true};
	const struct tt_engine_stats stats = {.files = 3};
	struct fixture f;

	(void)state;
	fixture_start(&f, &policy);
	tt_report_begin(&f.report);
	for (size_t i = 0; i < CASES; i++)
		tt_report_event(&f.report, &line_cases[i].event);
	tt_log_line(&f.report.log, TT_LOG_INFO, "x");
	tt_report_end(&f.report, &stats);
	assert_string_equal(fixture_finish(&f), "");
}

static void the_header_depends_on_recursion_and_deletion(void **state)
{
	static const struct {
		struct tt_report_policy policy;
		const char *text;
	} cases[] = {
		{{.verbose = 1, .recursive = true}, "sending incremental file list\n"},
		{{.verbose = 1, .recursive = true, .delete_mode = TT_DELETE_DURING},
			"sending incremental file list\n"},
		{{.verbose = 1, .recursive = true, .delete_mode = TT_DELETE_BEFORE},
			"building file list ... done\n"},
		{{.verbose = 1, .recursive = true, .delete_mode = TT_DELETE_AFTER},
			"building file list ... done\n"},
		{{.verbose = 1}, ""},
		{{.itemize = 1, .recursive = true}, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;

		fixture_start(&f, &cases[i].policy);
		tt_report_begin(&f.report);
		assert_string_equal(fixture_finish(&f), cases[i].text);
	}
}

static const struct tt_engine_stats captured = {
	.files = 1215,
	.regular = 1208,
	.directories = 3,
	.links = 1,
	.devices = 1,
	.specials = 2,
	.created = 15,
	.created_regular = 15,
	.total_bytes = 1234582,
	.transferred = 1208,
	.transferred_bytes = 1234581,
	.literal_bytes = 1234581,
	.list_ns = 1400000,
	.elapsed_ns = 300000000,
	.pages_found_resident = 1234,
	.peak_dirty_bytes = 48000000,
	.pacer_wait_ns = 1500000000,
	.drop_calls = 1024,
	.drop_ns = 250000000,
	.mechanisms = "ext4 on a\nxfs on b\n",
	.refusals = "cachestat is not available (for a reason): so it is\n",
	.verify_destination = {.files = 1215, .pages = 2, .unknown = 7},
	.verify_sources = {.files = 1216, .pages = 30},
};

static void stats_are_rsyncs_block_then_ours(void **state)
{
	const struct tt_report_policy policy = {
		.stats = true, .human_readable = 1, .verify_cache = true};
	struct fixture f;

	(void)state;
	fixture_start(&f, &policy);
	tt_report_end(&f.report, &captured);
	assert_string_equal(fixture_finish(&f),
		"\n"
		"Number of files: 1,215 (reg: 1,208, dir: 3, link: 1, dev: 1, special: 2)\n"
		"Number of created files: 15 (reg: 15)\n"
		"Number of deleted files: 0\n"
		"Number of regular files transferred: 1,208\n"
		"Total file size: 1,234,582 bytes\n"
		"Total transferred file size: 1,234,581 bytes\n"
		"Literal data: 1,234,581 bytes\n"
		"Matched data: 0 bytes\n"
		"File list size: 0\n"
		"File list generation time: 0.001 seconds\n"
		"File list transfer time: 0.000 seconds\n"
		"Total bytes sent: 1,234,581\n"
		"Total bytes received: 0\n"
		"\n"
		"sent 1,234,581 bytes  received 0 bytes  2,469,162.00 bytes/sec\n"
		"total size is 1,234,582  speedup is 1.00\n"
		"\n"
		"Cloned bytes: 0 bytes\n"
		"Pages found resident: 1,234\n"
		"Pages dropped: 0\n"
		"Pages that would not go: 0\n"
		"Pages left because of us: 0\n"
		"Pages kept hot in replaced files: 0\n"
		"Files read with O_DIRECT: 0\n"
		"Files written with O_DIRECT: 0\n"
		"Files of unknown residency: 0\n"
		"Peak dirty bytes: 48,000,000 bytes\n"
		"Time waited for the pacer: 1.500 seconds\n"
		"DONTNEED: 1,024 calls, 0.250 seconds\n"
		"Mechanism: ext4 on a\n"
		"Mechanism: xfs on b\n"
		"Refused: cachestat is not available (for a reason): so it is\n"
		"Cache verified: 2 resident pages in 1,215 files, 7 of which could not be asked\n"
		"Sources verified: 30 resident pages in 1,216 files\n");
}

static void stats_follow_the_level_of_h(void **state)
{
	const struct tt_report_policy policy = {
		.stats = true, .human_readable = 2, .dry_run = true};
	struct fixture f;

	(void)state;
	fixture_start(&f, &policy);
	tt_report_end(&f.report, &captured);
	fixture_finish(&f);
	assert_non_null(strstr(f.text, "Number of files: 1,215 (reg: 1,208,"));
	assert_non_null(strstr(f.text, "Total file size: 1.23M bytes\n"));
	assert_non_null(strstr(f.text, "sent 1.23M bytes  received 0 bytes  2.47M bytes/sec\n"));
	assert_non_null(strstr(f.text, "total size is 1.23M  speedup is 1.00 (DRY RUN)\n"));
}

/* What nobody could count is no zero. And a file system that was used in many ways has a long line.
 */
static void stats_say_what_was_not_counted(void **state)
{
	const struct tt_report_policy policy = {.stats = true, .human_readable = 1};
	struct tt_engine_stats stats = captured;
	struct fixture f;

	(void)state;
	stats.pages_left = 12;
	stats.files_unknown = 1500;
	memset(stats.mechanisms, 'm', 900);
	strcpy(stats.mechanisms + 900, " end\nxfs on b");
	fixture_start(&f, &policy);
	tt_report_end(&f.report, &stats);
	fixture_finish(&f);
	assert_non_null(strstr(f.text,
		"\nPages left because of us: 12, not counting 1,500 files of unknown residency\n"));
	assert_non_null(strstr(f.text, "\nFiles of unknown residency: 1,500\n"));
	assert_non_null(strstr(f.text, "m end\nMechanism: xfs on b\n"));
}

static void messages_come_after_what_was_printed_before_them(void **state)
{
	const struct tt_report_policy policy = {.verbose = 1};
	struct fixture f;

	(void)state;
	fixture_start(&f, &policy);
	tt_report_event(&f.report, &line_cases[0].event);
	assert_string_equal(fixture_read(&f, f.fd), "");
	tt_log_line(&f.report.log, TT_LOG_ERROR, "reading %s: no", "f");
	assert_string_equal(fixture_read(&f, f.fd), "f\n");
	tt_log_line(&f.report.log, TT_LOG_WARNING, "slow");
	assert_string_equal(
		fixture_read(&f, f.err_fd), "tiptoe: reading f: no\ntiptoe: warning: slow\n");
	fixture_finish(&f);
}

static void idle_lines_are_written_out(void **state)
{
	const struct tt_report_policy policy = {.verbose = 1};
	struct fixture f;

	(void)state;
	fixture_start(&f, &policy);
	tt_report_event(&f.report, &line_cases[0].event);
	tt_report_flush_idle(&f.report);
	assert_string_equal(fixture_read(&f, f.fd), "");
	usleep(220 * 1000);
	tt_report_flush_idle(&f.report);
	assert_string_equal(fixture_read(&f, f.fd), "f\n");
	fixture_finish(&f);
}

static void more_than_the_buffer_arrives_whole(void **state)
{
	const struct tt_report_policy policy = {.verbose = 1};
	struct fixture f;
	struct stat st;

	(void)state;
	fixture_start(&f, &policy);
	for (int i = 0; i < 100000; i++)
		tt_report_event(&f.report, &line_cases[0].event);
	assert_int_equal(tt_report_flush(&f.report), 0);
	assert_int_equal(fstat(f.fd, &st), 0);
	assert_int_equal(st.st_size, 200000);
	fixture_finish(&f);
}

static void a_full_disk_is_remembered(void **state)
{
	const struct tt_report_policy policy = {.verbose = 1};
	struct tt_report report;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(tt_report_init(&report, &policy, fd, fd), 0);
	tt_report_event(&report, &line_cases[0].event);
	assert_int_equal(tt_report_flush(&report), -ENOSPC);
	tt_report_event(&report, &line_cases[0].event);
	assert_int_equal(tt_report_flush(&report), -ENOSPC);
	tt_report_deinit(&report);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_at_v_are_those_of_rsync),
		cmocka_unit_test(lines_at_vv_are_those_of_rsync),
		cmocka_unit_test(lines_at_i_are_those_of_rsync_with_or_without_v),
		cmocka_unit_test(lines_at_ii_are_those_of_rsync_and_so_with_vv),
		cmocka_unit_test(without_options_only_what_is_skipped_is_said),
		cmocka_unit_test(quiet_is_quiet),
		cmocka_unit_test(the_header_depends_on_recursion_and_deletion),
		cmocka_unit_test(stats_are_rsyncs_block_then_ours),
		cmocka_unit_test(stats_follow_the_level_of_h),
		cmocka_unit_test(stats_say_what_was_not_counted),
		cmocka_unit_test(messages_come_after_what_was_printed_before_them),
		cmocka_unit_test(idle_lines_are_written_out),
		cmocka_unit_test(more_than_the_buffer_arrives_whole),
		cmocka_unit_test(a_full_disk_is_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
