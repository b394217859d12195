#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Leave as found, the destination's side; the policies; and what --stats and --verify-cache say of it, against what is seen from outside.
load ../scratch

setup_file() {
	begin_scratch
	((EUID == 0)) || return 0
	make_disk "$BATS_FILE_TMPDIR/disk" 2G
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

# Files of several sizes in src, older ones of the same names in dst; nothing of either is resident.
make_pairs() {
	mkdir -p dst
	for pair in three-pages:12288 odd:9999 hundred:100K five:5M large:60M; do
		make_file "dst/${pair%:*}" "${pair#*:}" old
		make_file "src/${pair%:*}" "${pair#*:}" new
	done
	touch -d 2001-01-01 dst/*
	cachemap evict src dst
	expect "pages before" "$(resident src dst)" == 0
}

# Replaces the files, however often it was done already.
replace() { # ARGUMENT...
	find src -type f -exec touch -d "@$((1600000000 + ++replaced))" {} +
	tiptoe 0 -a "$@" src/ dst
}

# The number in a line of --stats.
stat_line() { # TITLE
	sed -n "s/^$1: \([0-9,]*\).*/\1/p" <<<"$output" | tr -d ,
}

@test "a hot file that is replaced stays hot" {
	make_pairs
	cachemap warmtree dst
	leaves_as_found dst replace --stats
	treecmp src dst
	expect "pages of the source" "$(resident src)" == 0
	expect "pages that --stats names as kept" "$(stat_line 'Pages kept hot in replaced files')" == "$(resident dst)"
	expect "pages that --stats names as left" "$(stat_line 'Pages left because of us')" == 0
}

@test "a file that is hot in part is hot in the same part after it was replaced" {
	make_pairs
	warm dst/large --half 2M
	warm dst/five --every 100
	warm dst/hundred --pages 3-7
	warm dst/three-pages --pages 2-2
	leaves_as_found dst replace --stats
	treecmp src dst
	local kept
	kept=$(stat_line 'Pages kept hot in replaced files')
	# One in a thousand may be DAMON's.
	expect "pages that --stats names as kept" "$kept" '>=' "$(resident dst)"
	expect "pages that --stats names as kept" "$kept" '<=' "$(($(resident dst) + kept / 1000 + 1))"
}

@test "a cold file that is replaced stays cold, also when its source is hot" {
	make_pairs
	cachemap warmtree src
	pages=$(resident src)
	tiptoe 0 -a src/ dst
	expect "pages of the source" "$(resident src)" == "$pages"
	expect "pages of the destination" "$(resident dst)" == 0
	treecmp src dst
}

@test "a hot file that is replaced by a longer or a shorter one stays hot as far as it went" {
	mkdir dst
	make_file dst/grows 5M old
	make_file src/grows 9M new
	make_file dst/shrinks 9M old
	make_file src/shrinks 5M new
	cachemap evict src dst
	cachemap warmtree dst
	tiptoe 0 -a src/ dst
	expect "pages of what grew" "$(resident dst/grows)" == 1280
	expect "pages of what shrank" "$(resident dst/shrinks)" == 1280
	treecmp src dst
}

@test "files of the destination that are not replaced keep their pages" {
	make_pairs
	make_file dst/bystander 5M
	cp -p src/five dst/five
	cachemap evict dst
	warm dst/bystander --half 2M
	cachemap warmtree dst/five
	replace_others() {
		replace --exclude=five
	}
	leaves_as_found dst replace_others
}

@test "with nothing to do no page comes and none goes" {
	make_tree src 1
	tiptoe 0 -a src/ dst
	cachemap evict src dst
	warm dst/larger --every 3
	leaves_as_found . tiptoe 0 -ai src/ dst
	[ -z "$output" ]
}

@test "--checksum leaves no page, and what was resident stays" {
	make_tree src 1
	tiptoe 0 -a src/ dst
	# Content that only a checksum tells apart.
	make_file dst/large 3M 2
	touch -r src/large dst/large
	cachemap evict src dst
	tiptoe 0 -aic src/ dst
	[[ $output == *large* ]]
	expect "pages left" "$(resident src dst)" == 0
	cmp src/large dst/large
	cachemap evict src dst
	warm src/larger --half 2M
	warm dst/larger --every 5
	cachemap warmtree dst/a1
	leaves_as_found . tiptoe 0 -aic src/ dst
}

@test "an update of a tree leaves no page" {
	make_tree src 1
	tiptoe 0 -a src/ dst
	rm -r src
	make_tree src 2
	cachemap evict src dst
	tiptoe 0 -a src/ dst
	treecmp src dst
	expect "pages left" "$(resident src dst)" == 0
}

@test "files with holes leave no page, and stay sparse" {
	truncate -s 64M src/sparse src/tail src/head
	dd if=/dev/urandom of=src/sparse bs=4K seek=5000 count=700 conv=notrunc status=none
	dd if=/dev/urandom of=src/tail bs=4K seek=16380 count=4 conv=notrunc status=none
	dd if=/dev/urandom of=src/head bs=4K count=1 conv=notrunc status=none
	cachemap evict src
	tiptoe 0 -a src/ dst
	expect "pages left" "$(resident src dst)" == 0
	treecmp src dst
	rm -r dst
	tiptoe 0 -aS src/ dst
	expect "pages left with -S" "$(resident src dst)" == 0
	treecmp src dst
}

@test "--cache=keep leaves the pages, as any copy would" {
	make_pairs
	tiptoe 0 -a --cache=keep src/ dst
	expect "pages of the source" "$(resident src)" ">" 16000
	expect "pages of the destination" "$(resident dst)" ">" 16000
	sync -f dst
	treecmp src dst
}

@test "--cache=drop takes hot pages too, in source and destination" {
	make_pairs
	cachemap warmtree src dst
	tiptoe 0 -a --cache=drop src/ dst
	expect "pages left" "$(resident src dst)" == 0
	treecmp src dst
}

@test "--stats counts the pages that were resident, and says that none is left" {
	make_pairs
	cachemap warmtree src/five src/hundred
	found=$(resident src dst)
	tiptoe 0 -a --stats src/ dst
	expect "found resident" "$(stat_line 'Pages found resident')" == "$found"
	expect "left" "$(stat_line 'Pages left because of us')" == 0
	expect "dropped" "$(stat_line 'Pages dropped')" ">" 0
	expect "of unknown residency" "$(stat_line 'Files of unknown residency')" == 0
	expect "peak dirty bytes" "$(stat_line 'Peak dirty bytes')" ">" 0
	expect "peak dirty bytes" "$(stat_line 'Peak dirty bytes')" "<=" $((48 << 20))
	[[ $output == *"Mechanism: ${TIPTOE_TEST_FS:-ext4} on loop"*cachestat*DONTNEED* ]]
}

@test "--verify-cache counts what is resident of the destination" {
	make_pairs
	tiptoe 0 -a --verify-cache src/ dst
	[[ $output == *"Cache verified: 0 resident pages in 5 files"* ]]
	warm dst/five --every 10
	tiptoe 0 -a --verify-cache src/ dst
	[[ $output == *"Cache verified: 128 resident pages in 5 files"* ]]
	touch src/large
	tiptoe 0 -a --no-h --cache=keep --verify-cache src/ dst
	[[ $output == *"Cache verified: $(resident dst) resident pages in 5 files"* ]]
}

@test "a dry run leaves no page and makes no temporary" {
	make_pairs
	names=$(ls -lA --time-style=full-iso dst)
	leaves_as_found . tiptoe 0 -an src/ dst
	leaves_as_found . tiptoe 0 -anc src/ dst
	[ "$names" = "$(ls -lA --time-style=full-iso dst)" ]
}

# Each call that leaves a page makes work on every processor: what counts is how many there are.
@test "DONTNEED is called once for each window or small file, and --stats counts the calls" {
	make_big_file src/big 256M
	make_small_files src/small 1000
	cachemap evict src
	TIPTOE_RING=off run strace -f -qq -o log -e trace=fadvise64 "$TIPTOE" -a --reflink=never --stats src/ dst
	check_run 0
	calls=$(grep -c 'fadvise64(.*POSIX_FADV_DONTNEED' log)
	told=$(stat_line DONTNEED)
	echo "# $calls calls for 256 MiB in one file and 1,000 small ones: $(grep ^DONTNEED <<<"$output")" >&3
	# A handful by the experiment at the start.
	expect "calls that --stats does not tell" "$((calls - told))" ">=" 0
	expect "calls that --stats does not tell" "$((calls - told))" "<=" 8
	# 32 windows of 8 MiB read, at most 128 of 2 MiB written; each small file once read, once written.
	expect "calls" "$calls" "<=" $((32 + 128 + 2 * 1000 + 40))
	treecmp src dst
}
