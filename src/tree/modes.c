/* SPDX-License-Identifier: MIT */
/*
 * See modes.h. Found by trying rsync 3.5 over all modes (tests/differential/chmod.bats).
 */
#include "tree/modes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	MODES_BITS = 07777,
	MODES_ONCE = 0111, /* one bit in each class; times 0 to 7 makes permissions of it */
};

/* One item, ready to be applied. */
struct modes_item {
	bool directories, others; /* what it is for */
	bool masked;              /* no class was named: the umask counts */
	bool keeps_x;             /* X: the right to execute only where there is one, or for
				     directories */
	uint16_t classes;         /* what is copied is copied to: bits of MODES_ONCE */
	int copied_shift;         /* -1: nothing is copied; else 6, 3 or 0 for u, g or o */
	char op;                  /* '+', '-' or '=' */
	uint16_t cleared, set;    /* before what is masked, kept or copied */
};

struct tt_modes {
	unsigned count;
	struct modes_item items[];
};

/* An item while it is read. */
struct modes_reader {
	const char *at;
	struct modes_item item;
	uint16_t special; /* of the classes: setuid for u, setgid for g */
	uint16_t sticky;  /* the same for o, which counts only where rights are copied */
};

static void modes_read_kind(struct modes_reader *reader)
{
	const char kind = *reader->at;

	reader->item.directories = kind != 'F';
	reader->item.others = kind != 'D';
	while ((kind == 'D' || kind == 'F') && *reader->at == kind)
		reader->at++;
}

static bool modes_read_octal(struct modes_reader *reader)
{
	unsigned mode = 0;

	for (; *reader->at >= '0' && *reader->at <= '7'; reader->at++) {
		mode = mode * 8 + (unsigned)(*reader->at - '0');
		if (mode > MODES_BITS)
			return false;
	}
	reader->item.op = '=';
	reader->item.cleared = MODES_BITS;
	reader->item.set = (uint16_t)mode;
	return true;
}

static void modes_read_classes(struct modes_reader *reader)
{
	struct modes_item *item = &reader->item;

	for (;; reader->at++) {
		switch (*reader->at) {
		case 'u':
			item->classes |= 0100;
			reader->special |= S_ISUID;
			continue;
		case 'g':
			item->classes |= 0010;
			reader->special |= S_ISGID;
			continue;
		case 'o':
			item->classes |= 0001;
			reader->sticky |= S_ISVTX;
			continue;
		case 'a':
			item->classes |= MODES_ONCE;
			reader->special |= S_ISUID | S_ISGID;
			reader->sticky |= S_ISVTX;
			continue;
		default:
			break;
		}
		break;
	}
	item->masked = item->classes == 0;
	if (item->masked)
		item->classes = MODES_ONCE;
}

/* "g=u": permissions of one class, and nothing else in the item. */
static bool modes_read_copied(struct modes_reader *reader)
{
	static const char names[] = "ogu";
	const char *found = *reader->at ? strchr(names, *reader->at) : NULL;

	if (!found)
		return false;
	reader->item.copied_shift = (int)(found - names) * 3;
	reader->at++;
	return true;
}

/* Letters of permissions. Returns the bits for one class; *ret_special those of their own. */
static unsigned modes_read_letters(struct modes_reader *reader, uint16_t *ret_special)
{
	unsigned bits = 0;

	*ret_special = 0;
	for (;; reader->at++) {
		switch (*reader->at) {
		case 'r':
			bits |= 4;
			continue;
		case 'w':
			bits |= 2;
			continue;
		case 'X':
			reader->item.keeps_x = true;
			bits |= 1;
			continue;
		case 'x':
			bits |= 1;
			continue;
		case 's':
			*ret_special |= reader->special ? reader->special : S_ISUID;
			continue;
		case 't':
			*ret_special |= S_ISVTX;
			continue;
		default:
			return bits;
		}
	}
}

static bool modes_read_symbolic(struct modes_reader *reader)
{
	struct modes_item *item = &reader->item;
	uint16_t special = 0;

	modes_read_classes(reader);
	if (*reader->at != '+' && *reader->at != '-' && *reader->at != '=')
		return false;
	item->op = *reader->at++;
	unsigned bits = 0;

	if (!modes_read_copied(reader))
		bits = modes_read_letters(reader, &special);
	uint16_t changed = (uint16_t)(item->classes * bits | special);

	if (item->op != '-')
		item->set = changed;
	if (item->op == '-')
		item->cleared = changed;
	if (item->op == '=' && item->copied_shift >= 0)
		item->cleared = (uint16_t)(item->classes * 7
					   | (item->masked ? S_ISUID | S_ISGID | S_ISVTX
							   : reader->special | reader->sticky));
	else if (item->op == '=')
		item->cleared = (uint16_t)(item->classes * 7 | (special ? reader->special : 0));
	return true;
}

/* One item up to its comma. */
static bool modes_read_item(struct modes_reader *reader)
{
	const char *begin = reader->at;

	*reader = (struct modes_reader){.at = begin, .item = {.copied_shift = -1}};
	modes_read_kind(reader);
	bool octal = *reader->at >= '0' && *reader->at <= '7';

	return (octal ? modes_read_octal(reader) : modes_read_symbolic(reader))
	       && (*reader->at == ',' || *reader->at == '\0');
}

int tt_modes_add(struct tt_modes **modes, const char *text)
{
	struct modes_reader reader = {.at = text};
	unsigned count = *modes ? (*modes)->count : 0, most = count + 1;

	for (const char *c = text; *c; c++)
		most += *c == ',';
	struct tt_modes *grown = malloc(sizeof *grown + most * sizeof grown->items[0]);

	if (!grown)
		return -ENOMEM;
	grown->count = count;
	if (count > 0)
		memcpy(grown->items, (*modes)->items, count * sizeof grown->items[0]);
	for (bool more = true; more; reader.at += more) {
		if (!modes_read_item(&reader)) {
			free(grown);
			return -EINVAL;
		}
		grown->items[grown->count++] = reader.item;
		more = *reader.at == ',';
	}
	free(*modes);
	*modes = grown;
	return 0;
}

void tt_modes_free(struct tt_modes *modes)
{
	free(modes);
}

static uint32_t modes_apply_item(
	const struct modes_item *item, uint32_t mode, bool may_execute, uint32_t umask_bits)
{
	uint32_t set = item->set, cleared = item->cleared;

	if (item->copied_shift >= 0) {
		uint32_t copied = item->classes * (mode >> item->copied_shift & 7);

		if (item->op == '-')
			cleared |= copied;
		else
			set |= copied;
	}
	if (item->masked && item->op == '-')
		cleared &= ~umask_bits | ~0777U;
	else if (item->masked)
		set &= ~umask_bits | ~0777U;
	if (item->keeps_x && !may_execute)
		set &= ~(uint32_t)MODES_ONCE;
	return (mode & ~cleared) | set;
}

uint32_t tt_modes_apply(const struct tt_modes *modes, uint32_t mode, uint32_t umask_bits)
{
	bool is_dir = S_ISDIR(mode), may_execute = is_dir || (mode & MODES_ONCE);

	for (unsigned i = 0; i < modes->count; i++) {
		const struct modes_item *item = &modes->items[i];

		if (is_dir ? item->directories : item->others)
			mode = modes_apply_item(item, mode, may_execute, umask_bits);
	}
	return mode;
}
