/* SPDX-License-Identifier: MIT */
/*
 * How the files with filter rules that the command line names are read: their pages stay as they
 * were found.
 */
#pragma once

#include "tree/filter.h"

/* For tt_filter_new(). Static. Any thread. */
extern const struct tt_filter_reader tt_rulereader;
