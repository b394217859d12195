#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Whoever reads what tiptoe says may be slow (field case 34).
load ../scratch

setup() {
	begin_scratch
	need_root
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	chattr -R -i "$BATS_TEST_TMPDIR" 2>/dev/null || true
}

# Reads from a small pipe, a little at a time, with pauses, and keeps what it read.
slow_reader() { # FILE
	python3 -c '
import fcntl, os, sys, time
try:
    fcntl.fcntl(0, 1031, 4096)  # F_SETPIPE_SZ
except OSError:
    pass  # there is more than that in it by now
with open(sys.argv[1], "wb") as out:
    while data := os.read(0, 2048):
        out.write(data)
        time.sleep(0.001)
' "$1"
}

@test "very much output into a slow pipe, with many directories: it ends, and nothing is missing" {
	mkdir -p src/{1..30}/{a..z}
	for dir in src/*/a; do
		echo x >"$dir/file"
	done
	for options in "-avvii" "-avvii --progress --workers=1" "-avvii --delete-after"; do
		rm -rf dst
		set -o pipefail
		# The time is no measure: without an end the test would have none either.
		# shellcheck disable=SC2086
		timeout 120 "$TIPTOE" $options src/ dst 2>&1 | slow_reader out
		set +o pipefail
		treecmp src dst
		[ "$(grep -c '^cd.*/$' out)" -ge "$(find src -type d | wc -l)" ]
		[ "$(grep -c '^>f' out)" -eq 30 ]
	done
	# Errors, on the same pipe.
	chmod 0 dst/*/a/file
	chattr +i dst/*/a/file 2>/dev/null || return 0
	code=0
	(timeout 120 "$TIPTOE" -avvI src/ dst 2>&1 || echo "code $?") | slow_reader out
	chattr -i dst/*/a/file
	[ "$(grep -c '^tiptoe: .*(it is immutable)$' out)" -eq 30 ]
	grep -qx 'code 23' out
}
