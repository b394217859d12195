#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Leave as found, the source's side: the set of resident pages is the same after a copy as before.
load ../scratch

setup_file() {
	begin_scratch
	((EUID == 0)) || return 0
	make_disk "$BATS_FILE_TMPDIR/disk" 3G
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
	[[ ${HELPER:-} ]] && end_process "$HELPER"
	cd / || return 1
	rm -rf "${DISK:?}"/*
}

make_sizes() {
	make_file src/three-pages 12288
	make_file src/odd 9999
	make_file src/hundred 100K
	make_file src/five 5M
	make_file src/large 200M
	: >src/empty
}

copy_anew() { # ARGUMENT...
	rm -rf dst
	tiptoe 0 -a "$@" src/ dst
}

# Copies, and wants the same pages of the source resident as before and none of the destination.
copy_leaves_source() { # ARGUMENT...
	leaves_as_found src copy_anew "$@"
	expect "pages of the destination" "$(resident dst)" == 0
	treecmp src dst
}

@test "a source that is not resident stays so" {
	make_sizes
	cachemap evict src
	expect "pages before" "$(resident src)" == 0
	copy_leaves_source
}

@test "cp leaves pages where tiptoe leaves none" {
	make_sizes
	cachemap evict src
	cp -a --reflink=never src dst
	expect "pages of the source" "$(resident src)" ">" 50000
	expect "pages of the destination" "$(resident dst)" ">" 50000
}

@test "a source that is wholly resident stays so" {
	make_sizes
	cachemap evict src
	cachemap warmtree src
	pages=$(resident src)
	expect "pages before" "$pages" ">" 50000
	copy_leaves_source
}

@test "of a source with every 100th page resident just these stay" {
	make_sizes
	for file in three-pages odd hundred five large; do
		warm "src/$file" --every 100
	done
	copy_leaves_source
	expect "pages of the large file" "$(resident src/large)" ">" 500
}

@test "of a source with every second 2 MiB resident just these stay" {
	make_sizes
	for file in three-pages odd hundred five large; do
		warm "src/$file" --half 2M
	done
	copy_leaves_source
	expect "pages of the large file" "$(resident src/large)" ">" 25000
}

@test "of a source with its first or its last pages resident just these stay" {
	make_sizes
	cachemap evict src
	warm src/five --pages 0-2
	warm src/large --pages 51190-51199
	warm src/odd --pages 2-2
	copy_leaves_source
}

@test "of a file with many names, which several workers read at the same time, nothing stays" {
	mkdir -p src/d0
	make_big_file src/d0/large 24M
	make_big_file src/d0/small 3000000
	for i in {1..11}; do
		mkdir "src/d$i"
		ln src/d0/large src/d0/small "src/d$i"
	done
	cachemap evict src
	leaves_as_found src copy_anew --reflink=never --workers=8
	expect "pages of the destination" "$(resident dst)" == 0
	tiptoe 0 -aH --reflink=never src/ linked
	cachemap evict src linked
	tiptoe 0 -acH --workers=8 src/ linked
	expect "pages that -c leaves" "$(resident src linked)" == 0
}

@test "the same with threads instead of io_uring, with one worker, and with a small budget" {
	make_sizes
	for variant in "TIPTOE_RING=off" "TIPTOE_RING=off --workers=1" "--workers=1" "--workers=16" "--dirty-limit=1M"; do
		rm -rf dst
		warm src/large --half 2M
		warm src/five --every 100
		cachemap evict src/hundred
		if [[ $variant == TIPTOE_RING=off* ]]; then
			# shellcheck disable=SC2086
			TIPTOE_RING=off copy_leaves_source ${variant#TIPTOE_RING=off}
		else
			copy_leaves_source "$variant"
		fi
	done
}

@test "a file that somebody is writing keeps its dirty pages, and they are not flushed" {
	make_file src/five 5M
	cachemap evict src
	# In place, from the page cache only.
	dd if=/dev/zero of=src/five bs=64K count=8 seek=4 conv=notrunc status=none
	make_file src/new 3M
	before=$(dirty src/five) new=$(dirty src/new)
	expect "dirty pages before" "$before" == 128
	expect "dirty pages of the new file before" "$new" == 768
	leaves_as_found src copy_anew
	expect "dirty pages after" "$(dirty src/five)" == "$before"
	expect "dirty pages of the new file after" "$(dirty src/new)" == "$new"
	cmp src/five dst/five
	cmp src/new dst/new
	# The test can fail: an ordinary drop flushes them.
	dd if=src/new of=/dev/null iflag=nocache count=0 status=none
	expect "dirty pages after an ordinary drop" "$(dirty src/new)" "<" "$new"
}

@test "pages that somebody dirties ahead of the reader are not flushed by the drop behind it" {
	make_file src/written 24M
	cachemap evict src
	"$TIPTOE" -a --reflink=never --dirty-limit=256K src/ dst >/dev/null 2>&1 &
	HELPER=$!
	await_temporary dst
	dd if=/dev/zero of=src/written bs=1M count=2 seek=20 conv=notrunc status=none
	expect "dirty pages" "$(dirty src)" ">=" 512
	wait "$HELPER"
	HELPER=
	expect "dirty pages afterwards" "$(dirty src)" ">=" 512
	# The whole new version, or the whole old one if the content was complete when the change came.
	cmp -s src/written dst/written || {
		mkdir old
		make_file old/written 24M
		cmp old/written dst/written
	}
}

@test "a program that runs keeps its pages" {
	cp "$(command -v sleep)" src/program
	cp "$(command -v bash)" src/cold
	cachemap evict src
	src/program 60 &
	HELPER=$!
	while [[ $(readlink "/proc/$HELPER/exe") != *program ]]; do sleep 0.01; done
	expect "pages of the program" "$(resident src/program)" ">" 0
	copy_leaves_source
}

@test "of a file that is mapped in part just the mapped pages stay" {
	make_file src/large 64M
	cachemap evict src
	python3 -c '
import mmap, os, sys, time
fd = os.open("src/large", os.O_RDONLY)
map = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
map.madvise(mmap.MADV_RANDOM)
for page in list(range(100, 200)) + [9000, 12000]:
    map[page * 4096]
open("mapped", "w").close()
time.sleep(60)' &
	HELPER=$!
	while [[ ! -e mapped ]]; do sleep 0.01; done
	expect "mapped pages" "$(resident src)" ">" 100
	expect "mapped pages" "$(resident src)" "<" 1000
	copy_leaves_source
}

@test "another user's files, which may not be asked about, are left as found" {
	# There O_DIRECT does it, once they are old enough to be clean: filesystems.bats.
	[[ ${TIPTOE_TEST_FS:-ext4} == btrfs ]] && skip "btrfs has no RWF_DONTCACHE (Linux 6.18), and files just written may be dirty"
	make_sizes
	cachemap evict src
	warm src/five --half 2M
	warm src/hundred --pages 3-7
	warm src/three-pages --all
	let_others_in "$BATS_FILE_TMPDIR/disk"
	cp "$TIPTOE" "$BATS_TEST_TMPDIR/tiptoe"
	let_others_in "$BATS_TEST_TMPDIR"
	mkdir dst
	chown 65534:65534 dst
	copy_as_nobody() {
		rm -rf dst/*
		run setpriv --reuid=65534 --regid=65534 --clear-groups "$BATS_TEST_TMPDIR/tiptoe" -rt src/ dst
		check_run 0
	}
	leaves_as_found src copy_as_nobody
	expect "pages of the destination" "$(resident dst)" == 0
	treecmp --no-owner --no-dir-times src dst
}

@test "the source's access times do not change" {
	make_tree src 1
	find src \( -type f -o -type d \) >"$BATS_TEST_TMPDIR/names"
	# Older than the modification, so that relatime would set it.
	while read -r name; do touch -a -d 2001-01-01 "$name"; done <"$BATS_TEST_TMPDIR/names"
	tiptoe 0 -a src/ dst
	tiptoe 0 -ac src/ dst
	xargs -d '\n' stat -c '%X %n' <"$BATS_TEST_TMPDIR/names" | { ! grep -v "^$(date -d 2001-01-01 +%s) "; }
	# The test can fail.
	cat src/large >/dev/null
	[ "$(stat -c %X src/large)" -ne "$(date -d 2001-01-01 +%s)" ]
}

@test "while one large file is copied only a window of it is resident, in the source and in the destination" {
	make_big_file src/big 1G
	most=0 most_new=0 samples=0
	"$TIPTOE" -a --reflink=never src/ dst &
	HELPER=$!
	while kill -0 "$HELPER" 2>/dev/null; do
		now=$(resident src/big)
		new=$(resident dst 2>/dev/null) || continue
		((now > most)) && most=$now
		((new > most_new)) && most_new=$new
		samples=$((samples + 1))
	done
	wait "$HELPER"
	HELPER=
	expect samples "$samples" ">" 5
	# 8 MiB trail, as much is being read, 16 MiB of read-ahead, rounded up; of the destination the budget.
	expect "most pages of the source" "$most" "<=" 16384
	expect "most pages of the source" "$most" ">" 0
	expect "most pages of the destination" "$most_new" "<=" 13312
	expect "most pages of the destination" "$most_new" ">" 0
	expect "pages of the source in the end" "$(resident src)" == 0
	expect "pages of the destination in the end" "$(resident dst)" == 0
}

@test "files with filter rules, in both trees and on the command line, stay as they were" {
	local i
	make_file src/odd 9999
	for i in {1..20}; do
		mkdir -p "src/d$i" "dst/d$i"
		touch "src/d$i/name.o" "dst/d$i/other.o"
		seq -f '- nothing%g' 2000 >"src/d$i/.rsync-filter"
		{ seq -f '- nothing%g' 2000; echo '- *.o'; } >"dst/d$i/.rsync-filter"
	done
	seq -f 'pattern%g' 5000 >patterns
	sync
	for i in nothing some; do
		cachemap evict src dst patterns
		[[ $i == nothing ]] || for file in src/d7/.rsync-filter dst/d8/.rsync-filter patterns; do
			warm "$file" --all
		done
		leaves_as_found . tiptoe 0 -a -FF --exclude-from=patterns --delete src/ dst
		expect "names that are protected" "$(find dst -name other.o | wc -l)" == 20
	done
}
