#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Each operation of the destination or the source fails in turn, on a file system of the test's own: the verb, the path and the reason are said,
# the exit code is right, the name keeps its old content, no temporary is left, and everything else arrives.
load ../scratch

setup() {
	begin_scratch
	need_root
	cd "$BATS_TEST_TMPDIR" || return 1
	make_versions src 2
	make_versions old 1
	touch old/extraneous
}

teardown() {
	cd / || return 1
	remove_disks "$BATS_TEST_TMPDIR"
}

# A small and a large file that may fail, and their neighbours.
make_versions() { # DIRECTORY SEED
	mkdir -p "$1/sub"
	make_file "$1/small" 30K "$2"
	make_file "$1/large" 12M "$2"
	make_file "$1/medium" 2M "$2"
	for name in a b c z sub/a sub/b; do
		make_file "$1/$name" 5K "$2"
	done
	ln -s "target $2" "$1/link"
	find "$1" -exec touch -h -d "@$((1500000000 + $2 * 1000))" {} +
}

# A fresh old version in mnt/dst.
renew() {
	set_faults mnt
	rm -rf mnt/dst
	cp -a old mnt/dst
}

# Copies src/ to mnt/dst while the rules hold. Then: the message, the names that failed have the old version, all others the new one.
fails_as() { # EXIT-CODE MESSAGE FAILED-NAMES RULE... [-- OPTION...]
	local code=$1 message=$2 names=$3 name rules=()
	shift 3
	while (($# > 0)) && [[ $1 != -- ]]; do
		rules+=("$1")
		shift
	done
	shift $(($# > 0))
	renew
	set_faults mnt "${rules[@]}"
	${before:-true}
	tiptoe "$code" -a "$@" src/ mnt/dst
	[ -s mnt.log ]
	set_faults mnt
	[[ $output == *"$message"* ]] || { echo "not said: $message: $output"; return 1; }
	check_versions "$names"
}

# Of dst: the old version of these names, the new one of the others.
check_versions() { # NAMES
	local name
	rm -rf expected
	cp -a src expected
	for name in $1; do
		rm -rf "expected/$name"
		[[ ! -e old/$name && ! -L old/$name ]] || cp -a "old/$name" "expected/$name"
	done
	[ -z "$(temporaries mnt/dst)" ]
	cp -a mnt/dst got
	rm -f got/extraneous
	[ -e mnt/dst/extraneous ]
	treecmp --no-dir-times expected got || return 1
	rm -rf got
}

# With the ring and without.
both_rings() { # COMMAND...
	TIPTOE_RING=on "$@" && TIPTOE_RING=off "$@"
}

@test "without faults everything arrives" {
	make_faultfs mnt below
	renew
	for mode in "" --fsync; do
		both_rings tiptoe 0 -a $mode src/ mnt/dst
		check_versions ""
	done
}

@test "a write that fails: the path, the old version, the others arrive" {
	make_faultfs mnt below
	both_rings fails_as 23 "writing small: Input/output error" small "write EIO 1+ .small*"
	both_rings fails_as 23 "writing large: Input/output error" large "write EIO 3+ .large*"
	both_rings fails_as 23 "writing large: Input/output error" large "write EIO 5 .large*"
	both_rings fails_as 23 "writing medium: Input/output error" medium "write EIO 2 .medium*"
}

@test "a short write is gone on with" {
	make_faultfs mnt below direct
	renew
	set_faults mnt "write short=1 1 .small*" "write short=4097 3 .medium*"
	tiptoe 0 -a src/ mnt/dst
	[ -s mnt.log ]
	check_versions ""
	# Not through io_uring: FUSE makes EIO of a short write there (fs/fuse/file.c, fuse_get_res_by_io()).
	renew
	set_faults mnt "write short=1000 2 .large*"
	TIPTOE_RING=off tiptoe 0 -a src/ mnt/dst
	[ -s mnt.log ]
	check_versions ""
}

@test "an error of writeback that no write has told" {
	make_faultfs mnt below writeback
	both_rings fails_as 23 "small: Input/output error" small "write EIO 1+ .small*"
	both_rings fails_as 23 "large: Input/output error" large "write EIO 3+ .large*"
	both_rings fails_as 23 "large: Input/output error" large "write EIO 4 .large*"
	fails_as 23 "medium: Input/output error" medium "write EIO 1 .medium*" -- --fsync
	fails_as 23 "medium: Input/output error" medium "write EIO 1 .medium*" -- --cache=keep
}

@test "a failed fsync under --fsync" {
	make_faultfs mnt below
	both_rings fails_as 23 "writing small: Input/output error" small "fsync EIO 1+ .small*" -- --fsync
	both_rings fails_as 23 "writing large: Input/output error" large "fsync EIO 1 .large*" -- --fsync
	both_rings fails_as 23 "syncing directory sub: Input/output error" "" "fsyncdir EIO 1 sub" -- --fsync
}

@test "an error that only close tells" {
	make_faultfs mnt below
	both_rings fails_as 23 "writing small: Input/output error" small "flush EIO 1+ .small*"
	both_rings fails_as 23 "writing large: Input/output error" large "flush EIO 1 .large*"
	# The last close of all comes when the name is there: said, too. (The first is the old file's, looked at.)
	both_rings fails_as 23 "closing large: Input/output error" "" "flush EIO 2+ large"
}

@test "a temporary that cannot be made" {
	make_faultfs mnt below
	fails_as 23 "creating a temporary for small: Input/output error" small "create EIO 1+ .small*"
	fails_as 23 "creating a temporary for large: Permission denied" large "create EACCES 1+ .large*"
}

@test "a destination that does not say what is there is left alone" {
	make_faultfs mnt below
	before=begin_again # the kernel knows the names
	fails_as 23 "reading attributes, at the destination, of small: Input/output error" small "lookup EIO 1+ small"
	fails_as 23 "reading attributes, at the destination, of sub: Input/output error" sub "lookup EIO 1+ sub" -- --delete
	fails_as 23 "reading attributes, at the destination, of link: Input/output error" link "readlink EIO 1+ link"
	fails_as 23 "reading directory at the destination, sub: Input/output error" sub "readdir EIO 1+ sub" -- --delete
	fails_as 23 "opening directory at the destination, sub: Input/output error" sub "opendir EIO 1+ sub"
	# Of one file, by its name.
	renew
	set_faults mnt "lookup EIO 1+ small"
	begin_again
	tiptoe 3 -a src/small mnt/dst/small
	[[ $output == *"opening destination mnt/dst/small: Input/output error"* ]]
	set_faults mnt
	cmp mnt/dst/small old/small
}

@test "a rename that fails" {
	make_faultfs mnt below
	fails_as 23 "renaming into place small: Input/output error" small "rename EIO 1+ small"
	fails_as 23 "renaming into place large: Permission denied" large "rename EACCES 1+ large"
	fails_as 23 "making symbolic link link: Input/output error" link "rename EIO 1+ link"
}

@test "a temporary that cannot be removed goes with the next run" {
	make_faultfs mnt below
	renew
	set_faults mnt "rename EIO 1+ large" "unlink EIO 1+ .large*"
	tiptoe 23 -a src/ mnt/dst
	[ -n "$(temporaries mnt/dst)" ]
	set_faults mnt
	tiptoe 0 -a src/ mnt/dst
	check_versions ""
}

@test "attributes that are refused do not keep the content from arriving, an I/O error does" {
	make_faultfs mnt below
	chmod 640 src/small
	chown 1:2 src/medium
	renew
	set_faults mnt "chmod EPERM 1+ .small*" "chown EPERM 1+ .medium*"
	tiptoe 23 -a src/ mnt/dst
	[[ $output == *"setting permissions of small: Operation not permitted"* ]]
	[[ $output == *"setting owner of medium: Operation not permitted"* ]]
	cmp src/small mnt/dst/small
	cmp src/medium mnt/dst/medium
	[ -z "$(temporaries mnt/dst)" ]
	fails_as 23 "setting times of small: Input/output error" small "utimens EIO 1+ .small*"
	fails_as 23 "setting times of large: Input/output error" large "utimens EIO 1+ .large*"
}

@test "a directory or link that cannot be made" {
	make_faultfs mnt below
	rm -r old/sub old/link
	fails_as 23 "making directory sub: Input/output error" "sub link" "mkdir EIO 1+ sub" "symlink EPERM 1+ *link*"
	[[ $output == *"making symbolic link link: Operation not permitted"* ]]
	# Also where something else had to make way.
	make_file old/sub 1K
	renew
	set_faults mnt "mkdir EIO 1+ sub"
	tiptoe 23 -a src/ mnt/dst
	[[ $output == *"making directory sub: Input/output error"* ]]
}

@test "a deletion that fails is told, the others are done" {
	make_faultfs mnt below
	for when in --delete-before --delete-during --delete-after; do
		renew
		touch mnt/dst/also
		set_faults mnt "unlink EIO 1+ extraneous"
		tiptoe 23 -a "$when" src/ mnt/dst
		[[ $output == *"deleting extraneous: Input/output error"* ]]
		[ ! -e mnt/dst/also ]
		check_versions ""
	done
}

@test "no room, or no quota: exit 11, nothing is deleted afterwards, the old version stays" {
	make_faultfs mnt below
	for error in "ENOSPC:No space left on device" "EDQUOT:Disk quota exceeded"; do
		for operation in write create; do
			for ring in on off; do
				renew
				set_faults mnt "$operation ${error%%:*} 1+ .large*"
				TIPTOE_RING=$ring tiptoe 11 -a --delete-after src/ mnt/dst
				[[ $output == *"writing large: ${error#*:}"* ]]
				set_faults mnt
				[ -e mnt/dst/extraneous ]
				cmp mnt/dst/large old/large
				[ -z "$(temporaries mnt/dst)" ]
			done
		done
		rm -rf mnt/dst
		set_faults mnt "mkdir ${error%%:*} 1+ sub"
		tiptoe 11 -a --delete-after src/ mnt/dst
		[[ $output == *"making directory sub: ${error#*:}"* ]]
		set_faults mnt "symlink ${error%%:*} 1+ *"
		rm -rf mnt/dst
		tiptoe 11 -a --delete-after src/ mnt/dst
		[[ $output == *"making symbolic link link: ${error#*:}"* ]]
		set_faults mnt
	done
}

@test "room that comes back when what is on its way has arrived is no full disk" {
	make_faultfs mnt below
	rm -rf old/sub old/link
	renew
	set_faults mnt "mkdir ENOSPC 1 sub" "symlink ENOSPC 1 link" "write ENOSPC 2 .large*"
	both_rings tiptoe 0 -a src/ mnt/dst
	[ -s mnt.log ]
	set_faults mnt
	check_versions ""
}

# From here on the source has the faults, and dst is a directory.
begin_source() { # [OPTION,...]
	mkdir below
	cp -a src below/src
	make_faultfs mnt below "$@"
}

# The kernel forgets what it knows of it.
begin_again() {
	umount mnt
	faultfs --rules mnt.rules --log mnt.log below mnt
}

# RULE... hold in the source; nothing is deleted, of NAMES the old version stays.
source_fails_as() { # EXIT-CODE MESSAGE NAMES RULE...
	local code=$1 message=$2 names=$3 name
	shift 3
	rm -rf dst
	cp -a old dst
	set_faults mnt "$@"
	tiptoe "$code" -a --delete-after mnt/src/ dst
	[[ $output == *"$message"* ]] || { echo "not said: $message: $output"; return 1; }
	[ -s mnt.log ]
	[ -z "$(temporaries dst)" ]
	for name in a b c z small large medium link sub/a; do
		if [[ " $names " == *" $name "* || " $names " == *" ${name%/*}/ "* ]]; then
			[[ -L old/$name ]] || cmp "dst/$name" "old/$name"
		elif [[ ! -L src/$name ]]; then
			cmp "dst/$name" "src/$name"
		fi
	done
	[ -e dst/extraneous ] && [ -e dst/sub/b ]
}

@test "a source that cannot be read: the path, the old version, nothing is deleted" {
	begin_source direct
	both_rings source_fails_as 23 "reading small: Input/output error" small "read EIO 1+ small"
	both_rings source_fails_as 23 "reading large: Input/output error" large "read EIO 6 large"
	both_rings source_fails_as 23 "reading medium: Input/output error" medium "read EIO 2+ medium"
	both_rings source_fails_as 23 "opening small: Input/output error" small "open EIO 1+ small"
	[[ $output == *"IO error encountered -- skipping file deletion"* ]]
}

@test "a source whose pages cannot be read" {
	begin_source
	both_rings source_fails_as 23 "reading large: Input/output error" large "read EIO 3+ large"
	begin_again
	both_rings source_fails_as 23 "reading small: Input/output error" small "read EIO 1+ small"
}

@test "a directory or an entry of the source that cannot be listed: nothing is deleted" {
	begin_source
	both_rings source_fails_as 23 "reading directory sub: Input/output error" sub/ "readdir EIO 1+ sub"
	both_rings source_fails_as 23 "opening directory sub: Input/output error" sub/ "opendir EIO 1+ sub"
	for name in small link; do
		begin_again
		source_fails_as 23 "reading attributes of $name: Input/output error" "$name" "lookup EIO 1+ $name"
	done
	source_fails_as 23 "reading attributes of link: Input/output error" link "readlink EIO 1+ link"
}

@test "a stale handle is a file that has vanished" {
	begin_source
	cp -a old dst
	set_faults mnt "open ESTALE 1+ small"
	tiptoe 24 -a mnt/src/ dst
	[[ $output == *"file has vanished: small"* ]]
	cmp dst/small old/small
	cmp dst/large src/large
}

@test "short reads are gone on with" {
	begin_source direct
	set_faults mnt "read short=1000 1+ small" "read short=70000 1+ medium" "read short=4097 1+ large"
	for ring in on off; do
		rm -rf dst
		TIPTOE_RING=$ring tiptoe 0 -a mnt/src/ dst
		[ -s mnt.log ]
		treecmp src dst
	done
}

@test "random faults on both sides: whole versions, no temporary, an honest exit code" {
	mkdir random
	cd random
	TIPTOE=$TIPTOE python3 "$BATS_TEST_DIRNAME/random_faults.py" 1 12
}

# Those who wait for everything on its way must not have something of it in their own hands: a follower that leads, because it cannot be linked.
@test "groups of links that cannot be linked on a disk that says again and again that it is full: an end" {
	local rules=("link EMLINK * *") at
	mkdir hs below
	for at in {1..300}; do
		make_file "hs/$at-a" 3000 "$at"
		for name in b c d e; do ln "hs/$at-a" "hs/$at-$name"; done
	done
	make_faultfs dst below
	for at in {11..1400..13}; do rules+=("write ENOSPC $at *"); done
	set_faults dst "${rules[@]}"
	run timeout 100 "$TIPTOE" -aH hs/ dst/
	[[ $status == 0 || $status == 11 || $status == 23 ]] || { echo "exit code $status"; return 1; }
	umount dst
}

# The first name is there already, so that the others are linked by all workers at once; and whoever leads next is on its way for long.
@test "more names than one inode may have: others take over, each full, and no name is lost" {
	local names=400 most=30 workers ring i
	mkdir -p below hs/d{0..9}
	make_file hs/d0/n0 3000
	for ((i = 1; i < names; i++)); do echo "hs/d$((i % 10))/n$i"; done | xargs -n 1 ln hs/d0/n0
	make_faultfs dst below most-links=$most
	for workers in 1 8; do
		for ring in on off; do
			for first in "" hs/d0/n0; do
				set_faults dst
				rm -rf dst/d
				mkdir -p dst/d/d0
				[[ -z $first ]] || cp -p "$first" dst/d/d0/
				set_faults dst "create delay=20 * *"
				TIPTOE_RING=$ring tiptoe 0 -aH --workers=$workers hs/ dst/d
				[ -z "$output" ]
				diff -r hs below/d
				expect "inodes" "$(find below/d -type f -printf '%i\n' | sort -u | wc -l)" == $(((names + most - 1) / most))
			done
		done
	done
	# Nothing to do, and no inode more for it.
	set_faults dst
	tiptoe 0 -aH --stats hs/ dst/d
	[[ $output == *"Number of regular files transferred: 0"* ]]
	diff -r hs below/d
	expect "inodes" "$(find below/d -type f -printf '%i\n' | sort -u | wc -l)" == $(((names + most - 1) / most))
	[ -z "$(temporaries below)" ]
	umount dst
}

@test "a directory that cannot be read only when deleting is told" {
	local phase nth
	mkdir -p src/sub
	echo x >src/sub/f
	for phase in after:2 before:1; do
		nth=${phase#*:}
		rm -rf below
		mkdir -p below/sub
		cp -a src/sub/f below/sub/
		echo x >below/sub/extra
		make_faultfs dst below
		set_faults dst "opendir EIO $nth sub"
		run "$TIPTOE" -a "--delete-${phase%:*}" src/ dst/
		umount dst
		expect "exit code" "$status" == 23
		[[ $output == *"Input/output error"* ]]
	done
}
