#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# --cache=direct, and O_DIRECT where --cache=leave uses it: equal, nothing left, what was resident stays; and what is said where it is not possible.
load ../scratch

setup() {
	begin_scratch
	need_root
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	[[ ${HELPER:-} ]] && end_process "$HELPER"
	cd / || return 1
	remove_disks "$BATS_TEST_TMPDIR"
}

stat_line() { # TITLE
	sed -n "s/^$1: \([0-9,]*\).*/\1/p" <<<"$output" | tr -d ,
}

# Sizes around everything that is aligned to, and a sparse one.
make_edges() { # DIRECTORY [SEED]
	local size
	mkdir -p "$1"
	for size in 0 1 511 512 4095 4096 4097 65535 65536 65537 8388607 8388608 8388609 34603013; do
		make_file "$1/s$size" "$size" "${2:-1}"
	done
	rm -f "$1/sparse"
	truncate -s 20M "$1/sparse"
	printf 'island' | dd of="$1/sparse" bs=1 seek=5000000 conv=notrunc status=none
	make_file "$1/part" 300001
	dd if="$1/part" of="$1/sparse" bs=64K seek=200 conv=notrunc status=none
	find "$1" -exec touch -d "@$((1500000000 + ${2:-1} * 1000))" {} +
}

copy_direct() { # ARGUMENT...
	rm -rf dst
	tiptoe 0 -a --reflink=never --cache=direct --stats "$@" src/ dst
}

# $1: how many of the 15 files can be read so; $2: whether new files can be written so
check_copies() {
	make_edges src
	cachemap evict src
	copy_direct
	treecmp src dst
	expect "pages" "$(resident src dst)" == 0
	expect "files read so" "$(stat_line 'Files read with O_DIRECT')" == "$1"
	if $2; then
		expect "files written so" "$(stat_line 'Files written with O_DIRECT')" == 8
		expect "peak dirty bytes" "$(stat_line 'Peak dirty bytes')" "<=" 4194304
	fi
	# What was resident stays, and is what is copied.
	warm src/s34603013 --half 2M
	warm src/s8388609 --every 100
	warm src/s65537 --pages 3-7
	warm src/s4095 --all
	leaves_as_found src copy_direct
	expect "pages of the copy" "$(resident dst)" == 0
	treecmp src dst
	TIPTOE_RING=off leaves_as_found src copy_direct -S
	treecmp --no-sparse src dst
	leaves_as_found src tiptoe 0 -ac --reflink=never --cache=direct src/ dst
	expect "pages of the copy after -c" "$(resident dst)" == 0
	# A hot file that is replaced stays hot.
	make_edges src 2
	cachemap evict src dst
	warm dst/s34603013 --half 2M
	cachemap warmtree dst/s8388607
	leaves_as_found dst tiptoe 0 -aI -v --reflink=never --cache=direct src/ dst
	[[ $output == *"s8388607 is written without O_DIRECT: what it replaces is resident"* ]] || ! $2
	treecmp src dst
	expect "pages of the source" "$(resident src)" == 0
}

@test "ext4: with O_DIRECT all sizes are equal, nothing is left, and what was resident stays" {
	make_disk "$PWD/disk" 600M
	cd disk
	check_copies 15 true
}

@test "xfs: with O_DIRECT all sizes are equal, nothing is left, and what was resident stays" {
	make_disk "$PWD/disk" 600M xfs
	cd disk
	check_copies 15 true
}

@test "btrfs: with O_DIRECT all sizes are equal, nothing is left, and what was resident stays" {
	make_disk "$PWD/disk" 600M btrfs
	cd disk
	# Up to 2048 bytes lie where the inode does.
	check_copies 12 false
}

@test "a file that is copied with O_DIRECT is at no time in the page cache" {
	make_disk "$PWD/disk" 1200M
	cd disk
	mkdir src
	make_big_file src/big 500M
	most=0 samples=0
	"$TIPTOE" -a --reflink=never --cache=direct src/ dst &
	HELPER=$!
	while kill -0 "$HELPER" 2>/dev/null; do
		now=$(resident src dst 2>/dev/null) || continue
		((now > most)) && most=$now
		samples=$((samples + 1))
	done
	wait "$HELPER"
	HELPER=
	expect samples "$samples" ">" 3
	expect "most pages" "$most" == 0
	cmp src/big dst/big
}

@test "dirty pages of somebody who writes the source are not flushed by O_DIRECT, and it is said" {
	make_disk "$PWD/disk" 200M
	cd disk
	mkdir src
	make_file src/five 5M
	make_file src/other 5M
	cachemap evict src
	dd if=/dev/zero of=src/five bs=64K count=8 seek=4 conv=notrunc status=none
	before=$(dirty src/five)
	expect "dirty pages before" "$before" == 128
	leaves_as_found src copy_direct -v
	[[ $output == *"five is read without O_DIRECT: pages of it may be dirty"* ]]
	[[ $output != *"other is read without"* ]]
	expect "dirty pages after" "$(dirty src/five)" == "$before"
	cmp src/five dst/five
	# The test can fail: an O_DIRECT read flushes them.
	dd if=src/five of=/dev/null bs=1M iflag=direct status=none
	expect "dirty pages after an O_DIRECT read" "$(dirty src/five)" "<" "$before"
}

@test "where O_DIRECT is not possible it is said at -v, once for a file system, and the copy is the ordinary one" {
	mkdir src ram
	make_edges src
	cachemap evict src
	mount -t tmpfs -o size=200M tmpfs ram
	tiptoe 0 -av --reflink=never --cache=direct src/ ram/new
	expect "lines" "$(grep -c 'O_DIRECT is not used to write tmpfs .*no page cache of its own' <<<"$output")" == 1
	treecmp src ram/new
	tiptoe 0 -av --reflink=never --cache=direct ram/new/ back
	expect "lines" "$(grep -c 'O_DIRECT is not used to read tmpfs .*no page cache of its own' <<<"$output")" == 1
	treecmp ram/new back
	expect "pages" "$(resident src back)" == 0
	# Nobody who did not ask for it hears of it.
	rm -r back
	tiptoe 0 -a --reflink=never --cache=direct ram/new/ back
	[ -z "$output" ]
	rm -r back
	tiptoe 0 -av ram/new/ back
	[[ $output != *O_DIRECT* ]]
}

# A source whose blocks are larger than what the destination asks for, and the reverse.
@test "the odd end of a file is no line at -v, and small new files are one, with their number" {
	make_disk "$PWD/disk" 300M
	make_disk "$PWD/b" 300M btrfs
	# What asks for 4096 where the others ask for 512.
	mkdir x
	truncate -s 400M x.img
	mkfs.xfs -q -s size=4096 x.img
	mount "$(losetup --find --show --direct-io=on --sector-size 4096 x.img)" x
	"$TIPTOE" --probe --json x | grep '"dio_offset_align_bytes": 4096'
	make_edges disk/src
	rm disk/src/sparse
	cp -a disk/src b
	cp -a disk/src x
	# What btrfs keeps where the inode is can be read in no other way.
	rm b/src/s{1,511,512}
	sync -f disk b x
	for from in disk b x; do
		for to in disk x; do
			cachemap evict $from
			tiptoe 0 -av --reflink=never --cache=direct --stats $from/src/ $to/new
			[ -z "$(grep 'without O_DIRECT' <<<"$output")" ] || { echo "$from to $to"; grep 'O_DIRECT' <<<"$output"; return 1; }
			[ "$(grep -c 'O_DIRECT is not used' <<<"$output")" -eq 1 ]
			small=$(find $from/src -type f -size +0 -size -65536c | wc -l)
			expect "small files" "$small" ">" 3
			[[ $output == *"O_DIRECT is not used to write $small new files below 64 KiB on "* ]]
			# All but the empty one were read so, and all that are not small were written so.
			expect "read" "$(stat_line 'Files read with O_DIRECT')" == "$(find $from/src -type f -size +0 | wc -l)"
			expect "written" "$(stat_line 'Files written with O_DIRECT')" == "$(find $from/src -type f -size +65535c | wc -l)"
			grep -E "^Mechanism: .*; $(stat_line 'Files written with O_DIRECT') files written: O_DIRECT|^Mechanism: .*: $(stat_line 'Files written with O_DIRECT') files written: O_DIRECT" <<<"$output"
			[[ $output != *"files read: cachestat"* ]]
			expect pages "$(resident $from/src $to/new)" == 0
			treecmp $from/src $to/new
			rm -r $to/new
		done
	done
	# Nobody who did not ask for it hears of it, nor does one whose files are all large.
	tiptoe 0 -av --reflink=never disk/src/ x/new
	[[ $output != *O_DIRECT* ]]
	mkdir disk/large
	make_file disk/large/file 300001
	sync -f disk
	tiptoe 0 -av --reflink=never --cache=direct disk/large/ x/large
	[[ $output != *O_DIRECT* ]]
	# A piece that is no end and cannot be written so is told.
	make_disk "$PWD/fine" 100M ext4 -b 1024
	make_file fine/odd 100000
	truncate -s 300K fine/odd
	make_file fine/tail 70000
	dd if=fine/tail of=fine/odd bs=1K seek=200 conv=notrunc status=none
	sync -f fine
	tiptoe 0 -av --reflink=never --cache=direct fine/odd x/odd
	[[ $output == *"odd is written without O_DIRECT: a piece of it is not aligned"* ]]
}

@test "overlayfs: nothing is left with --cache=direct" {
	make_disk "$PWD/disk" 400M
	mkdir disk/lower disk/upper disk/work merged src
	mount -t overlay overlay -o "lowerdir=$PWD/disk/lower,upperdir=$PWD/disk/upper,workdir=$PWD/disk/work" merged
	make_edges src
	cachemap evict src
	tiptoe 0 -av --reflink=never --cache=direct src/ merged/new
	treecmp src merged/new
	expect "pages" "$(resident src merged/new disk/upper)" == 0
	tiptoe 0 -av --reflink=never --cache=direct merged/new/ merged/again
	treecmp merged/new merged/again
	expect "pages" "$(resident merged disk/upper)" == 0
}

# As the user nobody, for whom it is an hour later with LD_PRELOAD.
copy_as_nobody() { # [VARIABLE=VALUE...]
	rm -rf dst/*
	run env "$@" setpriv --reuid=65534 --regid=65534 --clear-groups "$BATS_TEST_TMPDIR/tiptoe" -rt --reflink=never --stats src/ dst
	check_run 0
}

@test "btrfs: another user's files, which may not be asked about, are left as found by O_DIRECT" {
	make_disk "$PWD/disk" 400M btrfs
	cd disk
	make_edges src
	# btrfs keeps up to 2048 bytes where the inode is.
	mkdir src/inline src/blocks
	mv src/s{0,1,511,512} src/inline
	mv src/s[0-9]* src/sparse src/part src/blocks
	cachemap evict src
	let_others_in "$BATS_TEST_TMPDIR/disk"
	cp "$TIPTOE" "$TIPTOE_TOOLS/libhourlater.so" "$BATS_TEST_TMPDIR"
	let_others_in "$BATS_TEST_TMPDIR"
	mkdir dst
	chown 65534:65534 dst
	# Files that have just been changed may be dirty: they are not read so.
	copy_as_nobody
	expect "files read so" "$(stat_line 'Files read with O_DIRECT')" == 0
	expect "files unknown" "$(stat_line 'Files of unknown residency')" == 15
	expect "pages left" "$(resident src)" ">" 10000
	[[ $output == *"Pages left because of us: 0, not counting 15 files of unknown residency"* ]]
	[[ $output == *"files read: ordinary reads, pages stay"* && $output != *"read: cachestat"* ]]
	cachemap evict src
	warm src/blocks/s8388609 --half 2M
	warm src/blocks/s65537 --pages 3-7
	# Later they are.
	leaves_as_found src/blocks copy_as_nobody LD_PRELOAD="$BATS_TEST_TMPDIR/libhourlater.so"
	expect "files read so" "$(stat_line 'Files read with O_DIRECT')" == 12
	expect "files unknown" "$(stat_line 'Files of unknown residency')" == 3
	[[ $output == *"12 files read: O_DIRECT; 3 files read: ordinary reads, pages stay"* ]]
	expect "pages of the destination" "$(resident dst)" == 0
	treecmp --no-owner --no-dir-times src dst
}

@test "FUSE: another user's files, which may not be asked about, are left as found by O_DIRECT" {
	command -v faultfs >/dev/null || skip "no libfuse3"
	make_disk "$PWD/disk" 400M
	mkdir disk/below src dst
	make_edges disk/below
	let_others_in "$BATS_TEST_TMPDIR"
	cp "$TIPTOE" "$TIPTOE_TOOLS/libhourlater.so" "$BATS_TEST_TMPDIR"
	chown 65534:65534 dst
	faultfs disk/below src
	cachemap evict src
	warm src/s8388609 --half 2M
	leaves_as_found src copy_as_nobody LD_PRELOAD="$BATS_TEST_TMPDIR/libhourlater.so"
	expect "files read so" "$(stat_line 'Files read with O_DIRECT')" == 15
	treecmp --no-owner --no-dir-times --no-sparse src dst
}
