/* SPDX-License-Identifier: MIT */
/*
 * Files with a known content and a known residency, and what the kernel says about them. Asks the
 * kernel itself, not src/sys.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "scratch.h"

#define SAMPLE_PAGE 4096u
#define SAMPLE_MIB  (UINT64_C(1) << 20)

/* The byte of a sample at an offset: no two pages are the same, no page is zero. */
static inline unsigned char sample_byte(uint64_t offset)
{
	uint64_t x = (offset / 8 + 1) * UINT64_C(0x9e3779b97f4a7c15);

	return (unsigned char)((x ^ x >> 29) >> (offset % 8 * 8)) | 1;
}

static inline void sample_fill(unsigned char *buffer, uint64_t offset, size_t size)
{
	for (size_t i = 0; i < size; i++)
		buffer[i] = sample_byte(offset + i);
}

/* Writes [offset, offset + size) of the sample. */
static inline void sample_write(int fd, uint64_t offset, uint64_t size)
{
	unsigned char *buffer = malloc(1 << 20);

	assert_non_null(buffer);
	while (size > 0) {
		size_t piece = size < 1 << 20 ? size : 1 << 20;

		sample_fill(buffer, offset, piece);
		assert_int_equal(pwrite(fd, buffer, piece, (off_t)offset), piece);
		offset += piece;
		size -= piece;
	}
	free(buffer);
}

/* Whether [offset, offset + size) is the sample's. Reads past the page cache's notice as any reader
 * would. */
static inline bool sample_is(int fd, uint64_t offset, uint64_t size)
{
	unsigned char *buffer = malloc(1 << 16), *wanted = malloc(1 << 16);
	bool same = true;

	assert_non_null(buffer);
	assert_non_null(wanted);
	while (size > 0 && same) {
		size_t piece = size < 1 << 16 ? size : 1 << 16;

		sample_fill(wanted, offset, piece);
		same = pread(fd, buffer, piece, (off_t)offset) == (ssize_t)piece
		       && memcmp(buffer, wanted, piece) == 0;
		offset += piece;
		size -= piece;
	}
	free(buffer);
	free(wanted);
	return same;
}

static inline int sample_open(const struct scratch *scratch, const char *name)
{
	int fd = openat(scratch->fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	return fd;
}

/* Clean, and nothing of it in the cache. */
static inline void sample_make_cold(int fd)
{
	assert_int_equal(fdatasync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
}

/* A new file of `size` bytes, cold. */
static inline int sample_new(const struct scratch *scratch, const char *name, uint64_t size)
{
	int fd = sample_open(scratch, name);

	sample_write(fd, 0, size);
	sample_make_cold(fd);
	return fd;
}

/* Brings in one page and no other. */
static inline void sample_touch(int fd, uint64_t page)
{
	char byte;

	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
	assert_int_equal(pread(fd, &byte, 1, (off_t)(page * SAMPLE_PAGE)), 1);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_NORMAL), 0);
}

static inline void sample_touch_all(int fd, uint64_t size)
{
	assert_true(sample_is(fd, 0, size));
}

/* Whether one page is in the cache (mincore; of one's own files). */
static inline bool sample_is_resident(int fd, uint64_t page)
{
	unsigned char vector = 0;
	void *map = mmap(NULL, SAMPLE_PAGE, PROT_READ, MAP_SHARED, fd, (off_t)(page * SAMPLE_PAGE));

	assert_true(map != MAP_FAILED);
	assert_int_equal(mincore(map, SAMPLE_PAGE, &vector), 0);
	munmap(map, SAMPLE_PAGE);
	return vector & 1;
}

static inline uint64_t sample_count_resident(int fd)
{
	struct stat st;
	uint64_t count = 0;

	assert_int_equal(fstat(fd, &st), 0);
	uint64_t pages = ((uint64_t)st.st_size + SAMPLE_PAGE - 1) / SAMPLE_PAGE;

	if (pages == 0)
		return 0;
	unsigned char *vector = calloc(pages, 1);
	void *map = mmap(NULL, pages * SAMPLE_PAGE, PROT_READ, MAP_SHARED, fd, 0);

	assert_non_null(vector);
	assert_true(map != MAP_FAILED);
	assert_int_equal(mincore(map, pages * SAMPLE_PAGE, vector), 0);
	for (uint64_t i = 0; i < pages; i++)
		count += vector[i] & 1;
	munmap(map, pages * SAMPLE_PAGE);
	free(vector);
	return count;
}

/* Open descriptors of this process. */
static inline unsigned sample_open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count;
}

/* Somebody who has a hand on the first pages of a file for a moment: they lie in a pipe. */
struct sample_hold {
	int pipe[2];
	unsigned ns;
	pthread_t thread;
};

static inline void *sample_hold_thread(void *argument)
{
	struct sample_hold *hold = argument;
	const struct timespec pause = {.tv_nsec = hold->ns};

	nanosleep(&pause, NULL);
	(void)close(hold->pipe[0]);
	(void)close(hold->pipe[1]);
	return NULL;
}

static inline void sample_hold_pages(struct sample_hold *hold, int fd, unsigned ns)
{
	loff_t offset = 0;

	hold->ns = ns;
	assert_int_equal(pipe(hold->pipe), 0);
	assert_true(splice(fd, &offset, hold->pipe[1], NULL, (size_t)8 * SAMPLE_PAGE, 0) > 0);
	assert_int_equal(pthread_create(&hold->thread, NULL, sample_hold_thread, hold), 0);
}

static inline void sample_hold_end(struct sample_hold *hold)
{
	assert_int_equal(pthread_join(hold->thread, NULL), 0);
}
