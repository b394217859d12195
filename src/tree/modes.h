/* SPDX-License-Identifier: MIT */
/*
 * --chmod: what becomes of the permissions of a source entry, in the language of chmod(1) with
 * rsync's additions: items with "D" in front are for directories, with "F" for everything else.
 *
 *	D2775,F664	u=rwX,go-w	Dg+s	o=g	+X
 *
 * Pure; no I/O.
 */
#pragma once

#include <stdint.h>

struct tt_modes;

/* Reads items separated by commas and appends them to *modes (NULL: none yet), which are applied in
 * order. Returns 0, -ENOMEM, or -EINVAL with *modes as it was. */
int tt_modes_add(struct tt_modes **modes, const char *text);

void tt_modes_free(struct tt_modes *modes); /* accepts NULL */

/* The mode (with its type bits) after all items. `umask_bits`: what an item without u, g, o or a
 * does not touch. Any thread. */
uint32_t tt_modes_apply(const struct tt_modes *modes, uint32_t mode, uint32_t umask_bits);
