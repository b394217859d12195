#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Times are compared as finely as the destination keeps them (field case 20): nothing is copied again because the destination is coarse, and no
# change that it can tell is missed. There is no FAT in the kernels of our machines: a FUSE file system cuts times to two seconds as FAT does.
load ../scratch

setup() {
	begin_scratch
	need_root
	cd "$BATS_TEST_TMPDIR" || return 1
	mkdir -p src/dir
	for name in even odd fraction dir/file; do
		echo "content of $name" >"src/$name"
	done
	touch -d @1600000000 src/even src/dir/file
	touch -d @1600000001 src/odd
	touch -d @1600000001.987654321 src/fraction
	ln -s even src/link
	touch -h -d @1600000003.5 src/link
	touch -d @1600000005.25 src/dir src
}

teardown() {
	cd / || return 1
	remove_disks "$BATS_TEST_TMPDIR"
}

nothing_to_do() { # ARGUMENT...
	tiptoe 0 "$@"
	[[ -z $output ]] || { echo "tiptoe $*: $output"; return 1; }
}

# Rewrites src/NAME with as many bytes, and gives it a time.
change() { # NAME TIME
	tr a-z A-Z <"src/$1" >"src/$1.new"
	tr A-Za-z a-zA-Z <"src/$1.new" >"src/$1"
	rm "src/$1.new"
	touch -d "$2" "src/$1"
	touch -d @1600000005.25 src
}

@test "a destination that keeps every second second is not copied again in each run" {
	make_faultfs dst below grain=2
	tiptoe 0 -a src/ dst
	[[ $(stat -c %Y dst/odd) == 1600000000 ]]
	nothing_to_do -ai src/ dst
	nothing_to_do -aic src/ dst
	nothing_to_do -aiu src/ dst
	nothing_to_do -ai --cache=keep src/ dst
	# rsync does.
	[[ $(rsync -ain src/ dst | grep -c '^>f..t') == 2 ]]
}

@test "a destination that keeps every second second: a change of two is not missed, forwards or backwards" {
	make_faultfs dst below grain=2
	tiptoe 0 -a src/ dst
	# From 1600000001, kept as 1600000000.
	for time in @1600000003 @1600000005.5 @1600000003.4 @1500000000; do
		change odd "$time"
		tiptoe 0 -ai src/ dst
		[[ $output == ">f..t...... odd" ]] || { echo "$time: $output"; return 1; }
		cmp src/odd dst/odd
		nothing_to_do -ai src/ dst
	done
}

@test "a change within a second is not missed where the destination keeps more" {
	make_disk "$PWD/disk" 64M
	tiptoe 0 -a src/ disk/dst
	nothing_to_do -ai src/ disk/dst
	for time in @1600000001.1 @1600000001.100000001 @1600000001; do
		change odd "$time"
		tiptoe 0 -ain src/ disk/dst
		[ "$output" = ">f..t...... odd" ]
		tiptoe 0 -ai src/ disk/dst
		[ "$output" = ">f..t...... odd" ]
		cmp src/odd disk/dst/odd
		nothing_to_do -ai src/ disk/dst
	done
}

@test "small inodes of ext4 keep whole seconds: found with and without trying" {
	make_disk "$PWD/disk" 128M ext4 -I 128
	tiptoe 0 -a src/ disk/dst
	[[ $(stat -c %.9Y disk/dst/fraction) == 1600000001.000000000 ]]
	nothing_to_do -ai src/ disk/dst
	nothing_to_do -ain src/ disk/dst
	change fraction @1600000002
	tiptoe 0 -ai src/ disk/dst
	[ "$output" = ">f..t...... fraction" ]
}
