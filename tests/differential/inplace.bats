#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --inplace, --append, --append-verify: what is under the name before, and every option that decides about it.

load compare

# Sources of every relation to what the destination has, in `d` of both places.
pairs() {
	local name
	for name in longer shorter equal new exact empty; do
		yes "new $name" | head -c 100000 >s/$name
	done
	: >s/empty
	printf 'tail of nothing' >>s/shorter
	: >s/nothing
	settle s
	both '
		mkdir d
		yes "old longer" | head -c 150000 >d/longer
		yes "old shorter" | head -c 50001 >d/shorter
		yes "old equal" | head -c 100000 >d/equal
		echo something >d/empty
		: >d/nothing
		echo 1 >d/extra
		settle d
		touch -d 2001-01-01 d/[lesn]*
		cp -p ../s/exact d/exact
		chmod 600 d/longer d/exact
		touch -d 2001-01-01 d
	'
}

inodes() { # DIRECTORY
	stat -c '%n %i' "$1"/* | sort
}

@test "longer, shorter, equal, empty and missing files are written where they are" {
	pairs
	inodes t/d >before
	compare -ai --inplace ../s/ d/
	inodes t/d | comm -13 before - >changed
	[ "$(cut -d' ' -f1 changed)" = t/d/new ]
	compare -aii --inplace ../s/ d/
}

@test "--inplace with every option that decides about a file" {
	for options in '-S -W' '-u --stats' '--existing -vv' '--ignore-existing -ii' '-c -v' -n '-n --delete' '--delete-after -q' -I '-I --size-only' '-H --fsync' '-c -u -vvi'; do
		rm -rf s r t && mkdir s r t
		pairs
		# shellcheck disable=SC2086
		compare_unordered -ai --inplace $options ../s/ d/
	done
	for options in -r -rlt -rtp; do
		rm -rf s r t && mkdir s r t
		pairs
		chmod 640 s/*
		compare "$options" -i --inplace ../s/ d/
	done
}

@test "what is no regular file makes way, and nothing is written through a link" {
	for name in to-file to-nothing to-dir dir full fifo socket device; do
		echo "new $name" >s/$name
	done
	settle s
	both '
		mkdir d d/dir d/full outside
		echo kept >outside/file
		ln -s ../outside/file d/to-file
		ln -s ../outside/nothing d/to-nothing
		ln -s ../outside d/to-dir
		echo x >d/full/x
		mkfifo d/fifo
		mknod d/device c 1 3
		python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\"d/socket\")"
		settle d outside
	'
	compare_unordered -ai --inplace ../s/ d/
	[ "$(cat t/outside/file)" = kept ]
	[ ! -e t/outside/nothing ]
	compare_unordered -ai --inplace --delete ../s/ d/
	[ "$(cat t/d/full)" = "new full" ]
}

@test "all names of a file see the new content" {
	yes new | head -c 30000 >s/a
	settle s
	both 'mkdir d; yes old | head -c 40000 >d/a; ln d/a d/b; ln d/a other; settle d'
	compare -ai --inplace ../s/ d/
	cmp t/other s/a
	cmp t/d/b s/a
}

@test "-H: names that are linked there stay so, others are linked" {
	yes new | head -c 30000 >s/b
	for name in a c d e; do
		ln s/b s/$name
	done
	settle s
	both 'mkdir d; yes old | head -c 40000 >d/b; ln d/b d/c; echo other >d/d; settle d'
	compare_unordered -aiH --inplace ../s/ d/
	[ "$(stat -c %h t/d/a)" = 5 ]
	compare_unordered -aiiH --inplace ../s/ d/
	rm -rf r t && mkdir r t
	both 'mkdir d; yes old | head -c 40000 >d/b; ln d/b d/c; echo other >d/d; settle d'
	compare_unordered -aiiH --inplace -n ../s/ d/
}

@test "an ordinary user writes to what he may write to, and to what is his" {
	for name in read-only write-only none other group; do
		yes "new $name" | head -c 9000 >s/$name
	done
	settle s
	both '
		mkdir d
		for name in read-only write-only none other group; do yes "old $name" | head -c 8000 >d/$name; done
		settle d
	'
	as_user
	chmod 444 r/d/read-only t/d/read-only
	chmod 200 r/d/write-only t/d/write-only
	chmod 0 r/d/none t/d/none
	chown 0:0 r/d/other t/d/other
	chown 0:0 r/d/group t/d/group
	chmod 646 r/d/group t/d/group
	compare -ai --inplace ../s/ d/
	code_is 23
	both 'chmod 400 d/read-only; printf more >>../s/read-only'
	compare -rlti --append ../s/ d/
	code_is 23
	[ "$(stat -c %a t/d/read-only)" = 400 ]
}

@test "holes of the source become holes over what was there" {
	for size in 3M 40M; do
		rm -rf s r t && mkdir s r t
		truncate -s $size s/head s/tail s/both s/all s/islands
		yes head | head -c 100000 >>s/head
		yes tail | dd of=s/tail bs=100000 count=1 iflag=fullblock conv=notrunc status=none
		yes both | dd of=s/both bs=4096 seek=300 count=20 iflag=fullblock conv=notrunc status=none
		for at in 5000 700000 1500001; do
			printf x | dd of=s/islands bs=1 seek=$at conv=notrunc status=none
		done
		settle s
		both "
			mkdir d
			for name in head tail both all islands; do yes 'old data' | head -c $(($(numfmt --from=iec $size) + 70000)) >d/\$name; done
			yes 'old data' | head -c 1000003 >d/both
			settle d
		"
		cp -a t/d again
		compare -ai --inplace -S ../s/ d/
		# rsync without -S writes all the zeros.
		"$TIPTOE" -a --inplace s/ again/
		"$TREECMP" --no-dir-times s again
		rm -r again
	done
}

@test "--append writes only what is missing" {
	pairs
	inodes t/d >before
	compare -ai --append ../s/ d/
	inodes t/d | comm -13 before - | grep -qx 't/d/new [0-9]*'
	compare -aii --append ../s/ d/
}

@test "--append and --append-verify with every option that decides about a file" {
	for append in --append --append-verify; do
		# Not -S: rsync 3.5 makes zeros of what was there.
		for options in '-u --stats' '--existing -vv' --ignore-existing -c '-n --delete' '-I -H' '--size-only --fsync' --no-inplace; do
			rm -rf s r t && mkdir s r t
			pairs
			# What is there is the beginning, so that verification has nothing to mend.
			head -c 50001 s/shorter | tee r/d/shorter >t/d/shorter
			touch -d 2001-01-01 [rt]/d/shorter
			# shellcheck disable=SC2086
			compare_unordered -ai $append $options ../s/ d/
			cmp s/shorter t/d/shorter || [[ $options == -n* || $options == --ignore-existing || $options == --size-only* ]]
		done
	done
}

@test "--append-verify writes a file anew whose beginning is another" {
	pairs
	both 'head -c 50000 ../s/shorter >d/shorter; printf X >>d/shorter; touch -d 2001-01-01 d/shorter'
	run_one r rsync -a --append-verify ../s/ d/
	run_one t "$TIPTOE" -a --append-verify ../s/ d/
	compare_trees
	cmp s/shorter t/d/shorter
}

@test "--append goes on with a file that has holes" {
	truncate -s 9M s/file
	yes middle | dd of=s/file bs=4096 seek=1000 count=20 iflag=fullblock conv=notrunc status=none
	printf end >>s/file
	settle s
	both 'mkdir d; head -c 4000001 ../s/file >d/file; touch -d 2001-01-01 d/file'
	compare -ai --append ../s/ d/
	compare -aii --append-verify ../s/ d/
}

@test "one file under another name, in place" {
	yes new | head -c 30000 >s/a
	settle s
	both 'yes old | head -c 20000 >b; yes new | head -c 20000 >c; settle b c; touch -d 2001-01-01 b c'
	compare -ai --inplace ../s/a b
	compare -ai --append ../s/a c
	compare -ai --append ../s/a new
	cmp s/a t/c
}

@test "refused together" {
	echo x >s/a
	compare -a --append -W ../s/ d/
	code_is 1
	compare -a --whole-file --append-verify ../s/ d/
	code_is 1
	compare -ai --append --no-append -W ../s/ d/
	code_is 0
	compare -ai --append-verify --no-append ../s/ d/
}
