#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A source that cannot be read, goes away, grows, shrinks or is rewritten while it is copied: a message with the path, the right exit code, no
# temporary, the old version intact.
load ../scratch

setup() {
	begin_scratch
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	[[ ${HELPER:-} ]] && end_process "$HELPER"
	cd / || return 1
	chattr -R -i "$BATS_TEST_TMPDIR" 2>/dev/null || true
}

# An old version of everything in dst, and nothing that anybody could take for it in src.
make_versions() {
	make_tree src 2
	make_tree dst 1
	make_file src/victim 24M new
	make_file dst/victim 24M old
	touch -d 2001-01-01 dst/victim
	cp -p dst/victim old-victim
}

victim_is_old() {
	cmp dst/victim old-victim
	[ "$(stat -c %Y dst/victim)" -eq "$(stat -c %Y old-victim)" ]
	[ -z "$(temporaries dst)" ]
}

others_are_equal() {
	mv src/victim victim.src
	mv dst/victim victim.dst
	treecmp --no-dir-times src dst
	mv victim.src src/victim
	mv victim.dst dst/victim
}

@test "a file that may not be read: its path, exit 23, everything else is copied" {
	need_root
	make_versions
	chmod 600 src/victim
	chmod 755 src/a0
	let_others_in "$PWD"
	cp "$TIPTOE" tiptoe
	chown -R 65534:65534 dst
	run setpriv --reuid=65534 --regid=65534 --clear-groups ./tiptoe -rlt src/ dst
	check_run 23
	[[ $output == *"victim: Permission denied"* ]]
	[ "$(grep -c denied <<<"$output")" -eq 1 ]
	victim_is_old
	mv src/victim victim.src
	mv dst/victim victim.dst
	treecmp --no-owner --no-dir-times src dst
}

@test "a directory that may not be read: its path, exit 23, and nothing of it is deleted" {
	need_root
	make_versions
	chmod 700 src/a3
	let_others_in "$PWD"
	cp "$TIPTOE" tiptoe
	chown -R 65534:65534 dst
	touch dst/a3/extra
	run setpriv --reuid=65534 --regid=65534 --clear-groups ./tiptoe -rlt --delete src/ dst
	check_run 23
	[[ $output == *"a3"*"Permission denied"* ]]
	[ -e dst/a3/extra ]
	[ -e dst/a3/b0/f3 ]
}

@test "a file that vanishes between listing and copy: its path, exit 24, everything else is copied" {
	make_versions
	run traced -P victim -e trace=openat -e inject=openat:error=ENOENT "$TIPTOE" -a src/ dst
	check_run 24
	[[ $output == *"file has vanished: victim"* ]]
	victim_is_old
	others_are_equal
}

@test "files that really vanish all the time never end a run with anything but 24, or leave a temporary" {
	make_small_files src 3000
	: >src/stays
	(for file in src/d*/f*[05]; do rm "$file"; done) &
	HELPER=$!
	run "$TIPTOE" -a --dirty-limit=1M src/ dst
	wait "$HELPER"
	HELPER=
	[[ $status -eq 24 || $status -eq 0 ]]
	check_run "$status"
	[ -z "$(temporaries dst)" ]
	[[ $(grep -c 'has vanished: d' <<<"$output") -gt 0 || $status -eq 0 ]]
	tiptoe 0 -a --delete src/ dst
	treecmp src dst
}

@test "a directory that vanishes before it is listed: its path, exit 24, everything else is copied" {
	make_versions
	run traced -P a3 -e trace=openat -e inject=openat:error=ENOENT:when=1 "$TIPTOE" -a src/ dst
	check_run 24
	[[ $output == *"file has vanished: a3"* ]]
	[ -e dst/a3/b0/f3 ]
	rm -r src/a3 dst/a3
	treecmp --no-dir-times src dst
}

@test "a file that cannot be read to its end: its path, exit 23, the old version stays" {
	make_versions
	for ring in on off; do
		TIPTOE_RING=$ring run traced -P "$PWD/src/large" -e trace=pread64,preadv2 \
			-e inject=pread64,preadv2:error=EIO:when=2 "$TIPTOE" -a --exclude=victim src/ dst
		check_run 23
		[[ $output == *"reading large: Input/output error"* ]]
		[ -z "$(temporaries dst)" ]
		grep -q '^1 large' dst/large
	done
}

@test "a file that cannot be read to its end: nothing is deleted afterwards" {
	make_versions
	: >dst/extra
	run traced -P "$PWD/src/large" -e trace=pread64,preadv2 -e inject=pread64,preadv2:error=EIO:when=2 \
		"$TIPTOE" -a --delete-after --exclude=victim src/ dst
	check_run 23
	[ -e dst/extra ]
}

@test "a file that grows all the time: what it held is copied, with a warning, and the next run takes it again" {
	make_versions
	cp src/victim held
	(while :; do printf 'appended, some bytes more\n'; done) >>src/victim &
	HELPER=$!
	tiptoe 0 -a --dirty-limit=8M src/ dst
	end_process "$HELPER"
	HELPER=
	[[ $output == *"victim grew while it was copied"* ]]
	cmp -n 25165824 held dst/victim
	[ "$(stat -c %s dst/victim)" -lt "$(stat -c %s src/victim)" ]
	[ -z "$(temporaries dst)" ]
	tiptoe 0 -ai src/ dst
	[[ $output == *victim* ]]
	treecmp --no-dir-times src dst
}

@test "pages that an appender writes meanwhile are not flushed and not dropped" {
	mkdir src
	make_file src/log 3M
	cachemap evict src
	"$TIPTOE" -a --dirty-limit=256K src/ dst &
	HELPER=$!
	yes appended | head -c 2M >>src/log
	expect "dirty pages" "$(dirty src/log)" ">=" 512
	wait "$HELPER"
	HELPER=
	expect "dirty pages afterwards" "$(dirty src/log)" ">=" 512
}

@test "a file that shrinks all the time: its path, exit 23, the old version stays" {
	make_versions
	truncate -s 200M src/victim
	# One process that does nothing else: between two calls of truncate(1) a copy may have all the time it needs.
	python3 -c '
import os
fd = os.open("src/victim", os.O_WRONLY)
for size in range(200000000, 0, -10):
    os.ftruncate(fd, size)
' &
	HELPER=$!
	until (($(stat -c %s src/victim) < 200000000)); do
		kill -0 "$HELPER"
		sleep 0.001
	done
	tiptoe 23 -a --dirty-limit=4M src/ dst
	end_process "$HELPER"
	HELPER=
	[[ $output == *"victim changed while it was copied"* ]]
	victim_is_old
	others_are_equal
}

@test "a file that is rewritten all the time: its path, exit 23, the old version stays" {
	make_versions
	python3 -c '
import os
fd = os.open("src/victim", os.O_RDWR)
open("started", "w").close()
while True:
    for at in range(0, 24 << 20, 1 << 18):
        os.pwrite(fd, b"rewritten", at)' &
	HELPER=$!
	until [[ -e started ]]; do sleep 0.01; done
	tiptoe 23 -a --dirty-limit=4M src/ dst
	end_process "$HELPER"
	HELPER=
	[[ $output == *"victim changed while it was copied"* ]]
	victim_is_old
	others_are_equal
}

@test "a file that is changed once while it is copied is copied again, and whole" {
	make_versions
	# The first fstat after the content sees another time; so does nothing later. A copy that was too fast for us, or whose content was complete
	# when the change came, is made again; it must hold the whole version from before then.
	local in_time=false
	for round in {1..30}; do
		rm -rf dst
		cp src/victim held
		"$TIPTOE" -a --dirty-limit=1M src/ dst >out 2>&1 &
		HELPER=$!
		while kill -0 "$HELPER" 2>/dev/null; do
			if [[ -n $(temporaries dst 2>/dev/null | grep victim) ]]; then
				printf 'changed %d' "$round" | dd of=src/victim conv=notrunc status=none
				break
			fi
		done
		wait "$HELPER"
		HELPER=
		[ -z "$(temporaries dst)" ]
		if ! cmp -s held src/victim && cmp -s src/victim dst/victim; then
			in_time=true
			break
		fi
		cmp held dst/victim
	done
	$in_time
}

@test "a file that becomes a fifo, a link or a directory is not followed, and the run does not hang" {
	for kind in "mkfifo" "ln -s /etc/passwd" "mkdir"; do
		rm -rf src dst
		make_small_files src 1000
		(
			sleep 0.0$((RANDOM % 5))
			for file in src/d1/f04*; do
				rm "$file"
				$kind "$file"
			done
		) &
		HELPER=$!
		run timeout 60 "$TIPTOE" -a --dirty-limit=1M src/ dst
		wait "$HELPER"
		HELPER=
		[[ $status -eq 0 || $status -eq 23 || $status -eq 24 ]]
		check_run "$status"
		[ -z "$(temporaries dst)" ]
		[ -z "$(find dst -name 'f*' -type f ! -size 4096c)" ]
	done
}

@test "a source that is missing: exit 23, and nothing is deleted" {
	make_tree dst 1
	cp -a dst before
	tiptoe 23 -a --delete missing/ dst
	[[ $output == *missing*"No such file or directory"* ]]
	treecmp before dst
}

@test "source and destination the same, or one in the other: nothing is lost" {
	make_tree src 1
	cp -a src before
	run "$TIPTOE" -a --delete src/ src
	[[ $output != *"internal error"* ]]
	treecmp before src
	run timeout 60 "$TIPTOE" -a src/ src/inner
	[[ $status -ne 124 && $output != *"internal error"* ]]
	[ ! -e src/inner/inner/inner ]
}
