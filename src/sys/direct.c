/* SPDX-License-Identifier: MIT */
/*
 * See direct.h. Debian 12's headers know the fields, older ones do not: the kernel's struct statx
 * is 256 bytes whose layout does not change (include/uapi/linux/stat.h).
 */
#include "sys/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DIRECT_STATX_DIOALIGN 0x2000u /* Linux 6.1 */

enum {
	DIRECT_MOST_BYTES = 65536 /* more than any buffer here is aligned to */
};

struct direct_statx {
	uint32_t mask;
	unsigned char before[0x98 - 4];
	uint32_t dio_mem_align, dio_offset_align; /* at 0x98 */
	unsigned char after[256 - 0xa0];
};
_Static_assert(sizeof(struct direct_statx) == 256, "the kernel writes so much");

static bool direct_is_sane(uint32_t bytes, uint32_t most)
{
	return bytes > 0 && bytes <= most && (bytes & (bytes - 1)) == 0;
}

void tt_direct_ask(int fd, struct tt_direct *ret_direct)
{
	struct direct_statx stx;

	*ret_direct = (struct tt_direct){0};
	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, DIRECT_STATX_DIOALIGN,
		    &stx)
			< 0
		|| !(stx.mask & DIRECT_STATX_DIOALIGN))
		return;
	/* Buffers here are aligned to pages. */
	if (!direct_is_sane(stx.dio_mem_align, 4096)
		|| !direct_is_sane(stx.dio_offset_align, DIRECT_MOST_BYTES))
		return;
	ret_direct->memory_bytes = stx.dio_mem_align;
	ret_direct->offset_bytes = stx.dio_offset_align;
}

int tt_direct_set(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = on ? flags | O_DIRECT : flags & ~O_DIRECT;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}
