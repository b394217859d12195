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

static void verify_file(struct tt_engine *engine, int dir_fd, const char *name)
{
	struct tt_residency count;
	struct stat st;
	TT_FD_AUTO fd = tt_fd_open_read(dir_fd, name);

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	engine->stats.verify_files++;
	if (tt_residency_count(fd, tt_residency_method(fd), 0, 0, &count) == 0)
		engine->stats.verify_pages += count.resident_pages;
}

static void verify_directory(struct tt_engine *engine, int fd)
{
	struct tt_listing names = {0};

	if (tt_listing_read_names(&names, fd) < 0)
		tt_log_line(engine->log, TT_LOG_WARNING,
			"--verify-cache could not read all of the destination");
	for (unsigned i = 0; i < names.count && !atomic_load(&engine->stop); i++) {
		const struct tt_entry *entry = &names.entries[i];

		if (S_ISREG(entry->mode)) {
			verify_file(engine, fd, entry->name);
		} else if (S_ISDIR(entry->mode)) {
			TT_FD_AUTO child = tt_fd_open_dir(fd, entry->name);

			if (child >= 0)
				verify_directory(engine, child);
		}
	}
	tt_listing_deinit(&names);
}

void tt_verify_run(struct tt_engine *engine)
{
	int fd = tt_fd_open_path(engine->destination, O_RDONLY | O_DIRECTORY);

	if (fd == -ENOTDIR) {
		verify_file(engine, AT_FDCWD, engine->destination);
		return;
	}
	if (fd < 0)
		return;
	verify_directory(engine, fd);
	tt_fd_close(fd);
}
