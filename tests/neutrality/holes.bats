#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Holes and preallocated space: the copy takes as many blocks as the source, on ext4, xfs and btrfs, streamed and cloned; and what -S,
# --preallocate and --no-seek-hole make of it. Field cases 1 and 2.
# bats file_tags=holes
load ../scratch

setup_file() {
	begin_scratch
	((EUID == 0)) || return 0
	make_disk "$BATS_FILE_TMPDIR/ext4" 1G ext4 -b 4096
	make_disk "$BATS_FILE_TMPDIR/xfs" 1G xfs
	make_disk "$BATS_FILE_TMPDIR/btrfs" 1G btrfs
}

teardown_file() {
	remove_disks "$BATS_FILE_TMPDIR"
}

setup() {
	begin_scratch
	need_root
	cd "$BATS_FILE_TMPDIR" || return 1
}

teardown() {
	cd / || return 1
	rm -rf "${BATS_FILE_TMPDIR:?}"/{ext4,xfs,btrfs}/*
	remove_disks "$BATS_TEST_TMPDIR"
}

on_all() { # FUNCTION [ARGUMENT...]
	local fs
	for fs in ext4 xfs btrfs; do
		cd "$BATS_FILE_TMPDIR/$fs" || return 1
		echo "on $fs"
		"$@" # not in a list, where bats would not notice what fails in it
	done
}

# Text at an offset of a file that may exist.
put() { # FILE OFFSET SIZE
	yes "$2 of ${1##*/}" | head -c "$3" | dd of="$1" bs=64K iflag=fullblock oflag=seek_bytes seek="$2" conv=notrunc status=none
}

# Files of all kinds, few extents each: where a map of extents takes a block of its own, that is counted as well. Lengths come first: what xfs
# allocates ahead of a growing file would be in the hole for a while.
make_holes() { # DIRECTORY
	mkdir -p "$1"
	put "$1/plain" 0 300000
	truncate -s 6000000 "$1/plain-and-longer"
	put "$1/plain-and-longer" 0 6000000
	put "$1/hole-at-start" 1048576 65536
	truncate -s 3000001 "$1/hole-at-end"
	put "$1/hole-at-end" 0 65536
	truncate -s 5500000 "$1/islands"
	put "$1/islands" 0 1
	put "$1/islands" 100000 1
	put "$1/islands" 5000000 1
	truncate -s 2M "$1/nothing-but-a-hole"
	truncate -s 1000 "$1/nothing-but-a-small-hole"
	fallocate -l 4M "$1/nothing-but-unwritten"
	fallocate -l 4M "$1/unwritten-with-data"
	put "$1/unwritten-with-data" 1048576 100000
	put "$1/unwritten-behind-end" 0 100000
	fallocate -n -l 2M "$1/unwritten-behind-end"
	: >"$1/empty-but-unwritten"
	fallocate -n -l 1M "$1/empty-but-unwritten"
	# As many blocks as its size, and yet a hole.
	put "$1/hole-and-behind-end" 1048576 1048576
	fallocate -n -o 2M -l 2M "$1/hole-and-behind-end"
	# Hole, unwritten, data, hole, unwritten over the end.
	truncate -s 5M "$1/everything"
	fallocate -n -o 1M -l 1M "$1/everything"
	put "$1/everything" 2097152 70000
	fallocate -n -o 4M -l 2M "$1/everything"
	# Large enough for the stream, which lets xfs guess what comes.
	truncate -s 20000000 "$1/large-and-behind-end"
	put "$1/large-and-behind-end" 0 20000000
	fallocate -n -o 20000001 -l 64K "$1/large-and-behind-end"
	truncate -s 60M "$1/large"
	put "$1/large" 0 10000000
	put "$1/large" 30000000 10000000
}

blocks() { # DIRECTORY
	(cd "$1" && stat -c '%n %s %b' -- *)
}

# Which parts are unwritten.
unwritten() { # DIRECTORY
	local file
	for file in "$1"/*; do
		echo "${file##*/}"
		filefrag -v "$file" | awk '/^ +[0-9]+:.*unwritten/ { gsub(/[.:]/, " "); print $2, $3 }' | awk '
			{ if (NR > 1 && $1 == last + 1) last = $2; else { if (NR > 1) print first, last; first = $1; last = $2 } }
			END { if (NR > 0) print first, last }'
	done
}

same_blocks() { # A B
	sync -f "$1"
	sync -f "$2"
	diff <(blocks "$1") <(blocks "$2")
	diff <(unwritten "$1") <(unwritten "$2")
	diff -r "$1" "$2"
}

every_kind() {
	make_holes src
	# As they are: not flushed, dirty in the page cache.
	tiptoe 0 -a --reflink=never src/ dirty
	same_blocks src dirty
	cachemap evict src dirty
	tiptoe 0 -a --reflink=never src/ streamed
	same_blocks src streamed
	cachemap evict src
	tiptoe 0 -a src/ cloned
	expect "pages of both" "$(resident src cloned)" == 0
	same_blocks src cloned
	[ -z "$(temporaries .)" ]
}

@test "the copy takes the blocks of the source, for every kind of hole and unwritten space" {
	on_all every_kind
}

# The old ones have space behind their ends, too.
make_old() { # DIRECTORY [SIZE]
	local file
	mkdir "$1"
	for file in src/*; do
		put "$1/${file##*/}" 0 "${2:-5000000}"
		fallocate -n -o 8M -l 1M "$1/${file##*/}"
	done
	sync -f "$1"
}

# In place ext4 keeps the block of a map that was larger; with O_DIRECT the extents of xfs may be too many for the inode.
same_but_for_maps() { # A B
	sync -f "$2"
	diff <(unwritten "$1") <(unwritten "$2")
	diff -r "$1" "$2"
	while read -r name _ count; do
		expect "blocks of $name" "$(stat -c %b "$2/$name")" '>=' "$count"
		expect "blocks of $name" "$(stat -c %b "$2/$name")" '<=' "$((count + 8))"
	done < <(blocks "$1")
}

in_place() {
	make_holes src
	sync -f src
	make_old dst
	tiptoe 0 -a --inplace "$1" src/ dst
	same_but_for_maps src dst
	rm -r src dst
}

@test "the same in place of old content" {
	on_all in_place --reflink=never
	on_all in_place --reflink=auto
}

# xfs gives a file that grows more than is written, and leaves it to one that has been given space.
appended() { # --append|--append-verify
	local name
	mkdir src dst
	for name in plain behind-end; do
		truncate -s 20000000 src/$name
		put src/$name 0 20000000
		head -c 5000000 src/$name >dst/$name
		touch -d 2001-01-01 dst/$name
		sync -f dst
		fallocate -n -o 30000000 -l 1M dst/$name
	done
	fallocate -n -o 20000001 -l 64K src/behind-end
	sync -f src
	tiptoe 0 -a "$1" src/ dst
	same_blocks src dst
	rm -r src dst
}

@test "the same behind what is appended" {
	on_all appended --append
	on_all appended --append-verify
}

between() { # FROM TO
	cd "$BATS_FILE_TMPDIR" || return 1
	make_holes "$1/src"
	tiptoe 0 -a "$1/src/" "$2/from-$1"
	same_blocks "$1/src" "$2/from-$1"
}

@test "the same from one file system to another" {
	between ext4 xfs
	between xfs btrfs
	between btrfs ext4
}

# No call for a part of a hole: a handful for each file.
eight_tebibytes() {
	mkdir src
	truncate -s 8T src/hole
	truncate -s 8T src/island
	put src/island 8796093022206 1
	sync -f .
	traced -o "$BATS_TEST_TMPDIR/calls" "$TIPTOE" -a --workers=1 --reflink="$1" src/ new
	expect "system calls" "$(wc -l <"$BATS_TEST_TMPDIR/calls")" '<' 2000
	[ "$(blocks src)" == "$(blocks new)" ]
	sync -f .
	[ "$(blocks src)" == "$(blocks new)" ]
	for how in --inplace "-S --inplace" "-S --preallocate" --preallocate "--preallocate --inplace"; do
		# shellcheck disable=SC2086
		tiptoe 0 -a --reflink="$1" $how src/ other
		[[ $how != *preallocate* || $(grep -c "warning: preallocating .*: No space left on device" <<<"$output") == 2 ]]
		sync -f .
		[ "$(blocks src)" == "$(blocks other)" ]
		rm -r other
	done
	[ "$(tail -c 2 new/island | od -An -tx1)" == "$(tail -c 2 src/island | od -An -tx1)" ]
	expect "the first data" "$(python3 -c 'import os; print(os.lseek(os.open("new/island", os.O_RDONLY), 0, os.SEEK_DATA))')" == 8796093018112
	tiptoe 0 -a --cache=drop src/ new
	rm -rf src new
}

@test "a hole of eight tebibytes costs nothing" {
	on_all eight_tebibytes never
	on_all eight_tebibytes auto
}

# A file whose hole somebody reads stays as it was there.
hole_is_hot() {
	mkdir src
	put src/file 0 1000
	put src/file 199000000 1000
	sync -f .
	cachemap evict src
	warm src/file --pages 30000-30100
	copy_again() {
		rm -rf new
		tiptoe 0 -a --reflink=never src/ new
	}
	leaves_as_found src copy_again
	expect "pages of the copy" "$(resident new)" == 0
}

@test "pages of a hole that were resident stay so" {
	on_all hole_is_hot
}

sparse_takes_less() {
	make_holes src
	head -c 3M /dev/zero >src/zeros
	put src/zeros 1000000 10000
	sync -f src
	for how in -aS "-aS --preallocate"; do
		# shellcheck disable=SC2086
		tiptoe 0 $how src/ new
		sync -f new
		diff -r src new
		while read -r name size count; do
			expect "blocks of $name with $how" "$(stat -c %b "new/$name")" '<=' "$count"
			expect "size of $name" "$(stat -c %s "new/$name")" == "$size"
		done < <(blocks src)
		for file in nothing-but-unwritten empty-but-unwritten nothing-but-a-hole; do
			expect "blocks of $file with $how" "$(stat -c %b "new/$file")" == 0
		done
		expect "blocks of zeros with $how" "$(stat -c %b new/zeros)" '<=' 32
		rm -rf new
	done
}

@test "with -S the copy takes less, with --preallocate too" {
	on_all sparse_takes_less
}

# Blocks behind the end.
behind() { # FILE
	filefrag -v "$1" | awk -v first=$((($(stat -c %s "$1") + 4095) / 4096)) '/^ +[0-9]+:/ { gsub(/[.:]/, " "); if ($3 >= first) n += $3 - ($2 > first ? $2 : first) + 1 }
		END { print 8 * n }'
}

# With -S the copy takes no more than the source; with --preallocate alone, nothing of it is a hole, and behind the end it is as the source.
as_asked() { # OPTIONS COPY
	local name size count most least
	sync -f "$2"
	diff -r src "$2"
	while read -r name size count; do
		least=0 most=$((count + 8)) # for ext4's map
		if [[ $1 != *-S* ]]; then
			least=$(((size + 4095) / 4096 * 8 + $(behind "src/$name")))
			most=$((least + 8))
		fi
		expect "blocks of $name with $1" "$(stat -c %b "$2/$name")" '<=' "$most"
		expect "blocks of $name with $1" "$(stat -c %b "$2/$name")" '>=' "$least"
	done < <(blocks src)
}

every_way() {
	local how
	make_holes src
	rm src/large
	sync -f src
	for how in -S --preallocate "-S --preallocate"; do
		make_old new 2200000
		# shellcheck disable=SC2086
		tiptoe 0 -a --inplace $how src/ new
		[ -z "$output" ]
		as_asked "--inplace $how" new
		rm -r new
		# shellcheck disable=SC2086
		tiptoe 0 -a --cache=direct $how src/ new
		as_asked "--cache=direct $how" new
		rm -r new
	done
	# What has been read counts as data, although it is not written (SEEK_HOLE).
	cachemap evict src
	tiptoe 0 -a --cache=direct --reflink=never src/ new
	same_but_for_maps src new
}

@test "-S, --preallocate and both: in place of old content, and with O_DIRECT" {
	on_all every_way
}

@test "rsync --inplace --preallocate fills the holes of the source, and so does this" {
	cd "$BATS_FILE_TMPDIR/ext4"
	make_holes src
	rm src/*behind-end src/everything src/empty*
	sync -f src
	make_old theirs
	make_old ours
	rsync -a --inplace --preallocate src/ theirs
	tiptoe 0 -a --inplace --preallocate src/ ours
	sync -f .
	diff -r src ours
	for file in src/*; do
		file=${file##*/}
		# A block for the map; and rsync leaves what the old file had behind its end.
		expect "blocks of $file" "$(stat -c %b "ours/$file")" '>=' "$((($(stat -c %s "theirs/$file") + 4095) / 4096 * 8))"
		expect "blocks of $file" "$(stat -c %b "ours/$file")" '<=' "$(($(stat -c %b "theirs/$file") + 8))"
	done
}

# A file with holes, nearly as long as there are free blocks.
no_room() { # SIZE FSTYPE [MKFS-ARGUMENT...]
	local dir=$BATS_TEST_TMPDIR/$2
	make_disk "$dir" "$@"
	rm -rf src
	mkdir src
	truncate -s $(($(stat -f -c '%f * %S' "$dir") - 65536)) src/file
	put src/file 1000000 1000000
	put src/another 0 3000000
	sync -f src
	tiptoe 0 -a --preallocate src/ "$dir/new"
	[[ $output == "tiptoe: warning: preallocating file: No space left on device" ]]
	same_blocks src "$dir/new"
	# In place of an old one, as long as it.
	rm src/another "$dir/new/another"
	put "$dir/new/file" 0 5000000
	sync -f "$dir"
	tiptoe 0 -a --preallocate --inplace src/ "$dir/new"
	[[ $output == "tiptoe: warning: preallocating file: No space left on device" ]]
	same_but_for_maps src "$dir/new"
	# Content that does not fit.
	rm -r "$dir/new"
	yes | head -c 400M >src/file
	tiptoe 11 -a --preallocate src/file "$dir/"
	[[ $(grep -c "preallocating file: No space left on device" <<<"$output") == 1 ]]
	[[ $output == *"writing file: No space left on device"* ]]
	[ -z "$(ls -A "$dir")" ]
}

@test "--preallocate without room for all of it: what it got is given back, and content that fits is copied" {
	cd "$BATS_FILE_TMPDIR/ext4"
	no_room 64M ext4 -b 4096
	no_room 300M xfs
	no_room 200M btrfs
	# What others may not have (a twentieth) is free, too: ext4 gives somebody else's file all that there is before it says no.
	dir=$BATS_TEST_TMPDIR/reserved
	make_disk "$dir" 256M ext4 -b 4096 -m 20
	chmod 777 "$dir"
	let_others_in "$BATS_TEST_TMPDIR"
	let_others_in "$BATS_FILE_TMPDIR/ext4"
	cp "$TIPTOE" "$BATS_TEST_TMPDIR/tiptoe"
	rm src/file
	truncate -s $(($(stat -f -c '%a * %S' "$dir") + (4 << 20))) src/file
	put src/file 1000000 1000000
	run setpriv --reuid=65534 --regid=65534 --clear-groups "$BATS_TEST_TMPDIR/tiptoe" -rt --preallocate src/ "$dir/new"
	check_run 0
	[[ $output == "tiptoe: warning: preallocating file: No space left on device" ]]
	same_blocks src "$dir/new"
	truncate -s "$(stat -c %s src/file)" "$dir/new/file"
	put "$dir/new/file" 0 5000000
	sync -f "$dir"
	run setpriv --reuid=65534 --regid=65534 --clear-groups "$BATS_TEST_TMPDIR/tiptoe" -rtI --preallocate --inplace src/ "$dir/new"
	check_run 0
	[[ $output == "tiptoe: warning: preallocating file: No space left on device" ]]
	same_but_for_maps src "$dir/new"
}

preallocate_takes_all() {
	make_holes src
	sync -f src
	rsync -a --preallocate src/ theirs
	tiptoe 0 -a --preallocate src/ ours
	[ -z "$output" ]
	sync -f .
	diff -r src ours
	# rsync forgets what is behind the end.
	for file in plain hole-at-start hole-at-end islands nothing-but-a-hole nothing-but-unwritten unwritten-with-data large; do
		# A block of ext4's more for the map: what rsync fills with zeros stays unwritten here.
		expect "blocks of $file" "$(stat -c %b "ours/$file")" '>=' "$(stat -c %b "theirs/$file")"
		expect "blocks of $file" "$(stat -c %b "ours/$file")" '<=' "$(($(stat -c %b "theirs/$file") + 8))"
	done
	expect "calls without the option" "$(
		rm -rf ours
		traced -o "$BATS_TEST_TMPDIR/calls" -e trace=fallocate "$TIPTOE" -a src/plain src/hole-at-start ours/
		grep -c fallocate "$BATS_TEST_TMPDIR/calls"
	)" == 0
}

@test "--preallocate takes what rsync takes" {
	on_all preallocate_takes_all
}

@test "--preallocate where it cannot be is a warning, as rsync's" {
	make_disk "$BATS_TEST_TMPDIR/old" 64M ext4 -O "^extents,^64bit,^has_journal"
	put ext4/file 0 300000
	: >ext4/empty
	run rsync -a --preallocate ext4/file ext4/empty "$BATS_TEST_TMPDIR/old/theirs/"
	[ "$status" -eq 0 ]
	tiptoe 0 -a --preallocate ext4/file ext4/empty "$BATS_TEST_TMPDIR/old/ours/"
	[[ $output == "tiptoe: warning: preallocating file: Operation not supported" ]]
	cmp ext4/file "$BATS_TEST_TMPDIR/old/ours/file"
	# Unwritten space is a hole there.
	fallocate -l 1M ext4/unwritten
	tiptoe 0 -a ext4/unwritten "$BATS_TEST_TMPDIR/old/ours/"
	expect "blocks" "$(stat -c %b "$BATS_TEST_TMPDIR/old/ours/unwritten")" == 0
	cmp ext4/unwritten "$BATS_TEST_TMPDIR/old/ours/unwritten"
}

@test "space for what is preallocated in the source is missed like space for data" {
	make_disk "$BATS_TEST_TMPDIR/small" 64M
	fallocate -l 200M ext4/file
	put ext4/file 0 1000
	tiptoe 11 -a ext4/file "$BATS_TEST_TMPDIR/small/"
	[[ $output == *"writing file: No space left on device"* ]]
	[ -z "$(ls -A "$BATS_TEST_TMPDIR/small")" ]
}

# A source that answers every question for holes with "all of it": what is copied then is a hole. Told not to ask, it is the content.
@test "--no-seek-hole reads everything and does not ask" {
	mkdir ext4/src
	put ext4/src/data 0 300000
	put ext4/src/hole 1048576 100000
	truncate -s 12M ext4/src/hole
	cd ext4 || return 1
	traced -e inject=lseek:retval=0 "$TIPTOE" -a src/ lied
	run cmp src/data lied/data
	[ "$status" -eq 1 ]
	traced -e inject=lseek:retval=0 "$TIPTOE" -a --no-seek-hole src/ read
	diff -r src read
	expect "blocks of the hole" "$(stat -c %b read/hole)" == 24576
	traced -o "$BATS_TEST_TMPDIR/calls" -e trace=lseek "$TIPTOE" -aS --no-seek-hole src/ sparse
	expect "questions" "$(grep -c 'SEEK_\(HOLE\|DATA\)' "$BATS_TEST_TMPDIR/calls")" == 0
	diff -r src sparse
	sync -f .
	[ "$(blocks src)" == "$(blocks sparse)" ]
}
