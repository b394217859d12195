#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# No page is left on file systems that need other means: xfs, btrfs, overlayfs; and tmpfs, which has nothing to leave.
load ../scratch

setup() {
	begin_scratch
	need_root
	cd "$BATS_TEST_TMPDIR" || return 1
	mkdir src
	make_tree src 1
	make_file src/big 40M
	cachemap evict src
}

teardown() {
	cd / || return 1
	remove_disks "$BATS_TEST_TMPDIR"
}

# From src to a new directory of the disk, then over old files of it, then from there.
copies_on() { # DIRECTORY
	tiptoe 0 -a --stats src/ "$1/new"
	expect "pages after a copy" "$(resident src "$1/new")" == 0
	treecmp --no-sparse src "$1/new"
	rm -r src
	make_tree src 2
	make_file src/big 40M 2
	cachemap evict src
	tiptoe 0 -a --stats src/ "$1/new"
	expect "pages after an update" "$(resident src "$1/new")" == 0
	treecmp --no-sparse src "$1/new"
	tiptoe 0 -a --stats "$1/new/" "$1/again"
	expect "pages after a copy within the disk" "$(resident "$1/new" "$1/again")" == 0
	treecmp --no-sparse "$1/new" "$1/again"
	warm "$1/new/big" --half 2M
	copy_again() {
		rm -r "$1/again"
		tiptoe 0 -a "$1/new/" "$1/again"
	}
	leaves_as_found "$1/new" copy_again "$1"
	expect "pages left of the destination" "$(resident "$1/again")" == 0
}

@test "xfs: nothing is left, and what was resident stays" {
	make_disk "$PWD/disk" 512M xfs
	copies_on disk
	tiptoe 0 -a --stats src/ disk/stats
	[[ $output == *"Mechanism: xfs on loop"* ]]
}

@test "btrfs: nothing is left, and what was resident stays" {
	make_disk "$PWD/disk" 512M btrfs
	copies_on disk
	tiptoe 0 -a --stats src/ disk/stats
	[[ $output == *"Mechanism: btrfs"* ]]
}

@test "ext4 with small blocks: nothing is left, and what was resident stays" {
	make_disk "$PWD/disk" 512M ext4 -b 1024
	copies_on disk
}

@test "overlayfs: nothing is left, by fdatasync and mincore" {
	make_disk "$PWD/disk" 512M
	mkdir disk/lower disk/upper disk/work merged
	make_tree disk/lower 3
	mount -t overlay overlay -o "lowerdir=$PWD/disk/lower,upperdir=$PWD/disk/upper,workdir=$PWD/disk/work" merged
	copies_on merged
	tiptoe 0 -a --stats src/ merged/stats
	[[ $output == *"Mechanism: overlay"*mincore*fdatasync* ]]
	# Each file asked on its own, and the files below.
	for file in merged/stats/big merged/stats/large merged/new/a1/b1/f1; do
		[ -z "$(cachemap list "$file")" ]
	done
	expect "pages below" "$(resident disk/upper/stats)" == 0
}

@test "tmpfs as source and as destination: the copy is equal, and the other side is left as found" {
	mkdir ram
	mount -t tmpfs -o size=256M tmpfs ram
	tiptoe 0 -a --stats src/ ram/new
	treecmp --no-sparse src ram/new
	expect "pages of the source" "$(resident src)" == 0
	[[ $output == *"Mechanism: tmpfs"*"no cache of its own"* ]]
	tiptoe 0 -a ram/new/ back
	treecmp --no-sparse ram/new back
	expect "pages of the copy" "$(resident back)" == 0
	tiptoe 0 -a ram/new/ ram/again
	treecmp --no-sparse ram/new ram/again
}
