/* SPDX-License-Identifier: MIT */
/*
 * What --probe found out, as a table for people, of 80 columns.
 */
#pragma once

#include <stdio.h>

#include "cli/probing.h"

void tt_probetable_write(FILE *stream, const struct tt_probing *probing);
