/* SPDX-License-Identifier: MIT */
/*
 * --probe DIR: what sys/probe found out, and what tiptoe does about it, as a table for people.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "sys/probe.h"

/* Opens the directory, runs the experiments there, prints the table on stdout. Returns TT_EXIT_OK,
 * or TT_EXIT_SELECT or TT_EXIT_FILE_IO with a line for people in `message`. */
enum tt_exit tt_probetable_print(const char *path, char *message, size_t size);

/* The table alone. */
void tt_probetable_write(FILE *stream, const struct tt_probe *probe);
