#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# --probe, as text and as JSON, against what is known of each file system, and what it leaves behind: nothing.
load ../scratch

setup() {
	begin_scratch
	need_root
	command -v jq >/dev/null || skip "jq is not installed"
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	cd / || return 1
	remove_disks "$BATS_TEST_TMPDIR"
}

# Runs it both ways; the object is in `probe`, the text in `text`. The directory is as it was.
probe() { # DIRECTORY [EXIT-CODE]
	local before wanted=${2:-0} code=0
	before=$(ls -lA --time-style=full-iso "$1" && stat -c %y "$1")
	"$TIPTOE" --probe --json "$1" >probe 2>probe.err || code=$?
	[[ $code -eq $wanted ]] || { echo "exit code $code"; cat probe.err; return 1; }
	jq -e . probe >/dev/null
	code=0
	"$TIPTOE" --probe "$1" >text 2>text.err || code=$?
	[[ $code -eq $wanted ]] || { echo "exit code $code"; cat text.err; return 1; }
	[[ $(wc -L <text) -le 80 ]] || { cat text; return 1; }
	[[ $(ls -lA --time-style=full-iso "$1" && stat -c %y "$1") == "$before" ]] || { ls -lA "$1"; return 1; }
}

# What jq says to an expression.
says() { # EXPRESSION WANTED
	local said
	said=$(jq -r "$1" probe)
	[[ $said == "$2" ]] || { echo "$1: $said, wanted $2"; jq . probe; return 1; }
}

answers() { # FACT=ANSWER...
	local pair
	for pair; do
		says ".facts.${pair%=*}.answer" "${pair#*=}" || return 1
	done
}

# The mechanism of a cell.
moves() { # OPERATION OWNER SIZE WANTED
	says "[.mechanisms[] | select(.operation == \"$1\" and .owner == \"$2\" and .from_bytes <= $3 and ((.to_bytes // $3) >= $3)) | .mechanism] | join(\" \")" "$4"
}

@test "the form: every promised key is there, every cell has one mechanism and a reason" {
	mkdir dir
	probe dir
	says .tiptoe_probe 1
	says '[.directory, .directory_base64] | @json' '["dir",null]'
	says '[.kernel, .file_system.type] | map(type) | unique | @json' '["string"]'
	for key in page_bytes folio_bytes memory_limit_bytes dirty_budget_bytes time_granularity_ns file_system.free_bytes file_system.read_ahead_bytes; do
		says ".$key | type" number
	done
	says '.facts | to_entries | map(.value.answer) | unique - ["yes", "no", "unknown"] | length' 0
	for key in cachestat sync_file_range drop_clean drop_during_writeback dontcache_read dontcache_write dontcache_overwrite io_uring unnamed_files reflink \
		direct_read direct_write fallocate punch_hole seek_hole rename_noreplace case_insensitive; do
		says ".facts.$key.reason | type" string
		# As the manual page says.
		sed -n '/^\.Sh JSON/,/^\.Sh ENV/p' "$ROOT/man/tiptoe.1" | grep -qw "$key"
	done
	says '.facts | length' 17
	for operation in read new overwrite; do
		for owner in self other; do
			for size in 0 65535 65536 1000000 4194304 4194305 1000000000000; do
				says "[.mechanisms[] | select(.operation == \"$operation\" and .owner == \"$owner\" and .from_bytes <= $size and ((.to_bytes // $size) >= $size))] | length" 1
			done
		done
	done
	says '[.mechanisms[].reason | select(. == "")] | length' 0
	keys=$(jq -r 'keys[]' probe)
	for key in $keys $(jq -r '.file_system | keys[]' probe) $(jq -r '.mechanisms[].mechanism' probe); do
		sed -n '/^\.Sh JSON/,/^\.Sh ENV/p' "$ROOT/man/tiptoe.1" | grep -qw "$key" || { echo "not in the manual page: $key"; return 1; }
	done
}

@test "a name that is no UTF-8 comes in base64 too" {
	mkdir $'a\xff"b\n'
	"$TIPTOE" --probe --json $'a\xff"b\n' >probe
	[[ $(jq -r .directory_base64 probe | base64 -d) == $'a\xff"b' ]]
	says '.directory | @json' "$(printf '"a\xef\xbf\xbd\\"b\\n"')"
	"$TIPTOE" --probe $'a\xff"b\n' | grep -qF 'a\#377"b\#012'
}

@test "ext4: what it can, how files are moved there, how finely it keeps times" {
	make_disk "$PWD/disk" 200M
	probe disk
	says .file_system.type ext4
	says .file_system.disk "$(basename "$(disk_device "$PWD/disk")")"
	answers cachestat=yes sync_file_range=yes drop_clean=yes unnamed_files=yes reflink=no direct_read=yes direct_write=yes fallocate=yes punch_hole=yes \
		seek_hole=yes rename_noreplace=yes case_insensitive=no
	says .time_granularity_ns 1
	says .dio_offset_align_bytes 512
	moves read self 1000 drop_behind
	moves new self 100000000 sync_file_range
	grep -q "^read one's own *any size *cachestat, trailing DONTNEED" text
	make_disk "$PWD/small" 200M ext4 -I 128
	probe small
	says .time_granularity_ns 1000000000
}

@test "xfs and btrfs share blocks" {
	make_disk "$PWD/x" 400M xfs
	probe x
	answers reflink=yes fallocate=yes seek_hole=yes case_insensitive=no
	make_disk "$PWD/b" 300M btrfs
	probe b
	answers reflink=yes punch_hole=yes seek_hole=yes dontcache_read=no
	says .file_system.disk "$(basename "$(disk_device "$PWD/b")")"
	moves new self 1000 sync_file_range
}

@test "tmpfs has no cache to leave" {
	mkdir ram
	mount -t tmpfs -o size=100M tmpfs ram
	probe ram
	answers drop_clean=no dontcache_read=no reflink=no unnamed_files=yes seek_hole=yes
	says .file_system.disk null
	moves read self 1000 ordinary
	moves overwrite other 100000000 ordinary
	# No answer speaks of means that the table does not use.
	says '[.facts.cachestat, .facts.sync_file_range, .facts.drop_clean, .facts.drop_during_writeback, .facts.dontcache_read, .facts.dontcache_write] | map(.reason) | unique | @json' \
		'["no disk is behind it: nothing to leave"]'
	[ -z "$(grep -E 'mincore|fdatasync|be dirty on this disk|none that could be found' text)" ]
	if [[ $(jq -r .facts.direct_read.answer probe) == yes ]]; then
		says .facts.direct_read.reason "accepted, and not used: no disk is behind it"
	fi
}

@test "/proc and /sys: no place for files, and that is why" {
	for dir in /proc /sys; do
		code=0
		"$TIPTOE" --probe --json $dir >probe 2>probe.err || code=$?
		[ "$code" -eq 23 ]
		cat probe.err
		[ -z "$(grep -i 'MiB\|No such file' probe probe.err)" ]
		moves read other 1000 ordinary
		moves new self 1000 none
		says '[.mechanisms[] | select(.operation == "read") | .reason] | unique | @json' '["no disk is behind it: files are memory, or made when they are read"]'
	done
}

@test "overlayfs: cachestat and sync_file_range say nothing there" {
	make_disk "$PWD/disk" 200M
	mkdir disk/lower disk/upper disk/work merged
	mount -t overlay overlay -o "lowerdir=$PWD/disk/lower,upperdir=$PWD/disk/upper,workdir=$PWD/disk/work" merged
	probe merged
	answers cachestat=no sync_file_range=no drop_clean=yes
	says .file_system.disk "$(basename "$(disk_device "$PWD/disk")")"
	moves new self 1000 fdatasync
	grep -q 'sync_file_range does nothing here' text
}

@test "a file system of few talents: no unnamed files, no holes, no flags of rename, FILE is file, times of two seconds" {
	make_faultfs fuse below grain=2,ignore-case,no-seek,no-rename2
	probe fuse
	answers unnamed_files=no case_insensitive=yes rename_noreplace=no seek_hole=no reflink=no
	says .time_granularity_ns 2000000000
	grep -q '^Times *kept to 2 s$' text
	[ -z "$(ls -A below)" ]
}

@test "a directory that cannot be written to: what is known without, why the rest is not, exit 23" {
	make_disk "$PWD/disk" 200M
	echo x >disk/file
	mount -o remount,ro disk
	probe disk 23
	grep -q '^tiptoe: probing disk: nothing could be tried there: Read-only file system$' probe.err
	says .tried false
	says .not_tried_reason "Read-only file system"
	moves new self 1000 none
	moves overwrite other 100000000 none
	answers cachestat=unknown reflink=unknown io_uring=yes case_insensitive=no
	says .facts.reflink.reason "not tried: Read-only file system"
	says '[.time_granularity_ns, .time_granularity_tried] | @json' '[1,false]'
	says .dio_offset_align_bytes 512
	says .file_system.read_only true
	moves read self 1000 drop_behind
	grep -q 'not tried: Read-only file system' text
}

@test "somebody else's directory, and files of somebody else" {
	let_others_in "$PWD"
	mkdir closed open
	chmod 755 closed
	chmod 777 open
	as_user() {
		setpriv --reuid=65534 --regid=65534 --clear-groups "$TIPTOE" "$@"
	}
	code=0
	as_user --probe --json closed >probe 2>probe.err || code=$?
	[ "$code" -eq 23 ]
	says .facts.reflink.reason "not tried: Permission denied"
	moves new self 1000 none
	says '[.mechanisms[] | select(.operation == "new") | .reason] | unique | @json' '["no file can be made in this directory"]'
	as_user --probe --json open >probe
	says .tried true
	moves read self 1000 drop_behind
	# Whether that is RWF_DONTCACHE is this kernel's affair.
	says '[.mechanisms[] | select(.operation == "read" and .owner == "other" and .mechanism == "drop_behind")] | length' 0
}

@test "a disk that is nearly full is not filled: exit 23" {
	make_disk "$PWD/disk" 60M
	probe disk 23
	says .facts.seek_hole.reason "not tried: less than 64 MiB are free"
	says .not_tried_reason "less than 64 MiB are free"
	grep -q 'nothing could be tried there: less than 64 MiB are free' text.err
}

# The calls that make or remove a name.
NAMING=linkat,link,symlinkat,symlink,mknodat,mkdirat,renameat2,renameat,rename,unlinkat,unlink

@test "it makes no name where there are files without, so that nothing is left of one that is killed" {
	command -v strace >/dev/null || skip "strace is not installed"
	make_disk "$PWD/disk" 200M ext4
	make_disk "$PWD/x" 400M xfs
	make_disk "$PWD/b" 300M btrfs
	for dir in disk x b; do
		ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 strace -f -qq -y -o log -e "trace=openat,$NAMING" "$TIPTOE" --probe $dir >/dev/null
		grep -q O_TMPFILE log
		# One is asked about, and is not there. (Sanitizers have names of their own, elsewhere.)
		[ -z "$(grep -E "^[0-9]+ +(${NAMING//,/|})\\(" log | grep "$PWD/$dir" | grep -v 'renameat2(.*RENAME_NOREPLACE) *= -1 ENOENT')" ] || { cat log; return 1; }
		[ -z "$(grep "$PWD/$dir" log | grep 'O_CREAT')" ]
		probe $dir
		answers rename_noreplace=yes case_insensitive=no
	done
	local call when
	for call in openat renameat2 pwrite64 ftruncate fallocate ioctl futimens utimensat; do
		for when in 1 2 3; do
			traced -e "inject=$call:signal=KILL:when=$when" "$TIPTOE" --probe disk >/dev/null 2>&1 || true
			[ -z "$(ls -A disk)" ] || { echo "$call $when"; ls -lA disk; return 1; }
		done
	done
}

@test "elsewhere: killed in any call that makes or removes a name, it leaves what the next one removes" {
	command -v strace >/dev/null || skip "strace is not installed"
	make_faultfs fuse below
	local left=0 call
	for call in renameat2 unlinkat futimens utimensat; do
		traced -e "inject=$call:signal=KILL:when=1" "$TIPTOE" --probe fuse >/dev/null 2>&1 || true
		left=$((left + $(find below -type f | wc -l)))
		"$TIPTOE" --probe fuse >/dev/null
		[ -z "$(ls -A below)" ] || { ls -lA below; return 1; }
	done
	# The test means something only if there was something to remove.
	[ "$left" -gt 0 ]
	# And so does a run into it.
	traced -e "inject=renameat2:signal=KILL:when=1" "$TIPTOE" --probe fuse >/dev/null 2>&1 || true
	[ -n "$(ls -A below)" ]
	mkdir src
	tiptoe 0 -r src/ fuse
	[ -z "$(ls -A below)" ]
}

@test "a file system whose type cannot be found out is null, not left out" {
	mkdir dir
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount sh -c 'mount --bind /dev/null /proc/$$/mountinfo && exec "$@"' - "$TIPTOE" --probe --json dir >probe
	says '.file_system | has("type")' true
	says '.file_system.type' null
}

@test "nothing is resident or dirty because of it" {
	make_disk "$PWD/disk" 200M
	make_file disk/file 1M
	cachemap evict disk
	leaves_as_found disk "$TIPTOE" --probe disk
}

@test "what cannot be asked for" {
	run "$TIPTOE" --json a b
	[[ $status -eq 1 && $output == *"--json needs --probe"* ]]
	run "$TIPTOE" --probe
	[[ $status -eq 1 && $output == *"--probe needs a directory"* ]]
	run "$TIPTOE" --probe --json nosuch
	[[ $status -eq 3 && $output == *"opening nosuch: No such file or directory"* ]]
	"$TIPTOE" --probe=. --json >probe
	says .directory .
	run sh -c '"$1" --probe --json . >/dev/full' sh "$TIPTOE"
	[ "$status" -eq 11 ]
}
