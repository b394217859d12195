/* SPDX-License-Identifier: MIT */
/*
 *	main thread: libuv		engine thread
 *	  signals -> tt_engine_stop() ->  tt_engine_run()
 *	  timer   -> status line	      | events -> report (its lock)
 *	  async  <- the end -----------------+
 *
 * Only libuv's signals, timers and async handles are used: its terminals and pipes would switch
 * inherited descriptors to O_NONBLOCK. What it does to them nevertheless is undone at the end.
 */
#include "cli/control.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <uv.h>

#define CONTROL_TICK_MS 200

struct control {
	struct tt_engine *engine;
	struct tt_report *report;
	struct tt_progress progress; /* main thread only */
	bool show_progress;
	bool on_terminal;
	unsigned columns;
	bool notice_wanted; /* SIGUSR1 came */

	uv_loop_t loop;
	uv_async_t finished;
	uv_timer_t tick;
	uv_signal_t signals[5];
	unsigned signal_count;

	pthread_t thread;
	enum tt_exit code; /* written by the engine thread before it signals `finished` */
};

static void control_measure_terminal(struct control *control)
{
	struct winsize size;

	control->columns = 80;
	if (ioctl(control->report->out_fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		control->columns = size.ws_col;
}

static void control_draw(struct control *control)
{
	struct tt_engine_progress now;
	char line[TT_REPORT_STATUS_SIZE];

	tt_engine_progress(control->engine, &now);
	/* The last column stays free: some terminals wrap when it is written. */
	tt_progress_format(&control->progress, &now, control->columns - 1, line, sizeof(line));
	tt_report_set_status(control->report, line);
}

static void control_print_notice(struct control *control)
{
	struct tt_engine_progress now;
	struct tt_progress once;
	char line[TT_REPORT_STATUS_SIZE];

	tt_progress_init(&once, control->progress.human_readable);
	tt_engine_progress(control->engine, &now);
	tt_progress_format(&once, &now, sizeof(line) - 1, line, sizeof(line));
	if (tt_report_try_notice(control->report, line))
		control->notice_wanted = false;
}

static void control_on_tick(uv_timer_t *timer)
{
	struct control *control = timer->data;

	if (control->show_progress && control->on_terminal)
		control_draw(control);
	if (control->notice_wanted)
		control_print_notice(control);
	tt_report_flush_idle(control->report);
}

static void control_on_signal(uv_signal_t *handle, int number)
{
	struct control *control = handle->data;

	switch (number) {
	case SIGUSR1:
		control->notice_wanted = true;
		control_print_notice(control);
		break;
	case SIGWINCH:
		control_measure_terminal(control);
		if (control->show_progress && control->on_terminal)
			control_draw(control);
		break;
	default:
		tt_engine_stop(control->engine);
		tt_report_hurry(control->report);
		break;
	}
}

static void control_close_handle(uv_handle_t *handle, void *unused)
{
	(void)unused;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void control_on_finished(uv_async_t *handle)
{
	struct control *control = handle->data;

	uv_walk(&control->loop, control_close_handle, NULL);
}

static void *control_engine_main(void *data)
{
	struct control *control = data;

	control->code = tt_engine_run(control->engine);
	uv_async_send(&control->finished);
	return NULL;
}

static int control_watch_signals(struct control *control)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGWINCH};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uv_signal_t *handle = &control->signals[control->signal_count];
		struct sigaction before;
		int r;

		if (numbers[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0
			&& before.sa_handler == SIG_IGN)
			continue;
		r = uv_signal_init(&control->loop, handle);
		if (r < 0)
			return r;
		control->signal_count++;
		handle->data = control;
		r = uv_signal_start(handle, control_on_signal, numbers[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* libuv's error codes are negative errnos on Linux. */
static int control_start(struct control *control)
{
	sigset_t all, before;
	int r;

	r = uv_async_init(&control->loop, &control->finished, control_on_finished);
	if (r < 0)
		return r;
	control->finished.data = control;
	r = uv_timer_init(&control->loop, &control->tick);
	if (r < 0)
		return r;
	control->tick.data = control;
	r = uv_timer_start(&control->tick, control_on_tick, CONTROL_TICK_MS, CONTROL_TICK_MS);
	if (r < 0)
		return r;
	r = control_watch_signals(control);
	if (r < 0)
		return r;

	/* The engine's threads take no signals: their system calls are not interrupted. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&control->thread, NULL, control_engine_main, control);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

int tt_control_run(struct tt_engine *engine, struct tt_report *report, bool show_progress,
	unsigned human_readable, enum tt_exit *ret_code)
{
	struct control control = {
		.engine = engine,
		.report = report,
		.show_progress = show_progress,
		.on_terminal = report->out_is_terminal,
	};
	int flags[3], r;

	for (int fd = 0; fd < 3; fd++)
		flags[fd] = fcntl(fd, F_GETFL);
	tt_progress_init(&control.progress, human_readable);
	control_measure_terminal(&control);

	r = uv_loop_init(&control.loop);
	if (r < 0)
		return r;
	r = control_start(&control);
	if (r < 0)
		uv_walk(&control.loop, control_close_handle, NULL);
	uv_run(&control.loop, UV_RUN_DEFAULT);
	if (r == 0)
		pthread_join(control.thread, NULL);
	uv_loop_close(&control.loop);

	for (int fd = 0; fd < 3; fd++)
		if (flags[fd] >= 0 && fcntl(fd, F_GETFL) != flags[fd])
			fcntl(fd, F_SETFL, flags[fd]);
	if (r < 0)
		return r;

	tt_report_set_status(report, "");
	if (show_progress && !report->policy.quiet) {
		struct tt_engine_progress now;
		char line[TT_REPORT_STATUS_SIZE];

		tt_engine_progress(engine, &now);
		tt_report_line(report,
			tt_progress_format_total(&control.progress, &now, line, sizeof(line)));
	}
	*ret_code = control.code;
	return 0;
}
