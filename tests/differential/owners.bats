#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Whose the copies are: --chown, --usermap, --groupmap, --numeric-ids, --super; and --devices and --specials apart.

load compare

# Owners with names (Debian's base-passwd) and without.
owned() {
	local id
	for id in 0 1 2 7 8 13 1000 65534 77777 77778 88888; do
		echo x >"s/$id"
		mkdir "s/d$id"
		ln -s x "s/l$id"
		chown -h "$id:$id" "s/$id" "s/d$id" "s/l$id"
	done
	settle s
}

each() { # OPTIONS...
	local options
	for options; do
		rm -rf r/* t/*
		# shellcheck disable=SC2086
		compare -rlti $options ../s/ ./ || return 1
	done
}

@test "--chown makes everything somebody's" {
	owned
	each --chown=7:8 --chown=bin:mail --chown=bin --chown=:mail --chown=7 --chown=: --chown=7: --chown=root:root "--chown=7 --no-o" "-p --chown=7:8" \
		"--numeric-ids --chown=bin:mail" "--chown=:8 -o"
}

@test "--usermap and --groupmap: the first pair that fits counts" {
	owned
	set -f
	each --usermap=7:8 --usermap=bin:mail --groupmap=bin:mail --usermap=0-99:nobody,mail:8,*:7 --usermap=*:7 --usermap=:7 --groupmap=:7 --usermap=b*:7,*:8 \
		--usermap=root:7 --usermap=0:7 --usermap=r*:7 --usermap=b?n:9,[ms]*:10 "--usermap=7:8 --groupmap=8:7" --usermap=77777-77778:1 --usermap=nosuch:1,7:2 \
		"--numeric-ids --usermap=*:7" "--numeric-ids --usermap=bin:7" "--numeric-ids --usermap=2:7" "--numeric-ids --usermap=:7" "--numeric-ids --groupmap=:7,0:9" \
		"--numeric-ids --usermap=root:7"
	set +f
}

@test "maps on what is there already" {
	owned
	set -f
	compare -ai --usermap=7:8,77777:9 --groupmap=*:100 ../s/ ./
	compare -ai --usermap=7:8,77777:9 --groupmap=*:100 ../s/ ./
	[ ! -s t.out ]
	compare -ain --usermap=7:10 ../s/ ./
	compare -ai --chown=10:10 ../s/ ./
	set +f
}

@test "maps as a user change nothing that he may not" {
	owned
	as_user
	compare -ai --usermap=1000:7 ../s/ ./
	compare -ai --groupmap=1000:7 ../s/ d1/
	compare -ai --chown=7:7 ../s/ d2/
	compare -ai --chown=:1000 ../s/ d3/
}

@test "bad maps are refused as rsync does" {
	mkdir s/d
	for bad in --usermap=7 --usermap=7: --usermap= --usermap=1-:2 --usermap=-1:2 --usermap=1-2-3:4 --usermap=1x:2 \
		 "--chown=1 --usermap=1:2" "--usermap=1:2 --chown=1" "--usermap=1:2 --usermap=3:4" "--groupmap=1:2 --chown=1" \
		--usermap=1:2,; do
		code=0
		# shellcheck disable=SC2086
		rsync -a $bad s/ r/ 2>rsync.err || code=$?
		# shellcheck disable=SC2086
		run "$TIPTOE" -a $bad s/ t/
		[ "$status" = "$code" ] || { echo "$bad: rsync $code ($(cat rsync.err)), tiptoe $status ($output)"; return 1; }
	done
}

@test "an owner that is to be and is none is refused, where rsync goes on without" {
	mkdir s/d
	for bad in --usermap=7:nosuch --groupmap=7:nosuch --chown=nosuch --chown=:nosuch; do
		run "$TIPTOE" -a "$bad" s/ t/
		[ "$status" -eq 1 ]
		[[ $output == *"${bad%%=*}: there is no "*\"nosuch\"* ]]
	done
	[ ! -e t/d ]
}

@test "--numeric-ids changes nothing between two trees of one machine" {
	owned
	each "-og --numeric-ids" "-og --no-numeric-ids --numeric-ids"
}

nodes() {
	mkfifo s/fifo
	python3 -c 'import os, stat; os.mknod("s/socket", stat.S_IFSOCK | 0o644)'
	mknod s/null c 1 3
	mknod s/disk b 8 0
	echo x >s/file
	settle s
}

@test "--devices and --specials apart" {
	nodes
	for options in "-rlpt --devices" "-rlpt --specials" "-rlptD --no-devices" "-rlptD --no-specials" "-a --no-D" "-a --no-D --devices" "-rlpt -D"; do
		rm -rf r/* t/*
		# shellcheck disable=SC2086
		compare_unordered $options -i ../s/ ./ || return 1
		# shellcheck disable=SC2086
		compare_unordered $options -vv ../s/ ./ || return 1
	done
}

@test "--no-super: root does as others do" {
	nodes
	owned
	compare_unordered -ai --no-super ../s/ ./
	[ ! -e t/null ]
	compare_unordered -ai --no-super --chown=7:7 ../s/ d1/
	compare_unordered -ai --super --no-super ../s/ d2/
	compare -ai --super ../s/ d3/
}

@test "--super: a user who tries is told what he may not" {
	nodes
	chown 7:7 s/file
	settle s
	as_user
	chown 7:7 s/file
	run_one r rsync -a --super ../s/ ./
	run_one t "$TIPTOE" -a --super ../s/ ./
	[ "$(cat r.code)" = "$(cat t.code)" ]
	code_is 23
	[ -e t/file ]
	[ -e t/fifo ]
	grep -q "null: Operation not permitted" t.err
}
