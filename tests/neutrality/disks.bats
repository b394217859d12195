#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Which files share a disk, on real mounts; and several disks in one run: each keeps its own pace and its own bound of dirty bytes. No test passes
# or fails by time: a disk that is frozen (fsfreeze) stands for one that is infinitely slow, and what is asked is what is there meanwhile.
load ../scratch

setup() {
	begin_scratch
	need_root
	cd "$BATS_TEST_TMPDIR" || return 1
	HELPER=
}

teardown() {
	cd / || return 1
	thaw
	[[ -z $HELPER ]] || end_process "$HELPER"
	[[ ! -f $BATS_TEST_TMPDIR/limited ]] || unlimit
	if [[ -f $BATS_TEST_TMPDIR/image.loop ]]; then
		umount "$BATS_TEST_TMPDIR"/p? 2>/dev/null || true
		partx -d "$(<"$BATS_TEST_TMPDIR/image.loop")"
	fi
	remove_disks "$BATS_TEST_TMPDIR"
}

thaw() {
	local dir
	for dir in "$BATS_TEST_TMPDIR"/dst/*; do
		fsfreeze -u "$dir" 2>/dev/null || true
	done
}

# What devicetool says is the disk of PATH: its name and number.
disk_of() { # PATH
	devicetool "$1" | sed 's/.* on \("[^"]*" ([0-9:]*)\).*/\1/'
}

same_disk() { # PATH PATH
	[[ $(disk_of "$1") == "$(disk_of "$2")" ]] || { devicetool "$1" "$2"; return 1; }
}

other_disk() { # PATH PATH
	[[ $(disk_of "$1") != "$(disk_of "$2")" ]] || { devicetool "$1" "$2"; return 1; }
}

@test "partitions of one disk are one disk" {
	command -v sfdisk >/dev/null || skip "sfdisk is not installed"
	truncate -s 200M image
	printf 'label: gpt\nsize=90M\nsize=90M\n' | sfdisk -q image
	device=$(losetup --find --show --direct-io=on image)
	echo "$device" >image.loop
	# The kernel here reads no tables: partx tells it.
	partx -a "$device"
	for number in 1 2; do
		mkfs.ext4 -q -F "${device}p$number"
		mkdir "p$number"
		mount "${device}p$number" "p$number"
	done
	same_disk p1 p2
	[[ $(disk_of p1) == "\"${device#/dev/}\""* ]]
	other_disk p1 .
}

@test "subvolumes of btrfs are one disk, mounted or not" {
	make_disk "$PWD/one" 256M btrfs
	btrfs -q subvolume create one/sub
	btrfs -q subvolume create one/other
	mkdir alone
	mount -o subvol=other "$(disk_device "$PWD/one")" alone
	[[ $(stat -c %d one) != "$(stat -c %d one/sub)" && $(stat -c %d one) == "$(stat -c %d alone)" || $(stat -c %d one) != "$(stat -c %d alone)" ]]
	same_disk one one/sub
	same_disk one alone
	same_disk one/sub alone
}

@test "a loop device is a disk of its own, not that of its image" {
	make_disk "$PWD/one" 64M
	make_disk "$PWD/two" 64M
	other_disk one two
	other_disk one .
	[[ $(disk_of one) == "\"$(basename "$(disk_device "$PWD/one")")\""* ]]
}

@test "a bind mount is the disk that it shows" {
	make_disk "$PWD/one" 64M
	mkdir one/dir bound
	mount --bind one/dir bound
	same_disk one bound
	other_disk bound .
}

@test "an overlay is the disk of its upper directory; where that cannot be seen, its own" {
	make_disk "$PWD/one" 64M
	make_disk "$PWD/two" 64M
	mkdir one/lower two/upper two/work merged
	mount -t overlay overlay -o "lowerdir=$PWD/one/lower,upperdir=$PWD/two/upper,workdir=$PWD/two/work" merged
	same_disk merged two
	other_disk merged one
	# The path of the mount options is another's now.
	mv two/upper two/hidden
	[[ $(disk_of merged) == '""'* ]]
	mv two/hidden two/upper
}

@test "each tmpfs is a disk of its own" {
	mkdir one two
	mount -t tmpfs -o size=1M tmpfs one
	mount -t tmpfs -o size=1M tmpfs two
	other_disk one two
	[[ $(disk_of one) == '""'* ]]
}

# Two disks below dst, A and B.
make_two() { # SIZE
	mkdir -p dst src
	mount -t tmpfs tmpfs src
	make_disk "$PWD/dst/A" "$1"
	make_disk "$PWD/dst/B" "$1"
}

await() { # WHAT COMMAND...
	local what=$1 tries=${PATIENCE:-2400}
	shift
	until "$@"; do
		((tries-- > 0)) || { echo "not within two minutes: $what"; return 1; }
		[[ -z $HELPER ]] || kill -0 "$HELPER" 2>/dev/null || { echo "ended before: $what"; cat helper.err; return 1; }
		sleep 0.05
	done
}

is_complete() { # DIRECTORY
	[[ $(find "src/$1" -type f | wc -l) == "$(find "dst/$1" -type f ! -name '.*.tt-??????' | wc -l)" ]]
}

has_begun() { # DIRECTORY
	[[ -n $(find "dst/$1" -type f -print -quit 2>/dev/null) ]]
}

begin_copy() { # ARGUMENT...
	"$TIPTOE" "$@" >helper.out 2>helper.err 3>&- &
	HELPER=$!
}

ends_well() {
	local code=0
	wait "$HELPER" || code=$?
	HELPER=
	[[ $code -eq 0 ]] || { echo "exit code $code"; cat helper.err; return 1; }
	treecmp src/A dst/A
	treecmp src/B dst/B
	[[ $(<helper.err) != *'internal error'* ]]
}

# The first disk stops dead when it has got its first files; the other one must become complete none the less.
frozen_one_holds_up_nobody() { # SLOW FAST ARGUMENT...
	local slow=$1 fast=$2
	shift 2
	begin_copy -a "$@" src/A src/B dst
	await "$slow has begun" has_begun "$slow"
	fsfreeze -f "dst/$slow"
	await "$fast is complete" is_complete "$fast"
	if is_complete "$slow"; then
		echo "$slow was not slow"
		return 1
	fi
	[[ -d /proc/$HELPER ]]
	fsfreeze -u "dst/$slow"
	ends_well
}

@test "large files: a disk that stands still does not hold up another" {
	make_two 400M
	mkdir src/A src/B
	# More than the workers of one disk, and than its bound of dirty bytes.
	for i in 1 2 3 4 5 6 7 8 9 10; do
		make_file "src/A/f$i" 20M
		make_file "src/B/f$i" 9M
	done
	frozen_one_holds_up_nobody A B
}

@test "thousands of small files: a disk that stands still does not hold up another, with few workers too" {
	make_two 200M
	mkdir src/A src/B
	# More than may be planned ahead for one disk: 8192 names.
	make_small_files src/A 9500 300
	make_small_files src/B 1500 300
	frozen_one_holds_up_nobody A B
	rm -rf dst/A/* dst/B/*
	frozen_one_holds_up_nobody A B --workers=1
}

@test "a disk that stands still before anything was tried on it does not hold up another" {
	make_two 100M
	mkdir src/A src/B
	make_small_files src/A 500
	make_small_files src/B 500
	# Whichever is planned first.
	for slow in A B; do
		fast=$([[ $slow == A ]] && echo B || echo A)
		fsfreeze -f "dst/$slow"
		begin_copy -a src/A src/B dst
		await "$fast is complete" is_complete "$fast"
		[[ -d /proc/$HELPER ]]
		fsfreeze -u "dst/$slow"
		ends_well
		rm -rf dst/A/* dst/B/*
	done
}

@test "with -H: a disk that stands still does not hold up another, and names of one file stay so" {
	make_two 200M
	mkdir src/A src/B
	make_small_files src/A 9500 100
	make_small_files src/B 1500 100
	for disk in A B; do
		for number in {0..400}; do
			ln "src/$disk/d0/f0$(printf %03d "$number")" "src/$disk/d2/linked$number"
		done
	done
	frozen_one_holds_up_nobody A B -H
	for disk in A B; do
		expect "names of one file" "$(find dst/$disk -type f -links 2 | wc -l)" == 802
		[ dst/$disk/d0/f0007 -ef dst/$disk/d2/linked7 ]
	done
}

@test "with -H: names of one file on several disks are linked on each" {
	make_two 64M
	mkdir src/A src/B src/C
	for number in {0..20}; do
		echo "$number" >"src/A/a$number"
		for name in A/z B/b B/c C/d ""; do
			ln "src/A/a$number" "src/$name$number"
		done
	done
	sed 's/^[^ ]* //' <("$TIPTOE" -aiHn src/ dst) >planned
	for workers in 1 16; do
		rm -rf dst/[0-9]* dst/A/* dst/B/* dst/C
		"$TIPTOE" -aiH --workers=$workers src/ dst >told.$workers
		diff planned <(sed 's/^[^ ]* //' told.$workers)
		for number in 0 10 20; do
			[ dst/A/a$number -ef dst/A/z$number ]
			[ dst/B/b$number -ef dst/B/c$number ]
			[ dst/C/d$number -ef dst/$number ]
		done
		diff -r --exclude='*.img' src dst
		expect "files" "$(find dst -type f ! -name '*.img' -printf '%D %i\n' | sort -u | wc -l)" == 63
		[ -z "$("$TIPTOE" -aiH src/ dst)" ]
	done
	diff <(grep -v '/$' told.1) <(grep -v '/$' told.16)
}

@test "with names told: the order is that of one disk, whichever was faster" {
	make_two 200M
	mkdir -p src/A src/B plain
	make_small_files src/A 9000 100
	make_small_files src/B 500 100
	"$TIPTOE" -ai src/A src/B plain >wanted
	begin_copy -ai src/A src/B dst
	await "A has begun" has_begun A
	fsfreeze -f dst/A
	await "B is complete" is_complete B
	fsfreeze -u dst/A
	ends_well
	# Both mount points were there.
	diff <(grep -v '/$' wanted) <(grep -v '/$' helper.out)
	diff <(sed 's/^[^ ]* //' wanted) <(sed 's/^[^ ]* //' helper.out)
}

# The root group of the v1 hierarchy: a limit in a child group does not bind writeback.
LIMIT=/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device

limit() { # DIRECTORY BYTES-PER-SECOND
	local device
	device=$(disk_device "$PWD/$1")
	device=$(cat "/sys/block/${device#/dev/}/dev")
	echo "$device" >limited
	echo "$device $2" >$LIMIT
}

unlimit() {
	echo "$(cat "$BATS_TEST_TMPDIR/limited") 0" >$LIMIT
	rm "$BATS_TEST_TMPDIR/limited"
}

@test "a slow disk and a fast one: each has its own bound of dirty bytes" {
	[[ -w $LIMIT ]] || skip "no blkio controller of version 1 with limits"
	make_two 300M
	mkdir src/A src/B
	for i in 1 2 3 4; do
		make_file "src/A/f$i" 16M
		make_file "src/B/f$i" 32M
	done
	limit dst/A $((16 << 20))
	begin_copy -a --stats --dirty-limit=8M src/A src/B dst
	await "B is complete" is_complete B
	if is_complete A; then
		echo "A was not slow"
		return 1
	fi
	dirty_pages=$(dirty dst/A dst/B)
	unlimit
	ends_well
	expect "dirty pages while A was written" "$dirty_pages" "<=" $((8 << 20 >> 12))
	peak=$(sed -n 's/^Peak dirty bytes: \([0-9,]*\).*/\1/p' helper.out | tr -d ,)
	expect "peak dirty bytes of both" "$peak" "<=" $((16 << 20))
	expect "peak dirty bytes of both" "$peak" ">" $((8 << 20))
}

# The largest time that a small write with fsync took on the disk while a command ran, in milliseconds; and the most dirty pages of what it writes.
beside() { # DIRECTORY COMMAND...
	local dir=$1 began took worst=0 most=0 now pid
	shift
	"$@" >/dev/null 2>helper.err &
	pid=$!
	HELPER=$pid
	while kill -0 "$pid" 2>/dev/null; do
		began=${EPOCHREALTIME/./}
		dd if=/dev/zero of="$dir/victim" bs=4K count=1 conv=fsync,notrunc status=none
		took=$(((${EPOCHREALTIME/./} - began) / 1000))
		((took <= worst)) || worst=$took
		now=$(cachemap count "$dir/copy" 2>/dev/null | sed 's/.*dirty=\([0-9]*\) *writeback=\([0-9]*\).*/\1+\2/')
		now=$((${now:-0}))
		((${now:-0} <= most)) || most=$now
	done
	wait "$pid"
	HELPER=
	echo "# beside $(basename "$1"): slowest fsync of another writer $worst ms, at most $((most * 4)) KiB dirty or under writeback" >&3
	MOST_DIRTY=$most
}

@test "a slow disk: what is dirty stays within the bound, and what that is to another writer there (printed)" {
	[[ -w $LIMIT ]] || skip "no blkio controller of version 1 with limits"
	make_two 200M
	make_file src/file 40M
	mkdir dst/A/copy dst/A/copy2
	limit dst/A $((12 << 20))
	beside dst/A "$TIPTOE" -a --dirty-limit=4M src/file dst/A/copy/
	expect "dirty pages" "$MOST_DIRTY" "<=" $((4 << 20 >> 12))
	cmp src/file dst/A/copy/file
	rm dst/A/copy/file
	# What cp leaves dirty is written while others wait.
	beside dst/A sh -c 'cp src/file dst/A/copy/ && sync -f dst/A'
	unlimit
}
