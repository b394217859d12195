#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Options that choose single entries: by size, by time, by file system, by what is in a directory.

load compare

sizes() {
	local size
	for size in 0 1 999 1000 1001 1023 1024 1025 1535 1536 1537; do
		head -c "$size" /dev/zero | tr '\0' x >"s/f$size"
	done
	mkdir s/d
	head -c 5000 /dev/zero >s/d/large
	ln -s nowhere-at-all-but-long s/link
	mkfifo s/fifo
	settle s
}

@test "--max-size and --min-size: the limit itself is copied" {
	sizes
	for options in --max-size=1000 --max-size=1000-1 --max-size=1000+1 --max-size=1k --max-size=1K-1 --max-size=1KiB --max-size=1kb --max-size=1.5k --max-size=1.5K+1 \
		--max-size=0 --max-size=1b --max-size=0.5k --min-size=1 --min-size=0 --min-size=1k --min-size=1024+1 --min-size=1m "--min-size=1000 --max-size=1k" \
		"--min-size=1025 --max-size=1000" "--max-size 1000" "--max-size=10 --max-size=1000"; do
		rm -rf r/* t/*
		# shellcheck disable=SC2086
		compare -ai $options ../s/ ./
	done
}

@test "--max-size and --min-size leave alone what is there, and keep it from deletion" {
	sizes
	both 'echo old > f1025; echo old > f1; mkdir f1536; echo x > extra; settle .'
	compare_unordered -ai --delete --max-size=1024 --min-size=2 ../s/ ./
	[ "$(cat t/f1025)" = old ]
	[ -d t/f1536 ]
	unordered=true compare -avv --max-size=1024 --min-size=2 ../s/ ./
	said "f1025 is over max-size"
	said "f1 is under min-size"
	unordered=true compare -avv --max-size=1024 --existing ../s/ ./
	unordered=true compare -avv --max-size=1024 --ignore-existing ../s/ ./
	unordered=true compare -auvv --max-size=1024 ../s/ ./
	compare -aiH --max-size=1024 ../s/ ./
}

@test "--max-size and links of one file" {
	sizes
	ln s/f1025 s/g1025
	ln s/f1 s/g1
	settle s
	compare_unordered -aiH --max-size=1024 ../s/ ./
	[ ! -e t/g1025 ]
}

@test "--max-size with -n, --stats and a single file" {
	sizes
	compare -ain --max-size=1000 ../s/ ./
	compare -a --stats --max-size=1000 ../s/ ./
	compare -ai --max-size=1000 ../s/f1001 file
	compare -avv --max-size=1000 ../s/f1001 file
	[ ! -e t/file ]
}

# Files that differ from their copies in nothing but the time.
times() {
	local place offset when
	for offset in -3.5 -3.0 -2.0 -1.9 -1.0 -0.5 +0.0 +0.5 +1.0 +1.9 +2.0 +2.1 +3.0; do
		# 1600000000 and so much, in tenths.
		when=$((16000000000 + ${offset/./}))
		for place in s r t; do
			echo same >"$place/o$offset"
			mkdir "$place/d$offset"
			ln -s x "$place/l$offset"
		done
		touch -h -d @1600000000 s/?"$offset"
		touch -h -d "@${when::-1}.${when: -1}" {r,t}/?"$offset"
	done
	touch -d @1600000000 s r t
}

@test "--modify-window: so many seconds are no difference, for contents and for times" {
	for window in 0 1 2 3 100; do
		rm -rf s r t
		mkdir s r t
		times
		compare -ai "--modify-window=$window" ../s/ ./
		compare -ai "-@$window" ../s/ ./
	done
}

@test "--modify-window is what -u, -c, --size-only and -I go by" {
	for options in "-aui -@0" "-aui -@1" "-aui -@2" "-aci -@1" "-aci -@0" "-ai --size-only -@1" "-aiI -@2" "-rti -@1" "-rui -@2" "-ai -@1 --existing"; do
		rm -rf s r t
		mkdir s r t
		times
		# shellcheck disable=SC2086
		compare $options ../s/ ./
	done
}

@test "--modify-window=-1 and -2 compare fractions" {
	for window in -1 -2; do
		rm -rf s r t
		mkdir s r t
		times
		compare -ai "--modify-window=$window" ../s/ ./
		said ">f..t...... o+0.5"
	done
}

@test "--modify-window=0 sees no change within a second, and says so in nothing" {
	echo a >s/f
	both 'echo b > f'
	touch -d @1600000000.9 s/f
	touch -d @1600000000.1 r/f t/f
	touch -d "$old" s r t
	compare -ai --modify-window=0 ../s/ ./
	[ "$(cat t/f)" = b ]
	run_one t "$TIPTOE" -a ../s/ ./
	[ "$(cat t/f)" = a ]
}

mounts() {
	local place
	mkdir -p s/mount/below s/plain
	echo x >s/plain/file
	settle s
	mount -t tmpfs tmpfs s/mount || skip "cannot mount here"
	mkdir s/mount/inside
	echo x >s/mount/file
	settle s
}

@test "-xx leaves mount points out" {
	mounts
	compare -aixx ../s/ ./
	[ ! -e t/mount ]
	compare -aix ../s/ ./
	[ -d t/mount ]
	[ ! -e t/mount/file ]
}

@test "-xx with --delete: a mount point of the source is as if it were not there" {
	mounts
	both 'mkdir -p mount/old plain; echo x > mount/old/file; settle .'
	compare_unordered -aixx --delete ../s/ ./
	[ ! -e t/mount ]
}

@test "-xx and a mount point that is named" {
	mounts
	mkdir s/mount/tmp
	mount -t tmpfs tmpfs s/mount/tmp
	touch -d "$old" s/mount/tmp s/mount
	compare -aixx ../s/mount ./
	compare -aixx ../s/mount/ d/
	[ -e t/mount/file ]
	[ ! -e t/mount/tmp ]
	compare -aix -x ../s ./
	compare -axx --no-x -i ../s/ e/
	[ -e t/e/mount/file ]
}

empties() {
	mkdir -p s/a/b/c s/full/empty s/full/deep/er s/only-link s/only-fifo s/only-excluded/sub
	echo x >s/full/deep/er/file
	ln -s x s/only-link/link
	mkfifo s/only-fifo/fifo
	echo x >s/only-excluded/sub/x.o
	settle s
}

@test "-m leaves out directories with nothing but directories in them" {
	empties
	compare -aim ../s/ ./
	[ ! -e t/a ]
	[ ! -e t/full/empty ]
	[ -e t/full/deep/er/file ]
	compare -aim ../s ./
	compare -avm ../s/a ./x
	compare -aim ../s/a ../s/full ./y/
	compare -avim ../s/a/ ./z
}

@test "-m keeps the directories that a filter protects" {
	for rule in 'P /a' 'protect c/' 'P empty' 'P *' 'H *.o' 'R *' 'P /full/x'; do
		rm -rf s r t
		mkdir s r t
		empties
		both 'mkdir -p a/b old/er; settle .'
		compare_unordered -aim --delete -f "$rule" ../s/ ./ || return 1
	done
}

@test "-m goes by what is left after patterns" {
	empties
	compare -aim --exclude='*.o' ../s/ ./
	[ ! -e t/only-excluded ]
	compare -aim --include='*/' --include='*.o' --exclude='*' ../s/ d/
	[ -e t/d/only-excluded/sub/x.o ]
	[ ! -e t/d/full ]
	compare -aim --exclude=/full/deep/er/ ../s/ e/
	[ ! -e t/e/full ]
}

@test "-m with --delete: what is left out goes" {
	empties
	for phase in --delete --delete-before --delete-after; do
		rm -rf r t
		mkdir r t
		both 'mkdir -p a/b/c full/empty only-excluded/sub gone; echo x > a/b/old; echo x > only-excluded/sub/x.o; settle .'
		compare_unordered -aim "$phase" ../s/ ./
		[ ! -e t/a ]
		compare_unordered -aim "$phase" --exclude='*.o' ../s/ ./
	done
}

@test "-m without -l, without -D, with -x, with --existing, with --max-size" {
	empties
	head -c 2000 /dev/zero >s/full/deep/er/file
	settle s
	compare_unordered -rtim ../s/ ./
	compare_unordered -rtim --max-size=1000 ../s/ d/
	compare -aim --existing ../s/ e/
	compare -aimn ../s/ f/
	compare -aim --no-m ../s/ g/
	[ -e t/g/a/b/c ]
	mount -t tmpfs tmpfs s/a/b || skip "cannot mount here"
	echo x >s/a/b/file
	settle s
	compare -aimx ../s/ h/
	compare -aim ../s/ i/
	[ -e t/i/a/b/file ]
	[ ! -e t/h/a ]
}

@test "-m with two sources: a directory that one of them fills stays" {
	mkdir -p s/1/d/e s/2/d/e s/1/x s/2/x
	echo x >s/2/d/e/file
	settle s
	compare -aim ../s/1/ ../s/2/ ./
	[ -e t/d/e/file ]
	[ ! -e t/x ]
}

@test "-m and a directory that cannot be read" {
	mkdir -p s/closed/sub s/open
	echo x >s/open/file
	echo x >s/closed/sub/file
	settle s
	chmod 0 s/closed/sub
	both 'mkdir extra'
	as_user
	compare_unordered -rlptim --delete ../s/ ./
	code_is 23
	[ -e t/extra ]
	chmod 755 "$work/s/closed/sub"
}

tree() {
	mkdir -p s/d/sub/deep s/e
	echo x >s/file
	echo x >s/d/file
	echo x >s/d/sub/deep/file
	ln -s file s/link
	settle s
}

@test "-d copies directories, and contents where a slash says so" {
	tree
	compare_unordered -di ../s/ ./
	compare -dlpti ../s/ d1/
	[ -d t/d1/d ]
	[ ! -e t/d1/d/file ]
	compare -dlpti ../s/d d2/
	compare -dlpti ../s/d ../s/file d3/
	compare -dlpti ../s/. d4/
	compare -dvlpt ../s/ d5/
	compare -dvvlpt ../s d6/
	compare -dlptin ../s/ d7/
	compare -dlptii ../s/ d1/
	compare -dlpti --stats ../s/ d8/
}

@test "-d and -r: -r is stronger; --no-d takes -d back" {
	tree
	compare -adi ../s/ ./
	compare -dai --no-r ../s/ d1/
	compare -ai --no-r --dirs ../s/ d2/
	compare -dlpti --no-d ../s/ d3/
	compare -dlpti --no-dirs ../s/d d4/
	compare -ltvi ../s/d ../s/file d5/
}

@test "-d --delete deletes only where contents are copied" {
	tree
	both 'mkdir -p d/old gone/deep e; echo x > d/extra; echo x > gone/deep/file; echo x > extra; ln -s x glink; settle .'
	compare -dlpti --delete ../s/ ./
	[ -e t/d/extra ]
	[ ! -e t/extra ]
	both 'echo x > e/extra; settle .'
	compare -dlpti --delete ../s/d ./
	for phase in before during after; do
		both 'mkdir -p gone/deep; echo x > gone/deep/file; settle .'
		compare_unordered -dlptvi "--delete-$phase" ../s/ ./
	done
}

@test "-d with -m, -x, --existing and patterns" {
	tree
	compare -dmlpti ../s/ ./
	compare -dlpti --existing ../s/ ./
	compare -dlpti --exclude=/d ../s/ d1/
	compare -dxlpti ../s/ d2/
	compare -dlptic ../s/ d2/
}

@test "-d does not look into directories" {
	tree
	chmod 0 s/d
	as_user
	compare -dlpti ../s/ ./
	code_is 0
	chmod 755 "$work/s/d"
}

@test "--old-dirs is -r with a pattern" {
	tree
	compare -lpti --old-dirs ../s/ ./
	compare -lpti --old-dirs ../s ./
	compare -lpti --old-d ../s/d d1/
	both 'mkdir -p d/old; echo x > d/extra; echo x > extra; settle .'
	compare_unordered -lpti --old-dirs --delete ../s/ ./
}

@test "--ignore-non-existing is --existing" {
	tree
	both 'mkdir d; echo older > file; settle .'
	compare -ai --ignore-non-existing ../s/ ./
	[ ! -e t/link ]
	compare_unordered -ai --ignore-non-existing --ignore-existing --delete ../s/ ./
}
