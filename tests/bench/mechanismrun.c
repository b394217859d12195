/* SPDX-License-Identifier: MIT */
/*
 * Moves files by one mechanism, whether the table would choose it or not, with the code that tiptoe
 * uses. For tests/bench/mechanisms, which makes the files and looks at what is left of them.
 *
 *   mechanismrun read|new|overwrite MECHANISM BYTES COUNT DIR
 *	seconds for the files DIR/0 to DIR/COUNT-1: read; written anew, or over what is there, until
 *	they are on the disk (all but plain). MECHANISM: plain, behind, uncached, direct, range,
 *	datasync. Exit 3: not possible here.
 *   mechanismrun choose OPERATION BYTES DIR
 *	what the table says for this user (for read: about DIR/0)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cache/mechanism.h"
#include "cache/neutral.h"
#include "cache/pacer.h"
#include "copy/copy.h"
#include "sys/fd.h"
#include "sys/probe.h"

static const char *const kinds[] = {
	[TT_MECHANISM_ORDINARY] = "plain",
	[TT_MECHANISM_STAYS] = "plain",
	[TT_MECHANISM_BEHIND] = "behind",
	[TT_MECHANISM_UNCACHED] = "uncached",
	[TT_MECHANISM_DIRECT] = "direct",
	[TT_MECHANISM_RANGE] = "range",
	[TT_MECHANISM_DATASYNC] = "datasync",
};

static struct tt_pool pool;
static _Atomic bool stop;
static _Atomic uint64_t progress;
static struct tt_copy_worker worker = {.pool = &pool, .stop = &stop, .progress_bytes = &progress};
static struct tt_neutral_stats stats;
static struct tt_neutral_fs fs = {.dontcache_read = true};

__attribute__((noreturn, format(printf, 2, 3))) static void die(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)fputs("mechanismrun: ", stderr);
	(void)vfprintf(stderr, format, args);
	(void)fputc('\n', stderr);
	va_end(args);
	exit(code);
}

static int must(int r, const char *what)
{
	if (r < 0)
		die(2, "%s: %s", what, strerror(errno));
	return r;
}

static int open_number(int dir_fd, unsigned number, int flags)
{
	char name[16];

	(void)snprintf(name, sizeof name, "%u", number);
	return must(openat(dir_fd, name, flags | O_CLOEXEC, 0644), name);
}

static void begin_reader(
	struct tt_neutral_reader *reader, int fd, uint64_t bytes, enum tt_mechanism_kind kind)
{
	enum tt_cache_mode mode = kind == TT_MECHANISM_ORDINARY ? TT_CACHE_KEEP
				  : kind == TT_MECHANISM_DIRECT ? TT_CACHE_DIRECT
								: TT_CACHE_LEAVE;

	tt_neutral_reader_begin(reader, fd, bytes, mode, &fs, &stats);
	if (kind == TT_MECHANISM_UNCACHED && reader->active)
		reader->unknown = true; /* as if nobody might know */
	if ((kind == TT_MECHANISM_DIRECT) != reader->is_direct
		|| (kind == TT_MECHANISM_BEHIND && (!reader->active || reader->unknown))
		|| (kind == TT_MECHANISM_UNCACHED && tt_neutral_reader_flags(reader) == 0))
		die(3, "not possible");
}

static void read_file(int dir_fd, unsigned number, uint64_t bytes, enum tt_mechanism_kind kind)
{
	int fd = open_number(dir_fd, number, O_RDONLY);
	int nothing = must(open("/dev/null", O_WRONLY | O_CLOEXEC), "/dev/null");
	struct tt_neutral_reader reader;
	struct tt_writer writer;
	struct tt_copy_result result;

	begin_reader(&reader, fd, bytes, kind);
	tt_writer_begin(&writer, nothing, bytes, NULL, NULL, NULL, 0);
	const struct tt_copy_request request = {
		.from_fd = fd, .size_bytes = bytes, .reader = &reader, .writer = &writer};

	errno = -tt_copy_content(&worker, &request, &result);
	must(errno ? -1 : 0, "reading");
	if (kind == TT_MECHANISM_UNCACHED && !fs.dontcache_read)
		die(3, "not possible");
	tt_neutral_reader_end(&reader);
	(void)close(fd);
	(void)close(nothing);
}

/* --- writing --------------------------------------------------------------------------------- */

static struct tt_pacer *pacer;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static struct tt_pacer_sink sink = {.lock = &lock, .ready = {&ready}, .last = &sink.first};
static unsigned out;

struct batch {
	struct tt_pacer_batch paced;
	uint64_t bytes;
};

static struct batch *filling;

static void finish_batch(struct tt_pacer_batch *paced, uint64_t bytes)
{
	for (unsigned i = 0; i < paced->count; i++) {
		struct tt_pacer_file *file = paced->files[i];

		errno = -file->error;
		must(file->error, "writing back");
		if (!file->is_empty)
			tt_neutral_written(file->fd, bytes, NULL, &fs, NULL, &stats);
		(void)close(file->fd);
		free(file);
	}
	free(paced->owner);
}

/* Takes what has come back; waits until at most `most` are out. */
static void take_batches(unsigned most, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	while (sink.first || out > most) {
		while (!sink.first)
			pthread_cond_wait(&ready, &lock);
		struct tt_pacer_batch *first = sink.first;

		sink.first = first->next;
		if (!sink.first)
			sink.last = &sink.first;
		out--;
		pthread_mutex_unlock(&lock);
		finish_batch(first, bytes);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
}

static void submit(void *context)
{
	(void)context;
	if (!filling || filling->paced.count == 0)
		return;
	pthread_mutex_lock(&lock);
	out++;
	pthread_mutex_unlock(&lock);
	tt_pacer_submit_batch(pacer, &filling->paced);
	filling = NULL;
}

static void add_to_batch(struct tt_pacer_file *file, uint64_t bytes)
{
	if (!filling) {
		filling = calloc(1, sizeof *filling);
		must(filling ? 0 : -1, "memory");
		filling->paced.sink = &sink;
		filling->paced.owner = filling;
	}
	filling->paced.files[filling->paced.count++] = file;
	filling->bytes += bytes;
	if (filling->paced.count == TT_PACER_BATCH_FILES
		|| filling->bytes >= tt_pacer_budget_bytes(pacer) / 16)
		submit(NULL);
}

static void write_file(int from, int fd, uint64_t bytes, enum tt_mechanism_kind kind)
{
	const struct tt_writer_hooks hooks = {.before_sleep = submit};
	struct tt_neutral_reader reader;
	struct tt_writer writer;
	struct tt_copy_result result;
	struct tt_pacer_file *file = malloc(sizeof *file);

	must(file ? 0 : -1, "memory");
	*file = (struct tt_pacer_file){.fd = fd,
		.sync = kind == TT_MECHANISM_DATASYNC ? TT_PACER_SYNC_DATA : TT_PACER_SYNC_RANGE,
		.started = kind == TT_MECHANISM_UNCACHED,
		.drop_windows = true,
		.can_count = fs.method == TT_RESIDENCY_CACHESTAT};
	tt_neutral_reader_begin(&reader, from, bytes, TT_CACHE_KEEP, &fs, &stats);
	if (kind == TT_MECHANISM_ORDINARY)
		tt_writer_begin(&writer, fd, bytes, NULL, NULL, NULL, 0);
	else if (kind != TT_MECHANISM_DIRECT)
		tt_writer_begin(&writer, fd, bytes, pacer, file, &hooks,
			file->started ? TT_FD_DONTCACHE : 0);
	else if (tt_writer_begin_direct(&writer, fd, bytes, pacer, file, &hooks) < 0)
		die(3, "not possible");
	const struct tt_copy_request request = {
		.from_fd = from, .size_bytes = bytes, .reader = &reader, .writer = &writer};
	int r = tt_copy_content(&worker, &request, &result);

	if (r == -EOPNOTSUPP)
		_exit(3);
	errno = -r;
	must(r, "writing");
	tt_writer_end(&writer);
	tt_neutral_reader_end(&reader);
	if (kind == TT_MECHANISM_ORDINARY) {
		(void)close(fd);
		free(file);
		return;
	}
	tt_pacer_start(file);
	add_to_batch(file, bytes);
	take_batches(16, bytes);
}

static void run_writes(
	int dir_fd, bool anew, uint64_t bytes, unsigned count, enum tt_mechanism_kind kind)
{
	const struct tt_pacer_config config = {.budget_bytes = UINT64_C(48) << 20};
	int refusal, from = must(memfd_create("from", MFD_CLOEXEC), "memfd");
	char piece[65536];

	memset(piece, 0x5a, sizeof piece);
	for (uint64_t at = 0; at < bytes; at += sizeof piece)
		must((int)pwrite(from, piece, sizeof piece, (off_t)at), "memfd");
	must(ftruncate(from, (off_t)bytes), "memfd");
	errno = -tt_pacer_new(&config, &pacer, &refusal);
	must(errno ? -1 : 0, "pacer");
	uint64_t start = tt_clock_now_ns();

	for (unsigned i = 0; i < count; i++)
		write_file(from, open_number(dir_fd, i, anew ? O_RDWR | O_CREAT | O_EXCL : O_RDWR),
			bytes, kind);
	submit(NULL);
	take_batches(0, bytes);
	printf("%.6f\n", (double)(tt_clock_now_ns() - start) / 1e9);
	tt_pacer_free(pacer);
}

static void run_reads(int dir_fd, uint64_t bytes, unsigned count, enum tt_mechanism_kind kind)
{
	uint64_t start = tt_clock_now_ns();

	for (unsigned i = 0; i < count; i++)
		read_file(dir_fd, i, bytes, kind);
	printf("%.6f\n", (double)(tt_clock_now_ns() - start) / 1e9);
}

/* --- the table ------------------------------------------------------------------------------- */

static enum tt_mechanism_operation operation_of(const char *name)
{
	return strcmp(name, "read") == 0  ? TT_MECHANISM_READ
	       : strcmp(name, "new") == 0 ? TT_MECHANISM_NEW
					  : TT_MECHANISM_OVERWRITE;
}

/* Of a file one reads: what a reader does about it. */
static enum tt_mechanism_kind chosen_reader(int dir_fd, uint64_t bytes)
{
	int fd = open_number(dir_fd, 0, O_RDONLY);
	struct tt_neutral_reader reader;
	static _Alignas(4096) char room[65536];

	tt_neutral_reader_begin(&reader, fd, bytes, TT_CACHE_LEAVE, &fs, &stats);
	(void)tt_neutral_reader_pread(&reader, room, sizeof room, 0); /* may be refused */
	bool unknown = reader.unknown;
	enum tt_mechanism_kind kind = !reader.active     ? TT_MECHANISM_ORDINARY
				      : reader.is_direct ? TT_MECHANISM_DIRECT
				      : unknown          ? TT_MECHANISM_UNCACHED
							 : TT_MECHANISM_BEHIND;

	tt_neutral_reader_end(&reader);
	return kind;
}

static void choose(const char *operation, uint64_t bytes, int dir_fd)
{
	struct tt_probe probe;

	if (operation_of(operation) == TT_MECHANISM_READ) {
		puts(kinds[chosen_reader(dir_fd, bytes)]);
		return;
	}
	(void)tt_probe_run(dir_fd, &probe);
	unsigned facts = tt_mechanism_facts(TT_CACHE_LEAVE, fs.method, &probe);

	if (bytes <= TT_MECHANISM_WHOLE_BYTES)
		facts |= TT_MECHANISM_IS_WHOLE;
	puts(kinds[tt_mechanism_choose(operation_of(operation), tt_mechanism_size_of(bytes), facts)
			   ->kind]);
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "choose") == 0) {
		int dir_fd = must(open(argv[4], O_RDONLY | O_DIRECTORY), argv[4]);

		fs.method = tt_residency_method(dir_fd);
		choose(argv[2], strtoull(argv[3], NULL, 10), dir_fd);
		return 0;
	}
	if (argc != 6)
		die(1, "OPERATION MECHANISM BYTES COUNT DIR, or: choose OPERATION BYTES DIR");
	enum tt_mechanism_kind kind = TT_MECHANISM_ORDINARY;
	uint64_t bytes = strtoull(argv[3], NULL, 10);
	unsigned count = (unsigned)strtoul(argv[4], NULL, 10);
	int dir_fd = must(open(argv[5], O_RDONLY | O_DIRECTORY), argv[5]);

	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (strcmp(argv[2], kinds[i]) == 0 && i != TT_MECHANISM_STAYS)
			kind = i;
	}
	if (strcmp(argv[2], kinds[kind]) != 0)
		die(1, "there is no mechanism %s", argv[2]);
	fs.method = tt_residency_method(dir_fd);
	stats.start_ns = tt_clock_now_ns() - UINT64_C(60000000000);
	tt_pool_init(&pool);
	if (operation_of(argv[1]) == TT_MECHANISM_READ)
		run_reads(dir_fd, bytes, count, kind);
	else
		run_writes(dir_fd, operation_of(argv[1]) == TT_MECHANISM_NEW, bytes, count, kind);
	tt_copy_worker_deinit(&worker);
	tt_pool_deinit(&pool);
	return 0;
}
