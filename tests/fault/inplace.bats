#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Files that are written in place, and what ends it too early: they are taken again by the next run, and it says what they are.
load ../scratch

setup() {
	begin_scratch
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	[[ ${HELPER:-} ]] && end_process "$HELPER"
	cd / || return 1
	remove_disks "$BATS_TEST_TMPDIR"
}

make_versions() { # SIZE [SIZE-OF-THE-OLD]
	mkdir -p src dst
	make_file src/big "$1" new
	make_file dst/big "${2:-$1}" old
	touch -d 2001-01-01 dst/big
	touch -d 2011-01-01 src/big
	cachemap evict src dst
}

# Without a page of it.
beginning() { # FILE
	dd if="$1" bs=4096 count=1 iflag=direct status=none 2>/dev/null | head -c 3
}

# Until the file's beginning is new.
await_writing() { # FILE
	until [[ $(beginning "$1") == new ]]; do
		kill -0 "$HELPER" || { echo "it ended too early"; return 1; }
		sleep 0.002
	done
}

is_half_new() { # FILE
	[[ $(head -c 3 "$1") == new ]]
	if cmp -s src/big "$1"; then return 1; fi
	[ "$(stat -c %Y "$1")" != "$(stat -c %Y src/big)" ]
}

# Kills the run in the background when it writes.
kill_writing() { # ARGUMENT...
	"$TIPTOE" -a --dirty-limit=512K "$@" src/ dst &
	HELPER=$!
	await_writing dst/big
	kill -9 $HELPER
	wait $HELPER || true
	HELPER=
}

@test "killed while it writes a file in place, the next run completes it" {
	make_versions 200M 210M
	inode=$(stat -c %i dst/big)
	kill_writing --inplace
	is_half_new dst/big
	[ "$(stat -c %s dst/big)" = $((210 << 20)) ]
	kill_writing --inplace
	is_half_new dst/big
	tiptoe 0 -ai --inplace src/ dst
	[[ $output == *">f"*"big"* ]]
	treecmp --no-dir-times src dst
	[ "$(stat -c %i dst/big)" = "$inode" ]
	[ -z "$(temporaries dst)" ]
}

@test "killed in the second in which the source was changed, the next run completes it all the same" {
	make_versions 200M
	kill_writing --inplace
	touch -d "@$(stat -c %Y dst/big)" src/big
	tiptoe 0 -a --inplace src/ dst
	treecmp --no-dir-times src dst
}

@test "a new file that a killed run has begun is continued by --append and verified by --append-verify" {
	make_versions 200M
	rm dst/big
	kill_writing --inplace
	had=$(stat -c %s dst/big)
	expect "bytes" "$had" ">" 0
	expect "bytes" "$had" "<" $((200 << 20))
	tiptoe 0 -a --append --stats src/ dst
	[[ $output == *"Literal data: $(printf "%'d" $(((200 << 20) - had)) | sed ':a;s/\B[0-9]\{3\}\>/,&/;ta') bytes"* ]] || { echo "$output"; return 1; }
	treecmp --no-dir-times src dst
	rm dst/big
	kill_writing --append
	had=$(stat -c %s dst/big)
	tiptoe 0 -a --append-verify --stats src/ dst
	[[ $output == *"Literal data: $(echo $(((200 << 20) - had)) | sed ':a;s/\B[0-9]\{3\}\>/,&/;ta') bytes"* ]] || { echo "$output"; return 1; }
	treecmp --no-dir-times src dst
}

# --append believes it.
@test "what a killed run has begun in place is always a beginning" {
	make_versions 200M
	for _ in {1..40}; do
		rm -f dst/big
		"$TIPTOE" -a --inplace src/ dst &
		HELPER=$!
		sleep "0.0$((RANDOM % 80 + 15))"
		kill -9 $HELPER 2>/dev/null || true
		wait $HELPER || true
		HELPER=
		[[ -e dst/big ]] || continue
		cmp -n "$(stat -c %s dst/big)" src/big dst/big
	done
}

@test "a file with holes that a killed --append has begun is continued by the next" {
	local mode
	mkdir src dst
	for mode in "" -S; do
		make_file src/big 60M
		truncate -s 120M src/big
		make_file piece 60M
		cat piece >>src/big
		rm -f dst/big
		"$TIPTOE" -a $mode --append --dirty-limit=512K src/ dst &
		HELPER=$!
		until [[ -s dst/big ]]; do sleep 0.002; done
		kill -9 $HELPER
		wait $HELPER || true
		HELPER=
		expect "bytes" "$(stat -c %s dst/big)" "<" $((180 << 20))
		tiptoe 0 -a $mode --append src/ dst
		cmp src/big dst/big
	done
}

@test "SIGTERM while it writes: exit 20, the file is taken again" {
	make_versions 200M
	"$TIPTOE" -a --inplace --dirty-limit=512K src/ dst 2>err &
	HELPER=$!
	await_writing dst/big
	kill $HELPER
	code=0
	wait $HELPER || code=$?
	HELPER=
	expect "exit code" "$code" == 20
	grep -q "^tiptoe: warning: big was being written in place: it may be part old and part new until a run completes it" err
	expect "pages left" "$(resident src dst)" == 0
	is_half_new dst/big
	tiptoe 0 -a --inplace src/ dst
	treecmp --no-dir-times src dst
}

@test "a disk that is full in the middle: exit 11, the path, what the file is now; with room the next run completes it" {
	need_root
	make_disk "$PWD/disk" 64M
	make_versions 80M
	make_file disk/big 10M old
	touch -d 2001-01-01 disk/big
	for ring in on off; do
		cachemap evict src disk
		TIPTOE_RING=$ring tiptoe 11 -a --inplace src/ disk
		[[ $output == *"writing big: No space left on device"* ]]
		[[ $output == *"big was being written in place"* ]]
		expect "pages left" "$(resident src disk)" == 0
		is_half_new disk/big
	done
	make_versions 20M
	touch -d 2011-01-01 src/big
	tiptoe 0 -a --inplace src/ disk
	cmp src/big disk/big
	[ "$(stat -c %Y disk/big)" = "$(stat -c %Y src/big)" ]
}

@test "an error of writeback: exit 23, what the file is now, and the next run takes it again" {
	make_versions 20M
	for ring in on off; do
		touch -d 2001-01-01 dst/big
		TIPTOE_RING=off run traced -e trace=sync_file_range -e inject=sync_file_range:error=EIO:when=3 "$TIPTOE" -a --inplace src/ dst
		check_run 23
		[[ $output == *"writing big: Input/output error"* ]]
		[[ $output == *"big was being written in place"* ]]
		[ "$(stat -c %Y dst/big)" != "$(stat -c %Y src/big)" ]
	done
	tiptoe 0 -ai --inplace src/ dst
	[[ $output == *big* ]]
	treecmp --no-dir-times src dst
}

# It is too short, and the beginning of its source.
make_beginning() { # SIZE SIZE-OF-THE-SOURCE
	make_versions "$2" 1M
	head -c "$1" src/big >dst/big
	touch -d 2001-01-01 dst/big
	cp -p dst/big before
	cachemap evict src dst
}

@test "an error of writeback while it is appended to: it is told to be, and is, what it was; the next run goes on" {
	make_beginning 5M 20M
	for mode in --append --append-verify; do
		TIPTOE_RING=off run traced -e trace=sync_file_range -e inject=sync_file_range:error=EIO:when=3 "$TIPTOE" -a $mode src/ dst
		check_run 23
		[[ $output == *"writing big: Input/output error"* ]]
		[[ $output == *"big was being appended to: it has what it had, and may have a part of the rest until a run completes it"* ]]
		cmp before dst/big
	done
	tiptoe 0 -a --append src/ dst
	cmp src/big dst/big
}

@test "no room for all that is to be appended, or for a new file in place: what there is is told" {
	need_root
	make_disk "$PWD/disk" 64M
	make_beginning 5M 80M
	cp -p before disk/big
	tiptoe 11 -a --append src/ disk
	[[ $output == *"writing big: No space left on device"* ]]
	[[ $output == *"big was being appended to: it has what it had, and may have a part of the rest"* ]]
	expect "bytes" "$(stat -c %s disk/big)" '>=' $((5 << 20))
	cmp -n "$(stat -c %s disk/big)" src/big disk/big
	rm disk/big
	tiptoe 11 -a --inplace src/ disk
	[[ $output == *"big was being written in place: it may have only a part of its content until"* ]]
	# The beginning is another one: that is no appending.
	make_file disk/big 5M old
	touch -d 2001-01-01 disk/big
	tiptoe 11 -a --append-verify src/ disk
	[[ $output == *"big was being written in place: it may be part old and part new until"* ]]
}

@test "a source that cannot be read to its end: exit 23, the file is taken again" {
	make_versions 20M
	run traced -P "$PWD/src/big" -e trace=pread64,preadv2 -e inject=pread64,preadv2:error=EIO:when=2 "$TIPTOE" -a --inplace -S src/ dst
	check_run 23
	[[ $output == *"reading big: Input/output error"* ]]
	[[ $output == *"big was being written in place"* ]]
	is_half_new dst/big
	tiptoe 0 -a --inplace src/ dst
	treecmp --no-dir-times src dst
}

@test "a file that is rewritten all the time: exit 23, and the time of the source is not given" {
	make_versions 30M
	python3 -c '
import os
fd = os.open("src/big", os.O_WRONLY)
while True:
    for at in range(0, 30 << 20, 1 << 20):
        os.pwrite(fd, b"another ", at)
' &
	HELPER=$!
	until [[ $(head -c 7 src/big) == another ]]; do
		kill -0 $HELPER
	done
	tiptoe 23 -a --inplace --dirty-limit=4M src/ dst
	end_process "$HELPER"
	HELPER=
	[[ $output == *"big changed while it was copied"* ]]
	[[ $output != *"old version stays"* ]]
	[[ $output == *"big was being written in place"* ]]
	# Also where it would have counted as newer.
	tiptoe 0 -au --inplace src/ dst
	treecmp --no-dir-times src dst
}

@test "a log that grows while it is appended: what it held is there, and the next run goes on" {
	make_versions 20M
	head -c 5M src/big >dst/big
	touch -d 2001-01-01 dst/big
	(while :; do printf 'appended, some bytes more\n'; done) >>src/big &
	HELPER=$!
	tiptoe 0 -a --append --dirty-limit=4M src/ dst
	end_process "$HELPER"
	HELPER=
	[[ $output == *"big grew while it was copied"* ]]
	cmp -n "$(stat -c %s dst/big)" src/big dst/big
	tiptoe 0 -a --append src/ dst
	treecmp --no-dir-times src dst
}

@test "a file that is shorter than when it was listed is not appended" {
	make_versions 20M 5M
	cp -p dst/big before
	# It stops in the middle of opening the source, which was listed before.
	ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 strace -f -qq -o trace -P "$PWD/src/big" -P big -e trace=openat -e inject=openat:signal=STOP:when=1 \
		"$TIPTOE" -a --append src/ dst >out 2>&1 &
	HELPER=$!
	until grep -q 'stopped by SIGSTOP' trace 2>/dev/null; do
		kill -0 $HELPER
		sleep 0.01
	done
	truncate -s 10M src/big
	kill -CONT "$(<"/proc/$HELPER/task/$HELPER/children")"
	code=0
	wait $HELPER || code=$?
	HELPER=
	cat out
	expect "exit code" "$code" == 0
	grep -q "skipped diminished file: big" out
	cmp before dst/big
	[ "$(stat -c %Y dst/big)" = "$(stat -c %Y before)" ]
}

@test "two names of one inode, two sources: never a mixture" {
	mkdir src dst
	for name in a b c d; do
		make_file src/$name 12M $name
		touch -d "@$((1600000000 + $(printf %d "'$name")))" src/$name
	done
	make_file dst/a 12M old
	for name in b c d; do
		ln dst/a dst/$name
	done
	for try in {1..8}; do
		touch -d 2001-01-01 dst/a
		tiptoe 0 -a --inplace --workers=8 --dirty-limit=2M src/ dst
		local found=
		for name in a b c d; do
			cmp -s src/$name dst/a && found=$name
		done
		[ "$found" ] || { echo "a mixture"; return 1; }
		# The time says whose it is.
		[ "$(stat -c %Y dst/a)" = "$(stat -c %Y src/$found)" ]
	done
}

@test "a file that is its own source is not harmed" {
	mkdir src dst
	make_file src/big 20M new
	truncate -s 30M src/sparse
	make_file src/start 5M
	cat src/start >>src/sparse
	ln src/big src/sparse dst
	cp -a src before
	tiptoe 0 -aI --inplace src/ dst
	tiptoe 0 -aIS --inplace src/ dst
	tiptoe 0 -aIS --append src/ dst
	for name in big sparse; do
		cmp before/$name src/$name
		[ src/$name -ef dst/$name ]
	done
}

@test "where no hole can be made nothing old shows through all the same" {
	mkdir src dst
	truncate -s 20M src/holes
	printf island | dd of=src/holes bs=1M seek=7 conv=notrunc status=none
	make_file src/zeros 1M
	head -c 3M /dev/zero >>src/zeros
	make_file dst/holes 30M old
	make_file dst/zeros 10M old
	cp -a dst again
	run traced -e trace=fallocate -e inject=fallocate:error=EOPNOTSUPP "$TIPTOE" -a --inplace src/ dst
	check_run 0
	treecmp --no-dir-times src dst
	run traced -e trace=fallocate -e inject=fallocate:error=EOPNOTSUPP "$TIPTOE" -aS --inplace src/ again
	check_run 0
	treecmp --no-dir-times src again
	# Another error of making one is an error.
	make_file dst/holes 30M old
	run traced -e trace=fallocate -e inject=fallocate:error=EIO "$TIPTOE" -a --inplace src/ dst
	check_run 23
	[[ $output == *"writing holes: Input/output error"* ]]
}
