#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A file system that ends in the middle of a run: read-only, shut down, its server dead, full, over quota. A clear message, a bounded number of
# them, the right exit code, an end; and afterwards every name has its whole old or its whole new content.
load ../scratch

setup() {
	begin_scratch
	need_root
	cd "$BATS_TEST_TMPDIR" || return 1
	HELPER=
}

teardown() {
	cd / || return 1
	[[ -z $HELPER ]] || end_process "$HELPER"
	remove_disks "$BATS_TEST_TMPDIR"
}

# Old and new versions of files that are many, and of one that is large.
make_versions() {
	make_small_files src 1000 5000
	make_big_file src/large 32M
	cp -r src old
	find old -name 'f*' -exec sed -i '1s/^/old /' {} +
	find old -exec touch -d @1500000000 {} +
}

# Nothing differs from both versions. The temporaries of a run that could not remove them are the next one's to sweep.
whole_versions() { # DST
	temporaries "$1" | xargs -r rm
	for version in src old; do
		diff -rq "$1" "$version" | grep -v "^Only in $version" | sed "s/ and $version/ and /" | sort >"not-$version"
	done
	[ -z "$(comm -12 not-src not-old)" ] || {
		comm -12 not-src not-old
		return 1
	}
}

# Runs it in the background until a part has arrived, does something, waits for the end.
run_until_something_happens() { # EXIT-CODES ARRIVED-FILE COMMAND...
	local codes=$1 arrived=$2 code=0
	shift 2
	"$TIPTOE" -a --dirty-limit=1M src/ disk/dst >out 2>&1 &
	HELPER=$!
	until cmp -s "disk/dst/$arrived" "src/$arrived"; do
		kill -0 $HELPER || { echo "it ended too early"; return 1; }
	done
	"$@"
	wait $HELPER || code=$?
	HELPER=
	output=$(<out)
	[[ " $codes " == *" $code "* ]] || { echo "exit code $code: $output"; return 1; }
	status=$code check_run "$code"
	expect "lines" "$(wc -l <out)" "<" 60
}

trigger_error() {
	echo 1 >"/sys/fs/ext4/$(basename "$(disk_device "$PWD/disk")")/trigger_fs_error"
}

@test "ext4 that becomes read-only after an error" {
	make_versions
	make_disk "$PWD/disk" 256M ext4 -e remount-ro
	cp -a old disk/dst
	sync -f disk
	run_until_something_happens "23 11" d0/f0010 trigger_error
	[[ $output == *"Read-only file system"* || $output == *"Input/output error"* ]]
	umount disk
	e2fsck -fy disk.img >fsck || [ $? -eq 1 ]
	mount -o loop disk.img disk
	whole_versions disk/dst
	tiptoe 0 -a src/ disk/dst
	treecmp src disk/dst
	[ -z "$(temporaries disk/dst)" ]
}

@test "xfs that is shut down" {
	make_versions
	make_disk "$PWD/disk" 400M xfs
	cp -a old disk/dst
	sync -f disk
	run_until_something_happens "23 11" d0/f0010 xfs_io -x -c shutdown disk
	[[ $output == *"Input/output error"* ]]
	umount disk
	losetup -D "$PWD/disk.img" 2>/dev/null || true
	mount -o loop disk.img disk
	whole_versions disk/dst
	tiptoe 0 -a src/ disk/dst
	treecmp src disk/dst
}

@test "a file system that answers everything with EROFS says it ten times" {
	make_versions
	make_faultfs disk below
	mkdir disk/dst
	set_faults disk "create EROFS 300+ *" "mkdir EROFS 300+ *" "rename EROFS 300+ *" "unlink EROFS 1+ extra*"
	touch disk/dst/extra{1..30}
	tiptoe 23 -a --delete-before src/ disk/dst
	[[ $output == *"Read-only file system"* ]]
	[[ $output == *"more such errors are not shown"* ]]
	expect "lines" "$(wc -l <<<"$output")" "<" 40
	[ -z "$(temporaries below/dst)" ]
}

@test "a file system that takes no file any more is given up, another one is not" {
	make_versions
	rm src/large
	make_faultfs disk below
	mkdir -p disk/dst/d1 other
	set_faults disk "create EIO 100+ *"
	mount --bind other disk/dst/d1
	tiptoe 23 -a src/ disk/dst
	umount disk/dst/d1
	[[ $output == *"has taken none of 16 files in a row: no more are tried there"* ]]
	[[ $output == *"more such errors are not shown"* ]]
	expect "lines" "$(wc -l <<<"$output")" "<" 60
	treecmp --no-dir-times src/d1 other
	[ -z "$(temporaries below/dst)" ]
	# A failure now and then is none of that kind.
	rm -rf disk/dst/*
	set_faults disk "create EIO 1+ *f00?0*"
	tiptoe 23 -a --workers=1 src/ disk/dst
	[[ $output != *"no more are tried"* ]]
	[ "$(find disk/dst -type f | wc -l)" -eq "$(find src -type f -not -name 'f00?0' | wc -l)" ]
}

@test "a FUSE server that dies" {
	make_versions
	mkdir -p below disk
	cp -a old below/dst
	faultfs --pid pid below disk
	until [ -s pid ]; do sleep 0.01; done
	run_until_something_happens "23 11" d0/f0010 kill -9 "$(<pid)"
	[[ $output == *"not connected"* || $output == *"Software caused connection abort"* ]]
	umount disk
	whole_versions below/dst
}

# A disk on which so much is left.
fill_disk() { # BYTES
	sync -f disk
	fallocate -l $(($(df --output=avail -B1 disk | tail -1) - $1)) disk/filler
}

@test "xfs and btrfs that are full in the middle: exit 11, nothing is deleted, old versions stay" {
	make_small_files src 500 20000
	make_file src/zz 20M
	mkdir old
	for name in zz d0/f0490; do
		mkdir -p "old/$(dirname "$name")"
		echo "old $name" >"old/$name"
	done
	for type in xfs btrfs; do
		make_disk "$PWD/disk" 320M "$type"
		cp -a old disk/dst
		fill_disk $((16 << 20))
		for mode in --delete-after --delete-during; do
			touch disk/dst/extraneous
			tiptoe 11 -a "$mode" --workers=4 src/ disk/dst
			[[ $output == *"No space left on device"* ]]
			[ -z "$(temporaries disk/dst)" ]
			[[ $mode == --delete-during ]] || [ -e disk/dst/extraneous ]
			rm -f disk/dst/extraneous
			whole_versions disk/dst
		done
		remove_disks "$PWD"
	done
}

@test "a quota that is used up in the middle: exit 11, old versions stay" {
	make_file big 60M
	mkdir src
	mv big src/victim
	make_disk "$PWD/disk" 320M btrfs
	btrfs -q subvolume create disk/sub
	echo old >disk/sub/victim
	btrfs -q quota enable disk
	btrfs -q qgroup limit 20M disk/sub
	sync -f disk
	for ring in on off; do
		TIPTOE_RING=$ring tiptoe 11 -a --delete-after src/ disk/sub
		[[ $output == *"writing victim: Disk quota exceeded"* ]]
		[ "$(cat disk/sub/victim)" = old ]
		[ -z "$(temporaries disk/sub)" ]
	done
}

@test "an error among names that have vanished still prevents deletions, whichever comes first" {
	local rules broken
	for broken in f1 f6; do
		rm -rf below dst
		mkdir below dst
		for i in 1 2 3 4 5 6; do echo x >below/f$i; done
		cp -a below/. dst/
		echo x >dst/extra
		make_faultfs src below
		rules=("lookup EIO * $broken")
		for i in 1 2 3 4 5 6; do [[ f$i == "$broken" ]] || rules+=("lookup ENOENT * f$i"); done
		set_faults src "${rules[@]}"
		run "$TIPTOE" -a --delete src/ dst
		umount src
		expect "exit code" "$status" == 23
		[[ $output == *"reading attributes of $broken: Input/output error"* ]]
		[[ $output == *"skipping file deletion"* ]]
		[ "$(ls dst | wc -l)" -eq 7 ]
	done
}

@test "an xfs project quota that is used up in the middle: exit 11, old versions stay" {
	mkdir src
	make_file src/victim 60M
	make_disk "$PWD/disk" 320M xfs
	device=$(disk_device "$PWD/disk")
	umount disk
	mount -o prjquota "$device" disk || skip "this kernel has no quotas on xfs"
	mkdir disk/sub
	echo old >disk/sub/victim
	xfs_quota -x -c "project -s -p $PWD/disk/sub 42" -c "limit -p bhard=20m 42" disk
	for ring in on off; do
		TIPTOE_RING=$ring tiptoe 11 -a --delete-after src/ disk/sub
		# A project's limit is its disk's size: xfs says ENOSPC of it, others EDQUOT.
		[[ $output == *"writing victim: Disk quota exceeded"* || $output == *"writing victim: No space left on device"* ]]
		[ "$(cat disk/sub/victim)" = old ]
		[ -z "$(temporaries disk/sub)" ]
	done
}

@test "a tmpfs that is full in the middle: exit 11, old versions stay" {
	make_small_files src 500 5000
	make_file src/victim 20M
	mkdir -p disk old
	mount -t tmpfs -o size=16M tmpfs disk
	echo old >old/victim
	cp -a old disk/dst
	touch disk/dst/extraneous
	for ring in on off; do
		TIPTOE_RING=$ring tiptoe 11 -a --delete-after src/ disk/dst
		[[ $output == *"No space left on device"* ]]
		[ -e disk/dst/extraneous ]
		[ -z "$(temporaries disk/dst)" ]
		cmp disk/dst/victim old/victim
	done
	rm disk/dst/extraneous
	whole_versions disk/dst
}
