/* SPDX-License-Identifier: MIT */
#include "residency_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define OVERLAYFS_MAGIC 0x794c7630
#define CACHESTAT_NR    451

struct cachestat_range {
	uint64_t off, len;
};

struct cachestat_answer {
	uint64_t cache, dirty, writeback, evicted, recently_evicted;
};

static long cachestat_call(int fd, struct cachestat_answer *answer)
{
	struct cachestat_range all = {0, 0};

	return syscall(CACHESTAT_NR, fd, &all, answer, 0U);
}

/* overlayfs answers cachestat with zeros and sync_file_range with nothing done. */
static bool is_overlay(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (unsigned long)fs.f_type == OVERLAYFS_MAGIC;
}

void probe_assert_page_size(void)
{
	if (sysconf(_SC_PAGESIZE) != (long)PROBE_PAGE) {
		fprintf(stderr, "page size is not %lu\n", PROBE_PAGE);
		exit(77);
	}
}

int probe_open(int dir_fd, const char *path)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	int fd = openat(dir_fd, path, flags | O_NOATIME);

	if (fd < 0 && errno == EPERM) {
		fd = openat(dir_fd, path, flags);
	}
	return fd < 0 ? -errno : fd;
}

int probe_cachestat_fd(int fd, struct probe_count *ret_count)
{
	struct cachestat_answer answer;

	if (cachestat_call(fd, &answer) < 0) {
		return -errno;
	}
	ret_count->resident = answer.cache;
	ret_count->dirty = answer.dirty;
	ret_count->writeback = answer.writeback;
	ret_count->dirt_unknown = false;
	return 0;
}

int probe_map_fd(int fd, uint64_t size_bytes, struct probe_map *ret_map)
{
	uint64_t pages = (size_bytes + PROBE_PAGE - 1) / PROBE_PAGE;
	unsigned char *page = NULL;
	void *mapped;
	int r = 0;

	if (pages > 0) {
		page = malloc(pages);
		if (!page) {
			return -ENOMEM;
		}
		mapped = mmap(NULL, size_bytes, PROT_READ, MAP_SHARED, fd, 0);
		if (mapped == MAP_FAILED) {
			r = -errno;
			free(page);
			return r;
		}
		if (mincore(mapped, size_bytes, page) < 0) {
			r = -errno;
		}
		munmap(mapped, size_bytes);
		if (r < 0) {
			free(page);
			return r;
		}
	}
	ret_map->page = page;
	ret_map->pages = pages;
	return 0;
}

int probe_count_fd(int fd, uint64_t size_bytes, struct probe_count *ret_count)
{
	struct probe_count count = {.pages = (size_bytes + PROBE_PAGE - 1) / PROBE_PAGE};
	struct probe_map map;
	int r;

	if (!is_overlay(fd)) {
		r = probe_cachestat_fd(fd, &count);
		if (r == 0 || r != -ENOSYS) {
			if (r == 0) {
				*ret_count = count;
			}
			return r;
		}
	}
	r = probe_map_fd(fd, size_bytes, &map);
	if (r < 0) {
		return r;
	}
	for (uint64_t i = 0; i < map.pages; i++) {
		count.resident += map.page[i] & 1;
	}
	free(map.page);
	count.dirt_unknown = true;
	*ret_count = count;
	return 0;
}

int probe_flush_fd(int fd)
{
	int r;

	if (is_overlay(fd)) {
		r = fdatasync(fd);
	} else {
		r = sync_file_range(fd, 0, 0,
			SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE
				| SYNC_FILE_RANGE_WAIT_AFTER);
	}
	return r < 0 ? -errno : 0;
}

int64_t probe_evict_fd(int fd, uint64_t size_bytes)
{
	struct probe_count count = {0};
	int r;

	/* The second attempt takes the long way: delayed allocation and NFS want a real sync. */
	for (int attempt = 0; attempt < 2; attempt++) {
		r = probe_count_fd(fd, size_bytes, &count);
		if (r < 0 || count.resident == 0) {
			return r;
		}
		if (count.dirty + count.writeback > 0 || count.dirt_unknown) {
			r = attempt == 0 ? probe_flush_fd(fd) : (fdatasync(fd) < 0 ? -errno : 0);
			if (r < 0) {
				return r;
			}
		}
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	}
	r = probe_count_fd(fd, size_bytes, &count);
	return r < 0 ? r : (int64_t)count.resident;
}

int probe_restore_fd(int fd, uint64_t size_bytes, const struct probe_map *before)
{
	struct probe_map now;
	uint64_t start;
	int r = probe_map_fd(fd, size_bytes, &now);

	if (r < 0) {
		return r;
	}
	for (uint64_t i = 0; i < now.pages;) {
		if (i < before->pages && (before->page[i] & 1)) {
			i++;
			continue;
		}
		for (start = i; i < now.pages && !(i < before->pages && (before->page[i] & 1));
			i++) {
		}
		/* To the end of the file with length 0: a cut last page would stay. */
		posix_fadvise(fd, (off_t)(start * PROBE_PAGE),
			i == now.pages ? 0 : (off_t)((i - start) * PROBE_PAGE),
			POSIX_FADV_DONTNEED);
	}
	free(now.page);
	return 0;
}

bool probe_parse_size(const char *text, uint64_t *ret_bytes)
{
	char *end;
	unsigned long long value;
	unsigned shift = 0;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *text == '-') {
		return false;
	}
	switch (*end) {
	case '\0':
		break;
	case 'k':
	case 'K':
		shift = 10;
		break;
	case 'm':
	case 'M':
		shift = 20;
		break;
	case 'g':
	case 'G':
		shift = 30;
		break;
	default:
		return false;
	}
	if ((shift && end[1]) || value > (UINT64_MAX >> shift)) {
		return false;
	}
	*ret_bytes = (uint64_t)value << shift;
	return true;
}

void probe_print_name(const char *name, void *file)
{
	for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
		if (*c < 33 || *c > 126 || *c == '\\') {
			fprintf(file, "\\%03o", *c);
		} else {
			fputc(*c, file);
		}
	}
}
