#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --delete in its phases: which names go, which stay, and what is said.

load compare

setup_trees() {
	mkdir -p s/keep/sub s/both
	echo 1 >s/keep/sub/file
	echo 2 >s/both/file
	settle s
	both 'mkdir -p keep/sub both gone/deep/er; echo 1 > keep/sub/file; echo x > keep/extra; echo x > keep/sub/extra
		echo x > gone/a; echo x > gone/deep/b; echo x > gone/deep/er/c; ln -s /etc gone/link; mkfifo gone/fifo; echo x > extra; settle .'
}

@test "extraneous names of one directory go before its line and its files" {
	echo new >s/new
	settle s
	both 'echo x > a; echo x > z; ln -s x l; settle .'
	compare -ai --delete ../s/ ./
	[ "$(head -n1 t.out)" = '*deleting   z' ]
}

@test "extraneous directories go with all they hold" {
	setup_trees
	compare_unordered -ai --delete ../s/ ./
	[ ! -e t/gone ]
	said '*deleting   gone/deep/er/c'
}

@test "-v says deleting" {
	setup_trees
	compare_unordered -av --delete ../s/ ./
	said 'deleting gone/'
}

@test "before, during and after delete the same" {
	for phase in before during after; do
		rm -rf s/* r t
		mkdir r t
		setup_trees
		compare_unordered -ai "--delete-$phase" ../s/ ./
	done
}

@test "--delete-before: all deletions stand before all files" {
	setup_trees
	echo 3 >s/both/file
	compare -ai --delete-before ../s/ ./
}

@test "--delete-after: all deletions stand behind all files" {
	setup_trees
	echo 3 >s/both/longer
	compare -ai --delete-after ../s/ ./
	[ "$(tail -n1 t.out)" = '*deleting   both/longer' ] || [ "$(grep -c '^\*del' t.out)" -gt 5 ]
}

@test "-n deletes nothing and says the same" {
	for phase in before during after; do
		rm -rf s/* r t
		mkdir r t
		setup_trees
		compare_unordered -ain "--delete-$phase" ../s/ ./
		[ -e t/gone/deep/er/c ]
	done
}

@test "excluded names stay, and so do the directories that hold them" {
	setup_trees
	both 'touch gone/deep/er/keep.o; settle .'
	compare_unordered -ai --delete --exclude='*.o' ../s/ ./
	[ -e t/gone/deep/er/keep.o ]
	[ ! -e t/gone/a ]
}

@test "an excluded directory stays with all it holds" {
	setup_trees
	compare_unordered -ai --delete --exclude=gone/deep ../s/ ./
	[ -e t/gone/deep/er/c ]
	compare_unordered -av --delete --exclude=/gone/ ../s/ ./
}

@test "an include before an exclude makes a name one that goes" {
	setup_trees
	both 'touch gone/a.o gone/b.o; settle .'
	compare_unordered -ai --delete --include=a.o --exclude='*.o' ../s/ ./
	[ ! -e t/gone/a.o ]
	[ -e t/gone/b.o ]
}

@test "what lies beside a source without a slash stays" {
	setup_trees
	both 'mkdir s; echo x > s/extra; settle s'
	compare_unordered -ai --delete ../s ./
	[ ! -e t/s/extra ]
	[ -e t/gone/a ]
}

@test "with several sources a name stays that any of them has" {
	mkdir -p s/1/d s/2/d
	echo 1 >s/1/d/one
	echo 2 >s/2/d/two
	settle s
	both 'mkdir d; echo x > d/one; echo x > d/two; echo x > d/three; settle .'
	compare_unordered -ai --delete ../s/1/ ../s/2/ ./
	[ -e t/d/two ]
	[ ! -e t/d/three ]
}

@test "--delete into a destination that is not there" {
	setup_trees
	for phase in --delete --delete-before --delete-after; do
		compare -avi "$phase" ../s/ "new$phase/"
		compare -avin "$phase" ../s/ "never$phase/"
	done
}

@test "--delete with --existing and with --ignore-existing" {
	setup_trees
	echo 3 >s/both/new
	echo 4 >s/keep/sub/file
	compare_unordered -ai --delete --existing ../s/ ./
	compare_unordered -ai --delete --ignore-existing ../s/ ./
}

@test "--stats counts what was deleted" {
	setup_trees
	compare_unordered -a --delete --stats ../s/ ./
	said 'Number of deleted files: 11 (reg: 6, dir: 3, link: 1, special: 1)'
}

@test "--delete without -r is refused" {
	run_one r rsync --delete ../s/ d
	run_one t "$TIPTOE" --delete ../s/ d
	diff r.code t.code
}

# Listing ahead stops where descriptors or memory for it end, and must go on when there are some again: nobody else wakes those who list.
@test "something to delete in each of thousands of directories, with many descriptors and with few" {
	local phase count=5000
	# faultfs has a descriptor of its own for each.
	[[ ${TIPTOE_TEST_FS:-} == fuse ]] && count=400
	eval "mkdir -p s/d{1..$count}; touch s/d{1..$count}/f"
	for phase in during before after; do
		rm -rf t
		cp -a s t
		eval "touch t/d{1..$count}/extra"
		(cd t && timeout 120 "$TIPTOE" -a "--delete-$phase" ../s/ ./)
		"$TREECMP" --no-dir-times s t
	done
	eval "rm -rf s/d{201..$count} t"
	cp -a s t
	touch t/d{1..200}/extra
	(cd t && timeout 60 prlimit --nofile=256:256 "$TIPTOE" -a --delete ../s/ ./)
	"$TREECMP" --no-dir-times s t
}

mount_below() { # DIRECTORY...
	local dir
	for dir; do
		mkdir -p "$dir"
		mount -t tmpfs tmpfs "$dir"
		mkdir "$dir/deep"
		echo x >"$dir/deep/file"
		settle "$dir"
	done
}

@test "-x deletes nothing on what is mounted below the destination" {
	((EUID == 0)) || skip "needs root"
	mkdir -p s/empty
	echo 1 >s/file
	settle s
	both 'mount_below gone sub/gone empty empty/below; echo x >extra; settle extra'
	compare_unordered -axi --delete ../s/ ./
	[ -e t/gone/deep/file ] && [ -e t/sub/gone/deep/file ] && [ -e t/empty/deep/file ] && [ ! -e t/extra ]
	compare_unordered -axi --delete-before ../s/ ./
	compare_unordered -axi --delete-after ../s/ ./
	[ -e t/gone/deep/file ] && [ -e t/sub/gone/deep/file ] && [ -e t/empty/deep/file ]
}
