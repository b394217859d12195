/* SPDX-License-Identifier: MIT */
/*
 * See facts.h. The experiments with the content of files are here.
 */
#include "sys/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/direct.h"
#include "sys/fd.h"
#include "sys/temporary.h"

/* At least a block of any file system, and of any device. */
#define FACTS_PIECE_BYTES (64 << 10)

static const struct {
	const char *words, *key;
} facts_names[TT_FACTS_COUNT] = {
	[TT_FACTS_UNNAMED] = {"unnamed files (O_TMPFILE)", "unnamed_files"},
	[TT_FACTS_REFLINK] = {"clones of files (FICLONE)", "reflink"},
	[TT_FACTS_DIRECT_READ] = {"O_DIRECT reads", "direct_read"},
	[TT_FACTS_DIRECT_WRITE] = {"O_DIRECT writes", "direct_write"},
	[TT_FACTS_FALLOCATE] = {"space in advance (fallocate)", "fallocate"},
	[TT_FACTS_PUNCH_HOLE] = {"holes in old files", "punch_hole"},
	[TT_FACTS_SEEK_HOLE] = {"holes are told (SEEK_HOLE)", "seek_hole"},
	[TT_FACTS_RENAME_NOREPLACE] = {"renames that never replace", "rename_noreplace"},
	[TT_FACTS_CASE_INSENSITIVE] = {"FILE and file are one", "case_insensitive"},
};

const char *tt_facts_words(enum tt_facts_which which)
{
	return facts_names[which].words;
}

const char *tt_facts_key(enum tt_facts_which which)
{
	return facts_names[which].key;
}

static struct tt_facts_answer facts_yes(void)
{
	return (struct tt_facts_answer){.answer = TT_PROBE_YES};
}

/* Space that has run out meanwhile says nothing about what is possible. */
static struct tt_facts_answer facts_refused(int error)
{
	bool unsaid = error == -ENOSPC || error == -EDQUOT || error == -EIO || error == -ENOMEM;

	return (struct tt_facts_answer){
		.answer = unsaid ? TT_PROBE_UNKNOWN : TT_PROBE_NO, .error = error};
}

static struct tt_facts_answer facts_result(int result)
{
	return result < 0 ? facts_refused(-errno) : facts_yes();
}

static struct tt_facts_answer facts_lies(const char *why)
{
	return (struct tt_facts_answer){.answer = TT_PROBE_NO, .why = why};
}

static struct tt_facts_answer facts_reflink(int fd, int other_fd, char *data)
{
	struct tt_facts_answer answer;
	ssize_t got;

	if (tt_fd_pwrite_all(fd, data, FACTS_PIECE_BYTES, 0, 0) < 0)
		return (struct tt_facts_answer){.error = -ENOSPC};
	answer = facts_result(ioctl(other_fd, FICLONE, fd));
	if (answer.answer != TT_PROBE_YES)
		return answer;
	got = tt_fd_pread(other_fd, data + FACTS_PIECE_BYTES, FACTS_PIECE_BYTES, 0, 0);
	return got == FACTS_PIECE_BYTES
			       && memcmp(data, data + FACTS_PIECE_BYTES, FACTS_PIECE_BYTES) == 0
		       ? answer
		       : facts_lies("the clone does not have the content");
}

static struct tt_facts_answer facts_direct(int fd, char *data, bool writes)
{
	int r = tt_direct_set(fd, true);

	if (r < 0)
		return facts_refused(r);
	ssize_t moved = writes ? tt_fd_pwrite(fd, data, FACTS_PIECE_BYTES, 0, 0)
			       : tt_fd_pread(fd, data, FACTS_PIECE_BYTES, 0, 0);

	(void)tt_direct_set(fd, false);
	if (moved < 0)
		return facts_refused((int)moved);
	return moved == FACTS_PIECE_BYTES ? facts_yes() : facts_lies("only a part was moved");
}

static struct tt_facts_answer facts_punch(int fd, char *data)
{
	struct stat st;

	if (ftruncate(fd, 0) < 0 || tt_fd_pwrite_all(fd, data, 2 * FACTS_PIECE_BYTES, 0, 0) < 0)
		return (struct tt_facts_answer){.error = -ENOSPC};
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, FACTS_PIECE_BYTES) < 0)
		return facts_refused(-errno);
	if (fstat(fd, &st) < 0 || st.st_size != 2 * FACTS_PIECE_BYTES)
		return facts_lies("the size has changed");
	return facts_yes();
}

/* Data, hole, data, asked for before anything is on the disk. */
static struct tt_facts_answer facts_seek_hole(int fd, const char *data)
{
	const off_t piece = FACTS_PIECE_BYTES;

	if (ftruncate(fd, 0) < 0 || tt_fd_pwrite_all(fd, data, FACTS_PIECE_BYTES, 0, 0) < 0
		|| tt_fd_pwrite_all(fd, data, FACTS_PIECE_BYTES, 3 * FACTS_PIECE_BYTES, 0) < 0)
		return (struct tt_facts_answer){.error = -ENOSPC};
	off_t hole = lseek(fd, 0, SEEK_HOLE);

	if (hole < 0)
		return facts_refused(-errno);
	off_t next = lseek(fd, piece, SEEK_DATA);

	if (hole < piece || next > 3 * piece)
		return facts_lies("data is told to be a hole");
	if (hole >= 3 * piece)
		return facts_lies("all is told to be data");
	return facts_yes();
}

static void facts_try_content(
	int fd, int other_fd, const struct tt_direct *direct, char *data, struct tt_facts *facts)
{
	struct tt_facts_answer *answers = facts->answers;

	answers[TT_FACTS_REFLINK] = facts_reflink(fd, other_fd, data);
	answers[TT_FACTS_DIRECT_WRITE] = facts_direct(fd, data, true);
	answers[TT_FACTS_DIRECT_READ] = facts_direct(fd, data, false);
	if (direct->offset_bytes == 0) {
		/* It may be accepted and be no more than a word: nobody says how to align. */
		if (answers[TT_FACTS_DIRECT_READ].answer == TT_PROBE_YES)
			answers[TT_FACTS_DIRECT_READ].why =
				"accepted; statx tells no alignment: it is guessed for each file";
		if (answers[TT_FACTS_DIRECT_WRITE].answer == TT_PROBE_YES)
			answers[TT_FACTS_DIRECT_WRITE].why =
				"accepted, but statx tells no alignment: not used";
	}
	answers[TT_FACTS_FALLOCATE] = facts_result(fallocate(fd, 0, 0, 4 * FACTS_PIECE_BYTES));
	answers[TT_FACTS_PUNCH_HOLE] = facts_punch(fd, data);
	answers[TT_FACTS_SEEK_HOLE] = facts_seek_hole(fd, data);
}

static void facts_not_tried(struct tt_facts *facts, int error)
{
	facts->open_error = error;
	for (unsigned i = 0; i < TT_FACTS_COUNT; i++)
		facts->answers[i] = (struct tt_facts_answer){.error = error};
}

int tt_facts_try(int dir_fd, const struct tt_direct *direct, struct tt_facts *ret_facts)
{
	int unnamed_error = 0;
	TT_FD_AUTO fd = tt_temporary_open(dir_fd, &unnamed_error);
	TT_FD_AUTO other_fd = fd < 0 ? fd : tt_temporary_open(dir_fd, NULL);

	*ret_facts = (struct tt_facts){0};
	if (fd < 0 || other_fd < 0) {
		facts_not_tried(ret_facts, fd < 0 ? fd : other_fd);
		tt_facts_look_at_names(dir_fd, ret_facts);
		return 0;
	}
	char *data = aligned_alloc(FACTS_PIECE_BYTES, 2 * FACTS_PIECE_BYTES);

	if (!data)
		return -ENOMEM;
	memset(data, 0x5a, 2 * FACTS_PIECE_BYTES);
	ret_facts->answers[TT_FACTS_UNNAMED] =
		unnamed_error ? facts_refused(unnamed_error) : facts_yes();
	facts_try_content(fd, other_fd, direct, data, ret_facts);
	if (unnamed_error)
		tt_facts_try_names(dir_fd, ret_facts);
	else
		tt_facts_look_at_names(dir_fd, ret_facts);
	free(data);
	return 0;
}
