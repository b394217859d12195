#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# How much is deleted, and when; sources that go, and sources that are not there; directories above the destination.

load compare

setup_trees() {
	mkdir -p s/keep/sub
	echo 1 >s/keep/sub/file
	settle s
	both 'mkdir -p keep/sub gone/deep/er; echo 1 > keep/sub/file; echo x > keep/extra; echo x > gone/a; echo x > gone/deep/b; echo x > gone/deep/er/c; ln -s x gone/link; echo x > e1; echo x > e2; settle .'
}

again() {
	rm -rf s/* r t
	mkdir r t
	setup_trees
}

@test "--max-delete stops deletions, the exit code is 25" {
	for most in 0 1 2 3 4 5 6 7 8 9 10 100 -1; do
		again
		compare_unordered -ai --delete "--max-delete=$most" ../s/ ./ || return 1
	done
	code_is 25
	again
	compare_unordered -ai --delete --max-delete 100 ../s/ ./
	code_is 0
}

@test "--max-delete in every phase, with -n, -v and --stats" {
	for options in --delete-before --delete-after --delete-delay "--delete -n" "--delete -v" "--delete --stats"; do
		again
		# shellcheck disable=SC2086
		compare_unordered -ai $options --max-delete=3 ../s/ ./ || return 1
		code_is 25
	done
}

@test "--max-delete does not count what makes way, but what is in it, and an error counts for more" {
	again
	echo x >s/gone
	settle s
	compare_unordered -ai --delete --max-delete=0 ../s/ ./
	[ -d t/gone ]
	again
	compare_unordered -ai --max-delete=0 ../s/ ./
	code_is 0
}

@test "--force: directories with contents make way without --delete" {
	for options in -ai "-ai --force" "-ain --force" "-ai --force --no-force" "-rlti --force" "-aiI --force"; do
		again
		mkdir -p r/a/b t/a/b
		touch r/a/b/c t/a/b/c
		echo x >s/a
		ln -s x s/gone
		mkfifo s/e1
		settle s
		touch -d "$old" r t
		# shellcheck disable=SC2086
		compare_unordered $options ../s/ ./ || return 1
	done
}

@test "--delete-delay deletes at the end what was found on the way" {
	again
	mkdir -p s/more
	echo 2 >s/more/file
	settle s
	compare_unordered -ai --delete-delay ../s/ ./
	[ "$(tail -n1 t.out | cut -c1-9)" = "*deleting" ]
	again
	compare_unordered -avi --delete-delay ../s ./
	again
	compare_unordered -ain --delete-delay ../s/ ./
	[ -e t/gone/deep/er/c ]
	again
	compare_unordered -rpi --delete-delay --exclude='*.o' ../s/ ./
	again
	compare_unordered -dlpti --delete-delay ../s/ ./
}

@test "--delete-delay: directories have their times and modes afterwards" {
	again
	chmod 555 s/keep
	as_user
	compare_unordered -ai --delete-delay ../s/ ./
	[ ! -e t/keep/extra ]
	chmod 755 s/keep r/keep t/keep
}

@test "--ignore-errors deletes in spite of what cannot be read" {
	for options in --delete-before "--delete --ignore-errors" "--delete-after --ignore-errors" "--delete-before --ignore-errors" "--delete-delay --ignore-errors" \
		"--delete-after --ignore-errors --no-ignore-errors"; do
		chmod -R u+rwx s r t
		again
		mkdir -p s/closed r/closed t/closed
		touch r/closed/x t/closed/x
		chmod 0 s/closed
		touch -d "$old" s r t
		as_user
		# shellcheck disable=SC2086
		compare_unordered -rlti $options ../s/ ./ || return 1
		code_is 23
		chown -R 0:0 "$work/s" "$work/r" "$work/t"
		runner=()
	done
	chmod 755 s/closed
}

# Each has a source of its own: it changes.
moving() {
	rm -rf r t
	mkdir r t
	both 'mkdir -p src/d/e src/empty dst/d; for n in new same content attributes; do echo $n > src/$n; echo $n > src/d/$n; done
		ln -s x src/link; ln -s x src/same-link; ln -s x dst/same-link; mkfifo src/fifo; echo same > dst/same; echo same > dst/d/same; echo old > dst/content
		echo attributes > dst/attributes; chmod 600 dst/attributes; settle .; touch -d @1700000000 dst/content'
}

@test "--remove-source-files takes away what was copied and what was there" {
	moving
	compare -ai --remove-source-files src/ dst/
	[ ! -e t/src/new ]
	[ ! -e t/src/same ]
	[ -d t/src/d/e ]
	[ "$(find t/src ! -type d | wc -l)" = 0 ]
}

@test "--remove-source-files leaves what is not copied" {
	for options in "--existing" "--ignore-existing" "-u" "--max-size=4" "--exclude=d" "-n" "--no-l" "--no-D" "--no-r"; do
		moving
		# shellcheck disable=SC2086
		compare_unordered -ai $options --remove-source-files src/ dst/ || return 1
	done
}

@test "--remove-source-files with deletion in every phase" {
	for phase in --delete --delete-before --delete-delay --delete-after; do
		moving
		both 'echo x > dst/extra; echo x > dst/d/extra; settle dst'
		compare_unordered -ai "$phase" --remove-source-files src/ dst/ || return 1
		[ ! -e t/dst/extra ]
		[ "$(cat t/dst/d/new)" = new ]
	done
}

@test "--remove-source-files with links of one file, in place, one file, and one that is renamed" {
	moving
	both 'ln src/new src/d/other; ln src/same src/d/sames; settle src'
	compare_unordered -aH --remove-source-files src/ dst/
	[ "$(find t/src ! -type d | wc -l)" = 0 ]
	moving
	compare -ai --inplace --remove-source-files src/ dst/
	moving
	compare -ai --remove-source-files src/new dst/
	moving
	compare -ai --remove-source-files src/new dst/renamed
	[ "$(cat t/dst/renamed)" = new ]
	[ ! -e t/src/new ]
	moving
	unordered=true compare -avv --remove-source-files src/ dst/
	moving
	compare -aic --remove-source-files src/ dst/
	moving
	compare -ai --append --remove-source-files src/ dst/
}

@test "--remove-source-files never removes what could not be copied" {
	moving
	both 'chmod 0 src/new'
	as_user
	compare_unordered -rlti --remove-source-files src/ dst/
	code_is 23
	[ -e t/src/new ]
	moving
	both 'chmod 555 src/d'
	as_user
	compare_unordered -rlti --remove-source-files src/ dst/
	code_is 23
	[ -e t/src/d/new ]
	[ "$(cat t/dst/d/new)" = new ]
	chmod 755 "$work"/?/src/d
}

@test "--remove-source-files: a source that is its own copy stays" {
	mkdir -p t/src/d t/dst/d
	echo precious >t/src/d/file
	mount --bind t/src/d t/dst/d || skip "cannot mount here"
	touch -d @1 t/src/d/file
	run_one t "$TIPTOE" -a --remove-source-files src/ dst/
	[ "$(cat t/src/d/file)" = precious ]
	code_is 23
}

@test "--ignore-missing-args and --delete-missing-args" {
	for options in --ignore-missing-args --delete-missing-args "--delete-missing-args --force" "--ignore-missing-args --delete-missing-args" \
		"--delete-missing-args --ignore-missing-args" "--delete-missing-args -n" "--delete-missing-args -v" "--delete-missing-args --delete" \
		"--ignore-missing-args --delete" ""; do
		again
		both 'echo x > missing; echo x > stays; settle .'
		# shellcheck disable=SC2086
		compare_unordered -ai $options ../s/keep ../s/missing ../s/gone ./ || return 1
	done
}

@test "--delete-missing-args leaves what a filter protects" {
	for options in --exclude=missing "-f P\ missing" "--exclude=*" "-f H\ missing" "--exclude=missing --delete-excluded" "-f P\ other"; do
		again
		both 'echo x > missing; mkdir -p gone/below; echo x > gone/below/f; settle .'
		eval "compare_unordered -ai --delete-missing-args --force $options ../s/keep ../s/missing ../s/gone ./" || return 1
	done
}

@test "--ignore-missing-args and --delete-missing-args with nothing else" {
	for options in --ignore-missing-args --delete-missing-args; do
		again
		compare_unordered -ai "$options" ../s/e1 ./
		compare_unordered -ai "$options" ../s/e2/ ./
		compare_unordered -ai "$options" ../s/nosuch ../s/nosuch2 ./
		compare_unordered -ai "$options" ../s/nosuch/deeper ./
	done
}

@test "--mkpath makes the directories above the destination" {
	again
	compare -ai --mkpath ../s/ a/b/c
	compare -ai --mkpath ../s/ a/b/d/
	compare -ai --mkpath ../s/ a/b/c
	compare -ai --mkpath ../s a/e/
	compare -ai --mkpath ../s/keep/sub/file x/y/z
	compare -ai --mkpath ../s/keep/sub/file x2/y/z/
	compare -ai --mkpath ../s/keep/sub/file x/y/other
	compare -ai --mkpath ../s/keep ../s/keep/sub/file x3/y
	compare -v --mkpath ../s/keep/sub/file x4/y
	compare -a --mkpath ../s/keep/sub/file x5/y
	compare -ai --no-mkpath ../s/ never/never
	compare -ai ../s/ never/never
	[ ! -e t/never ]
}

@test "--mkpath -n makes nothing" {
	again
	compare -ain --mkpath ../s/ a/b/c
	compare -ain --mkpath ../s/keep/sub/file x/y/z
	[ ! -e t/a ]
	[ ! -e t/x ]
}
