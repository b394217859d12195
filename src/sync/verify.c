/* SPDX-License-Identifier: MIT */
/*
 * See verify.h. Asking does not read: no page comes in by it.
 */
#include "sync/verify.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "sys/fd.h"
#include "tree/listing.h"

static void verify_file(struct tt_verify_count *sum, int dir_fd, const char *name)
{
	struct tt_residency count;
	struct stat st;
	TT_FD_AUTO fd = tt_fd_open_read(dir_fd, name);

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	sum->files++;
	if (tt_residency_count(fd, tt_residency_method(fd), 0, 0, &count) == 0)
		sum->pages += count.resident_pages;
	else
		sum->unknown++;
}

static void verify_directory(struct tt_engine *engine, struct tt_verify_count *sum, int fd)
{
	struct tt_listing names = {0};

	if (tt_listing_read_names(&names, fd) < 0)
		tt_log_line(engine->log, TT_LOG_WARNING,
			"--verify-cache could not read all of a directory");
	for (unsigned i = 0; i < names.count && !atomic_load(&engine->stop); i++) {
		const struct tt_entry *entry = &names.entries[i];

		if (S_ISREG(entry->mode)) {
			verify_file(sum, fd, entry->name);
		} else if (S_ISDIR(entry->mode)) {
			TT_FD_AUTO child = tt_fd_open_dir(fd, entry->name);

			if (child >= 0)
				verify_directory(engine, sum, child);
		}
	}
	tt_listing_deinit(&names);
}

static void verify_path(struct tt_engine *engine, struct tt_verify_count *sum, const char *path)
{
	int fd = tt_fd_open_path(path, O_RDONLY | O_DIRECTORY);

	if (fd == -ENOTDIR)
		verify_file(sum, AT_FDCWD, path);
	if (fd < 0)
		return;
	verify_directory(engine, sum, fd);
	tt_fd_close(fd);
}

void tt_verify_run(struct tt_engine *engine)
{
	verify_path(engine, &engine->stats.verify_destination, engine->destination);
	for (unsigned i = 0; i < engine->source_count; i++)
		verify_path(engine, &engine->stats.verify_sources, engine->sources[i]);
}
