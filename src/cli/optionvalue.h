/* SPDX-License-Identifier: MIT */
/*
 * What stands behind an option's "=": values of single options that are more than a word of a list.
 * Those that only make sense together (--usermap and --numeric-ids) are kept as text and read at
 * the end.
 */
#pragma once

#include "cli/options.h"
#include "cli/optiontable.h"

/* Sets what an option of this type sets. `typed` is the option as it was written, for messages.
 * Returns an exit code, with its message. */
enum tt_exit tt_optionvalue_set(struct tt_options *options, enum tt_optiontable_type type,
	const char *typed, const char *value, char *message);

/* After the last option: --usermap, --groupmap and --chown. */
enum tt_exit tt_optionvalue_finish(struct tt_options *options, char *message);
