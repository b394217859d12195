#!/usr/bin/env bats
# SPDX-License-Identifier: MIT

@test "40 random trees and sets of options come out as by rsync" {
	run "$BATS_TEST_DIRNAME/../../contrib/differential" 40 1
	echo "$output"
	[ "$status" -eq 0 ]
}
