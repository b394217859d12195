/* SPDX-License-Identifier: MIT */
/*
 * See neutral_whole.h.
 */
#include "cache/neutral_whole.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	WHOLE_DIRECT_BYTES = 65536, /* room that a read with O_DIRECT may need behind the buffer */
	WHOLE_STEP_BYTES = 65536,
};

struct whole {
	int fd;
	struct tt_neutral_reader reader;
	bool is_regular;
	char *text;
	size_t bytes, capacity;
	uint64_t from_bytes; /* standard input may have been read by others */
};

static ssize_t whole_read_piece(struct whole *whole)
{
	size_t room = whole->capacity - whole->bytes;
	char *to = whole->text + whole->bytes;
	ssize_t got;

	if (whole->is_regular)
		return tt_neutral_reader_pread(
			&whole->reader, to, room, whole->from_bytes + whole->bytes);
	do
		got = read(whole->fd, to, room);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

static int whole_grow(struct whole *whole, size_t capacity)
{
	char *text = realloc(whole->text, capacity + WHOLE_DIRECT_BYTES + 1);

	if (!text)
		return -ENOMEM;
	whole->text = text;
	whole->capacity = capacity;
	return 0;
}

static int whole_read(struct whole *whole, size_t most_bytes)
{
	ssize_t got = 1;
	int r = 0;

	while (got > 0 && r == 0) {
		if (whole->bytes > most_bytes)
			return -EFBIG;
		if (whole->bytes == whole->capacity)
			r = whole_grow(whole, whole->capacity * 2);
		got = r == 0 ? whole_read_piece(whole) : r;
		if (got > 0)
			whole->bytes += (size_t)got;
	}
	return got < 0 ? (int)got : 0;
}

int tt_neutral_whole_read(int fd, size_t most_bytes, enum tt_cache_mode mode,
	struct tt_neutral_fs *fs, struct tt_neutral_stats *stats, char **ret_text,
	size_t *ret_bytes)
{
	struct whole whole = {.fd = fd};
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	whole.is_regular = S_ISREG(st.st_mode);
	off_t from = whole.is_regular ? lseek(fd, 0, SEEK_CUR) : 0;

	whole.from_bytes = from > 0 ? (uint64_t)from : 0;
	if (whole.is_regular && st.st_size > 0 && (uint64_t)st.st_size > most_bytes)
		return -EFBIG;
	/* In one read, and one more that finds the end: a page is dropped after the first read that
	 * touches it, perhaps. */
	int r = whole_grow(&whole,
		whole.is_regular && st.st_size > 0 ? (size_t)st.st_size + 1 : WHOLE_STEP_BYTES);

	if (r == 0 && whole.is_regular)
		tt_neutral_reader_begin(&whole.reader, fd, (uint64_t)st.st_size, mode, fs, stats);
	if (r == 0)
		r = whole_read(&whole, most_bytes);
	if (whole.text && whole.is_regular) {
		tt_neutral_reader_end(&whole.reader);
		(void)lseek(fd, (off_t)(whole.from_bytes + whole.bytes), SEEK_SET);
	}
	if (r < 0) {
		free(whole.text);
		return r;
	}
	whole.text[whole.bytes] = '\0';
	*ret_text = whole.text;
	*ret_bytes = whole.bytes;
	return 0;
}
