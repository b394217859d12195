#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Clones on file systems that share blocks (xfs, btrfs), and what becomes of pages, dirty data and holes with them.
# bats file_tags=clone
load ../scratch

setup_file() {
	begin_scratch
	((EUID == 0)) || return 0
	make_disk "$BATS_FILE_TMPDIR/xfs" 4G xfs
	make_disk "$BATS_FILE_TMPDIR/btrfs" 4G btrfs
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
	chattr -R -f -C "$BATS_FILE_TMPDIR/btrfs" 2>/dev/null || true
	rm -rf "${BATS_FILE_TMPDIR:?}"/{xfs,btrfs}/*
	remove_disks "$BATS_TEST_TMPDIR"
}

# Every test on both.
on_both() { # FUNCTION
	local fs
	for fs in xfs btrfs; do
		cd "$BATS_FILE_TMPDIR/$fs" || return 1
		FS=$fs
		echo "on $fs"
		"$@" # not in a list, where bats would not notice what fails in it
	done
}

# Whether all blocks of a file are shared with another.
is_shared() { # FILE
	filefrag -v "$1" | awk '/^ +[0-9]+:/ { all++; if (/shared|inline/) shared++ } END { exit !(all > 0 && all == shared) }'
}

is_not_shared() { # FILE
	[[ $(filefrag -v "$1") != *shared* ]]
}

# The number in a line of --stats.
stat_line() { # TITLE
	sed -n "s/^$1: \([0-9,]*\).*/\1/p" <<<"$output" | tr -d ,
}

# A tree whose pages are on the disk and not in memory.
make_source() {
	make_tree src 1
	make_file src/big 40M
	sync -f .
	cachemap evict src
}

a_tree_is_cloned() {
	make_source
	# What data blocks there are is known to btrfs when they are on the disk.
	before=$(df --output=used -k . | tail -n 1)
	tiptoe 0 -a --stats src/ cloned
	sync -f .
	expect "kibibytes used by the clones" "$(($(df --output=used -k . | tail -n 1) - before))" '<' 20000
	expect "bytes written" "$(stat_line 'Literal data')" == 0
	expect "bytes cloned" "$(stat_line 'Cloned bytes')" == "$(stat_line 'Total transferred file size')"
	expect "pages of both" "$(resident src cloned)" == 0
	expect "dirty pages that were charged" "$(stat_line 'Peak dirty bytes')" '<=' 48000000
	[[ $output == *"Mechanism: $FS"*"; clones (FICLONERANGE)"* ]]
	treecmp --no-sparse src cloned
	is_shared cloned/big
	is_shared cloned/large
	is_shared cloned/a0/b0/f147
	[ -z "$(temporaries .)" ]
}

@test "a tree is cloned: equal, nothing written, no page of either" {
	on_both a_tree_is_cloned
}

the_lines_are_the_same() {
	make_source
	tiptoe 0 -ai src/ new
	is_shared new/big
	cloned=$output
	rm -r new
	tiptoe 0 -ai --reflink=never src/ new
	[ "$cloned" == "$output" ]
	is_not_shared new/big
	treecmp --no-sparse src new
	tiptoe 0 -ai src/ new
	[ -z "$output" ]
}

@test "--reflink=never copies, and -i says the same" {
	on_both the_lines_are_the_same
}

dirty_pages_stay_dirty() {
	make_file dirty 8M
	make_file clean 8M
	sync clean
	pages=$(dirty dirty)
	expect "dirty pages" "$pages" '>' 0
	mkdir -p new
	tiptoe 0 -a dirty clean new/
	expect "dirty pages of the source" "$(dirty dirty)" == "$pages"
	cmp dirty new/dirty
	cmp clean new/clean
	sync -f .
	is_not_shared new/dirty
	is_shared new/clean
	# With always they are written.
	make_file dirty 8M 2
	tiptoe 0 -aI --reflink=always dirty new/
	expect "dirty pages of the source" "$(dirty dirty)" == 0
	cmp dirty new/dirty
	is_shared new/dirty
}

@test "dirty pages of a source are not written by auto, and are by always" {
	on_both dirty_pages_stay_dirty
}

@test "always fails for each file that cannot be cloned, and leaves the old one" {
	make_disk "$BATS_TEST_TMPDIR/ext4" 256M
	cd "$BATS_TEST_TMPDIR/ext4" || return 1
	mkdir src dst
	make_file src/one 100K
	make_file src/two 9M
	make_file dst/two 5M old
	: >src/empty
	cp dst/two "$BATS_TEST_TMPDIR/old"
	tiptoe 23 -a --reflink=always src/ dst
	[[ $output == *"cloning one: Operation not supported"* ]]
	[[ $output == *"cloning two: Operation not supported"* ]]
	[ ! -e dst/one ]
	cmp dst/two "$BATS_TEST_TMPDIR/old"
	[ -z "$(temporaries .)" ]
	tiptoe 23 -a --reflink=always src/ "$BATS_FILE_TMPDIR/xfs/new"
	[[ $output == *"cloning one: Invalid cross-device link"* ]]
	tiptoe 0 -a src/ dst
	treecmp --no-sparse src dst
}

@test "a file system that cannot clone is asked once" {
	make_disk "$BATS_TEST_TMPDIR/ext4" 256M
	cd "$BATS_TEST_TMPDIR/ext4" || return 1
	make_tree src 1
	sync -f .
	traced -o "$BATS_TEST_TMPDIR/calls" -e trace=ioctl,copy_file_range "$TIPTOE" -a --workers=1 src/ dst
	expect "clones asked for" "$(grep -c FICLONE "$BATS_TEST_TMPDIR/calls")" == 1
	expect "calls of copy_file_range" "$(grep -c copy_file_range "$BATS_TEST_TMPDIR/calls")" == 0
	traced -o "$BATS_TEST_TMPDIR/calls" -e trace=ioctl,copy_file_range "$TIPTOE" -a --workers=1 src/ "$BATS_FILE_TMPDIR/xfs/new"
	expect "clones asked for" "$(grep -c FICLONE "$BATS_TEST_TMPDIR/calls")" == 1
	expect "calls of copy_file_range" "$(grep -c copy_file_range "$BATS_TEST_TMPDIR/calls")" == 0
	traced -o "$BATS_TEST_TMPDIR/calls" -e trace=ioctl,copy_file_range "$TIPTOE" -a --reflink=never src/ never
	expect "clones asked for" "$(grep -c FICLONE "$BATS_TEST_TMPDIR/calls")" == 0
	treecmp --no-sparse src never
}

# Somebody else's files: cachestat does not say, their times do.
@test "xfs: where dirty pages may not be counted, old files are cloned and young ones copied" {
	let_others_in "$BATS_TEST_TMPDIR"
	make_disk "$BATS_TEST_TMPDIR/disk" 512M xfs -m bigtime=0
	cd "$BATS_TEST_TMPDIR/disk" || return 1
	make_file old 1M
	make_file changed 1M
	make_file young 1M
	mkdir -m 777 new
	touch -d 2001-01-01 old young
	numbers=$(stat -c %i old changed)
	device=$(disk_device "$PWD")
	cd ..
	umount disk
	for number in $numbers; do
		xfs_db -x -c "inode $number" -c "write -d core.ctime.sec 1000000000" "$device" >/dev/null
	done
	mount "$device" disk
	cd disk || return 1
	cachemap evict old changed young
	run setpriv --reuid=1000 --regid=1000 --clear-groups "$TIPTOE" -rt --stats old changed young new/
	check_run 0
	is_shared new/old
	is_not_shared new/changed # by its mtime
	is_not_shared new/young   # by its ctime
	expect "bytes cloned" "$(stat_line 'Cloned bytes')" == 1048576
	for file in old changed young; do
		cmp "$file" "new/$file"
	done
}

make_pairs() {
	mkdir -p src dst
	for pair in three-pages:12288 odd:9999 hundred:100K five:5M large:40M; do
		make_file "dst/${pair%:*}" "${pair#*:}" old
		make_file "src/${pair%:*}" "${pair#*:}" new
	done
	touch -d 2001-01-01 dst/*
	sync -f .
	cachemap evict src dst
}

replace() { # ARGUMENT...
	find src -type f -exec touch -d "@$((1600000000 + ++replaced))" {} +
	tiptoe 0 -a --stats "$@" src/ dst
	expect "bytes written" "$(stat_line 'Literal data')" == 0
}

hot_stays_hot() {
	make_pairs
	cachemap warmtree dst
	leaves_as_found dst replace
	treecmp --no-sparse src dst
	is_shared dst/large
	expect "pages of the source" "$(resident src)" == 0
	expect "pages that --stats names as kept" "$(stat_line 'Pages kept hot in replaced files')" == "$(resident dst)"
	# In part.
	cachemap evict src dst
	warm dst/large --half 2M
	warm dst/five --every 100
	warm dst/hundred --pages 3-7
	leaves_as_found dst replace
	treecmp --no-sparse src dst
	is_shared dst/large
	expect "pages of the source" "$(resident src)" == 0
	# Cold, from a hot source.
	cachemap evict src dst
	cachemap warmtree src
	leaves_as_found src replace
	expect "pages of the destination" "$(resident dst)" == 0
}

@test "a hot file that is replaced by a clone stays hot, a cold one cold, a source as it was" {
	on_both hot_stays_hot
}

in_place() {
	make_pairs
	make_file dst/was-longer 12M old
	make_file src/was-longer 10000001 new
	make_file dst/was-shorter 9999 old
	make_file src/was-shorter 5000001 new
	make_file src/new-one 5000 new
	# A hole of the source over old content.
	make_file dst/holed 8M old
	truncate -s 8M src/holed
	make_file part 1M new
	dd if=part of=src/holed bs=1M seek=5 conv=notrunc status=none
	touch -d 2001-01-01 dst/*
	sync -f .
	cachemap evict src dst
	cachemap warmtree dst/large
	warm dst/five --every 100
	warm dst/was-longer --half 2M
	tiptoe 0 -a --stats --inplace src/ dst
	# Of a longer file only whole blocks are cloned; one that is as long is a byte longer meanwhile.
	expect "bytes written" "$(stat_line 'Literal data')" == $((10000001 % 4096 + 9999 % 4096))
	expect "pages of the source" "$(resident src)" == 0
	diff -r src dst
	sync -f .
	is_shared dst/large
	is_shared dst/was-shorter
	filefrag -v dst/was-longer | grep -q shared
	expect "blocks of the hole" "$(stat -c %b dst/holed)" == 2048
	# The same again: pages as before, whatever the kernel has taken meanwhile.
	cachemap evict src
	inplace_again() {
		find src -type f -exec touch -d "@$((1600000000 + ++replaced))" {} +
		tiptoe 0 -a --inplace src/ dst
	}
	leaves_as_found dst inplace_again
	expect "pages of the source" "$(resident src)" == 0
	diff -r src dst
}

@test "in place: blocks are cloned over old ones, holes are holes, what was hot stays hot" {
	on_both in_place
}

a_log_is_not_cloned() {
	mkdir src dst
	make_file src/log 5M
	head -c 3000000 src/log >dst/log
	sync -f .
	tiptoe 0 -a --append --stats src/ dst
	expect "bytes written" "$(stat_line 'Literal data')" == $((5242880 - 3000000))
	diff -r src dst
}

@test "--append writes what is missing" {
	on_both a_log_is_not_cloned
}

drop_drops() {
	make_source
	warm src/big --half 2M
	tiptoe 0 -a --cache=drop src/ new
	expect "pages of both" "$(resident src new)" == 0
	is_shared new/big
}

@test "--cache=drop drops the source of a clone" {
	on_both drop_drops
}

# A kernel that fails at the second piece of each file.
middle() {
	mkdir src
	# Two pieces, of which nobody has to write much.
	fallocate -l 1500M src/big
	for at in 0 900 1100 1400; do
		make_file part 1M "$at"
		dd if=part of=src/big bs=1M seek="$at" conv=notrunc status=none
	done
	sync -f .
	for error in ENOSPC EIO EINTR; do
		rm -rf new
		traced -o "$BATS_TEST_TMPDIR/calls" -e trace=ioctl -e "inject=ioctl:error=$error:when=2" "$TIPTOE" -a --workers=1 src/ new
		expect "clones that failed" "$(grep -c "FICLONERANGE.*INJECTED" "$BATS_TEST_TMPDIR/calls")" == 1
		expect "clones that did not" "$(grep FICLONERANGE "$BATS_TEST_TMPDIR/calls" | grep -vc INJECTED)" == 1
		treecmp src new
		sync -f .
		is_not_shared new/big
	done
	rm -rf new
	tiptoe 0 -a src/ new
	treecmp src new
	# xfs does not share what is unwritten.
	filefrag -v new/big | grep -q shared
}

@test "a clone that fails in the middle is copied" {
	on_both middle
}

@test "btrfs: clones across subvolumes; a file without checksums is copied, its neighbours are cloned" {
	cd btrfs || return 1
	btrfs -q subvolume create one
	btrfs -q subvolume create two
	mkdir one/src
	touch one/src/a-plain
	chattr +C one/src/a-plain
	make_file one/src/a-plain 1M
	make_file one/src/b-other 1M
	make_file one/src/c-small 1000
	sync -f .
	tiptoe 0 -a --workers=1 --stats one/src/ two/new
	treecmp --no-sparse one/src two/new
	is_not_shared two/new/a-plain
	is_shared two/new/b-other
	expect "bytes cloned" "$(stat_line 'Cloned bytes')" == 1049576
	expect "bytes written" "$(stat_line 'Literal data')" == 1048576
	btrfs -q subvolume delete one two
}
