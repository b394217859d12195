#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Leave as found, for files that are written in place: hot pages stay, cold ones go, dirt stays bounded, and appending touches nothing that was there.
load ../scratch

setup() {
	begin_scratch
	need_root
}

teardown() {
	cd / || return 1
	remove_disks "$BATS_TEST_TMPDIR"
}

on_disk() { # FSTYPE [MKFS-ARGUMENT...]
	make_disk "$BATS_TEST_TMPDIR/disk" 600M "$@"
	cd "$BATS_TEST_TMPDIR/disk" || return 1
	mkdir src dst
	for pair in three-pages:12288 odd:9999 hundred:100K five:5M large:60M; do
		make_file "dst/${pair%:*}" "${pair#*:}" old
		make_file "src/${pair%:*}" "${pair#*:}" new
	done
	# Longer and shorter than what they replace.
	make_file dst/grows 5M old
	make_file src/grows 9M new
	make_file dst/shrinks 9M old
	make_file src/shrinks 5M new
	make_file src/new 3M new
	touch -d 2001-01-01 dst/*
	cachemap evict src dst
	expect "pages before" "$(resident src dst)" == 0
}

# Writes the files in place, however often it was done already.
update() { # ARGUMENT...
	find src -type f -exec touch -d "@$((1600000000 + ++updated))" {} +
	tiptoe 0 -a --inplace "$@" src/ dst
}

leaves_everything_as_found() {
	tiptoe 0 -a --inplace src/ dst
	expect "pages of cold files" "$(resident src dst)" == 0
	treecmp src dst
	warm dst/large --half 2M
	warm dst/five --every 100
	warm dst/hundred --pages 3-7
	warm dst/three-pages --pages 2-2
	cachemap warmtree dst/grows dst/odd
	leaves_as_found . update
	treecmp src dst
}

@test "ext4: hot pages stay, cold ones go" {
	on_disk ext4
	leaves_everything_as_found
}

@test "ext4 with small blocks: hot pages stay, cold ones go" {
	on_disk ext4 -b 1024
	leaves_everything_as_found
}

@test "xfs: hot pages stay, cold ones go" {
	on_disk xfs
	leaves_everything_as_found
}

@test "btrfs: hot pages stay, cold ones go" {
	on_disk btrfs
	leaves_everything_as_found
}

@test "a hot file is never cold while it is written" {
	on_disk ext4
	cachemap warmtree dst/large
	"$TIPTOE" -a --inplace --dirty-limit=1M src/ dst &
	HELPER=$!
	lowest=15360
	while kill -0 $HELPER 2>/dev/null; do
		pages=$(resident dst/large)
		((pages < lowest)) && lowest=$pages
	done
	wait $HELPER
	# A few may be DAMON's.
	expect "pages of the hot file" "$lowest" ">=" 15300
	cmp src/large dst/large
}

@test "a file of which one page is hot does not fill the cache while it is written" {
	on_disk ext4
	rm -r dst src/*
	mkdir dst
	make_big_file src/big 200M
	make_big_file dst/big 200M
	touch -d 2001-01-01 dst/big
	warm dst/big --pages 100-100
	"$TIPTOE" -a --inplace --dirty-limit=8M src/ dst &
	HELPER=$!
	highest=0
	while kill -0 $HELPER 2>/dev/null; do
		pages=$(resident dst/big)
		((pages > highest)) && highest=$pages
	done
	wait $HELPER
	echo "# at most $highest of 51200 pages" >&3
	expect "pages while it is written" "$highest" ">" 0
	expect "pages while it is written" "$highest" "<" 16384
	expect "pages at the end" "$(resident dst/big)" == 1
}

@test "holes over hot pages: they are resident afterwards" {
	on_disk ext4
	rm src/large src/five
	truncate -s 60M src/large src/five
	dd if=/dev/urandom of=src/large bs=4K seek=3000 count=700 conv=notrunc status=none
	cachemap evict src
	cp -a dst again
	cachemap evict dst again
	warm dst/large --every 100
	cachemap warmtree dst/five
	leaves_as_found . update
	treecmp src dst
	# With -S, of a source that has zeros for its holes.
	cp --sparse=never -a src/large full
	mv full src/large
	cachemap evict src
	warm again/large --every 100
	leaves_as_found . tiptoe 0 -aS --inplace src/ again
	cmp src/large again/large
	# A block or two are for the map of extents.
	expect "blocks" "$(stat -c %b again/large)" "<=" "$(($(stat -c %b dst/large) + 64))"
}

@test "--append touches nothing of what was there" {
	on_disk ext4
	for name in large five hundred; do
		head -c $(($(stat -c %s src/$name) * 2 / 3)) src/$name >dst/$name
	done
	touch -d 2001-01-01 dst/*
	cp -a dst again
	cachemap evict .
	warm dst/large --half 2M
	cachemap warmtree dst/five
	leaves_as_found . tiptoe 0 -a --append --include={large,five,hundred} --exclude='*' src/ dst
	for name in large five hundred; do
		cmp src/$name dst/$name
	done
	cachemap evict .
	warm again/large --half 2M
	warm src/large --half 4M
	leaves_as_found . tiptoe 0 -a --append-verify --include={large,five,hundred} --exclude='*' src/ again
	for name in large five hundred; do
		cmp src/$name again/$name
	done
}

@test "--append-verify of files that differ leaves no page" {
	on_disk ext4
	for name in large five hundred; do
		truncate -s -1000 dst/$name
	done
	cachemap evict .
	tiptoe 0 -a --append-verify --include={large,five,hundred} --exclude='*' src/ dst
	expect "pages left" "$(resident src dst)" == 0
	for name in large five hundred; do
		cmp src/$name dst/$name
	done
}

# The most bytes of FILE that were not on the disk yet while the command ran. Of this file, not of the machine, on which others write too.
most_dirt() { # FILE COMMAND...
	local file=$1 pages
	shift
	"$@" &
	HELPER=$!
	most=0
	while kill -0 $HELPER 2>/dev/null; do
		pages=$(($(cachemap count "$file" | sed 's/.*dirty=\([0-9]*\) writeback=\([0-9]*\)/\1 + \2/')))
		((pages > most)) && most=$pages
	done
	wait $HELPER
	most=$((most * 4096))
}

@test "overwriting never piles up more than the budget, and dd does" {
	on_disk ext4
	rm -r dst src/*
	mkdir dst
	make_big_file src/big 200M
	make_big_file dst/big 200M
	touch -d 2001-01-01 dst/big
	most_dirt dst/big "$TIPTOE" -a --inplace --dirty-limit=16M src/ dst
	echo "# $((most >> 20)) MiB of dirt at most" >&3
	expect "bytes" "$most" ">" 0
	expect "bytes" "$most" "<=" $((16 << 20))
	most_dirt dst/big dd if=src/big of=dst/big bs=1M conv=notrunc status=none
	expect "bytes under dd" "$most" ">" $((32 << 20))
}

@test "--cache=drop, --cache=keep and --cache=direct hold in place too" {
	on_disk ext4
	warm dst/large --half 2M
	leaves_as_found . update --cache=direct -v
	[[ $output == *"large is written without O_DIRECT: it is written in place"* ]]
	treecmp src dst
	cachemap warmtree dst/large src/large
	update --cache=drop
	expect "pages after drop" "$(resident src dst)" == 0
	update --cache=keep
	expect "pages after keep" "$(resident dst/large)" == 15360
	treecmp src dst
}
