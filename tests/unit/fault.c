/* SPDX-License-Identifier: MIT */
/*
 * See fault.h.
 */
#include "fault.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static struct fault_rule rule;
static _Atomic unsigned calls, hits;

void fault_set(const struct fault_rule *new_rule)
{
	rule = *new_rule;
	atomic_store(&calls, 0);
	atomic_store(&hits, 0);
}

void fault_clear(void)
{
	fault_set(&(struct fault_rule){.call = FAULT_NONE});
}

unsigned fault_hits(void)
{
	return atomic_load(&hits);
}

/* Returns whether the call is answered here, with *result. */
static bool fault_answer(enum fault_call call, ssize_t *result)
{
	if (rule.call != call)
		return false;
	unsigned number = atomic_fetch_add(&calls, 1);

	if (number < rule.skip || (rule.count > 0 && number - rule.skip >= rule.count))
		return false;
	atomic_fetch_add(&hits, 1);
	if (rule.delay_usec > 0)
		(void)usleep(rule.delay_usec);
	if (rule.error > 0) {
		errno = rule.error;
		*result = -1;
		return true;
	}
	*result = 0;
	return rule.nothing;
}

static size_t fault_bytes(enum fault_call call, size_t bytes)
{
	return rule.call == call && rule.most_bytes > 0 && bytes > rule.most_bytes ? rule.most_bytes
										   : bytes;
}

/* The names are the linker's. */
ssize_t __real_pread64(int fd, void *buffer, size_t bytes, off_t offset);
ssize_t __wrap_pread64(int fd, void *buffer, size_t bytes, off_t offset);
ssize_t __real_pwrite64(int fd, const void *buffer, size_t bytes, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *buffer, size_t bytes, off_t offset);
ssize_t __real_preadv64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags);
ssize_t __wrap_preadv64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags);
ssize_t __real_pwritev64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags);
ssize_t __wrap_pwritev64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags);
int __real_sync_file_range(int fd, off_t offset, off_t bytes, unsigned flags);
int __wrap_sync_file_range(int fd, off_t offset, off_t bytes, unsigned flags);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

ssize_t __wrap_pread64(int fd, void *buffer, size_t bytes, off_t offset)
{
	ssize_t result;

	if (fault_answer(FAULT_READ, &result))
		return result;
	return __real_pread64(fd, buffer, fault_bytes(FAULT_READ, bytes), offset);
}

ssize_t __wrap_pwrite64(int fd, const void *buffer, size_t bytes, off_t offset)
{
	ssize_t result;

	if (fault_answer(FAULT_WRITE, &result))
		return result;
	return __real_pwrite64(fd, buffer, fault_bytes(FAULT_WRITE, bytes), offset);
}

ssize_t __wrap_preadv64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	ssize_t result;

	if (fault_answer(FAULT_READ, &result))
		return result;
	return __real_preadv64v2(fd, iov, count, offset, flags);
}

ssize_t __wrap_pwritev64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	ssize_t result;

	if (fault_answer(FAULT_WRITE, &result))
		return result;
	return __real_pwritev64v2(fd, iov, count, offset, flags);
}

int __wrap_sync_file_range(int fd, off_t offset, off_t bytes, unsigned flags)
{
	ssize_t result;

	if (fault_answer(FAULT_SYNC_RANGE, &result))
		return (int)result;
	return __real_sync_file_range(fd, offset, bytes, flags);
}

int __wrap_fsync(int fd)
{
	ssize_t result;

	return fault_answer(FAULT_FSYNC, &result) ? (int)result : __real_fsync(fd);
}

int __wrap_fdatasync(int fd)
{
	ssize_t result;

	return fault_answer(FAULT_FDATASYNC, &result) ? (int)result : __real_fdatasync(fd);
}
