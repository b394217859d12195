#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The promise as its users see it: a program that reads its 200 MiB again and again keeps them while gigabytes are copied in the same memory
# cgroup of 512 MiB. And bounded dirt, watched from outside.
load ../scratch

setup_file() {
	begin_scratch
	((EUID == 0)) || return 0
	make_disk "$BATS_FILE_TMPDIR/disk" 5G
}

teardown_file() {
	remove_disks "$BATS_FILE_TMPDIR"
}

setup() {
	begin_scratch
	need_root
	DISK=$BATS_FILE_TMPDIR/disk
	mkdir "$DISK/src"
	cd "$DISK" || return 1
}

teardown() {
	cd / || return 1
	rm -rf "${DISK:?}"/*
}

# Runs the rest in a memory cgroup beside the hot set; $kept is the part of it, in %, that is resident right afterwards.
beside_hot_set() { # LIMIT COMMAND...
	local code=0 limit=$1
	shift
	# shellcheck disable=SC2016
	withcgroup "tiptoe-test-$$" "$limit" -- bash -c '
		hotset -o "$1/hotset" "$1/hot" 200M >"$1/ready" &
		hot=$!
		until [[ -s $1/ready ]]; do sleep 0.05; done
		shift
		"$@"
		code=$?
		cachemap count hot >after
		kill $hot
		wait $hot
		exit $code' - "$PWD" "$@" || code=$?
	[[ $code -eq 77 ]] && skip "no memory controller"
	expect "exit code" "$code" == 0
	kept=$((100 * $(sed 's/.*resident=\([0-9]*\).*/\1/' after) / 51200))
	pages=$(sed 's/.*resident=\([0-9]*\).*/\1/' after)
	rm -f hot ready
	echo "# ${1##*/}: $pages of 51200 pages of the hot set are resident" >&3
}

@test "a hot set keeps all its pages while 2 GiB are copied in its cgroup, and under cp it loses them" {
	make_big_file src/big 2G
	beside_hot_set 512M "$TIPTOE" -a src/ dst
	# One page in a thousand is excused: DAMON's reclaim takes some from any program.
	expect "pages kept" "$pages" ">=" 51149
	expect "pages of the copy" "$(resident src dst)" == 0
	rm -r dst
	beside_hot_set 512M cp -a src dst
	expect "% kept by cp" "$kept" "<" 20
}

# The kernel takes its share for inodes and dentries, and of a group so small DAMON takes single pages.
@test "a hot set keeps nearly all its pages while a tree of small files is copied in its cgroup, and under rsync it keeps fewer" {
	make_small_files src 15000 65536
	cachemap evict src
	beside_hot_set 320M "$TIPTOE" -a src/ dst
	expect "% kept" "$kept" ">=" 95
	by_tiptoe=$pages
	expect "pages of the copy" "$(resident src dst)" == 0
	rm -r dst
	cachemap evict src
	beside_hot_set 320M rsync -a src/ dst
	expect "pages kept by rsync" "$pages" "<" "$by_tiptoe"
}

# Highest Dirty + Writeback above idle in MiB, whole, of the machine. Others may write meanwhile: the lowest of three tries, if need be.
peak_dirt() { # LIMIT COMMAND...
	local limit=$1 try peak
	shift
	lowest=
	for try in 1 2 3; do
		rm -rf dst
		sync -f "$DISK"
		dirtywatch --bdev "$(disk_device "$DISK")" -o watch -- "$@"
		peak=$(sed -n 's/^peak_above_idle_mib=\(-\{0,1\}[0-9]*\).*/\1/p' watch)
		[[ -z $lowest ]] || ((peak < lowest)) && lowest=$peak
		((lowest <= limit)) && break
	done
	echo "# ${1##*/} ${*:2}: $lowest MiB of dirt at most, try $try" >&3
}

@test "a large file never piles up more than 64 MiB of dirt, and rsync does" {
	make_big_file src/big 1536M
	peak_dirt 64 "$TIPTOE" -a src/ dst
	expect "MiB" "$lowest" "<=" 64
	peak_dirt 4096 rsync -a src/ dst
	expect "MiB under rsync" "$lowest" ">" 128
}

@test "15,000 small files never pile up more than 64 MiB of dirt" {
	make_small_files src 15000
	cachemap evict src
	peak_dirt 64 "$TIPTOE" -a src/ dst
	expect "MiB" "$lowest" "<=" 64
}

@test "--dirty-limit=8M keeps the dirt of large and small files near that" {
	make_small_files src 2000
	make_big_file src/big 256M
	cachemap evict src
	peak_dirt 16 "$TIPTOE" -a --dirty-limit=8M src/ dst
	expect "MiB" "$lowest" "<=" 16
}

@test "--dirty-limit holds with threads instead of io_uring" {
	make_small_files src 2000
	make_big_file src/big 256M
	cachemap evict src
	export TIPTOE_RING=off
	peak_dirt 16 "$TIPTOE" -a --dirty-limit=8M src/ dst
	expect "MiB" "$lowest" "<=" 16
}

@test "the process itself stays below 64 MiB of memory" {
	make_small_files src 15000
	make_big_file src/big 256M
	dirtywatch -o watch -- "$TIPTOE" -a src/ dst
	expect "KiB" "$(sed -n 's/^max_rss_kib=//p' watch)" "<=" 65536
}
