#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# -H: which name leads, what is said of the others, what the destination has after.

load compare

# Names of one file among others.
group() { # DIRECTORY NAME...
	local first=$1/$2 directory=$1 name
	shift 2
	echo linked >"$first"
	for name; do ln "$first" "$directory/$name"; done
}

@test "a new group in one directory" {
	group s a c e
	echo x | tee s/b s/d >s/f
	settle s
	compare_unordered -aHi ../s/ d/
	said 'hf+++++++++ a => e'
	said '>f+++++++++ e'
	compare -aHii ../s/ d/
}

@test "a new group alone: its lines in order" {
	group s a b c d
	settle s
	compare -aHi ../s/ d/
	compare -aHv ../s/ e/
}

@test "the first name of the destination leads" {
	group s a b c d e
	settle s
	for names in 'b' 'c e' 'e' 'a'; do
		both "rm -rf d; mkdir d; for n in $names; do cp -p ../s/\$n d/; done; settle d"
		compare -aHi ../s/ d/ || { echo "right content: $names"; return 1; }
		both "rm -rf d; mkdir d; for n in $names; do echo old > d/\$n; done; touch -d @5 d/* d"
		compare_unordered -aHi ../s/ d/ || { echo "old content: $names"; return 1; }
	done
}

@test "what is linked stays linked and is not said" {
	group s a b c
	settle s
	both 'mkdir d; cp -a ../s/. d/'
	compare -aHii ../s/ d/
	compare -aHvv ../s/ d/
	both 'rm d/b; cp -p d/a d/b; settle d'
	compare -aHii ../s/ d/
}

@test "names that were linked and are two files now are parted" {
	echo 1 >s/a
	echo 2 >s/b
	settle s
	both 'mkdir d; echo x > d/a; ln d/a d/b; touch -d @5 d/a d'
	compare -aHi ../s/ d/
	[ ! t/d/a -ef t/d/b ]
}

@test "a group is copied anew where the content is old" {
	group s a b c
	settle s
	both 'mkdir d; echo old > d/a; ln d/a d/b; ln d/a d/c; touch -d @5 d/a d'
	compare_unordered -aHi ../s/ d/
}

@test "without -H names become files of their own" {
	group s a b c
	settle s
	compare -ai ../s/ d/
	[ ! t/d/a -ef t/d/b ]
}

@test "a group across directories is one file, whoever leads" {
	mkdir -p s/1 s/2/3
	group s a 1/b 2/3/c d
	group s/1 x y
	settle s
	both 'mkdir d'
	run_one r rsync -aH ../s/ d/
	run_one t "$TIPTOE" -aH ../s/ d/
	compare_trees
	[ t/d/a -ef t/d/2/3/c ]
	compare -aHi ../s/ d/
	[ ! -s t.out ]
}

@test "a group of which some names are not copied" {
	mkdir s/in
	group s in/a out-b in/c
	settle s
	compare_unordered -aH --exclude='out-*' ../s/ d/
	[ t/d/in/a -ef t/d/in/c ]
}

@test "groups of links, fifos and devices" {
	ln -s target s/l1
	ln s/l1 s/l2
	mkfifo s/p1
	ln s/p1 s/p2
	mknod s/c1 c 1 3
	ln s/c1 s/c2
	settle s
	compare_unordered -aHi ../s/ d/
	compare -aHii ../s/ d/
}

@test "-H -n says the same and does nothing" {
	group s a b c
	settle s
	compare_unordered -aHin ../s/ d/
	both 'mkdir d; cp -p ../s/b d/; settle d'
	compare -aHin ../s/ d/
	[ ! -e t/d/a ]
}

@test "-H --delete with a directory in the way of a follower" {
	group s a b c
	settle s
	both 'mkdir -p d/b/sub; echo x > d/b/sub/x; settle d'
	compare_unordered -aHi --delete ../s/ d/
	[ t/d/a -ef t/d/b ]
}

# More names than the plan keeps in flight; all but one wait for the first.
@test "-H: twenty thousand names of one file, and of two" {
	local i
	mkdir s/d
	echo 1 >s/d/a
	echo 2 >s/d/b
	(cd s/d && python3 -c '
import os
for i in range(20000):
    os.link("a" if i % 3 else "b", "n%05d" % i)')
	settle s
	(cd t && timeout 60 "$TIPTOE" -aH ../s/ ./)
	"$TREECMP" s t
	(cd t && timeout 60 "$TIPTOE" -aHn ../s/ ./)
}

# rsync gives up at 4,096 bytes of path.
@test "-H: names whose paths are longer than the kernel takes are links, too long ones are told" {
	local levels
	for levels in 25 45; do
		rm -rf s d
		python3 - "$levels" <<'PYTHON'
import os, sys
os.mkdir("s")
os.chdir("s")
for i in range(int(sys.argv[1])):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
open("a", "w").write("a")
os.link("a", "b")
os.mkdir("k")
os.link("a", "k/c")
PYTHON
		code=0
		"$TIPTOE" -aH s/ d/ 2>err || code=$?
		if ((levels == 25)); then
			[ "$code" == 0 ]
			[ "$(find d -type f -links 3 | wc -l)" == 3 ]
		else
			[ "$code" == 23 ]
			[ "$(find d -type f | wc -l)" == 3 ]
			grep -q "File name too long" err
		fi
	done
}
