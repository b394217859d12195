#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A run that is killed: whole contents only, the next run completes it and removes the dead one's temporaries and nothing else. A run that is asked
# to stop: orderly, exit 20, nothing left behind.
load ../scratch

setup() {
	begin_scratch
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	[[ ${HELPER:-} ]] && kill -CONT "$HELPER" 2>/dev/null && end_process "$HELPER"
	cd / || return 1
	remove_disks "$BATS_TEST_TMPDIR"
}

# "sum name" of every regular file that is no temporary.
sums() { # DIRECTORY
	(cd "$1" && find . -type f -regextype posix-extended ! -regex '.*\.tt-[A-Za-z0-9]{6}' -exec md5sum {} + | sort)
}

@test "killed at 20 random moments of an update, every name holds the whole old or the whole new content, and the next run completes it" {
	make_tree one 1
	make_tree two 2
	sums one >sums.one
	sums two >sums.two
	[ -z "$(comm -12 sums.one sums.two | grep -v 'empty\|f[0-2]$')" ]
	sort -u sums.one sums.two >allowed
	cp -a one dst
	# What looks like a temporary and is none.
	directory=dst/$(tempname f1)
	others=(dst/.f1.tt-short dst/.f1.tt-ABCDE_ dst/f1.tt-ABCDEF dst/.f1.tt-ABCDEFG dst/a0/.tt-ABCDEF dst/.f1.xtt-ABCDEF dst/.notes.tt-backup)
	touch "${others[@]}"
	mkdir "$directory"
	kills=0 tries=0 left=0 from=two longest=200
	while ((kills < 20 && tries < 200)); do
		tries=$((tries + 1))
		limit=--dirty-limit=$((1 + RANDOM % 8))M
		"$TIPTOE" -a "$limit" $from/ dst >/dev/null 2>&1 &
		pid=$!
		sleep "0.$(printf %03d $((RANDOM % longest)))"
		kill -9 $pid 2>/dev/null || true
		code=0
		wait $pid || code=$?
		if [[ $code -eq 137 ]]; then
			kills=$((kills + 1))
		else
			longest=$((longest * 3 / 4 + 5))
		fi
		sums dst | grep -v 'tt-' >now
		comm -23 now allowed >torn
		[ ! -s torn ] || { cat torn; return 1; }
		[ "$(wc -l <now)" -eq "$(wc -l <sums.one)" ]
		left=$((left + $(temporaries dst | wc -l) - 2))
		# Half of the times the next run is killed as well.
		((RANDOM % 2)) && continue
		tiptoe 0 -a $from/ dst
		[ "$(temporaries dst | sort)" = "$(printf "%s\n" "$directory" dst/.notes.tt-backup | sort)" ]
		sums dst | grep -v 'tt-' | diff - sums.$from
		[[ $from == one ]] && from=two || from=one
	done
	expect kills "$kills" == 20
	echo "# 20 kills in $tries runs left $left temporaries" >&3
	expect "temporaries seen" "$left" ">" 0
	tiptoe 0 -a $from/ dst
	for name in "${others[@]}" "$directory"; do
		[ -e "$name" ]
		rm -r "$name"
	done
	treecmp --no-dir-times $from dst
}

@test "killed at random moments of a first copy, every name that is there is whole" {
	make_tree src 1
	make_file src/big 80M
	sums src >sums.src
	for try in {1..6}; do
		rm -rf dst
		"$TIPTOE" -a --dirty-limit=2M src/ dst >/dev/null 2>&1 &
		pid=$!
		sleep "0.$(printf %03d $((RANDOM % 150)))"
		kill -9 $pid 2>/dev/null || true
		wait $pid || true
		mkdir -p dst
		sums dst | comm -23 - sums.src >torn
		[ ! -s torn ]
		tiptoe 0 -a src/ dst
		[ -z "$(temporaries dst)" ]
		treecmp src dst
	done
}

@test "a temporary of a run that is at work stays, and that run succeeds" {
	mkdir src other
	make_file src/big 300M
	make_tree other 1
	"$TIPTOE" -a --dirty-limit=2M src/ dst &
	HELPER=$!
	await_temporary dst
	kill -STOP $HELPER
	in_use=$(temporaries dst)
	[ -n "$in_use" ]
	touch "dst/$(tempname dead)"
	tiptoe 0 -a --delete --exclude=big other/ dst
	[ "$(temporaries dst)" = "$in_use" ]
	kill -CONT $HELPER
	wait $HELPER
	HELPER=
	cmp src/big dst/big
	[ -z "$(temporaries dst)" ]
	rm dst/big
	treecmp --no-dir-times other dst
}

@test "a temporary of another user, which cannot be looked at, is not deleted either" {
	need_root
	make_tree src 1
	cp -a src dst
	temporary=dst/$(tempname root)
	install -m 600 /dev/null "$temporary"
	touch dst/extra
	chown 1000:1000 dst
	let_others_in "$PWD"
	tiptoe_as_user=(setpriv --reuid=1000 --regid=1000 --clear-groups "$TIPTOE")
	run "${tiptoe_as_user[@]}" -r --size-only --delete src/ dst
	check_run 0
	[ ! -e dst/extra ]
	[ -e "$temporary" ]
	tiptoe 0 -a --delete src/ dst
	[ -z "$(temporaries dst)" ]
}

@test "a file that somebody else holds locked under such a name stays" {
	make_tree src 1
	mkdir dst
	held=dst/$(tempname held)
	touch "$held" "dst/$(tempname free)"
	ln -s nowhere "dst/$(tempname link)"
	exec 9<"$held"
	flock -x 9
	tiptoe 0 -a src/ dst
	[ "$(temporaries dst)" = "$held" ]
	exec 9<&-
	tiptoe 0 -a src/ dst
	[ -z "$(temporaries dst)" ]
}

# Holds two temporaries of the destination, as a run that was killed a moment ago does: in $HELPER, for so many seconds.
hold() { # SECONDS
	held=("dst/$(tempname one)" "dst/a0/b0/$(tempname two)")
	touch "${held[@]}"
	touch -r src dst
	touch -r src/a0/b0 dst/a0/b0
	flock -F -x "${held[0]}" flock -F -x "${held[1]}" sleep "$1" 3>&- &
	HELPER=$!
	while flock -n "${held[1]}" true; do sleep 0.002; done
}

@test "what a dead run holds locked for another moment goes at the end of the run, and directories keep their times" {
	make_tree src 1
	cp -a src dst
	for delete in "" --delete-before --delete --delete-after; do
		hold 0.5
		tiptoe 0 -ai $delete src/ dst
		[ -z "$output" ]
		[ -z "$(temporaries dst)" ]
		treecmp src dst
		wait $HELPER
	done
	# A dry run looks at it only.
	hold 0.5
	tiptoe 0 -ain --delete src/ dst
	[ -z "$output" ]
	wait $HELPER
	[ "$(temporaries dst | wc -l)" -eq 2 ]
	# Free from the beginning: the same.
	tiptoe 0 -ai src/ dst
	[ -z "$output" ]
	[ -z "$(temporaries dst)" ]
	treecmp src dst
	HELPER=
}

@test "a run beside another that holds its temporaries ends without them" {
	make_tree src 1
	cp -a src dst
	hold 600
	tiptoe 0 -a --delete src/ dst
	kill -0 $HELPER
	[ "$(temporaries dst | wc -l)" -eq 2 ]
	treecmp src dst | grep -v 'tt-' >differences || true
	[ ! -s differences ]
	end_process $HELPER
	HELPER=
}

@test "what a dead run has made after the directory was listed goes as well" {
	local operand
	mkdir src
	make_file src/big 100M
	for operand in src/ src/big; do
		rm -rf dst
		mkdir dst
		touch "dst/$(tempname early)"
		"$TIPTOE" -a --dirty-limit=1M $operand dst &
		HELPER=$!
		until [ -n "$(find dst -name '.big.tt-*')" ]; do kill -0 $HELPER; done
		late=dst/$(tempname late)
		touch "$late"
		wait $HELPER
		HELPER=
		[ -z "$(temporaries dst)" ]
		cmp src/big dst/big
	done
	treecmp --no-dir-times src dst
}

# Its requests are still on their way to the disk, and hold the open file with its lock.
@test "killed and run again at once: nothing of the dead run is left" {
	need_root
	make_disk "$PWD/disk" 700M xfs
	mkdir src
	make_file src/big 160M
	for try in {1..10}; do
		rm -rf disk/dst
		options=(--reflink=never)
		((try % 2)) || options+=(--cache=direct)
		"$TIPTOE" -a "${options[@]}" src/ disk/dst &
		HELPER=$!
		await_temporary disk/dst
		sleep "0.0$((RANDOM % 40 + 10))"
		kill -9 $HELPER
		((try % 3)) || wait $HELPER || true
		tiptoe 0 -a "${options[@]}" src/ disk/dst
		wait $HELPER || true
		HELPER=
		[ -z "$(temporaries disk/dst)" ] || { echo "try $try: $(temporaries disk/dst)"; return 1; }
		treecmp src disk/dst
	done
}

@test "files of the source that look like temporaries are copied" {
	mkdir src
	echo x >"src/$(tempname name)"
	tiptoe 0 -a src/ dst
	tiptoe 0 -a src/ dst
	treecmp src dst
}

# Sends the signal when the copy is under way.
stops_on() { # SIGNAL
	rm -rf dst
	# A shell's background job has SIGINT ignored. Not set -m: job control is for those who have a terminal.
	env --default-signal=INT "$TIPTOE" -a --dirty-limit=1M src/ dst >out 2>&1 &
	HELPER=$!
	await_temporary dst
	kill -"$1" $HELPER
	code=0
	wait $HELPER || code=$?
	HELPER=
	status=$code output=$(<out)
	check_run 20
	grep -q "received SIGINT, SIGTERM, or SIGHUP (code 20)" out
	[ -z "$(temporaries dst)" ]
	expect "pages left" "$(resident src dst)" == 0
	sums dst | comm -23 - sums.src >torn
	[ ! -s torn ]
}

@test "SIGINT, SIGTERM and SIGHUP stop in an orderly way: exit 20, no temporary, nothing torn" {
	make_tree src 1
	make_file src/big 300M
	sums src >sums.src
	cachemap evict src
	stops_on INT
	stops_on TERM
	stops_on HUP
}

@test "SIGUSR1 prints progress, and the run goes on" {
	mkdir src
	make_file src/big 300M
	"$TIPTOE" -a --dirty-limit=1M src/ dst >out 2>&1 &
	HELPER=$!
	await_temporary dst
	kill -USR1 $HELPER
	wait $HELPER
	HELPER=
	grep -Eq '[0-9].*%|files|/s' out
	cmp src/big dst/big
}

@test "--progress on a terminal is one line, with rate and files" {
	mkdir src
	make_file src/big 300M
	make_tree src/tree 1
	script -qec "stty cols 80; '$TIPTOE' -a --progress --dirty-limit=1M src/ dst" typescript >/dev/null
	# Redrawn in place, never a second line.
	grep -q $'\r' typescript
	tr '\r' '\n' <typescript | grep -q '/s'
	lines=$(sed '1d;$d' typescript | grep -c .)
	expect "lines" "$lines" "<=" 1
	sed '1d;$d' typescript | tr '\r' '\n' | sed 's/\x1b\[[0-9;]*[A-Za-z]//g' | awk 'length > 80 { bad = 1; print } END { exit bad }'
	cmp src/big dst/big
}
