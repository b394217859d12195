/* SPDX-License-Identifier: MIT */
/*
 * What temporaries are called: .NAME.tt-XXXXXX, NAME cut so that the whole fits NAME_MAX. Three
 * characters are random, three follow from the others, so that hardly anybody else's name is taken
 * for one of ours, which the next run removes.
 */
#pragma once

#include <stdbool.h>

#define TT_TEMPNAME_SIZE 256 /* NAME_MAX + 1 */

/* Writes a temporary name for `name` (TT_TEMPNAME_SIZE bytes). Not created. Any thread. */
void tt_tempname_make(const char *name, char *ret_temp);

/* Whether `name` has the form of one. Any thread. */
bool tt_tempname_is(const char *name);
