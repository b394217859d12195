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
	tiptoe 0 -a --stats merged/new/ merged/stats
	[[ $output == *"Mechanism: overlay"*"read: mincore"*"written: fdatasync"* ]]
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

@test "FUSE that writes back: nothing is left, and what was resident stays" {
	make_faultfs "$PWD/disk" "$PWD/below" writeback
	copies_on disk
	tiptoe 0 -a --stats src/ disk/stats
	[[ $output == *"Mechanism: fuse"* ]]
}

@test "FUSE that writes through: nothing is left, and what was resident stays" {
	make_faultfs "$PWD/disk" "$PWD/below"
	rm src/big
	warm src/larger --half 1M
	copy_to_and_fro() {
		rm -rf disk/new back
		tiptoe 0 -a src/ disk/new
		tiptoe 0 -a disk/new/ back
	}
	leaves_as_found src copy_to_and_fro
	expect "pages of the copies" "$(resident disk/new back)" == 0
	treecmp --no-sparse src back
}

# Times before 1970 and after 2038, modes, holes, links, names, what is no file.
make_odd_tree() { # DIRECTORY
	mkdir -p "$1"/{empty,closed,deep/er/still}
	make_file "$1/before" 20K
	touch -d @-86400.5 "$1/before"
	make_file "$1/at-zero" 3K
	touch -d @0 "$1/at-zero"
	make_file "$1/far" 3K
	touch -d @4200000000 "$1/far"
	make_file "$1/none" 5K
	chmod 0 "$1/none"
	make_file "$1/only-write" 5K
	chmod 200 "$1/only-write"
	truncate -s 9M "$1/holes"
	printf data | dd of="$1/holes" bs=1 seek=5000000 conv=notrunc status=none
	make_file "$1/big" 11M
	make_file "$1/deep/er/still/file" 70K
	ln "$1/big" "$1/deep/link-of-big"
	ln -s /nowhere "$1/dangling"
	mkfifo "$1/fifo"
	make_file "$1/$(printf 'n%.0s' {1..250})" 1K
	make_file "$1/"$'b\xffad\nname' 1K
	make_file "$1/closed/file" 1K
	chmod 555 "$1/closed"
}

@test "squashfs and erofs as sources: the copy is equal, and what was resident stays" {
	make_odd_tree odd
	mksquashfs odd squash.img -quiet -no-progress >/dev/null
	mkfs.erofs --quiet erofs.img odd >/dev/null
	mkdir squash erofs
	for type in squash erofs; do
		mount -o loop,ro "$type.img" "$type"
		cat "$type/big" >/dev/null
		leaves_as_found "$type" copy_whole "$type"
		expect "pages of the copy" "$(resident copy)" == 0
		treecmp --no-sparse "$type" copy
		cmp odd/big copy/big
		cmp odd/holes copy/holes
		# squashfs fills pages behind the end of a file, which no bitmap of the file shows.
		cachemap evict "$type"
		expect "pages before" "$(resident "$type")" == 0
		copy_whole "$type"
		expect "pages after, also behind the ends" "$(resident "$type")" == 0
	done
}

copy_whole() { # SOURCE
	rm -rf copy
	tiptoe 0 -aH "$1/" copy
}

@test "a merged overlayfs as source: what is seen is copied, no whiteout" {
	mkdir lower upper work merged
	make_odd_tree lower
	mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged
	rm merged/far merged/deep/link-of-big
	rm -r merged/empty
	mkdir merged/empty
	touch merged/empty/new
	printf more >>merged/before
	cachemap evict merged
	leaves_as_found merged copy_whole merged
	# A file that is only below, and one that has come up, have numbers of different kinds.
	treecmp merged copy
	[ ! -e copy/far ]
}

@test "oddities of FUSE as source and as destination: the copy is equal, the next run has nothing to do" {
	make_odd_tree odd
	mkdir mnt
	local sparse
	for options in direct forget no-type ino-zero one-link no-blocks no-seek no-rename2 \
		no-type,ino-zero,one-link,no-blocks,no-seek,no-rename2,writeback; do
		make_faultfs mnt below "$options"
		tiptoe 0 -aH odd/ mnt/dst
		treecmp odd below/dst
		run "$TIPTOE" -aHi odd/ mnt/dst
		check_run 0
		[ -z "$output" ] || { echo "$options: $output"; false; }
		mkdir -p mnt/dst/extra/dir
		touch mnt/dst/extra/file mnt/dst/extra-file
		tiptoe 0 -aH --delete odd/ mnt/dst
		treecmp odd below/dst
		rm -rf copy
		tiptoe 0 -aH --exclude=deep/ --exclude=big mnt/dst/ copy
		[ ! -e copy/deep ] && [ ! -e copy/big ]
		tiptoe 0 -aH mnt/dst/ copy
		# Nobody says where the holes are.
		[[ $options == *no-seek* ]] && sparse=--no-sparse || sparse=
		treecmp $sparse --no-dir-times odd copy
		umount mnt
		rm -rf below
	done
}
