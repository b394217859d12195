# SPDX-License-Identifier: MIT
#
# One scenario under rsync and under tiptoe. A test builds what is the same for both below `s` (read by both) and, in `both`, what each gets for
# itself; then `compare OPTIONS... OPERANDS...` runs the two, each in a directory of its own (r and t), and looks at standard output, exit code
# and what they left. What differs on purpose is in meant-differences, and nowhere else.
# shellcheck shell=bash

export TZ=UTC LC_ALL=C

setup() {
	umask 022
	TIPTOE=${TIPTOE:-$BATS_TEST_DIRNAME/../../build/tiptoe}
	TREECMP=${TIPTOE_TOOLS:-$BATS_TEST_DIRNAME/../../build/tests/tools}/treecmp
	work=$BATS_TEST_TMPDIR
	chmod 755 "$work"
	cd "$work" || exit 1
	mkdir s r t
	runner=()
	now=$(($(date +%s) - 1))
	# Old times: what has a time of the run was set by it.
	old=@1600000000.123456789
}

teardown() {
	local target
	while read -r target; do
		umount -l "$target"
	done < <(awk -v dir="$BATS_TEST_TMPDIR/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r)
}

# Runs the same commands where each of the programs will work.
both() { # COMMANDS
	local place
	for place in r t; do
		(cd "$work/$place" && eval "$1") || return 1
	done
}

# Gives everything below a name old times, names in it later ones in order, so that a run has something to set.
settle() { # PATHS...
	find "$@" -depth -exec touch -h -d "$old" {} +
}

# The programs run as an ordinary user from here on; what there is becomes his.
as_user() {
	chown -hR 1000:1000 "$work/s" "$work/r" "$work/t"
	local above=$work
	while above=$(dirname "$above") && [[ $above == /tmp/* || $above == /var/tmp/* ]]; do
		chmod a+x "$above"
	done
	runner=(setpriv --reuid=1000 --regid=1000 --clear-groups)
}

# Lines that are not compared, and how others are: see meant-differences.
normalise() { # FILE
	local kind pattern expression=()
	while read -r kind pattern; do
		case $kind in
		drop) expression+=(-e "/$pattern/d") ;;
		change) expression+=(-e "s/$pattern/") ;;
		esac
	done <"$BATS_TEST_DIRNAME/meant-differences"
	# rsync says some names that it cannot delete twice; blank lines at the end stand before lines that were left out.
	sed -E "${expression[@]}" "$1" | awk '/^cannot delete non-empty/ && seen[$0]++ { next } { print }' | sed -e ':again' -e '/^\n*$/{$d;N;b again' -e '}'
}

run_one() { # PLACE PROGRAM ARGUMENTS...
	local place=$1 code=0
	shift
	(cd "$work/$place" && exec "${runner[@]}" "$@") >"$work/$place.out" 2>"$work/$place.err" </dev/null || code=$?
	echo "$code" >"$work/$place.code"
	normalise "$work/$place.out" >"$work/$place.lines"
}

compare_trees() { # TREECMP-OPTIONS...
	"$TREECMP" --now="$now" "$@" r t >trees 2>&1 || {
		echo "trees differ (rsync, tiptoe):"
		cat trees
		return 1
	}
	if find t -name '.*.tt-??????' | grep -q .; then
		echo "temporaries left behind"
		return 1
	fi
}

# Everything but the order of lines must be the same: where rsync's depends on which of its processes was faster.
compare_unordered() {
	unordered=true compare "$@"
}

compare() { # ARGUMENTS...
	local place bad=0
	# As finely as tiptoe compares times.
	run_one r rsync --modify-window=-1 "$@"
	run_one t "$TIPTOE" "$@"
	if ${unordered:-false}; then
		for place in r t; do
			sort -o "$place.lines" "$place.lines"
		done
	fi
	diff -u r.lines t.lines || bad=1
	diff -u r.code t.code || bad=1
	compare_trees || bad=1
	if ((bad)); then
		echo "arguments: $*"
		echo "errors of rsync:" && cat r.err
		echo "errors of tiptoe:" && cat t.err
		return 1
	fi
}

# The exit code that both gave.
code_is() { # CODE
	[[ $(<t.code) == "$1" ]] || { echo "exit code $(<t.code), wanted $1"; return 1; }
}

# A line that both printed.
said() { # LINE
	grep -qxF -- "$1" t.out || { echo "not said: $1"; cat t.out; return 1; }
}
