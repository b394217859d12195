/* SPDX-License-Identifier: MIT */
/*
 * --usermap, --groupmap, --chown: which owner or group stands for which.
 *
 * A map is FROM:TO pairs separated by commas; the first FROM that fits counts. FROM is a number, a
 * range of numbers ("100-199"), a name, a pattern of names ("*" fits nameless numbers too), or
 * nothing (only nameless numbers). TO is a name or a number.
 *
 * Names are asked for once for each id, and only where a pair is about names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_idmap;

enum tt_idmap_kind {
	TT_IDMAP_USERS,
	TT_IDMAP_GROUPS
};

/* `nameless`: names are not looked at (--numeric-ids). Returns 0, -ENOMEM, or -EINVAL with what is
 * wrong in `problem`: "no colon in x". */
int tt_idmap_new(enum tt_idmap_kind kind, bool nameless, const char *text, char *problem,
	size_t problem_size, struct tt_idmap **ret_map);
void tt_idmap_free(struct tt_idmap *map); /* accepts NULL */

/* What `id` becomes; itself if no pair fits. Any thread. */
uint32_t tt_idmap_get(struct tt_idmap *map, uint32_t id);
