#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# As an ordinary user: what cannot be read, what may not be given away.

load compare

@test "an unreadable file is exit code 23, the others are copied, nothing is said of it" {
	echo 1 >s/a
	echo 2 >s/secret
	echo 3 >s/z
	settle s
	as_user
	chmod 0 s/secret
	compare -ai ../s/ d/
	code_is 23
	[ ! -e t/d/secret ]
}

@test "an unreadable file under -n is said like any other" {
	echo 2 >s/secret
	settle s
	as_user
	chmod 0 s/secret
	compare -ain ../s/ d/
}

@test "an unreadable directory: exit code 23 and no deletions anywhere" {
	mkdir -p s/a s/m s/z
	echo x | tee s/a/x s/m/x >s/z/x
	settle s
	for phase in --delete-before --delete-after --delete; do
		both 'rm -rf d; mkdir -p d/a d/m d/z; echo x | tee d/a/extra d/m/extra d/z/extra > d/extra; settle d'
		as_user
		chmod 0 s/m
		if [[ $phase == --delete ]]; then # rsync may have begun to delete when it hears of the error
			run_one t "$TIPTOE" -ai "$phase" ../s/ d/
		else
			compare_unordered -ai "$phase" ../s/ d/
		fi
		code_is 23
		[ -e t/d/a/extra ] && [ -e t/d/m/extra ] && [ -e t/d/z/extra ] && [ -e t/d/extra ]
	done
}

@test "an unreadable file and --delete-after: no deletions" {
	echo x >s/secret
	settle s
	both 'mkdir d; echo x > d/extra; settle d'
	as_user
	chmod 0 s/secret
	compare_unordered -ai --delete-after ../s/ d/
	[ -e t/d/extra ]
}

@test "owners cannot be given, groups only those one is in" {
	echo 1 >s/a
	echo 2 >s/b
	settle s
	as_user
	chown 7:7 s/a
	chown 1000:7 s/b
	compare -ai ../s/ d/
	compare -aii ../s/ d/
}

@test "devices are skipped, fifos are made" {
	mkfifo s/fifo
	mknod s/dev c 1 3
	settle s
	as_user
	compare_unordered -av ../s/ d/
}

@test "directories that their owner may not write to are copied, filled and emptied" {
	mkdir -p s/dir/sub
	echo x >s/dir/sub/file
	settle s
	chmod 555 s/dir/sub s/dir
	as_user
	compare -ai ../s/ d/
	chmod 755 s/dir/sub
	echo y >s/dir/sub/new
	chmod 555 s/dir/sub
	chown -R 1000:1000 s
	compare -ai ../s/ d/
	both 'mkdir -p d/gone/sub; echo x > d/gone/sub/x; chmod 555 d/gone/sub d/gone; chown -R 1000:1000 d'
	compare_unordered -ai --delete ../s/ d/
	[ ! -e t/d/gone ]
}

@test "a destination that cannot be entered is exit code 3" {
	echo x >s/a
	settle s
	both 'mkdir d'
	as_user
	chmod 644 r/d t/d
	run_one r "rsync" -a ../s/ d/
	run_one t "$TIPTOE" -a ../s/ d/
	diff r.code t.code
}

@test "a user's setuid bits arrive" {
	echo x >s/a
	chmod 4755 s/a
	settle s
	as_user
	chmod 4755 s/a
	compare -ai ../s/ d/
}

# The first of the two has told where its files are, before.
@test "-c with a directory that two sources have, and only the second can be read" {
	mkdir -p s/one/sub s/two/sub
	echo 1 >s/one/sub/a
	echo 2 >s/two/sub/b
	settle s
	both 'mkdir -p sub; echo 2 >sub/b; settle .'
	as_user
	chmod 0 s/one/sub
	compare_unordered -rc ../s/one/ ../s/two/ ./
	chmod 755 s/one/sub
}

@test "directories at the destination that the user has closed are opened while they are written to" {
	local mode options
	mkdir -p s/k/below
	echo 1 | tee s/k/f >s/k/below/g
	settle s
	for mode in 0 100 300 400 500; do
		for options in -a -rpt "-a --delete" "-aH --delete-delay"; do
			both "rm -rf d; mkdir -p d/k/below; echo x > d/k/extra; settle d; chmod $mode d/k/below d/k"
			as_user
			# shellcheck disable=SC2086
			compare_unordered $options -i ../s/ d/ || return 1
			both 'chmod 700 d/k d/k/below'
		done
	done
}
