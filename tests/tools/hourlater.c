/* SPDX-License-Identifier: MIT */
/*
 * LD_PRELOADed, the calendar is an hour ahead for a program; what the kernel notes in files is not.
 * So a file of just now is an hour old.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	long r = syscall(SYS_clock_gettime, clock, ret);

	if (r == 0 && clock == CLOCK_REALTIME)
		ret->tv_sec += 3600;
	return (int)r;
}
