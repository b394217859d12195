#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The option table against the manual page, --help and the completions, and what the command line refuses. TIPTOE is the program.

setup() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	TIPTOE=${TIPTOE:-$ROOT/build/tiptoe}
	MAN=$ROOT/man/tiptoe.1
	COMPLETIONS=$ROOT/contrib/completions
	export LC_ALL=C.UTF-8 TZ=UTC
	umask 022
	cd "$BATS_TEST_TMPDIR" || exit 1
}

# The documented rows: long, short, argument, separated by blanks, "-" for none.
rows() {
	"$TIPTOE" --dump-options | awk -F'\t' '$4 != "refused" { print $1, $2, $3 }'
}

# Expects exit code $1 and the text $2 on standard error of the rest.
refuses() {
	local code=$1 text=$2
	shift 2
	run "$TIPTOE" "$@"
	if [[ $status -ne $code || $output != *"$text"* ]]; then
		echo "tiptoe $*: exit $status, wanted $code and '$text': $output"
		return 1
	fi
}

@test "every option is in the manual page with its short name and argument" {
	while read -r long short argument; do
		item=""
		[[ $short == - ]] || item="Fl $short"
		if [[ $long != - ]]; then
			[[ -z $item ]] || item+=" , "
			item+="Fl Fl $long"
		fi
		[[ $argument == - ]] || item+=" Ns = Ns Ar ${argument,,}"
		grep -qxF ".It $item" "$MAN" || { echo "missing: .It $item"; return 1; }
	done < <(rows)
}

@test "the manual page has no option that the table does not have" {
	[ "$(grep -cE '^\.It Fl ' "$MAN")" -eq "$(rows | wc -l)" ]
}

@test "every option is in --help with its short name and argument" {
	"$TIPTOE" --help > help
	while read -r long short argument; do
		item="  "
		[[ $short == - ]] && item+="    "
		[[ $short != - && $long != - ]] && item+="-$short, "
		[[ $short != - && $long == - ]] && item+="-$short  "
		[[ $long == - ]] || item+="--$long"
		[[ $argument == - ]] || item+="=$argument"
		grep -qE -- "^$item( |\$)" help || { echo "missing: $item"; return 1; }
	done < <(rows)
	[ "$(grep -cE '^ +-' help)" -eq "$(rows | wc -l)" ]
}

@test "--help fits 80 columns and so does every other line it prints" {
	"$TIPTOE" --help > help
	[ "$(wc -L < help)" -le 80 ]
}

@test "-h alone is --help" {
	"$TIPTOE" --help > long
	"$TIPTOE" -h > short
	cmp long short
}

@test "--help names every option that can be negated" {
	"$TIPTOE" --help | sed -n '/^What an option turned on/,$p' | tr -s '; .\n' '\n' > named
	while IFS=$'\t' read -r long short; do
		word=-$short
		[[ $short == - ]] && word=--$long
		grep -qxF -- "$word" named || { echo "not named: $word"; return 1; }
	done < <("$TIPTOE" --dump-options | awk -F'\t' '$7 == "negatable" { print $1 "\t" $2 }')
}

@test "the bash completion has every option and no other" {
	rows | while read -r long short argument; do
		# Not echo, which takes -n for itself.
		[[ $short == - ]] || printf '%s\n' "-$short"
		[[ $long == - ]] || { [[ $argument == - ]] && printf '%s\n' "--$long" || printf '%s\n' "--$long="; }
	done | sort > wanted
	sed -n "/compgen -W '\$/,/' --/p" "$COMPLETIONS/tiptoe.bash" | grep -oE -- '^\s+-.*' | tr -s ' \t' '\n' | grep . | sort > found
	diff wanted found
}

@test "the bash completion completes options, policies and names" {
	touch a-file
	# shellcheck source=/dev/null
	complete_words() {
		# shellcheck disable=SC2317
		( compopt() { :; }; . "$COMPLETIONS/tiptoe.bash"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tiptoe; echo "${COMPREPLY[*]}" )
	}
	[ "$(complete_words tiptoe --num)" = "--numeric-ids" ]
	[ "$(complete_words tiptoe --cache = dr)" = "drop" ]
	[ "$(complete_words tiptoe --cache = )" = "leave keep drop direct" ]
	[ "$(complete_words tiptoe --cache =)" = "leave keep drop direct" ]
	[ "$(complete_words tiptoe -a a-)" = "a-file" ]
}

@test "the zsh completion has every option and no other" {
	rows | while read -r long short argument; do
		# Not echo, which takes -n for itself.
		[[ $short == - ]] || printf '%s\n' "-$short"
		[[ $long == - ]] || { [[ $argument == - ]] && printf '%s\n' "--$long" || printf '%s\n' "--$long="; }
	done | sort > wanted
	# What stands before the bracket, without the list of exclusions.
	sed -nE "s/^\t'(\([^)]*\)|\*)?'?([^[]*)'?\[.*/\2/p" "$COMPLETIONS/_tiptoe" | tr -d "'{}" | tr ',' '\n' | sort > found
	diff wanted found
}

@test "the fish completion has every option and no other" {
	rows | while read -r long short argument; do
		line=""
		[[ $short == - ]] || line+=" -s $short"
		[[ $long == - ]] || line+=" -l $long"
		[[ $argument == - ]] || line+=" x"
		echo "$line"
	done | sort > wanted
	sed -nE "s/ -d '.*//; s/^complete -c tiptoe//p" "$COMPLETIONS/tiptoe.fish" | sed -E "s/ -x.*/ x/" | sort > found
	diff wanted found
}

@test "the exit codes in the manual page are those of the program" {
	sed -nE 's/^\tTT_EXIT_[A-Z_]+ = ([0-9]+),.*/\1/p' "$ROOT/src/base/error.h" > wanted
	sed -n '/^\.Sh EXIT STATUS/,/^\.Sh EXAMPLES/p' "$MAN" | sed -nE 's/^\.It ([0-9]+)$/\1/p' > found
	[ -s wanted ]
	diff wanted found
}

@test "the manual page is clean" {
	command -v mandoc > /dev/null || skip "mandoc is not installed"
	mandoc -Tlint -W warning "$MAN"
}

@test "every option of rsync is accepted or refused by name" {
	command -v rsync > /dev/null || skip "rsync is not installed"
	local count=0
	# Words like --exclude=PATTERN at the beginning of a line, and what follows after commas.
	rsync --help | grep -oE '^(--?[A-Za-z0-9@-]+[^ ]*,? ?)+' | tr -s ', ' '\n' | sed -E 's/=.*//' | grep -E '^--?[A-Za-z0-9]' | sort -u > names
	[ "$(wc -l < names)" -gt 180 ]
	while read -r name; do
		[[ $name == --no-OPTION || $name == -h ]] && continue
		run "$TIPTOE" "$name" x
		case $status in
		4) [[ $output == *"option $name of rsync is not supported by tiptoe yet"* ]] || { echo "$name: $output"; return 1; } ;;
		0) [[ $name == --help || $name == --version || $name == -V ]] || { echo "$name: exit 0"; return 1; } ;;
		11) [[ $name == --exclude-from || $name == --include-from ]] || { echo "$name: exit 11"; return 1; } ;;
		1) [[ $output != *unknown* && ! $output =~ "takes no" ]] || { echo "$name: $output"; return 1; } ;;
		*) echo "$name: exit $status"; return 1 ;;
		esac
		count=$((count + 1))
	done < names
	[ "$count" -gt 180 ]
}

@test "every option of rsync's manual page is known by name" {
	command -v rsync > /dev/null || skip "rsync is not installed"
	local page
	page=$(man -w rsync 2> /dev/null) || skip "rsync's manual page is not installed"
	man "$page" 2> /dev/null | col -b | grep -oE '^ {7}--[a-z0-9][A-Za-z0-9-]*' | tr -d ' ' | sort -u > names
	[ "$(wc -l < names)" -gt 100 ]
	while read -r name; do
		[[ $name == --no-OPTION ]] && continue
		run "$TIPTOE" "$name" x
		[[ $output != *unknown* ]] || { echo "$name: $output"; return 1; }
	done < names
}

@test "a refused option in a bundle is refused by its letter" {
	refuses 4 "option -z of rsync is not supported by tiptoe yet" -avz a b
	refuses 4 "option -P of rsync is not supported" -aP a b
	refuses 4 "option --compress of rsync is not supported by tiptoe yet" -a --compress a b
	refuses 4 "option --compress-level of rsync" --compress-level=3 a b
	refuses 4 "option --no-compress of rsync" --no-compress a b
	refuses 4 "option --no-z of rsync" --no-z a b
	refuses 4 "option --no-W of rsync" --no-W a b
}

@test "an unknown option is refused with the nearest one" {
	refuses 1 "unknown option --exclud; did you mean --exclude?" --exclud=x a b
	refuses 1 "unknown option --recrusive; did you mean --recursive?" --recrusive a b
	refuses 1 "unknown option --no-perm; did you mean --no-perms?" --no-perm a b
	refuses 1 "unknown option -j in -avj" -avj a b
	refuses 1 "unknown option -j" -j a b
	run "$TIPTOE" --xyzzy a b
	[ "$status" -eq 1 ]
	[[ $output == *"unknown option --xyzzy"* && $output != *"did you mean"* ]]
}

@test "an option without its argument, or with one it does not take, is refused" {
	refuses 1 "--exclude needs an argument: PATTERN" -a a b --exclude
	refuses 1 "-f needs an argument: RULE" -a a b -vf
	refuses 1 "--filter needs an argument: RULE" -a a b --filter
	refuses 1 "--stats takes no argument" --stats=x a b
	refuses 1 "--no-perms takes no argument" --no-perms=x a b
}

@test "a bad value names the option and what it takes" {
	refuses 1 "--workers=0: it takes a whole number from 1 to 256" --workers=0 a b
	refuses 1 "--workers=x: it takes a whole number" --workers x a b
	refuses 1 "--workers=257: it takes a whole number" --workers=257 a b
	refuses 1 "--cache=hot is no policy: it takes leave, keep, drop or direct" --cache=hot a b
	refuses 1 "--cache= is no policy" --cache= a b
	refuses 1 "--dirty-limit=lots is no size: it takes a number of bytes" --dirty-limit=lots a b
	refuses 1 "--dirty-limit=0 is nothing: it takes a number of bytes" --dirty-limit=0 a b
	refuses 1 "--dirty-limit=9000P is out of range: it takes a number of bytes" --dirty-limit=9000P a b
	refuses 1 "--dirty-limit=48 is too little to copy with: it takes at least 256K" --dirty-limit=48 a b
	refuses 1 "--dirty-limit=255K is too little" --dirty-limit=255K a b
	refuses 1 "--reflink=always clones whole files: it does not go with --append" -a --reflink=always --append a b
	refuses 1 "--reflink=always clones whole files: it does not go with --append" -a --reflink=always --append-verify a b
	refuses 1 "--max-size=big is no size: it takes a number of bytes" --max-size=big a b
	refuses 1 "--min-size=1x is no size: it takes a number of bytes" --min-size 1x a b
	refuses 1 "--max-size=9000P is out of range: it takes a number of bytes" --max-size=9000P a b
	refuses 1 "--modify-window=soon: it takes a whole number of seconds" --modify-window=soon a b
	refuses 1 "-@=x: it takes a whole number of seconds" -a@x a b
	refuses 1 "--max-delete=x: it takes a whole number" --max-delete=x -r --delete a b
	refuses 1 "--chmod=u+q: it takes modes as chmod(1) does" --chmod=u+q a b
	refuses 1 "--chmod=: it takes modes" --chmod= a b
	refuses 1 "--usermap: no colon in \"1\"" --usermap=1 a b
	refuses 1 "--groupmap: \"5-\" is neither a number nor a range" --groupmap=5-:1 a b
	refuses 1 "--chown: there is no user \"nobody-at-all\"" --chown=nobody-at-all a b
	refuses 1 "--chown: there is no group \"nobody-at-all\"" --chown=:nobody-at-all a b
	refuses 1 "--dirty-limit=-1 is no size" --dirty-limit=-1 a b
}

@test "a filter rule that does not parse is named, with its file and line" {
	refuses 1 '-f: filter rule "x y": a rule begins with' -a -f "x y" a b
	refuses 1 '-f: filter rule "x": a rule begins with' -afx a b
	refuses 1 '--filter: filter rule "-e y": '"'e' is no modifier" -a --filter="-e y" a b
	refuses 1 '--exclude: filter rule "- ": its pattern or file is missing' -a --exclude "- " a b
	printf -- '- a\n\n# b\n: \n' > rules
	refuses 1 'filter rule ": " in rules, line 4: its pattern or file is missing' -a -f ". rules" a b
	refuses 11 'reading filter rules from nowhere: No such file or directory' -a --exclude-from=nowhere a b
	printf -- '. nowhere\n' > rules
	refuses 11 'reading filter rules from nowhere, as rules, line 1, says: No such file or directory' -a -f ". rules" a b
}

@test "deletion without -r and two phases of deletion are refused" {
	refuses 1 "--delete does not work without --recursive (-r)" --delete a b
	refuses 1 "only one of --delete-before, --delete-during, --delete-delay and --delete-after" -r --delete-before --delete-after a b
}

@test "--chown excludes the maps that it is made of" {
	refuses 1 "--chown cannot be used with --usermap or --groupmap" --chown=0 --usermap=1:2 a b
	refuses 1 "--chown cannot be used with --usermap or --groupmap" --groupmap=1:2 --chown=:0 a b
	refuses 1 "--usermap can be given only once" --usermap=1:2 --usermap=1:2 a b
}

@test "a short option takes its argument from its word or from the next one" {
	mkdir a
	for words in -a@1 "-a@ 1" -a@=1 "-@ -1 -a" -a@-1; do
		# shellcheck disable=SC2086
		"$TIPTOE" $words a/ b
	done
	refuses 1 "-@ needs an argument: NUM" a b -a@
}

@test "missing operands are said" {
	refuses 1 "usage: tiptoe"
	refuses 1 "usage: tiptoe" -a
	refuses 1 "a is to be copied, but where to?" -a a
	refuses 1 "an empty name" -a "" b
}

@test "an operand on another machine is refused" {
	refuses 4 "host:b is on another machine" -a a host:b
	refuses 4 "rsync://h/m is on another machine" -a rsync://h/m b
	[ ! -e host:b ]
}

@test "what is refused leaves nothing behind" {
	mkdir a
	refuses 4 "" -az a/ b
	refuses 1 "" -a --workers=0 a/ b
	[ ! -e b ]
}

@test "control bytes of an option are not sent to the terminal" {
	refuses 1 '\#033[2J' $'--\033[2J' a b
}

@test "--version shows name and version" {
	run "$TIPTOE" --version
	[ "$status" -eq 0 ]
	[[ $output =~ ^tiptoe\ \ version\ [0-9]+\.[0-9]+ ]]
	run "$TIPTOE" -V
	[ "$status" -eq 0 ]
}

@test "--probe takes one directory and nothing else" {
	touch file
	refuses 3 "--probe takes a directory: opening file: Not a directory" --probe file
	refuses 3 "--probe takes a directory: opening nosuch: No such file or directory" --probe=nosuch
	refuses 1 "--probe copies nothing" --probe . a b
}

@test "standard output that cannot be written to is an error and no crash" {
	mkdir a
	echo x > a/f
	run sh -c '"$1" -av a/ b > /dev/full' sh "$TIPTOE"
	[ "$status" -eq 11 ]
	[[ $output == *"writing to standard output: No space left on device"* ]]
	run sh -c '"$1" -av a/ c >&-' sh "$TIPTOE"
	[ "$status" -eq 11 ]
	[ "$(cat c/f)" = x ]
	run bash -c '"$1" -av a/ d | true; exit ${PIPESTATUS[0]}' bash "$TIPTOE"
	[ "$status" -eq 11 ] || [ "$status" -eq 0 ]
	run sh -c '"$1" --help > /dev/full' sh "$TIPTOE"
	[ "$status" -eq 11 ]
}
