#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Which files are copied, which attributes are set, and the letters that say so.

load compare

# Pairs of a file here and there: what differs is in the name.
pairs() {
	local place
	for place in s r t; do
		mkdir -p "$place"
		(
			cd "$place" || exit 1
			for name in same size mode owner group newer older content fraction all; do echo content >"$name"; done
			mkdir dir-mode dir-time dir-owner
			settle .
			[[ $place == s ]] && exit
			echo longer-content >size
			chmod 600 mode
			chown 7 owner
			chgrp 7 group
			touch -d @1700000000 newer
			touch -d @1500000000 older
			echo CONTENT >content
			touch -d @1600000000.123456789 content size
			touch -d "@1600000000${fraction-.5}" fraction
			echo wholly-different >all
			chown 7:7 all
			chmod 640 all
			chmod 700 dir-mode
			touch -d @5 dir-time
			chown 7:7 dir-owner
		) || return 1
	done
}

each() { # OPTIONS...
	local options
	for options; do
		rm -rf s r t
		pairs
		# shellcheck disable=SC2086
		compare $options ../s/ ./ || return 1
	done
}

@test "-a sets what differs" { each -ai; }
@test "-a twice has nothing to do" {
	each -ai
	compare -ai ../s/ ./
	[ ! -s t.out ]
}
@test "-ii and -vv say what stays" { each -aii && unordered=true each -avv -avvi; }
@test "-r alone: content only" { each -ri; }
@test "-rp, -rt, -ro, -rg, -rpt: one attribute each" { each -rpi -rti -roi -rgi -rpti -rtogi; }
@test "-c compares contents, and sets whole times" { each -aci -rci -rtci -rptc; }
@test "--size-only takes equal sizes for equal files" { each '-ai --size-only' '-ri --size-only'; }
@test "-u leaves a file that is newer by a fraction of a second, and replaces one that is older by it" {
	for name in newer older; do
		echo source >"s/$name"
		echo there. >"t/$name"
	done
	touch -d @1600000000.5 s/newer s/older
	touch -d @1600000000.6 t/newer
	touch -d @1600000000.4 t/older
	run_one t "$TIPTOE" -au ../s/ ./
	[[ $(cat t/newer t/older) == $'there.\nsource' ]]
}
@test "-I copies everything" { each -aIi -rIi '-aIi --size-only'; }
# rsync's -u compares whole seconds, whatever else does.
@test "-u leaves newer files" { fraction=.123456789 each -aui -ruvi '-aui --size-only'; }
@test "--existing makes nothing new" {
	pairs
	mkdir s/new s/new/sub
	touch s/new/sub/file s/new-file
	settle s/new
	compare -ai --existing ../s/ ./
	unordered=true compare -avv --existing ../s/ ./
	compare -ai --existing ../s/new/ created/
}
@test "--ignore-existing changes nothing old" {
	pairs
	echo x >s/new-file
	compare -ai --ignore-existing ../s/ ./
}
@test "--ignore-existing and -u say at -vv what is left" {
	pairs
	unordered=true compare -avv --ignore-existing ../s/ ./
	touch -r s/fraction r/fraction t/fraction # see -u above
	unordered=true compare -avv -u ../s/ ./
}
@test "--numeric-ids, --fsync, -W change nothing that is seen" { each '-ai --numeric-ids' '-ai --fsync' -aWi; }
@test "-n changes nothing and says the same" { each -ain -avn -aivn -rcin '-an --stats' && fraction=.123456789 each '-auin'; }
@test "-q says nothing" { each -aqi -aqv '-aq --stats'; }
@test "setuid, setgid and sticky bits arrive with -p" {
	for mode in 4755 2755 6711 1644 7777 0; do
		echo x >"s/f$mode"
		mkdir "s/d$mode"
		chmod "$mode" "s/f$mode" "s/d$mode"
		echo x >"s/d$mode/file"
	done
	chown 7:7 s/f4755 s/d2755
	settle s
	compare -ai ../s/ d/
	compare -rlti ../s/ e/
	compare -aii ../s/ d/
}
@test "a directory's setgid bit gives its group without -g" {
	mkdir -p s/set/sub s/clear
	chmod 2775 s/set
	echo x | tee s/set/file s/set/sub/file >s/clear/file
	settle s
	both 'mkdir set clear; chgrp 7 set clear; chmod 2775 clear; settle .'
	compare -rlpti ../s/ ./
}
@test "attributes of directories alone are set" {
	mkdir -p s/a/b/c
	chmod 711 s/a/b
	chown 7:8 s/a/b/c
	settle s
	both 'mkdir -p a/b/c; settle .; chmod 750 .; touch -d @9 a'
	compare -ai ../s/ ./
	compare -ai ../s/ ./
	[ ! -s t.out ]
}
@test "times before 1970 and far ahead" {
	touch -d @-1000000000.25 s/before
	touch -d @5000000000.75 s/ahead
	touch -d "$old" s
	compare -ai ../s/ d/
}
@test "holes are kept, with -S made of zeros" {
	truncate -s 8M s/hole
	printf end | dd of=s/hole bs=1 seek=8388605 conv=notrunc status=none
	head -c 4M /dev/zero >s/zeros
	truncate -s 1M s/all
	settle s
	compare -aSi ../s/ d/
	# rsync fills the holes without -S: tiptoe may hold less, not more.
	compare -ai ../s/ e/
	[ "$(stat -c %b t/d/zeros)" -lt 100 ]
	[ "$(stat -c %b t/e/hole)" -lt 1000 ]
}
