/* SPDX-License-Identifier: MIT */
/*
 * What --probe found out, as JSON for programs. The form is promised in tiptoe(1).
 */
#pragma once

#include <stdio.h>

#include "cli/probing.h"

/* Returns 0, or -ENOMEM. */
int tt_probejson_write(FILE *stream, const struct tt_probing *probing);
