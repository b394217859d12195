/* SPDX-License-Identifier: MIT */
/*
 * See listing.h. The order of reading is the directory's own: sorting by inode number before statx
 * was measured and changes nothing on the disks at hand.
 */
#include "tree/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/fd.h"
#include "tree/filter_dir.h"

enum {
	LISTING_BUFFER_BYTES = 32768
};

static struct tt_entry *listing_append(struct tt_listing *listing, const char *name)
{
	if (listing->count == listing->capacity) {
		size_t capacity = listing->capacity ? listing->capacity * 2 : 16;
		struct tt_entry *entries = realloc(listing->entries, capacity * sizeof *entries);

		if (!entries)
			return NULL;
		listing->entries = entries;
		listing->capacity = capacity;
	}
	char *copy = tt_arena_copy(&listing->arena, name, strlen(name));

	if (!copy)
		return NULL;
	struct tt_entry *entry = &listing->entries[listing->count++];

	*entry = (struct tt_entry){.name = copy, .twin = TT_ENTRY_NONE};
	return entry;
}

static bool listing_is_dot(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static bool listing_is_excluded(
	const struct tt_listing_options *options, const char *name, bool is_dir)
{
	char path[PATH_MAX + NAME_MAX + 2];

	if (!options->rules)
		return false;
	size_t length = strlen(options->path), name_length = strlen(name);

	if (length + name_length + 2 > sizeof path)
		return false;
	memcpy(path, options->path, length);
	if (length > 0)
		path[length++] = '/';
	memcpy(path + length, name, name_length + 1);
	return tt_filter_dir_excludes(options->rules, path, is_dir, false);
}

/* The target of a link, into the arena. */
static int listing_read_link(struct tt_arena *arena, int dir_fd, struct tt_entry *entry)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(dir_fd, entry->name, target, sizeof target);

	if (length < 0)
		return -errno;
	if ((size_t)length == sizeof target)
		return -ENAMETOOLONG;
	entry->link = tt_arena_copy(arena, target, (size_t)length);
	return entry->link ? 0 : -ENOMEM;
}

static int listing_stat(struct tt_arena *arena, int dir_fd, struct tt_entry *entry, bool read_links)
{
	struct statx stx;
	int r = tt_fd_statx(dir_fd, entry->name, &stx);

	if (r < 0)
		return r;
	tt_entry_set(entry, &stx);
	if (S_ISLNK(entry->mode) && read_links)
		r = listing_read_link(arena, dir_fd, entry);
	return r;
}

/* Appends one name of a getdents buffer. */
static int listing_take_name(struct tt_listing *listing, const struct tt_fd_dirent *dirent)
{
	struct tt_entry *entry = listing_append(listing, dirent->name);

	if (!entry)
		return -ENOMEM;
	entry->flags = TT_ENTRY_TYPE_ONLY;
	entry->mode = DTTOIF(dirent->type);
	entry->ino = dirent->ino;
	return 0;
}

/* All names of a directory but those that `options` (may be NULL) leave out. */
static int listing_read(struct tt_listing *listing, int dir_fd, unsigned layer,
	const struct tt_listing_options *options)
{
	char buffer[LISTING_BUFFER_BYTES] __attribute__((aligned(8)));
	ssize_t got;

	while ((got = tt_fd_getdents(dir_fd, buffer, sizeof buffer)) > 0) {
		for (ssize_t at = 0; at < got;) {
			const struct tt_fd_dirent *dirent = (const void *)(buffer + at);

			at += dirent->record_length;
			/* Filtered before statx where the type is known: an excluded tree costs
			 * nothing. */
			if (listing_is_dot(dirent->name)
				|| (options && dirent->type != DT_UNKNOWN
					&& listing_is_excluded(
						options, dirent->name, dirent->type == DT_DIR)))
				continue;
			int r = listing_take_name(listing, dirent);

			if (r < 0)
				return r;
			listing->entries[listing->count - 1].layer = (uint16_t)layer;
		}
	}
	return (int)got;
}

int tt_listing_read_source(struct tt_listing *listing, int dir_fd, unsigned layer,
	const struct tt_listing_options *options)
{
	return listing_read(listing, dir_fd, layer, options);
}

void tt_listing_stat(struct tt_listing *listing, int dir_fd, unsigned from, unsigned to,
	const struct tt_listing_options *options, const struct tt_listing_problem *problem,
	struct tt_arena *arena)
{
	for (unsigned i = from; i < to; i++) {
		struct tt_entry *entry = &listing->entries[i];
		bool type_known = (entry->mode & S_IFMT) != 0;
		int r = listing_stat(arena, dir_fd, entry, options->read_links);

		if (r < 0)
			problem->report(problem->context, entry->name, r);
		if (r < 0
			|| (!type_known
				&& listing_is_excluded(
					options, entry->name, tt_entry_is_dir(entry))))
			entry->flags |= TT_ENTRY_VANISHED;
	}
}

void tt_listing_compact(struct tt_listing *listing, unsigned first)
{
	unsigned kept = first;

	for (unsigned i = first; i < listing->count; i++) {
		if (listing->entries[i].flags & TT_ENTRY_VANISHED)
			continue;
		if (kept != i)
			listing->entries[kept] = listing->entries[i];
		kept++;
	}
	listing->count = kept;
}

int tt_listing_add(
	struct tt_listing *listing, int dir_fd, const char *name, unsigned layer, bool read_links)
{
	struct tt_entry *entry = listing_append(listing, name);

	if (!entry)
		return -ENOMEM;
	int r = listing_stat(&listing->arena, dir_fd, entry, read_links);

	entry->layer = (uint16_t)layer;
	if (r < 0)
		listing->count--;
	return r;
}

static int listing_compare_names(const void *a, const void *b)
{
	return strcmp(((const struct tt_entry *)a)->name, ((const struct tt_entry *)b)->name);
}

int tt_listing_read_names(struct tt_listing *listing, int dir_fd)
{
	int r = listing_read(listing, dir_fd, 0, NULL);

	for (unsigned i = 0; i < listing->count; i++) {
		struct tt_entry *entry = &listing->entries[i];

		if ((entry->mode & S_IFMT) == 0
			&& listing_stat(&listing->arena, dir_fd, entry, false) < 0)
			entry->flags |= TT_ENTRY_VANISHED;
	}
	tt_listing_compact(listing, 0);
	if (listing->count > 0) /* an empty one has no array, and qsort(3) wants one */
		qsort(listing->entries, listing->count, sizeof *listing->entries,
			listing_compare_names);
	return r;
}

static int listing_compare_entries(const void *a, const void *b)
{
	return tt_entry_compare(a, b);
}

static int listing_compare(const void *a, const void *b)
{
	const struct tt_entry *x = a, *y = b;
	int r = tt_entry_compare(x, y);

	return r != 0 ? r : (int)x->layer - (int)y->layer;
}

/* In the sorted listing, of which the directories are the end, from `first` on. */
static bool listing_has_directory(
	const struct tt_listing *listing, unsigned first, const char *name)
{
	const struct tt_entry key = {.name = name, .mode = S_IFDIR};

	return first < listing->count
	       && bsearch(&key, listing->entries + first, listing->count - first, sizeof key,
		       listing_compare_entries);
}

void tt_listing_sort(struct tt_listing *listing)
{
	unsigned kept = 0, first_dir = 0;
	bool layered = false;

	for (unsigned i = 0; i < listing->count; i++)
		layered = layered || listing->entries[i].layer != listing->entries[0].layer;
	if (listing->count > 0)
		qsort(listing->entries, listing->count, sizeof *listing->entries, listing_compare);
	if (!layered)
		return;
	while (first_dir < listing->count && !tt_entry_is_dir(&listing->entries[first_dir]))
		first_dir++;
	for (unsigned i = 0; i < listing->count; i++) {
		struct tt_entry *entry = &listing->entries[i];

		if (!tt_entry_is_dir(entry)
			&& ((kept > 0 && strcmp(listing->entries[kept - 1].name, entry->name) == 0)
				|| listing_has_directory(listing, first_dir, entry->name)))
			continue;
		listing->entries[kept++] = *entry;
	}
	listing->count = kept;
}

struct tt_entry *tt_listing_find(const struct tt_listing *names, const char *name)
{
	const struct tt_entry key = {.name = name};

	if (names->count == 0)
		return NULL;
	return bsearch(
		&key, names->entries, names->count, sizeof *names->entries, listing_compare_names);
}

int tt_listing_match(struct tt_listing *source, struct tt_listing *destination, int destination_fd,
	bool read_links, unsigned from, unsigned to, struct tt_arena *arena)
{
	int result = 0;

	for (unsigned i = from; i < to; i++) {
		struct tt_entry *entry = &source->entries[i];
		struct tt_entry *twin = tt_listing_find(destination, entry->name);

		if (!twin)
			continue;
		int r = listing_stat(
			arena, destination_fd, twin, read_links && S_ISLNK(entry->mode));

		if (r == -ENOENT) /* gone meanwhile: as if it had never been there */
			continue;
		if (r < 0) {
			entry->flags |= TT_ENTRY_UNKNOWN_TWIN;
			result = r;
			continue;
		}
		twin->flags &= (uint16_t)~TT_ENTRY_TYPE_ONLY;
		twin->twin = i;
		entry->twin = (uint32_t)(twin - destination->entries);
		if (entry->link && twin->link && strcmp(entry->link, twin->link) == 0)
			entry->flags |= TT_ENTRY_SAME_LINK;
	}
	return result;
}

void tt_listing_clear(struct tt_listing *listing)
{
	listing->count = 0;
	tt_arena_clear(&listing->arena);
}

void tt_listing_deinit(struct tt_listing *listing)
{
	free(listing->entries);
	tt_arena_deinit(&listing->arena);
	*listing = (struct tt_listing){0};
}
