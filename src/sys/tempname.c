/* SPDX-License-Identifier: MIT */
/*
 * See tempname.h. One getrandom for many names.
 */
#include "sys/tempname.h"

#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"

#define TEMPNAME_MARK ".tt-"

enum {
	TEMPNAME_RANDOM_LENGTH = 3,
	TEMPNAME_CHECK_LENGTH = 3,
	TEMPNAME_SUFFIX_LENGTH =
		sizeof(TEMPNAME_MARK) - 1 + TEMPNAME_RANDOM_LENGTH + TEMPNAME_CHECK_LENGTH,
	TEMPNAME_NAME_MAX = TT_TEMPNAME_SIZE - 1,
};

static const char tempname_alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/* Random bytes of this thread, fetched in blocks. A fork copies them: the child might then try the
 * parent's names, which O_EXCL makes harmless. */
static __thread struct {
	unsigned char bytes[256];
	unsigned left;
} tempname_pool;

/* A name need not be secret, O_EXCL is what protects: where getrandom is forbidden the clock will
 * do. */
static void tempname_fill_from_clock(void)
{
	struct timespec now = {0};
	uint64_t x;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	x = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 32 ^ (uintptr_t)&tempname_pool
	    ^ (uint64_t)getpid() << 40;
	for (size_t i = 0; i < sizeof(tempname_pool.bytes); i++) {
		x = x * 6364136223846793005U + 1442695040888963407U; /* Knuth, MMIX */
		tempname_pool.bytes[i] = (unsigned char)(x >> 56);
	}
}

static unsigned char tempname_random_byte(void)
{
	if (!tempname_pool.left) {
		/* Up to 256 bytes are never short and never interrupted (getrandom(2)). */
		if (getrandom(tempname_pool.bytes, sizeof(tempname_pool.bytes), 0)
			!= (ssize_t)sizeof(tempname_pool.bytes))
			tempname_fill_from_clock();
		tempname_pool.left = sizeof(tempname_pool.bytes);
	}
	return tempname_pool.bytes[--tempname_pool.left];
}

static char tempname_random_char(void)
{
	unsigned char byte;

	/* 248 = 4 * 62: the rest would make some characters likelier. */
	do {
		byte = tempname_random_byte();
	} while (byte >= 248);
	return tempname_alphabet[byte % 62];
}

/* Not into the middle of a UTF-8 character, which some file systems refuse. */
static size_t tempname_cut(const char *name, size_t limit)
{
	size_t length = strnlen(name, limit + 1);

	if (length <= limit)
		return length;
	length = limit;
	for (int i = 0; i < 3 && length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80; i++)
		length--;
	return length;
}

/* The last characters tell our names from those that only look alike (.notes.tt-backup), one in
 * 62^3 of which is taken for ours: what looks like a temporary is removed by the next run. */
static void tempname_check(const char *temp, size_t length, char ret_check[TEMPNAME_CHECK_LENGTH])
{
	uint64_t hash = tt_hash_64(temp, length);

	for (int i = 0; i < TEMPNAME_CHECK_LENGTH; i++) {
		ret_check[i] = tempname_alphabet[hash % 62];
		hash /= 62;
	}
}

void tt_tempname_make(const char *name, char *ret_temp)
{
	size_t length = tempname_cut(name, TEMPNAME_NAME_MAX - 1 - TEMPNAME_SUFFIX_LENGTH);
	char *at = ret_temp;

	*at++ = '.';
	memcpy(at, name, length);
	at += length;
	memcpy(at, TEMPNAME_MARK, sizeof(TEMPNAME_MARK) - 1);
	at += sizeof(TEMPNAME_MARK) - 1;
	for (int i = 0; i < TEMPNAME_RANDOM_LENGTH; i++)
		*at++ = tempname_random_char();
	tempname_check(ret_temp, (size_t)(at - ret_temp), at);
	at[TEMPNAME_CHECK_LENGTH] = '\0';
}

bool tt_tempname_is(const char *name)
{
	size_t length = strlen(name);
	const char *suffix;
	char check[TEMPNAME_CHECK_LENGTH];

	if (name[0] != '.' || length < 2 + TEMPNAME_SUFFIX_LENGTH || length > TEMPNAME_NAME_MAX)
		return false;
	suffix = name + length - TEMPNAME_SUFFIX_LENGTH;
	if (memcmp(suffix, TEMPNAME_MARK, sizeof(TEMPNAME_MARK) - 1) != 0)
		return false;
	tempname_check(name, length - TEMPNAME_CHECK_LENGTH, check);
	return memcmp(name + length - TEMPNAME_CHECK_LENGTH, check, TEMPNAME_CHECK_LENGTH) == 0;
}
