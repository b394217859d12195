#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What sources and destination mean: slashes, single files, several sources, missing ones.

load compare

tree() { # PATH
	mkdir -p "$1/sub/deep"
	echo one >"$1/file"
	echo two >"$1/sub/file"
	echo three >"$1/sub/deep/file"
	ln -s file "$1/link"
	settle "$1"
}

@test "a source without a slash becomes a directory of its name" {
	tree s/a
	compare -avi ../s/a d/
	said 'cd+++++++++ a/sub/deep/'
}

@test "a source with a slash gives its contents" {
	tree s/a
	compare -avi ../s/a/ d
	said 'created directory d'
	said 'cd+++++++++ ./'
}

@test "a source that ends in a dot gives its contents" {
	tree s/a
	compare -ai ../s/a/. d/
}

@test "a destination that is there with and without a slash is the same" {
	tree s/a
	both 'mkdir d; touch -d @5 d'
	compare -ai ../s/a/ d
	both 'rm -r d; mkdir d'
	compare -ai ../s/a/ d/
}

@test "a single file becomes a file of another name" {
	tree s/a
	compare -ai ../s/a/file new
	said '>f+++++++++ file'
	[ -f t/new ]
}

@test "a single file replaces a file of another name" {
	tree s/a
	both 'echo old > new; touch -d @5 new'
	compare -ai ../s/a/file new
}

@test "a single file goes into a directory" {
	tree s/a
	both 'mkdir d; settle d'
	compare -ai ../s/a/file d
}

@test "a single file goes into a directory that is made because of its slash" {
	tree s/a
	compare -avi ../s/a/file d/
	said 'created directory d'
}

@test "a single link becomes a link of another name, and replaces a file" {
	tree s/a
	compare -ai ../s/a/link new
	both 'echo x > other; settle other'
	compare -ai ../s/a/link other
}

@test "several sources are merged by name, the first file wins" {
	tree s/a
	tree s/b
	echo other >s/b/file
	echo more >s/b/sub/more
	settle s/b
	compare -ai ../s/a/ ../s/b/ d/
}

@test "several sources without slashes lie side by side" {
	tree s/a
	tree s/b
	compare -ai ../s/a ../s/b d/
}

@test "sources with and without slashes are mixed" {
	tree s/a
	tree s/b
	compare -ai ../s/a ../s/b/ ../s/b/file d/
}

@test "a name that is a file in one source and a directory in another is a directory" {
	mkdir -p s/a s/b/x
	echo file >s/a/x
	echo inside >s/b/x/y
	settle s/a s/b
	compare -ai ../s/a/ ../s/b/ d/
}

@test "several sources need a directory" {
	tree s/a
	both 'echo x > d; settle d'
	compare -a ../s/a ../s/a/file d
	code_is 3
}

@test "a missing source is exit code 23, and the others are copied" {
	tree s/a
	compare -ai ../s/nowhere ../s/a d/
	code_is 23
}

@test "with a missing source nothing is deleted" {
	tree s/a
	both 'mkdir -p d/a; echo x > d/a/extra; settle d'
	# rsync 3.5 deletes.
	for phase in --delete --delete-before --delete-after; do
		run_one t "$TIPTOE" -a "$phase" ../s/nowhere ../s/a d/
		code_is 23
		[ -f t/d/a/extra ]
		[ "$(grep -c nowhere t.err)" -eq 1 ]
	done
}

@test "only a missing source makes nothing" {
	compare -a ../s/nowhere d
	code_is 23
	[ ! -e t/d ]
	compare -av ../s/nowhere d/
	code_is 23
}

@test "a destination below a directory that does not exist is refused" {
	tree s/a
	run_one r rsync -a ../s/a/ no/where/d
	run_one t "$TIPTOE" -a ../s/a/ no/where/d
	diff r.code t.code
}

@test "a file with a slash behind it is no destination, and stays" {
	tree s/a
	for tool in rsync "$TIPTOE"; do
		rm -rf e
		mkdir e
		echo precious >e/f
		ln -s f e/link
		for destination in e/f/ e/link/; do
			code=0
			"$tool" -a s/a/file "$destination" || code=$?
			[ "$code" -eq 3 ]
			[ "$(cat e/f)" == precious ]
			[ -L e/link ]
		done
	done
}

@test "without -r directories are skipped" {
	tree s/a
	compare -lptgoDv ../s/a d
	compare -lptgoDv ../s/a/ d
	compare -lptgoDv ../s/a/ ../s/a/file d
	compare -lptgoDv ../s/a ../s/a/file ../s/a/link e
}

@test "a source that is a link to a directory is a link, and with a slash the directory" {
	tree s/a
	ln -s a s/l
	settle s/l
	compare -ai ../s/l d/
	compare -ai ../s/l/ e/
}

@test "a destination that is a link to a directory is that directory" {
	tree s/a
	both 'mkdir real; settle real; ln -s real d'
	compare -ai ../s/a/ d/
	compare -ai ../s/a d
}
