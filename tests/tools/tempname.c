/* SPDX-License-Identifier: MIT */
/*
 * A name as tiptoe gives it to a temporary for each NAME:  tempname NAME...
 */
#include <stdio.h>

#include "tree/stage.h"

int main(int argc, char **argv)
{
	char temp[TT_STAGE_NAME_SIZE];

	for (int i = 1; i < argc; i++) {
		tt_stage_name(argv[i], temp);
		puts(temp);
	}
	return argc < 2;
}
