#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# One type in the way of another, and every kind of name.

load compare

make_kind() { # KIND PATH
	case $1 in
	file) echo content >"$2" ;;
	empty) mkdir "$2" ;;
	full) mkdir -p "$2/sub" && echo x >"$2/x" && echo y >"$2/sub/y" ;;
	link) ln -s target "$2" ;;
	dangling) ln -s /no/such/place "$2" ;;
	fifo) mkfifo "$2" ;;
	socket) python3 -c 'import os, stat, sys; os.mknod(sys.argv[1], stat.S_IFSOCK | 0o644)' "$2" ;;
	char) mknod "$2" c 1 3 ;;
	block) mknod "$2" b 7 200 ;;
	esac
	settle "$2"
}

# Each type of the list over the given one.
over() { # OPTIONS KIND...
	local options=$1 existing wanted
	shift
	for wanted; do
		for existing; do
			[[ $wanted == "$existing" ]] && continue
			# rsync takes a block device for a character device of the same number; these have others.
			make_kind "$wanted" "s/$wanted-for-$existing"
			both "make_kind $existing $wanted-for-$existing"
		done
	done
	settle s
	both 'settle .'
	# shellcheck disable=SC2086
	compare_unordered $options ../s/ ./
}

@test "every type replaces every other" {
	over -ai file empty link fifo socket char block
}

@test "every type replaces every other where only -n says so" {
	over -ain file empty link fifo socket char block
}

@test "a directory with names makes way with --delete" {
	over '-ai --delete' file full link fifo
}

@test "a directory with names would make way with --delete -n" {
	over '-ain --delete' file full link fifo
}

@test "a directory with names does not make way without --delete: exit code 23" {
	over -av file full link fifo
	code_is 23
}

@test "a directory that holds an excluded name does not make way" {
	make_kind file s/name
	settle s
	both 'make_kind full name; settle .'
	compare_unordered -ai --delete --exclude=y ../s/ ./
	code_is 23
	[ -f t/name/sub/y ]
	[ ! -e t/name/x ]
}

@test "a link to a directory is replaced, what it points to is not touched" {
	make_kind full s/name
	settle s
	both 'mkdir other; echo keep > other/x; ln -s other name; settle .'
	compare -ai ../s/ ./
	[ "$(<t/other/x)" = keep ]
}

@test "links: long, dangling, to directories, absolute, with odd bytes" {
	ln -s "$(printf 'x%.0s' {1..1000})" s/long
	ln -s /no/where s/dangling
	ln -s .. s/up
	ln -s /etc s/absolute
	ln -s $'new\nline\xff' s/bytes
	settle s
	compare -ai ../s/ d/
	compare -aii ../s/ d/
}

@test "links with other targets are made anew, links with other times get theirs" {
	ln -s new s/target
	ln -s same s/time
	settle s
	both 'ln -s old target; ln -s same time; touch -h -d @5 target time'
	compare -ai ../s/ ./
}

@test "devices, fifos and sockets are copied with -D" {
	for kind in fifo socket char block; do make_kind "$kind" "s/$kind"; done
	settle s
	compare -ai ../s/ d/
	compare -aii ../s/ d/
	compare_unordered -rti --devices ../s/ e/
	compare_unordered -rti --specials ../s/ f/
}

@test "a device with another number is made anew" {
	mknod s/dev c 1 3
	settle s
	both 'mknod dev c 1 5; settle .'
	compare -ai ../s/ ./
}

@test "without -l and -D links and nodes are skipped" {
	for kind in file link fifo char; do make_kind "$kind" "s/$kind"; done
	settle s
	compare_unordered -rtv ../s/ d/
	said 'skipping non-regular file "link"'
	compare_unordered -rti ../s/ d/
	compare_unordered -rtq ../s/ e/
}
