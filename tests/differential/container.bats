#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# In places like containers: what cannot be given, made or read there is an error of the same kind as rsync's, run in the same place.

load compare
load ../container

# All kinds of names; some of them somebody else's, or not to be read. The rest belongs to the user outside.
make_kinds() { # UID KIND
	mkdir -p s/dir/sub s/theirs
	echo 1 >s/file
	echo 2 >s/dir/sub/deep
	head -c 300000 /dev/urandom >s/dir/large
	ln s/file s/second
	ln -s file s/link
	mkfifo s/fifo
	chmod 4750 s/dir/large
	# Into one that may not be written to rsync gets as root or not at all.
	[[ $2 == powerless_root ]] || chmod 0555 s/dir/sub
	settle s
	as_user
	chown -hR "$1:$1" s r t
	chmod 4750 s/dir/large
}

enter() { # KIND
	local PATH=${TIPTOE_TOOLS:-$BATS_TEST_DIRNAME/../../build/tests/tools}:$PATH
	"inside_as_$1" "$work/enter"
	runner=(env "PATH=$PATH" "${inside[@]}")
}

# A copy, one with nothing to do, and an update with deletions.
compare_three() {
	compare_unordered -aHi ../s/ d/
	compare_unordered -aHii ../s/ d/
	echo more >>s/file
	rm s/dir/sub/deep
	touch -d @1700000000 s/file
	compare_unordered -aHi --delete ../s/ d/
}

# Names that are somebody else's or may not be made: the code is rsync's, the reasons are named, and what could be done is done: rsync leaves mode and
# times as they are when it may not set the owner.
compare_what_cannot_be() { # KIND
	echo 3 >s/theirs/a
	echo 4 >s/theirs/secret
	chmod 604 s/theirs/a
	chmod 600 s/theirs/secret
	mknod s/dev c 1 3
	touch -d @1600000000 s/dev s/theirs/*
	chown 7:7 s/theirs/*
	enter "$1"
	run_one r rsync -aHi ../s/ d/
	run_one t "$TIPTOE" -aHi ../s/ d/
	cat t.err
	grep theirs/a t.out
	[ -z "$(grep secret t.out)" ]
	diff r.code t.code
	code_is 23
	grep -x "tiptoe: opening theirs/secret: Permission denied" t.err
	[ "$(stat -c '%a %Y' t/d/theirs/a)" = "604 1600000000" ]
	rm -r r/d/theirs t/d/theirs
	compare_trees --no-dir-times
}

@test "as nobody, in a container without anything" {
	make_kinds 65534 nobody
	enter nobody
	compare_three
	code_is 0
}

@test "as nobody: somebody else's files, and devices" {
	make_kinds 65534 nobody
	compare_what_cannot_be nobody
	[ "$(wc -l <t.err)" -eq 2 ]
}

@test "as root of a user namespace" {
	make_kinds 1000 mapped_root
	enter mapped_root
	compare_three
	code_is 0
}

@test "as root of a user namespace: owners that are not mapped, and devices that may not be made" {
	make_kinds 1000 mapped_root
	compare_what_cannot_be mapped_root
	grep -x "tiptoe: setting owner of theirs/a: Invalid argument" t.err
	grep -x "tiptoe: making node dev: Operation not permitted" t.err
	[ "$(wc -l <t.err)" -eq 4 ]
}

@test "as a root without capabilities" {
	make_kinds 1000 powerless_root
	enter powerless_root
	compare_three
	code_is 0
}

@test "as a root without capabilities: owners, devices, what is not to be read" {
	make_kinds 1000 powerless_root
	compare_what_cannot_be powerless_root
	grep -x "tiptoe: setting owner of theirs/a: Invalid argument" t.err
	grep -x "tiptoe: making node dev: Operation not permitted" t.err
	[ "$(wc -l <t.err)" -eq 4 ]
}

@test "a root without capabilities opens his own directories for himself, as other users do" {
	make_kinds 1000 mapped_root
	enter powerless_root
	run_one t "$TIPTOE" -aHi ../s/ d/
	code_is 0
	chmod 755 s/dir/sub
	echo more >s/dir/sub/new
	rm s/dir/sub/deep
	chmod 555 s/dir/sub
	chown 1000:1000 s/dir/sub/new
	run_one t "$TIPTOE" -aHi --delete ../s/ d/
	code_is 0
	"$TREECMP" s t/d
}
