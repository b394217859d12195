#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Filter rules: what they hide in the source, and what they protect in the destination, in every phase of deletion.

load compare

# Not -n: rsync takes directories for deleted then that hold excluded names.
phases=(--delete "" --delete-after --delete-excluded --delete-before "--delete-excluded --delete-after")
turn=0

make_tree() { # DIRECTORY
	mkdir -p "$1"/{dir/sub/deep,build,CVS,.git,"with space"}
	local name
	for name in a.o a.c ab.txt core TAGS .hidden build/out.o build/keep CVS/Root .git/config dir/a.o dir/x.c dir/sub/a.o dir/sub/y.c dir/sub/deep/z.c \
		dir/sub/deep/a.o "with space/a b" 'x*y' 'd[1]'; do
		echo "$name" >"$1/$name"
	done
}

setup_trees() {
	export HOME=$work/home
	unset CVSIGNORE
	mkdir -p home base
	make_tree s
	make_tree base
	# What only the source has: that it is left out is seen.
	rm -r base/{TAGS,core,ab.txt,build/keep,dir/sub/a.o,dir/sub/deep/z.c,CVS,"with space",'x*y','d[1]',.hidden}
	# What only the destination has, and what is another version.
	mkdir -p base/gone/sub base/dir/gone base/old
	local name
	for name in extra.o extra.c core.o gone/a.o gone/x.c gone/sub/core gone/sub/k.c dir/extra.o dir/extra.c dir/sub/extra.o dir/gone/a.o old/a.o; do
		echo "$name" >"base/$name"
	done
	echo older >base/dir/x.c
	echo older >base/a.o
	settle s base
}

# The same options in two phases of deletion, in turn, or with ALL_PHASES set in all of them.
in_phases() { # ARGUMENTS...
	local phase chosen=("${phases[@]:turn:2}")
	turn=$(((turn + 2) % ${#phases[@]}))
	[[ ${ALL_PHASES:-} ]] && chosen=("${phases[@]}")
	for phase in "${chosen[@]}"; do
		rm -rf r t
		cp -a base r
		cp -a base t
		# shellcheck disable=SC2086
		compare_unordered -ai $phase "$@" ../s/ ./ || { echo "with: $phase"; return 1; }
	done
}

# A file with rules in the source, the destination, or both.
rules() { # WHERE FILE LINES...
	local where=$1 file=$2 tree
	shift 2
	for tree in s base; do
		[[ $where == both || $where == "$tree" ]] || continue
		printf '%s\n' "$@" >"$tree/$file"
	done
	settle s base
}

@test "exclude and include of the command line" {
	setup_trees
	in_phases --exclude='*.o'
	in_phases --include='*/' --include='*.c' --exclude='*'
	in_phases -f '- /dir/sub' -f '+ a.o' -f '- *.o'
}

@test "hide, show, protect and risk are for one side each" {
	setup_trees
	in_phases -f 'H *.o'
	in_phases -f 'P *.o'
	in_phases -f 'S a.o' -f 'H *.o' -f 'R extra.o' -f 'P *.o'
	in_phases -f 'hide,! */' -f 'protect gone/'
	in_phases -f 'show *.c' -f 'risk old/***' -f '- *.?'
}

@test "modifiers of rules" {
	setup_trees
	in_phases -f '-s *.o' -f '-r *.c'
	in_phases -f '-sr *.o'
	in_phases -f '-p *.o'
	in_phases -f '-! */'
	in_phases -f '+,! *.o' -f '-p core'
	in_phases -f '-x *.o'
	in_phases -f "-/ $work/s/dir/x.c" -f "-/ /**/t/extra.c" -f "-/ /**/r/extra.c"
	in_phases -f '-/ s/a.o' -f '-/ sub/deep'
}

@test "rules by their names, with underscores and commas" {
	setup_trees
	in_phases -f exclude_*.o -f include,s_extra.c
	in_phases -f-_*.o -f=-_core -ivf '+ x'
	in_phases --filter 'exclude,p core' --filter='clear' --filter='- TAGS'
	in_phases -f '- *.c' -f '!' -f '- *.o' --exclude='!' --exclude=core
}

@test "patterns: anchors, slashes, stars, classes" {
	setup_trees
	in_phases -f '- /a.*' -f '- dir/*/deep/'
	in_phases -f '- sub/***' -f '- **/x.c'
	in_phases -f '- x\*y' -f '- d[[]1]' -f '- [[:upper:]]*'
	in_phases -f '- gone/**' -f '- with space/a b' -f '- **o*e**'
	in_phases --exclude='dir/**/*.o' --exclude='[!a-e]*.o' --exclude='?.c'
}

@test "files of patterns" {
	setup_trees
	printf '# comment\r\n; comment\r\n\r\n+ extra.o\r\n*.o\r\n- core\r\n#x\n!x\n' >patterns
	in_phases --exclude-from=../patterns
	printf '*/\na.o\n- *.o\n' >patterns
	in_phases --include-from=../patterns --exclude='*'
	printf 'core\n!\n*.o' >patterns
	in_phases --exclude=TAGS --exclude-from ../patterns
	printf '*.o\0TAGS\0core\n\0; a\0#b\0ab.txt' >patterns
	in_phases -0 --exclude-from=../patterns
	in_phases --exclude-from=../patterns --from0
	in_phases --from0 --no-from0 --exclude-from=../patterns
	# A name with space, and spaces at the ends.
	printf 'with space\n *.o\n*.c \n' >patterns
	in_phases --exclude-from=../patterns
}

@test "patterns from standard input" {
	setup_trees
	both 'cp -a ../base/. .'
	printf '*.o\n+ core\n' >input
	printf '#!/bin/sh\nexec "$@" <%s/input\n' "$work" >with-input
	chmod 755 with-input
	runner=("$work/with-input")
	compare_unordered -ai --delete --exclude-from=- ../s/ ./
	[ -e t/extra.o ] && [ ! -e t/extra.c ]
	printf -- '- *.c\n' >input
	compare_unordered -ai --delete -f '. -' ../s/ ./
	[ ! -e t/extra.o ]
}

@test "merged files, with and without modifiers" {
	setup_trees
	printf -- '- *.o\n# comment\n; comment\n\n+ extra.c\nmerge ../more\nH TAGS\n' >rules
	printf -- '-s *.c\nP core.o\n' >more
	in_phases -f '. ../rules'
	in_phases -f 'merge ../rules' -f '+ *'
	printf '*.o\n- core\n+ x\n' >list
	in_phases -f '.- ../list'
	in_phases -f '.+ ../list' -f '- *'
	in_phases -f '.-s ../list' -f '.-r ../more'
	in_phases -f 'merge,-p ../list'
	in_phases -f 'merge,/ ../more'
	printf -- '-_*.o -_core\n\t+_x\n' >words
	in_phases -f '.w ../words'
	printf '*.o core\n TAGS ! *.c' >words
	in_phases -f '.w- ../words'
	in_phases -f '.C ../words'
	in_phases -f '.e ../rules'
	printf -- '- core\n!\n- *.o\n' >rules
	in_phases -f '- *.c' -f '. ../rules'
	in_phases -f '.-/ ../list'
}

@test "a file in each directory: inherited, overridden, anchored" {
	setup_trees
	rules both .rules '- *.o' '- /core'
	rules both dir/.rules '+ extra.o' '- /x.c' '- sub/y.c'
	rules both dir/sub/.rules '- deep/***'
	rules base gone/.rules '- *.c'
	in_phases -f ': .rules'
	in_phases -f 'dir-merge .rules' -f '- .rules'
	in_phases -f ':e .rules'
	in_phases -f '+ a.o' -f ': .rules' -f '- *'
}

@test "a file in the source only, and in the destination only" {
	setup_trees
	rules s .rules '- *.o'
	rules base dir/.rules '- *.c' '- *.o'
	in_phases -f ': .rules'
	in_phases -f ':e .rules'
	in_phases -f ':s .rules'
	in_phases -f ':r .rules'
	in_phases -f ':sr .rules'
}

@test "what is not inherited" {
	setup_trees
	rules both .rules '- *.o'
	rules both dir/sub/.rules '- y.c'
	rules base gone/.rules '- *.c'
	in_phases -f ':n .rules'
	in_phases -f ':n- .rules' -f '- TAGS'
	in_phases -f ':en- .rules'
	rules both .words '*.o core'
	rules both dir/.words 'x.c
extra.c'
	in_phases -f ':nw- .words'
	in_phases -f ':w- .words'
}

@test "modifiers of rules from the rule that names the file" {
	setup_trees
	rules both .rules '*.o' '/dir/'
	in_phases -f ':- .rules'
	in_phases -f ':+ .rules' -f '- *'
	in_phases -f ':-p .rules'
	in_phases -f ':-s .rules'
	in_phases -f ':-r .rules'
	in_phases -f ':-/ .rules'
	in_phases -f ':-x .rules'
}

@test "clear in a directory's file forgets what is inherited, and only that" {
	setup_trees
	rules both .rules '- *.o' '- core'
	rules both dir/.rules '!' '- x.c'
	rules both dir/sub/.rules '- a.o' 'clear'
	in_phases -f ': .rules' -f '- TAGS'
	in_phases -f '- *.c' -f ': .rules' -f ': .other'
}

@test "files that name other files to look for" {
	setup_trees
	rules both .rules '- core' 'dir-merge .more' '- TAGS'
	rules both .more '- *.o'
	rules both dir/.more '+ a.o' '- x.c'
	rules both dir/sub/.rules ': .third'
	rules both dir/sub/deep/.third '- *'
	rules base gone/.more '- *'
	in_phases -f ': .rules'
	in_phases -f ':n .rules'
	in_phases -f ': .rules' -f ': .more' -f ': .rules'
	rules both .rules ':e .more' ':n .third' '- TAGS'
	rules both .third '- core'
	in_phases -f ':e .rules'
}

@test "a name that is looked for twice stays where it was first" {
	setup_trees
	rules both .rules '- *.o'
	in_phases -f ': .rules' -f '+ *.o' -f ':n- .rules'
	in_phases -f ':s .rules' -f ': .rules'
	in_phases -f '+ a.o' -f ':- .rules' -f '!' -f ': .rules'
}

@test "-F, twice, and three times" {
	setup_trees
	rules both .rsync-filter '- *.o'
	rules both dir/.rsync-filter '- x.c'
	rules base gone/.rsync-filter '- k.c'
	in_phases -F
	in_phases -FF
	in_phases -F -F -F
	in_phases -f '+ .rsync-filter' -FF
}

@test "-F looks through the directories above the tree" {
	setup_trees
	mkdir -p s/inner base/inner
	cp -a s/dir s/a.o s/core s/inner
	cp -a base/dir base/gone base/core.o base/inner
	rules both .rsync-filter '- *.o' '- /inner/core' '+ core.o'
	rules both inner/.rsync-filter '- x.c'
	local phase
	for phase in --delete --delete-after; do
		for filter in -F "-f:_/.rsync-filter" "-f:n_/.rsync-filter" "-f:_../.rsync-filter" "-f:_./.rsync-filter" "-f:_.rsync-filter"; do
			rm -rf r t
			cp -a base r
			cp -a base t
			# shellcheck disable=SC2086
			compare_unordered -ai $phase "$filter" ../s/inner/ ./inner || { echo "with: $phase"; return 1; }
			# shellcheck disable=SC2086
			compare_unordered -ai $phase "$filter" ../s/inner ./ || { echo "with: $phase"; return 1; }
		done
	done
}

@test "a source without a slash: rules of its directory and of the one that it is in" {
	setup_trees
	both 'mkdir s; cp -a ../base/. s'
	rules both .rules '- *.o' '- /core' '- /s/TAGS'
	both 'cp ../base/.rules s; settle s'
	cp s/.rules .rules
	compare_unordered -ai --delete -f ': .rules' ../s ./
	compare_unordered -ai --delete-after -f ': .rules' --exclude=/s/dir ../s ./
	compare_unordered -ai --delete -f ': /.rules' ../s ./
	rm .rules
}

@test "-C: its list, ~/.cvsignore, CVSIGNORE and .cvsignore" {
	setup_trees
	in_phases -C
	printf 'ab.txt *.c\n' >home/.cvsignore
	in_phases -C
	export CVSIGNORE="TAGS keep"
	rules both dir/.cvsignore 'x.c sub' 'y.c'
	rules base gone/.cvsignore '*'
	in_phases -C
	in_phases --cvs-exclude -f '+ *.o'
	in_phases -f '+ core' -f :C -f '- a.c' -f -C
	in_phases -f ':C' --exclude=core
	in_phases -f '-C' --include='*.o'
	export CVSIGNORE="! keep"
	in_phases -C
	in_phases -f ':C .rules' -f '-Cs'
	in_phases -f '-Cr'
}

@test "excluded names in directories that go, make way, or are no directory any more" {
	setup_trees
	rm -r s/dir s/build
	echo file >s/dir
	ln -s elsewhere s/build
	settle s
	in_phases -f '- *.o'
	in_phases -f '-p *.o'
	in_phases -f 'P keep'
	in_phases -C
	rules base dir/.rules '- x.c'
	in_phases -f ': .rules'
}

@test "several sources, with rules of their own" {
	setup_trees
	mkdir -p s2/dir s2/other
	echo 2 >s2/dir/x.c
	echo 2 >s2/other/a.o
	echo 2 >s2/two.o
	settle s2
	rm -rf r t
	cp -a base r
	cp -a base t
	compare_unordered -ai --delete -f '- *.o' -f 'P extra.c' ../s/ ../s2/ ./
	rules s .rules '- *.o'
	compare_unordered -ai --delete -f ':e .rules' ../s ../s2 ./
}

@test "rules with --existing, -u, -x, -H and -c" {
	setup_trees
	rules both .rules '- *.o'
	ln s/a.c s/dir/linked.c
	settle s
	in_phases --existing -f ': .rules'
	in_phases -u -f ': .rules'
	in_phases -xc -f 'H *.o'
	in_phases -H -f ': .rules'
	in_phases --inplace -FF --exclude=core
}

@test "operands are filtered, too" {
	setup_trees
	for filter in '- a.o' '- *.o' 'H dir' 'P dir' '-! a.c' '- /dir' '- dir/' '- /dir/sub'; do
		rm -rf r t
		mkdir r t
		compare_unordered -ai -f "$filter" ../s/a.o ../s/a.c ../s/dir ./
		compare_unordered -lptv -f "$filter" ../s/a.c ../s/dir ./
	done
}

@test "rules that do not parse, and files that are not there, have rsync's exit codes" {
	setup_trees
	echo 'nonsense' >broken
	local arguments
	for arguments in "-f x" "-f -" "-f :" "-f Hs_a" "-f -e_a" "-f !x" "-f .+-_broken" "-f ._../broken" "--exclude-from=../missing" "-f ._../missing" "--include-from=../s/none" \
		"-f :C-_x" "-f -C_a" "--exclude-from=../s"; do
		# shellcheck disable=SC2086
		run_one r rsync -ai $arguments ../s/ d
		# shellcheck disable=SC2086
		run_one t "$TIPTOE" -ai $arguments ../s/ d
		diff r.code t.code || { echo "$arguments"; cat t.err; return 1; }
	done
	run_one t "$TIPTOE" -ai -f '. ../broken' ../s/ d
	grep -qF 'filter rule "nonsense" in ../broken, line 1: ' t.err
}

@test "a rule in a directory that does not parse ends the run with rsync's exit code" {
	setup_trees
	rules s dir/.rules '- a' 'whatever this is'
	run_one r rsync -ai -f ': .rules' ../s/ d
	run_one t "$TIPTOE" -ai -f ': .rules' ../s/ d
	diff r.code t.code
	code_is 1
	grep -qF 'filter rule "whatever this is" in dir/.rules, line 2: ' t.err
}

@test "a rule that does not parse in the destination ends the run, and nothing is deleted behind it" {
	setup_trees
	rules base .rules 'whatever this is'
	for phase in --delete-before --delete --delete-after; do
		rm -rf t
		cp -a base t
		run_one t "$TIPTOE" -ai "$phase" -f ': .rules' ../s/ ./
		code_is 1
		grep -qF 'filter rule "whatever this is" in .rules, line 1: ' t.err
		[ -e t/extra.o ] && [ -e t/gone/x.c ]
	done
}

@test "a file with rules that cannot be read, or that leads out, is an error and nothing is deleted" {
	setup_trees
	ln -s ../../outside s/dir/.rules
	echo '- *' >outside
	cp -a base/. t
	run_one t "$TIPTOE" -ai --delete -f ': .rules' ../s/ ./
	code_is 23
	grep -qF 'dir/.rules: it is a link that leads out of the tree' t.err
	[ -e t/dir/x.c ] && [ -e t/extra.o ]
	# One that stays inside is followed by both.
	ln -sfn ../real s/dir/.rules
	echo '- *.o' >s/real
	settle s
	rm -rf r t
	mkdir r t
	compare -ai -f ': .rules' ../s/ ./
	[ ! -e t/dir/a.o ] && [ -e t/a.o ]
}

@test "a file with rules merges no file outside of the tree" {
	setup_trees
	for rule in '. /etc/hostname' '. ../../broken' 'merge dir/../../../broken'; do
		rules s dir/.rules "$rule"
		run_one t "$TIPTOE" -ai -f ': .rules' ../s/ d
		code_is 11
		grep -qF 'outside of the tree' t.err
	done
}

@test "with one worker, with many, and without io_uring the same is left out" {
	setup_trees
	rules both .rules '- *.o' ': .more'
	rules both dir/.more '- x.c'
	for i in {1..60}; do
		mkdir -p "s/many/$i/d"
		touch "s/many/$i/d/a.o" "s/many/$i/x.c" "s/many/$i/d/y.$i"
		printf -- '- y.%s\n' $((i + i % 2)) >"s/many/$i/.rules"
	done
	settle s
	rm -rf r t
	cp -a base r
	cp -a base t
	compare_unordered -ai --delete -f ': .rules' ../s/ ./
	for workers in 1 3 32; do
		rm -rf again
		TIPTOE_RING=off "$TIPTOE" -a --workers=$workers -f ': .rules' s/ again
		(cd again && find . | sort) >found
		rm -rf wanted
		rsync -a -f ': .rules' s/ wanted
		(cd wanted && find . | sort) | diff - found
	done
}
