#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A destination that is full, read-only, or breaks: a message with the path, the right exit code, no temporary, the old version intact.
load ../scratch

setup() {
	begin_scratch
	need_root
	cd "$BATS_TEST_TMPDIR" || return 1
	make_tree src 2
}

teardown() {
	cd / || return 1
	chattr -R -i "$BATS_TEST_TMPDIR" 2>/dev/null || true
	remove_disks "$BATS_TEST_TMPDIR"
}

# Each file of dst is whole, old or new.
nothing_is_torn() { # DST
	local name
	(cd "$1" && find . -type f) | while read -r name; do
		cmp -s "$1/$name" "src/$name" || cmp -s "$1/$name" "old/$name" || { echo "torn: $name"; return 1; }
	done
	[ -z "$(temporaries "$1")" ]
}

@test "one file that is larger than the disk: its path, exit 11, the old version stays" {
	make_disk "$PWD/disk" 64M
	mkdir big old
	make_file big/victim 100M
	echo old >old/victim
	cp -p old/victim disk/victim
	for ring in on off; do
		TIPTOE_RING=$ring tiptoe 11 -a big/ disk
		[[ $output == *"writing victim: No space left on device"* ]]
		cmp disk/victim old/victim
		[ -z "$(temporaries disk)" ]
	done
}

@test "many files for which there is no room: exit 11, no temporary, nothing torn" {
	make_disk "$PWD/disk" 40M
	mkdir old
	mkdir disk/dst
	for name in larger large a0/b0/f147; do
		mkdir -p "disk/dst/$(dirname $name)" "old/$(dirname $name)"
		echo "old $name" >"disk/dst/$name"
		cp -p "disk/dst/$name" "old/$name"
	done
	make_file src/zz 20M
	for workers in 1 16; do
		tiptoe 11 -a --workers=$workers src/ disk/dst
		[[ $output == *"No space left on device"* ]]
		nothing_is_torn disk/dst
	done
}

@test "a disk that is full only because of our temporaries is not full" {
	make_disk "$PWD/disk" 96M
	mkdir disk/dst
	# One old version of each beside one new one: there is room for one file at a time, not for all.
	make_tree disk/dst 1
	sync -f disk
	room=$(df --output=avail -B1 disk | tail -1)
	fallocate -l $((room - (14 << 20))) disk/filler
	tiptoe 0 -a src/ disk/dst
	treecmp --no-dir-times src disk/dst
}

# What waits for room must not wait for itself: a name that leads because the first one found no room is copied in the middle of an arrival.
@test "groups of links for which there is no room, on a disk that is really full: an end, whatever the workers" {
	local option mounted=$PWD/disk
	mkdir hs
	seq 5000000 | head -c $((400 * 90000)) | split -b 90000 -a 3 -d --additional-suffix=.a - hs/g
	for name in b c d; do
		for file in hs/*.a; do echo "$file ${file%a}$name"; done
	done | xargs -n 2 ln
	(cd hs && md5sum -- *) | sort >sums
	for option in "" --workers=2 --workers=8 --dirty-limit=1M; do
		remove_disks "$PWD"
		make_disk "$mounted" 24M
		run timeout -k 5 60 "$TIPTOE" -aH $option hs/ disk/d
		check_run 11
		[[ $output == *"No space left on device"* ]]
		[ -z "$(temporaries disk)" ]
		(cd disk/d && md5sum -- *) | sort | comm -13 sums - >torn
		[ ! -s torn ]
	done
}

@test "a disk with no inode left: the path, a right exit code, nothing torn" {
	make_disk "$PWD/disk" 32M ext4 -N 64
	mkdir old
	run "$TIPTOE" -a src/ disk/dst
	[[ $status -eq 11 || $status -eq 23 ]]
	check_run "$status"
	[[ $output == *"No space left on device"* ]]
	mkdir -p disk/dst
	nothing_is_torn disk/dst
}

@test "a file system that is read-only: exit 23 or 11, everything as it was" {
	make_disk "$PWD/disk" 64M
	make_tree disk/dst 1
	cp -a disk/dst old
	mount -o remount,ro disk
	tiptoe 23 -a src/ disk/dst
	[[ $output == *" large: Read-only file system"* || $output == *"/f"*": Read-only file system"* ]] # whoever fails first
	treecmp old disk/dst
	tiptoe 11 -a src/ disk/new
	[[ $output == *"disk/new"*"Read-only file system"* ]]
}

@test "a directory that may not be written to: the paths, exit 23, everything else is copied" {
	make_tree dst 1
	chattr +i dst/a3/b1
	tiptoe 23 -a src/ dst
	[[ $output == *"a3/b1/f10"*"Operation not permitted"* ]]
	chattr -i dst/a3/b1
	[ -z "$(temporaries dst)" ]
	mv dst/a3/b1 kept
	rm -r src/a3/b1
	treecmp --no-dir-times src dst
	grep -q '^1 ' kept/f31
}

# A disk that has room, but what is written to it does not reach its image: that lies on a tmpfs that is full. Nobody hears of it before
# writeback (the loop device hands the image's ENOSPC on). Without a journal, so that the file system itself goes on.
make_failing_disk() {
	mkdir small
	mount -t tmpfs -o size=48M tmpfs small
	mkdir disk
	truncate -s 400M small/image
	mkfs.ext4 -q -F -O ^has_journal -E lazy_itable_init=0,nodiscard small/image
	device=$(losetup --find --show small/image)
	mount "$device" disk
	rm -rf disk/lost+found
}

# Its last writes fail too: nothing waits for them.
take_down_failing_disk() {
	umount disk || umount -l disk
	losetup -d "$device"
	umount small || umount -l small
}

@test "a writeback error reaches the exit code, and the old content stays" {
	make_failing_disk
	mkdir big old
	make_file big/victim 150M
	make_file old/victim 1M old
	cp -p old/victim disk/victim
	sync -f disk
	# The test can fail: cp does not hear of it.
	cp big/victim disk/by-cp
	rm disk/by-cp
	for ring in on off; do
		TIPTOE_RING=$ring run "$TIPTOE" -a big/ disk
		check_run 11
		[[ $output == *"writing victim: No space left on device"* ]]
		[ -z "$(temporaries disk)" ]
		cmp disk/victim old/victim
	done
	take_down_failing_disk
}

@test "a writeback error of some of many small files keeps just those from arriving" {
	make_failing_disk
	rm -rf src
	make_small_files src 15000
	run "$TIPTOE" -a src/ disk/dst
	check_run 11
	[[ $output == *"writing d"*": No space left on device"* ]]
	[ -z "$(temporaries disk)" ]
	# No name has arrived of which it is said that it failed.
	sed -n 's/^tiptoe: writing \(.*\): No space.*/\1/p' <<<"$output" | sort >failed
	(cd disk/dst && find d* -type f) | sort >arrived
	expect "failed files" "$(wc -l <failed)" ">" 0
	expect "arrived files" "$(wc -l <arrived)" ">" 0
	[ -z "$(comm -12 failed arrived)" ]
	take_down_failing_disk
}

@test "an I/O error of writeback keeps the file from arriving, and the others arrive" {
	make_tree dst 1
	cp -a dst old
	TIPTOE_RING=off run traced -e trace=sync_file_range -e inject=sync_file_range:error=EIO:when=3 "$TIPTOE" -a src/ dst
	check_run 23
	[[ $output == *writing*"Input/output error"* ]]
	# strace counts per thread: one of each.
	sed -n 's/^tiptoe: writing \(.*\): Input.*/\1/p' <<<"$output" >failed
	[ -s failed ]
	[ -z "$(temporaries dst)" ]
	while read -r name; do
		cmp "dst/$name" "old/$name"
		rm "src/$name" "dst/$name"
	done <failed
	treecmp --no-dir-times src dst
}

@test "with --fsync a failed fsync keeps the file from arriving" {
	mkdir dst
	echo old >dst/large
	TIPTOE_RING=off run traced -e trace=fsync -e inject=fsync:error=EIO:when=1 "$TIPTOE" -a --fsync --include=/large --exclude='*' src/ dst
	check_run 23
	[[ $output == *"writing large: Input/output error"* ]]
	[ "$(cat dst/large)" = old ]
	[ -z "$(temporaries dst)" ]
}

@test "a failed sync_file_range keeps the file from arriving" {
	mkdir dst
	echo old >dst/larger
	TIPTOE_RING=off run traced -e trace=sync_file_range -e inject=sync_file_range:error=EIO:when=2 "$TIPTOE" -a --include=/larger --exclude='*' src/ dst
	check_run 23
	[[ $output == *"writing larger: Input/output error"* ]]
	[ "$(cat dst/larger)" = old ]
	[ -z "$(temporaries dst)" ]
}

@test "a rename that fails leaves the old version and no temporary" {
	make_tree dst 1
	run traced -P large -e trace=renameat,renameat2 -e inject=renameat,renameat2:error=EACCES "$TIPTOE" -a src/ dst
	check_run 23
	[[ $output == *"renaming into place large: Permission denied"* ]]
	grep -q '^1 large' dst/large
	[ -z "$(temporaries dst)" ]
}

@test "nothing stays mounted, and no loop device is taken" {
	make_disk "$PWD/disk" 16M
	remove_disks "$PWD"
	[ -z "$(grep "$PWD/" /proc/mounts)" ]
	[ -z "$(losetup -a | grep -F "($PWD/")" ]
}
