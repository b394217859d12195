#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Names and nodes that the destination does not take: two names that are one there (field case 14), a whiteout (16), what is immutable or
# append-only (19), files that do not know their size (6).
load ../scratch

setup() {
	begin_scratch
	need_root
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	cd / || return 1
	chattr -R -i -a "$BATS_TEST_TMPDIR" 2>/dev/null || true
	remove_disks "$BATS_TEST_TMPDIR"
}

make_collisions() {
	mkdir -p src/DIR src/dir src/Other
	echo upper >src/FILE
	echo lower >src/file
	echo in upper >src/DIR/a
	echo in lower >src/dir/b
	ln -s upper src/LINK
	ln -s lower src/link
	echo plain >src/Other/plain
	echo a file >src/Mixed
	mkdir src/mixed
	ln src/FILE src/one
	ln src/file src/ONE
	# Nothing but a letter's case, in a name with others than ASCII.
	echo first >$'src/\xc3\xa9A'
	echo second >$'src/\xc3\xa9a'
}

# One of two names is there, with its own content, and the other is told.
check_collisions() {
	local pair first second
	for pair in FILE:file DIR:dir LINK:link Mixed:mixed one:ONE $'\xc3\xa9A:\xc3\xa9a'; do
		first=${pair%:*} second=${pair#*:}
		[[ $(ls below/dst | grep -ixc -- "$first") == 1 ]] || return 1
		[[ $output == *"$first: to this file system it is the same name as $second"* ||
			$output == *"$second: to this file system it is the same name as $first"* ]] || { echo "$pair: $output"; return 1; }
	done
	case $(ls below/dst | grep -ix file) in
	FILE) [ "$(cat below/dst/FILE)" = upper ] ;;
	file) [ "$(cat below/dst/file)" = lower ] ;;
	esac
	case $(ls below/dst | grep -ix link) in
	LINK) [ "$(readlink below/dst/LINK)" = upper ] ;;
	link) [ "$(readlink below/dst/link)" = lower ] ;;
	esac
	case $(ls below/dst | grep -ix dir) in
	DIR) [ "$(ls below/dst/DIR)" = a ] ;;
	dir) [ "$(ls below/dst/dir)" = b ] ;;
	esac
	cmp below/dst/Other/plain src/Other/plain
	[ -z "$(temporaries below)" ]
}

@test "where case does not count, the second of two names is told and the first stays" {
	make_collisions
	for options in ignore-case ignore-case,no-rename2; do
		for deny in "" "denycalls --error ENOSYS renameat2"; do
			make_faultfs mnt below "$options"
			LC_ALL=C.UTF-8 run $deny "$TIPTOE" -aH --workers=1 src/ mnt/dst
			check_run 23
			check_collisions
			# The next run says the same, also in place.
			LC_ALL=C.UTF-8 tiptoe 23 -aH src/ mnt/dst
			check_collisions
			LC_ALL=C.UTF-8 tiptoe 23 -aH --inplace src/ mnt/dst
			check_collisions
			umount mnt
			rm -rf below
		done
	done
}

@test "ext4 where case does not count: the second of two names is told" {
	make_collisions
	mkdir below
	truncate -s 32M disk.img
	mkfs.ext4 -q -F -O casefold disk.img
	mount -o loop disk.img below || skip "this kernel has no case-insensitive ext4"
	mkdir below/dst
	chattr +F below/dst
	LC_ALL=C.UTF-8 tiptoe 23 -aH --workers=1 src/ below/dst
	check_collisions
}

@test "where case counts, names that differ in it are two" {
	make_collisions
	for options in "" no-rename2; do
		make_faultfs mnt below "$options"
		tiptoe 0 -aH src/ mnt/dst
		treecmp src below/dst
		umount mnt
		rm -rf below
	done
}

@test "a name that somebody makes meanwhile is replaced, as rsync does" {
	mkdir src
	make_file src/victim 2M
	echo 1 >src/123
	for options in "" ignore-case no-rename2; do
		make_faultfs mnt below "$options"
		mkdir mnt/dst
		set_faults mnt "create delay=400 1 .victim*" "create delay=400 1 .123*"
		"$TIPTOE" -a src/ mnt/dst &
		pid=$!
		until [ -s mnt.log ]; do sleep 0.01; done
		echo made meanwhile >below/dst/victim
		echo made meanwhile >below/dst/123
		wait $pid
		cmp src/victim below/dst/victim
		cmp src/123 below/dst/123
		[ -z "$(temporaries below)" ]
		umount mnt
		rm -rf below
	done
}

@test "a whiteout on overlayfs, and a node without CAP_MKNOD: an error for each, the run goes on, as in rsync" {
	mkdir -p src lower upper work over
	mknod src/whiteout c 0 0
	mknod src/null c 1 3
	mkfifo src/fifo
	echo content >src/file
	touch -d @1500000000 src/* src
	mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work over
	tiptoe 23 -a src/ over/t
	[[ $output == *"making node whiteout: Operation not permitted"* ]]
	[ "$(grep -c ': ' <<<"$output")" -eq 2 ]
	run rsync -a src/ over/r
	[ "$status" -eq 23 ]
	treecmp over/r over/t
	[ -c over/t/null ] && [ -f over/t/file ]
	# A whiteout needs no privilege elsewhere (Linux 5.8), another node does.
	run setpriv --bounding-set=-mknod --inh-caps=-mknod "$TIPTOE" -a src/ t
	check_run 23
	[[ $output == *"making node null: Operation not permitted"* ]]
	run setpriv --bounding-set=-mknod --inh-caps=-mknod rsync -a src/ r
	[ "$status" -eq 23 ]
	treecmp r t
	[ -f t/file ] && [ -p t/fifo ] && [ -c t/whiteout ]
	# Whom nobody promised a device node, gets none and no error.
	let_others_in "$PWD"
	chmod 777 .
	run setpriv --reuid=1000 --regid=1000 --clear-groups "$TIPTOE" -a src/ t2
	check_run 0
	run setpriv --reuid=1000 --regid=1000 --clear-groups rsync -a src/ r2
	[ "$status" -eq 0 ]
	treecmp r2 t2
	[ -f t2/file ] && [ ! -e t2/whiteout ]
}

@test "what is immutable or append-only: said once for each, with the reason, exit 23, no temporary" {
	mkdir -p src/im src/ap src/ok
	for name in immutable append plain im/old im/new ap/old ap/new ok/x; do
		echo "new $name" >"src/$name"
	done
	ln -s new src/ap/link
	mkdir src/im/d
	cp -a src old
	rm old/im/new old/ap/new old/ap/link
	rmdir old/im/d
	for name in immutable append plain im/old ap/old ok/x; do
		echo "older $name" >"old/$name"
	done
	find old -exec touch -h -d @1400000000 {} +
	touch old/im/extra old/ap/extra
	cp -a old dst
	chattr +i dst/immutable dst/im
	chattr +a dst/append dst/ap
	for i in 1 2; do
		tiptoe 23 -a --delete src/ dst
		[[ $output == *"replacing immutable: Operation not permitted (it is immutable)"* ]]
		[[ $output == *"replacing append: Operation not permitted (it is append-only)"* ]]
		[[ $output == *"replacing im/old: Operation not permitted (its directory is immutable)"* ]]
		[[ $output == *"making im/new: Operation not permitted (its directory is immutable)"* ]]
		[[ $output == *"making directory im/d: Operation not permitted (its directory is immutable)"* ]]
		[[ $output == *"replacing ap/old: Operation not permitted (its directory is append-only)"* ]]
		[[ $output == *"making ap/new: Operation not permitted (its directory is append-only)"* ]]
		[[ $output == *"deleting im/extra: Operation not permitted (its directory is immutable)"* ]]
		[[ $output == *"deleting ap/extra: Operation not permitted (its directory is append-only)"* ]]
		for name in immutable append im/old im/new ap/old ap/new im/extra ap/extra; do
			[ "$(grep -c " $name: " <<<"$output")" -eq 1 ]
		done
		[ -z "$(temporaries dst)" ]
		for name in immutable append im/old ap/old; do
			cmp "old/$name" "dst/$name"
		done
		cmp src/plain dst/plain
		cmp src/ok/x dst/ok/x
	done
	# Of one file, too.
	tiptoe 23 -a src/plain dst/append
	[[ $output == *"replacing append: Operation not permitted (it is append-only)"* ]]
	tiptoe 23 -a src/plain dst/ap/new
	[[ $output == *"(its directory is append-only)"* ]]
	[ -z "$(temporaries dst)" ]
}

@test "files that say they are empty are read to their end" {
	mkdir below
	make_file below/small 30K
	make_file below/large 12M
	: >below/empty
	make_faultfs mnt below "zero-size=*"
	[ "$(stat -c %s mnt/large)" -eq 0 ]
	for ring in on off; do
		rm -rf dst
		TIPTOE_RING=$ring tiptoe 0 -a mnt/ dst
		cmp dst/small below/small
		cmp dst/large below/large
		[ ! -s dst/empty ]
	done
	for file in /proc/version /proc/filesystems /proc/sys/kernel/ostype /proc/devices; do
		tiptoe 0 "$file" dst/
		cmp "$file" "dst/$(basename "$file")"
	done
	tiptoe 0 -a /proc/sys/fs/ dst/fs --exclude=binfmt_misc --exclude=/quota
	cmp /proc/sys/fs/file-max dst/fs/file-max
}

# Field case 2: what the server has not been given yet is a hole to it.
@test "a file that is dirty in the cache of a FUSE file system is copied with its content" {
	make_faultfs src below writeback
	mkfifo done
	python3 -c '
import os, sys
f = os.open("src/x", os.O_CREAT | os.O_RDWR)
os.write(f, b"content " * 25000)
open("done").read()' &
	HELPER=$!
	until [[ -e src/x && $(stat -c %s src/x) == 200000 ]]; do sleep 0.05; done
	tiptoe 0 -a src/ dst
	rm -rf dst2
	tiptoe 0 -a --inplace src/ dst2
	echo >done
	wait $HELPER
	HELPER=
	[ "$(sort -u <(tr ' ' '\n' <dst/x) | tr -d '\n')" = content ]
	cmp dst/x dst2/x
	cmp src/x dst/x
	umount src
}
