#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What is printed beside the lines of single names; names of any bytes; filters; file systems.

load compare

small() {
	mkdir -p s/dir/sub
	echo 1 >s/file
	head -c 123456 /dev/zero >s/dir/large
	echo 3 >s/dir/sub/file
	ln -s file s/link
	mkfifo s/fifo
	settle s
}

@test "--stats has rsync's lines" {
	small
	compare -a --stats ../s/ d/
	said 'Number of files: 7 (reg: 3, dir: 3, link: 1)' || said 'Number of files: 8 (reg: 3, dir: 3, link: 1, special: 1)'
	compare -a --stats ../s/ d/
	compare -ai --stats --delete ../s/dir/ d/
}

@test "-h, -hh and none write numbers alike" {
	small
	compare -a --stats -h ../s/ d/
	compare -a --stats -hh ../s/ e/
	compare -a --stats --no-h ../s/ f/
	compare -avh ../s/ g/
}

@test "-v has a head and a sum" {
	small
	compare_unordered -av ../s/ d/
	said 'sending incremental file list'
	compare -av ../s/ d/
	compare_unordered -av --delete-before ../s/ e/
	said 'building file list ... done'
}

@test "--progress -q prints nothing" {
	small
	compare -aq --progress ../s/ d/
	[ ! -s t.out ]
}

@test "names of any bytes" {
	mkdir -p $'s/dir\nnew' $'s/\xff\xfe' s/-n 's/back\slash' 's/ space '
	for name in $'a\nb' $'\x01' $'tab\tin' '-rf' '*' '[a]' '?' 'back\\' '\#012' $'\xc3\xa9' $'\xe9' "quote'\"" '#' '~' ' '; do
		echo x >"s/$name"
		echo x >$'s/dir\nnew/'"$name"
	done
	echo x >"s/$(printf 'L%.0s' {1..255})"
	mkdir "s/$(printf 'D%.0s' {1..255})"
	settle s
	compare -ai ../s/ d/
	compare -aii ../s/ d/
	both 'rm -r d; mkdir d; touch d/$'"'"'x\ny'"'"' d/-x; settle d'
	compare_unordered -av --delete ../s/ d/
}

@test "the order of names: files before directories, by bytes" {
	mkdir s/a s/a.b s/a-b s/B s/b
	echo x | tee s/a/x s/a.b/x s/a-b/x s/a0 s/A s/.h s/_ s/aa s/z >s/b.c
	mkdir s/c s/c.d
	echo x | tee s/c/y >s/c.d/y
	settle s
	compare -ai ../s/ d/
}

@test "filters: names, directories, anchors, stars" {
	mkdir -p s/a/b/c s/x/b s/.hidden
	echo x | tee s/a/1.o s/a/b/2.o s/a/b/c/3.c s/x/b/4.c s/.hidden/5 s/6.o >s/a/7
	settle s
	local rule
	for rule in '--exclude=*.o' '--exclude=b/' '--exclude=/a/b' '--exclude=/x' '--exclude=**/c' '--include=6.o --exclude=*.o' '--include=*/ --include=*.c --exclude=*' \
		'--exclude=.*' '--exclude=a/**' '--exclude=a/***' '--include=/a/ --exclude=/*' '--exclude=?.[co]'; do
		rm -rf r/d t/d
		# shellcheck disable=SC2086
		(set -f && compare -ai $rule ../s/ d/) || { echo "$rule"; return 1; }
	done
}

@test "filters hold for the name of a source" {
	mkdir -p s/a
	echo x >s/a/x
	settle s
	compare -ai --exclude=a ../s/a d/
	compare -ai --exclude=/a/x ../s/a d/
	compare -ai --exclude=/x ../s/a/ e/
}

@test "-x stays on the file system of the source" {
	mkdir -p s/here s/mount s/bind s/other
	mount -t tmpfs none s/mount
	echo x >s/here/x
	echo x >s/mount/x
	mkdir s/mount/sub
	mount --bind s/other s/bind
	touch s/bind/y
	settle s/here s/mount
	touch -d "$old" s/other s/bind s/bind/y s
	compare -aix ../s/ d/
	[ -d t/d/mount ]
	[ ! -e t/d/mount/x ]
	compare -ai ../s/ e/
}

@test "-x --delete leaves what is below a mount point" {
	mkdir -p s/mount
	mount -t tmpfs none s/mount
	touch -d "$old" s/mount s
	both 'mkdir -p d/mount; echo x > d/mount/stays; echo x > d/goes; settle d'
	compare -aix --delete ../s/ d/
	[ -e t/d/mount/stays ]
}

@test "-x with a source that is a mount point itself" {
	mkdir -p s/mount
	mount -t tmpfs none s/mount
	mkdir s/mount/sub
	echo x >s/mount/sub/x
	settle s/mount
	compare -aix ../s/mount/ d/
	compare -aix ../s/mount e/
}

@test "an unknown option and a refused one have rsync's code for it" {
	run_one r rsync --no-such-option a b
	run_one t "$TIPTOE" --no-such-option a b
	diff r.code t.code
}
