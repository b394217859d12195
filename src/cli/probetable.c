/* SPDX-License-Identifier: MIT */
/*
 * The third column says what follows for a copy into this file system; it is the short form of the
 * table in tiptoe-internals(7).
 */
#include "cli/probetable.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

struct probetable_row {
	const char *what;
	enum tt_probe_answer answer;
	const char *follows[3]; /* by enum tt_probe_answer */
};

void tt_probetable_write(FILE *stream, const struct tt_probe *probe)
{
	static const char *const answers[] = {"unknown", "no", "yes"};
	const struct probetable_row rows[] = {
		{"cachestat tells residency", probe->cachestat,
			{"mincore is asked where it is allowed",
				"mincore is asked where it is allowed",
				"files are asked before they are touched"}},
		{"sync_file_range writes back", probe->sync_file_range,
			{"fdatasync paces", "fdatasync paces",
				"windows are written back as they fill"}},
		{"clean pages can be dropped", probe->drop_clean,
			{"dropping is tried, and counted", "pages stay: nothing to drop",
				"pages go behind the copy"}},
		{"drop during writeback works", probe->drop_writeback,
			{"pages are dropped after writeback", "pages are dropped after writeback",
				"pages may be dropped at once"}},
		{"uncached reads", probe->dontcache_read,
			{"read, then drop", "read, then drop", "reads leave nothing behind"}},
		{"uncached writes of new files", probe->dontcache_write,
			{"write, wait, drop", "write, wait, drop", "writes leave nothing behind"}},
		{"uncached overwrites", probe->dontcache_overwrite,
			{"write, wait, drop", "write, wait, drop",
				"overwrites leave nothing behind"}},
		{"io_uring", probe->ring,
			{"threads do its work", "threads do its work",
				"waiting is done by the ring"}},
	};
	const size_t count = sizeof(rows) / sizeof(rows[0]);

	fprintf(stream, "%-30s %-8s %s\n", "what", "answer", "what follows");
	for (size_t i = 0; i < count; i++)
		fprintf(stream, "%-30s %-8s %s\n", rows[i].what, answers[rows[i].answer],
			rows[i].follows[rows[i].answer]);
	if (probe->tmpfile_error)
		fprintf(stream, "No experiment was possible: %s\n",
			tt_error_text(probe->tmpfile_error));
	if (probe->ring_error)
		fprintf(stream, "io_uring: %s\n", tt_error_text(probe->ring_error));
}

enum tt_exit tt_probetable_print(const char *path, char *message, size_t size)
{
	struct tt_probe probe;
	char name[1024];
	int fd, r;

	tt_log_escape(path, name, sizeof(name));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		snprintf(message, size, "--probe takes a directory: opening %s: %s", name,
			tt_error_text(errno));
		return TT_EXIT_SELECT;
	}
	r = tt_probe_run(fd, &probe);
	close(fd);
	if (r < 0) {
		snprintf(message, size, "probing %s: %s", name, tt_error_text(r));
		return TT_EXIT_FILE_IO;
	}
	tt_probetable_write(stdout, &probe);
	return TT_EXIT_OK;
}
