/* SPDX-License-Identifier: MIT */
/* Names made safe (against lines captured from rsync 3.5.0), and lines given to the sink. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/log.h"

struct escape_case {
	const char *name, *escaped;
};

static void check_escapes(const struct escape_case *cases, size_t count)
{
	char buffer[100];

	for (size_t i = 0; i < count; i++)
		assert_string_equal(
			tt_log_escape(cases[i].name, buffer, sizeof(buffer)), cases[i].escaped);
}

static void names_are_escaped_as_by_rsync_in_utf8(void **state)
{
	static const struct escape_case cases[] = {
		{"a\001\nb\\#001c\tz\200", "a\\#001\\#012b\\#134#001c\tz\\#200"},
		{"a\303", "a\\#303"},
		{"b\303\303\244", "b\\#303\303\244"},
		{"c\\#12", "c\\#12"},
		{"d\\#1234", "d\\#134#1234"},
		{"e\\#999", "e\\#134#999"},
		{"g\\\\#999", "g\\\\#134#999"},
		{"a\177b", "a\177b"},
		{"\033[2J", "\\#033[2J"},
		{"j\360\237\230\200", "j\360\237\230\200"},
		{"k\300\200", "k\\#300\\#200"},
		{"\355\240\200", "\\#355\\#240\\#200"},
		{"\342\200\213", "\342\200\213"},
		/* ours: U+009B is CSI for some terminals */
		{"\302\233"
		 "2J",
			"\\#302\\#2332J"},
	};

	(void)state;
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		skip();
	check_escapes(cases, sizeof(cases) / sizeof(cases[0]));
}

static void names_are_escaped_as_by_rsync_in_the_c_locale(void **state)
{
	static const struct escape_case cases[] = {
		{"b\303\244", "b\\#303\\#244"},
		{"a\177b\t", "a\177b\t"},
		{"\302\233", "\\#302\\#233"},
		{"plain", "plain"},
	};

	(void)state;
	setlocale(LC_CTYPE, "C");
	check_escapes(cases, sizeof(cases) / sizeof(cases[0]));
}

static void a_long_name_is_cut_between_escapes(void **state)
{
	char buffer[8];

	(void)state;
	setlocale(LC_CTYPE, "C");
	assert_string_equal(tt_log_escape("abcdefghij", buffer, sizeof(buffer)), "abcdefg");
	assert_string_equal(tt_log_escape("ab\001\002", buffer, sizeof(buffer)), "ab\\#001");
	assert_string_equal(tt_log_escape("abc\001", buffer, sizeof(buffer)), "abc");
	assert_string_equal(tt_log_escape("abc", buffer, 1), "");
}

struct sink {
	unsigned lines;
	enum tt_log_level level;
	char last[5000];
};

static void sink_write(void *context, enum tt_log_level level, const char *line)
{
	struct sink *sink = context;

	sink->lines++;
	sink->level = level;
	snprintf(sink->last, sizeof(sink->last), "%s", line);
}

static void lines_above_the_threshold_are_not_written(void **state)
{
	struct sink sink = {0};
	struct tt_log log = {.write = sink_write, .context = &sink, .threshold = TT_LOG_INFO};

	(void)state;
	tt_log_line(&log, TT_LOG_VERBOSE, "no");
	assert_int_equal(sink.lines, 0);
	tt_log_line(&log, TT_LOG_INFO, "%s %d", "yes", 3);
	tt_log_line(NULL, TT_LOG_ERROR, "nobody listens");
	assert_int_equal(sink.lines, 1);
	assert_int_equal(sink.level, TT_LOG_INFO);
	assert_string_equal(sink.last, "yes 3");
}

static void a_line_of_a_whole_path_is_not_cut(void **state)
{
	struct sink sink = {0};
	struct tt_log log = {.write = sink_write, .context = &sink, .threshold = TT_LOG_INFO};
	char path[4097];

	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	tt_log_line(&log, TT_LOG_ERROR, "%s!", path);
	assert_int_equal(strlen(sink.last), 4097);
	assert_int_equal(sink.last[4096], '!');
}

static void errors_have_words(void **state)
{
	(void)state;
	assert_string_equal(tt_error_text(-2), "No such file or directory");
	assert_string_equal(tt_error_text(2), "No such file or directory");
	assert_string_equal(tt_error_text(-99999), "Unknown error");
	assert_string_equal(tt_error_exit_text(TT_EXIT_PARTIAL),
		"some files/attrs were not transferred (see previous errors)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_escaped_as_by_rsync_in_utf8),
		cmocka_unit_test(names_are_escaped_as_by_rsync_in_the_c_locale),
		cmocka_unit_test(a_long_name_is_cut_between_escapes),
		cmocka_unit_test(lines_above_the_threshold_are_not_written),
		cmocka_unit_test(a_line_of_a_whole_path_is_not_cut),
		cmocka_unit_test(errors_have_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
