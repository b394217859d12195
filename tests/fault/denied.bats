#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The same result, and the cache left as found, without io_uring; with any number of workers; and with tiny budgets. Other system calls that may be
# missing: restricted.bats.
load ../scratch

setup() {
	begin_scratch
	cd "$BATS_TEST_TMPDIR" || return 1
	make_tree src 1
	make_file src/big 20M
	ln src/big src/a0/hard-link
	cachemap evict src
	warm src/big --half 2M
}

copy_anew() { # COMMAND...
	rm -rf dst
	run "$@"
	check_run 0
}

# Copies with the prefix and the arguments; wants an equal tree, no page moved, no temporary.
copy_is_right() { # PREFIX... -- ARGUMENT...
	local prefix=()
	while [[ $1 != -- ]]; do
		prefix+=("$1")
		shift
	done
	shift
	leaves_as_found src copy_anew "${prefix[@]}" "$TIPTOE" -aH "$@" src/ dst
	treecmp src dst
	expect "pages of the destination" "$(resident dst)" == 0
	[ -z "$(temporaries dst)" ]
}

@test "one worker, two and sixteen give the same result" {
	for workers in 1 2 16; do
		copy_is_right -- --workers=$workers
	done
}

@test "a tiny budget of dirt gives the same result" {
	copy_is_right -- --dirty-limit=1M
	copy_is_right -- --dirty-limit=1M --workers=1
	copy_is_right -- --dirty-limit=256K
}

@test "few descriptors give the same result" {
	copy_is_right bash -c 'ulimit -n 256; exec "$@"' - --
	copy_is_right bash -c 'ulimit -n 256; exec "$@"' - -- --workers=16
}

@test "more directories than there may be descriptors are all copied" {
	local mode
	mkdir many
	python3 -c '
import os
for i in range(1500):
    os.mkdir(f"many/{i}")
    open(f"many/{i}/f", "w").write(str(i))'
	for mode in -a "-a --fsync" -aH; do
		rm -rf dst
		# shellcheck disable=SC2086
		prlimit --nofile=256:256 "$TIPTOE" $mode many/ dst
		treecmp --no-dir-times many dst
	done
}

@test "more files than there may be descriptors are all copied" {
	make_small_files many 700
	for limit in 64 256; do
		rm -rf copy
		(ulimit -n "$limit" && "$TIPTOE" -a many/ copy)
		treecmp many copy
	done
}

@test "TIPTOE_RING=off gives the same result, and says so in one line at -v" {
	copy_is_right env TIPTOE_RING=off -- -v
	[ "$(grep -c 'io_uring' <<<"$output")" -eq 1 ]
	[[ $output == *"io_uring is not available (TIPTOE_RING=off): threads do its work"* ]]
	copy_is_right env TIPTOE_RING=off -- --workers=1 --dirty-limit=1M
	[[ $output != *io_uring* ]]
}

@test "io_uring forbidden or missing gives the same result, and says so in one line at -v" {
	copy_is_right denycalls io_uring -- -v
	[[ $output == *"io_uring is not available (Operation not permitted): threads do its work"* ]]
	[ "$(grep -c 'io_uring' <<<"$output")" -eq 1 ]
	copy_is_right denycalls --error ENOSYS io_uring -- -v
	[[ $output == *"io_uring is not available (Function not implemented): threads do its work"* ]]
	copy_is_right denycalls io_uring --
	[ -z "$output" ]
	# Allowed in part.
	copy_is_right denycalls io_uring_enter -- -v
	[[ $output == *"io_uring is not available (Operation not permitted): threads do its work"* ]]
	copy_is_right denycalls --error ENOSYS io_uring_register -- -v
	[[ $output == *"io_uring is not available (Operation not supported): threads do its work"* ]]
}

@test "no descriptor is open that was not, at the end" {
	ASAN_OPTIONS=detect_leaks=0 strace -f -o trace -e trace=exit_group -e inject=exit_group:delay_enter=700000 "$TIPTOE" -aH src/ dst &
	tracer=$!
	until grep -qs exit_group trace; do sleep 0.05; done
	pid=$(awk '/exit_group/ { print $1 }' trace)
	ls -l "/proc/$pid/fd" >open
	wait $tracer
	# Standard descriptors, what bats hands on, and libuv's signal pipe; nothing of the trees.
	[ -z "$(grep -E 'src|dst|io_uring' open)" ]
	[ -s open ]
}
