/* SPDX-License-Identifier: MIT */
/*
 * See probejson.h. The only file that knows jansson, which refuses what is not UTF-8: names come as
 * text with what is not replaced by U+FFFD, and beside it whole in base64.
 */
#include "cli/probejson.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PROBEJSON_VERSION 1

/* A number that may be unknown. */
static json_t *json_number(uint64_t number, bool known)
{
	return known ? json_integer((json_int_t)number) : json_null();
}

/* The length of the character at the beginning of `text`, 0 if it is none. jansson's own answer is
 * the one that counts. */
static size_t json_character(const char *text)
{
	for (size_t length = 1; length <= 4 && memchr(text, '\0', length) == NULL; length++) {
		json_t *character = json_stringn(text, length);

		if (character) {
			json_decref(character);
			return length;
		}
	}
	return 0;
}

static json_t *json_lossy(const char *text)
{
	char *shown = malloc(strlen(text) * 3 + 1), *to = shown;

	if (!shown)
		return NULL;
	while (*text) {
		size_t length = json_character(text);

		if (length > 0) {
			memcpy(to, text, length);
			to += length;
			text += length;
		} else {
			memcpy(to, "\xef\xbf\xbd", 3);
			to += 3;
			text++;
		}
	}
	*to = '\0';
	json_t *string = json_string(shown);

	free(shown);
	return string;
}

static json_t *json_base64(const char *text)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *from = (const unsigned char *)text;
	size_t length = strlen(text);
	char *encoded = malloc((length + 2) / 3 * 4 + 1), *to = encoded;

	if (!encoded)
		return NULL;
	for (size_t i = 0; i < length; i += 3) {
		unsigned bits = (unsigned)from[i] << 16;

		bits |= i + 1 < length ? (unsigned)from[i + 1] << 8 : 0;
		bits |= i + 2 < length ? (unsigned)from[i + 2] : 0;
		*to++ = letters[bits >> 18];
		*to++ = letters[bits >> 12 & 63];
		*to++ = i + 1 < length ? letters[bits >> 6 & 63] : '=';
		*to++ = i + 2 < length ? letters[bits & 63] : '=';
	}
	*to = '\0';
	json_t *string = json_string(encoded);

	free(encoded);
	return string;
}

/* Puts a name, which may be no text. json_object_set_new() takes the value, also when it fails. */
static int json_put_name(json_t *object, const char *key, const char *name)
{
	char beside[64];
	json_t *text = json_string(name);

	if (text)
		return json_object_set_new(object, key, text);
	snprintf(beside, sizeof beside, "%s_base64", key);
	return json_object_set_new(object, key, json_lossy(name))
	       | json_object_set_new(object, beside, json_base64(name));
}

static json_t *json_file_system(const struct tt_probing *probing)
{
	const struct tt_device *device = &probing->device;
	bool disk = device->has_disk;

	return json_pack("{s:s?, s:o, s:o, s:b, s:I, s:o, s:I}", "type",
		device->fs_type[0] ? device->fs_type : NULL, "major",
		json_integer(device->fs_major), "minor", json_integer(device->fs_minor),
		"read_only", probing->read_only, "free_bytes", (json_int_t)probing->free_bytes,
		"disk", disk ? json_string(device->disk_name) : json_null(), "read_ahead_bytes",
		(json_int_t)device->read_ahead_bytes);
}

static json_t *json_facts(const struct tt_probing *probing)
{
	json_t *facts = json_object();

	for (unsigned i = 0; i < probing->fact_count; i++) {
		const struct tt_probing_fact *fact = &probing->facts[i];
		json_t *value = json_pack("{s:s, s:s}", "answer",
			tt_probing_answer_text(fact->answer), "reason", fact->reason);

		if (json_object_set_new(facts, fact->key, value) < 0) {
			json_decref(facts);
			return NULL;
		}
	}
	return facts;
}

static const char *json_mechanism_key(enum tt_mechanism_kind kind)
{
	switch (kind) {
	case TT_MECHANISM_ORDINARY:
		return "ordinary";
	case TT_MECHANISM_STAYS:
		return "ordinary_pages_stay";
	case TT_MECHANISM_BEHIND:
		return "drop_behind";
	case TT_MECHANISM_UNCACHED:
		return "dontcache";
	case TT_MECHANISM_DIRECT:
		return "direct";
	case TT_MECHANISM_RANGE:
		return "sync_file_range";
	case TT_MECHANISM_DATASYNC:
		return "fdatasync";
	case TT_MECHANISM_NOTHING:
		return "none";
	}
	return "ordinary";
}

static json_t *json_mechanisms(const struct tt_probing *probing)
{
	json_t *cells = json_array();

	for (unsigned i = 0; i < probing->cell_count; i++) {
		const struct tt_probing_cell *cell = &probing->cells[i];
		json_t *value = json_pack("{s:s, s:s, s:I, s:o, s:s, s:s, s:s}", "operation",
			tt_probing_operation_text(cell->operation), "owner",
			cell->own ? "self" : "other", "from_bytes", (json_int_t)cell->is.from_bytes,
			"to_bytes", json_number(cell->is.to_bytes, cell->is.to_bytes != UINT64_MAX),
			"mechanism", json_mechanism_key(cell->is.mechanism->kind), "description",
			cell->is.mechanism->words, "reason", cell->why);

		if (json_array_append_new(cells, value) < 0) {
			json_decref(cells);
			return NULL;
		}
	}
	return cells;
}

static int json_put_numbers(json_t *root, const struct tt_probing *probing)
{
	bool aligned = probing->direct.offset_bytes > 0;

	return json_object_set_new(root, "page_bytes", json_number(probing->page_bytes, true))
	       | json_object_set_new(root, "folio_bytes", json_number(probing->folio_bytes, true))
	       | json_object_set_new(
		       root, "memory_limit_bytes", json_number(probing->memory_limit_bytes, true))
	       | json_object_set_new(
		       root, "dirty_budget_bytes", json_number(probing->dirty_budget_bytes, true))
	       | json_object_set_new(root, "dio_memory_align_bytes",
		       json_number(probing->direct.memory_bytes, aligned))
	       | json_object_set_new(root, "dio_offset_align_bytes",
		       json_number(probing->direct.offset_bytes, aligned))
	       | json_object_set_new(root, "time_granularity_ns",
		       json_number(probing->time_granularity_ns, probing->time_granularity_ns > 0))
	       | json_object_set_new(root, "time_granularity_tried",
		       json_boolean(!probing->time_granularity_guessed));
}

int tt_probejson_write(FILE *stream, const struct tt_probing *probing)
{
	json_t *root = json_object();
	int r = json_object_set_new(root, "tiptoe_probe", json_integer(PROBEJSON_VERSION));

	r |= json_put_name(root, "directory", probing->path);
	r |= json_object_set_new(root, "kernel", json_string(probing->kernel));
	r |= json_object_set_new(root, "tried", json_boolean(probing->not_tried == 0));
	r |= json_object_set_new(root, "not_tried_reason",
		probing->not_tried < 0 ? json_string(tt_probing_error_text(probing->not_tried))
				       : json_null());
	r |= json_object_set_new(root, "file_system", json_file_system(probing));
	r |= json_put_numbers(root, probing);
	r |= json_object_set_new(root, "facts", json_facts(probing));
	r |= json_object_set_new(root, "mechanisms", json_mechanisms(probing));
	if (r == 0)
		r = json_dumpf(root, stream, JSON_INDENT(2));
	if (r == 0)
		fputc('\n', stream);
	json_decref(root);
	return r == 0 ? 0 : -ENOMEM;
}
