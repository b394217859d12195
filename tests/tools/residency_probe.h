/* SPDX-License-Identifier: MIT */
/*
 * What is resident of one open file, asked from outside: cachestat where it tells the truth,
 * mincore otherwise.
 *
 * Looking changes nothing: no page is brought in, and with O_NOATIME no access time is touched.
 * Written apart from src/sys on purpose: a test must not measure a program with the program's own
 * ruler.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROBE_PAGE 4096UL /* asserted against sysconf in every tool's main */

struct probe_count {
	uint64_t pages; /* of the file's size */
	uint64_t resident;
	uint64_t dirty;
	uint64_t writeback;
	bool dirt_unknown; /* counted by mincore, which does not know dirt */
};

/* A file's page bitmap as mincore gives it: one byte a page, lowest bit set if resident. */
struct probe_map {
	unsigned char *page;
	uint64_t pages;
};

/* Opens without following a link and without changing the access time (falls back when not the
 * owner). A negative errno on failure. */
int probe_open(int dir_fd, const char *path);

/* Counts the whole file (or block device: size_bytes 0). Returns 0 or a negative errno. */
int probe_count_fd(int fd, uint64_t size_bytes, struct probe_count *ret_count);

/* Only cachestat, for block devices. Returns 0 or a negative errno. */
int probe_cachestat_fd(int fd, struct probe_count *ret_count);

/* The caller frees ret_map->page. An empty file gives a NULL map. Returns 0 or a negative errno. */
int probe_map_fd(int fd, uint64_t size_bytes, struct probe_map *ret_map);

/* Writes back what is dirty of the file and waits for it. */
int probe_flush_fd(int fd);

/* Flushes and drops everything. Returns the number of pages that stayed, or a negative errno. */
int64_t probe_evict_fd(int fd, uint64_t size_bytes);

/* Drops the pages that are resident now and were not in `before`. */
int probe_restore_fd(int fd, uint64_t size_bytes, const struct probe_map *before);

/* "12", "64K", "2M", "6G". Returns false if it is none. */
bool probe_parse_size(const char *text, uint64_t *ret_bytes);

/* Dies unless the page size is PROBE_PAGE. */
void probe_assert_page_size(void);

/* Writes `name` with everything outside printable ASCII, and the backslash, as \ooo. */
void probe_print_name(const char *name, void *file);
