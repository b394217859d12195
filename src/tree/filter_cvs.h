/* SPDX-License-Identifier: MIT */
/*
 * The names that CVS ignores: a list of its own, then those in ~/.cvsignore, then those in the
 * variable CVSIGNORE. Internal to the filter_*.c files.
 */
#pragma once

#include "tree/filter_parse.h"

/* Fills parser->filter's CVS rules if nobody has before; `flags` are those of the rule that asks.
 * Any thread. Returns as tt_filter_parse_text(). */
int tt_filter_cvs_make(struct tt_filter_parser *parser, uint32_t flags);
