/* SPDX-License-Identifier: MIT */
/*
 * The control loop with an engine of this file's own in place of the real one: it defines all that
 * cli/control.c calls, so the linker does not look for another.
 */
#include <fcntl.h>
#include <pthread.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/control.h"

struct tt_engine {
	struct tt_report *report;
	void (*work)(struct tt_engine *engine);
	atomic_uint stops;
	atomic_bool takes_signals;
};

enum tt_exit tt_engine_run(struct tt_engine *engine)
{
	sigset_t blocked;

	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	engine->takes_signals = !sigismember(&blocked, SIGINT) || !sigismember(&blocked, SIGUSR1);
	engine->work(engine);
	return engine->stops > 0 ? TT_EXIT_SIGNAL : TT_EXIT_PARTIAL;
}

void tt_engine_stop(struct tt_engine *engine)
{
	engine->stops++;
}

void tt_engine_progress(struct tt_engine *engine, struct tt_engine_progress *ret_progress)
{
	(void)engine;
	*ret_progress = (struct tt_engine_progress){.files_done = 3,
		.files_known = 4,
		.bytes_done = 1000000,
		.bytes_known = 2000000,
		.listing_complete = true,
		.elapsed_ns = 1000000000};
}

static void wait_ms(unsigned ms)
{
	usleep(ms * 1000);
}

static void wait_for_stops(struct tt_engine *engine, unsigned count)
{
	for (int i = 0; i < 2000 && engine->stops < count; i++)
		wait_ms(1);
}

/* Runs `work` as the engine; what was printed is in `out` and `err` (1000 bytes each). */
static enum tt_exit run(void (*work)(struct tt_engine *engine), bool show_progress,
	unsigned *ret_stops, char *out, char *err)
{
	const struct tt_report_policy policy = {.verbose = 1};
	struct tt_report report;
	struct tt_engine engine = {.report = &report, .work = work};
	enum tt_exit code = TT_EXIT_MEMORY;
	int out_fd = memfd_create("out", MFD_CLOEXEC), err_fd = memfd_create("err", MFD_CLOEXEC);
	ssize_t n;

	assert_int_equal(tt_report_init(&report, &policy, out_fd, err_fd), 0);
	assert_int_equal(tt_control_run(&engine, &report, show_progress, 1, &code), 0);
	assert_int_equal(tt_report_flush(&report), 0);
	tt_report_deinit(&report);
	assert_false(engine.takes_signals);
	*ret_stops = engine.stops;
	n = pread(out_fd, out, 999, 0);
	out[n > 0 ? n : 0] = '\0';
	n = pread(err_fd, err, 999, 0);
	err[n > 0 ? n : 0] = '\0';
	close(out_fd);
	close(err_fd);
	return code;
}

static void work_nothing(struct tt_engine *engine)
{
	(void)engine;
}

static void work_interrupted_three_times(struct tt_engine *engine)
{
	kill(getpid(), SIGINT);
	wait_for_stops(engine, 1);
	kill(getpid(), SIGINT);
	wait_for_stops(engine, 2);
	kill(getpid(), SIGTERM);
	wait_for_stops(engine, 3);
}

/* Prints more than a pipe takes. */
static void work_printing_in_vain(struct tt_engine *engine)
{
	kill(getpid(), SIGINT);
	for (int i = 0; i < 200000; i++)
		tt_report_line(engine->report, "a line");
}

static void work_hung_up(struct tt_engine *engine)
{
	kill(getpid(), SIGHUP);
	wait_for_stops(engine, 1);
}

static void work_hung_up_in_vain(struct tt_engine *engine)
{
	kill(getpid(), SIGHUP);
	wait_ms(50);
	(void)engine;
}

static void work_asked_for_progress(struct tt_engine *engine)
{
	(void)engine;
	kill(getpid(), SIGUSR1);
	wait_ms(100);
}

static void work_line_then_idle(struct tt_engine *engine)
{
	char text[10] = "";

	tt_report_line(engine->report, "line");
	/* Written by the control loop, since the engine prints no more. */
	for (int i = 0; i < 5000 && strcmp(text, "line\n") != 0; i++) {
		wait_ms(1);
		if (pread(engine->report->out_fd, text, 5, 0) < 0)
			return;
	}
	engine->stops = strcmp(text, "line\n") == 0 ? 7 : 0;
}

/* Until the line of progress is there, if one is to come. */
static void wait_for_status(struct tt_report *report)
{
	bool shown = !report->out_is_terminal;

	for (int i = 0; i < 5000 && !shown; i++) {
		wait_ms(1);
		pthread_mutex_lock(&report->lock);
		shown = report->status_shown;
		pthread_mutex_unlock(&report->lock);
	}
}

static void work_one_name(struct tt_engine *engine)
{
	wait_for_status(engine->report);
	tt_report_line(engine->report, "name");
}

static void the_engines_exit_code_is_passed_on(void **state)
{
	char out[1000], err[1000];
	unsigned stops;

	(void)state;
	assert_int_equal(run(work_nothing, false, &stops, out, err), TT_EXIT_PARTIAL);
	assert_int_equal(stops, 0);
	assert_string_equal(out, "");
	assert_string_equal(err, "");
}

static void every_signal_to_end_stops_and_none_kills(void **state)
{
	char out[1000], err[1000];
	unsigned stops;

	(void)state;
	assert_int_equal(
		run(work_interrupted_three_times, false, &stops, out, err), TT_EXIT_SIGNAL);
	assert_int_equal(stops, 3);
	assert_int_equal(run(work_hung_up, false, &stops, out, err), TT_EXIT_SIGNAL);
	assert_int_equal(stops, 1);
}

static void a_hangup_that_was_ignored_stays_so(void **state)
{
	char out[1000], err[1000];
	unsigned stops;

	(void)state;
	signal(SIGHUP, SIG_IGN);
	assert_int_equal(run(work_hung_up_in_vain, false, &stops, out, err), TT_EXIT_PARTIAL);
	signal(SIGHUP, SIG_DFL);
	assert_int_equal(stops, 0);
}

static void sigusr1_prints_a_line_of_progress(void **state)
{
	char out[1000], err[1000];
	unsigned stops;

	(void)state;
	run(work_asked_for_progress, false, &stops, out, err);
	assert_string_equal(out, "");
	assert_string_equal(err, " 50%  1.00MB/s  ETA 0:00:01  3 of 4 files  1.00MB of 2.00MB\n");
}

static void lines_do_not_wait_for_more(void **state)
{
	char out[1000], err[1000];
	unsigned stops;

	(void)state;
	run(work_line_then_idle, false, &stops, out, err);
	assert_int_equal(stops, 7);
}

static void without_a_terminal_progress_is_one_line_at_the_end(void **state)
{
	char out[1000], err[1000];
	unsigned stops;

	(void)state;
	run(work_one_name, true, &stops, out, err);
	assert_string_equal(out, "name\n3 files  1.00MB  1.00MB/s  0:00:01\n");
}

static void on_a_terminal_progress_is_redrawn_and_ends_in_totals(void **state)
{
	const struct tt_report_policy policy = {.verbose = 1};
	const struct winsize narrow = {.ws_row = 24, .ws_col = 40};
	const char *const status = " 50%  1.00MB/s  ETA 0:00:01";
	struct tt_report report;
	struct tt_engine engine = {.report = &report, .work = work_one_name};
	char text[4000], wanted[300];
	enum tt_exit code;
	int master, slave, flags;
	ssize_t n;

	(void)state;
	assert_int_equal(openpty(&master, &slave, NULL, NULL, &narrow), 0);
	flags = fcntl(slave, F_GETFL);
	assert_int_equal(tt_report_init(&report, &policy, slave, slave), 0);
	assert_int_equal(tt_control_run(&engine, &report, true, 1, &code), 0);
	tt_report_line(&report, "end");
	tt_report_flush(&report);
	assert_int_equal(fcntl(slave, F_GETFL), flags);
	/* A terminal passes on what was written piece by piece. */
	text[0] = '\0';
	for (size_t used = 0; !strstr(text, "end\r\n"); used += (size_t)n) {
		n = read(master, text + used, sizeof(text) - 1 - used);
		assert_true(n > 0);
		text[used + (size_t)n] = '\0';
	}
	/* Drawn; cleared for the name and drawn again; cleared for the totals. The width leaves no
	 * room for files. */
	snprintf(wanted, sizeof(wanted), "%s\r\033[Kname\r\n%s\r\033[K%s\r\nend\r\n", status,
		status, "3 files  1.00MB  1.00MB/s  0:00:01");
	assert_string_equal(text, wanted);
	tt_report_deinit(&report);
	close(slave);
	close(master);
}

static void a_reader_who_does_not_read_does_not_keep_it_from_stopping(void **state)
{
	const struct tt_report_policy policy = {.verbose = 1};
	struct tt_report report;
	struct tt_engine engine = {.report = &report, .work = work_printing_in_vain};
	enum tt_exit code;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(tt_report_init(&report, &policy, ends[1], STDERR_FILENO), 0);
	alarm(20);
	assert_int_equal(tt_control_run(&engine, &report, false, 1, &code), 0);
	alarm(0);
	assert_int_equal(code, TT_EXIT_SIGNAL);
	assert_true(tt_report_flush(&report) < 0);
	tt_report_deinit(&report);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_engines_exit_code_is_passed_on),
		cmocka_unit_test(every_signal_to_end_stops_and_none_kills),
		cmocka_unit_test(a_hangup_that_was_ignored_stays_so),
		cmocka_unit_test(a_reader_who_does_not_read_does_not_keep_it_from_stopping),
		cmocka_unit_test(sigusr1_prints_a_line_of_progress),
		cmocka_unit_test(lines_do_not_wait_for_more),
		cmocka_unit_test(without_a_terminal_progress_is_one_line_at_the_end),
		cmocka_unit_test(on_a_terminal_progress_is_redrawn_and_ends_in_totals),
	};

	/* As from a terminal, also where the tests were started with nohup(1). */
	signal(SIGHUP, SIG_DFL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
