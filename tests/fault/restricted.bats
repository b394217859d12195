#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Old and restricted kernels: each facility that tiptoe would rather use is denied in turn (ENOSYS as an old kernel answers, EPERM as a sandbox does).
# The result is the same, and the cache is left as found and the dirt bounded, or --stats says what could not be. tests/tools/denycalls.c has the
# list. With io_uring denied too: what goes through a ring no filter sees.
load ../scratch

setup_file() {
	begin_scratch
	((EUID == 0)) || return 0
	make_disk "$BATS_FILE_TMPDIR/disk" 1G
	cd "$BATS_FILE_TMPDIR/disk" || return 1
	make_everything one 1
	make_everything two 2
	rm -r two/d1 two/s3 two/old-name
	mkdir two/d3
	make_file two/d3/new 5000
	ln two/d3/new two/d0/new-name
}

teardown_file() {
	remove_disks "$BATS_FILE_TMPDIR"
}

setup() {
	begin_scratch
	need_root
	DISK=$BATS_FILE_TMPDIR/disk
	cd "$DISK" || return 1
	more=() holes=()
	cachemap evict one two >/dev/null
	warm one/big --half 2M
	warm two/big --half 2M
	warm two/s7 --all
}

teardown() {
	cd / || return 1
	remove_disks "$BATS_TEST_TMPDIR"
	rm -rf "${DISK:?}"/{dst,old,many,large,log,watch}
}

# A bit of everything: sizes around every limit, holes, names of one inode in several directories, links, nodes, modes, owners.
make_everything() { # DIRECTORY SEED
	local i
	mkdir -p "$1"/d{0..2}/sub
	for i in {1..40}; do
		make_file "$1/s$i" $((i * i * 97 + $2)) "$2"
	done
	make_file "$1/big" 9M "$2"
	make_file "$1/d0/middle" 2M "$2"
	make_file "$1/d1/sub/large" 1200K "$2"
	truncate -s 3M "$1/sparse"
	make_file "$1/island" 9000 "$2"
	dd if="$1/island" of="$1/sparse" bs=4K seek=$((200 + $2)) conv=notrunc status=none
	: >"$1/empty"
	for i in {1..12}; do
		ln "$1/s$i" "$1/d2/sub/again$i"
	done
	ln "$1/big" "$1/d2/big"
	ln "$1/s20" "$1/old-name"
	ln -s ../s1 "$1/d0/link"
	ln -s /nowhere "$1/broken"
	mkfifo "$1/d1/fifo"
	mknod "$1/device" c 1 3
	ln "$1/device" "$1/d2/device"
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$1/socket"
	chmod 4755 "$1/s2"
	chmod 0400 "$1/s3" "$1/d1/fifo"
	chmod 1777 "$1/d0"
	chmod 0500 "$1/d1/sub"
	chown -h 7:8 "$1/s5" "$1/d2" "$1/broken" "$1/socket"
	find "$1" -exec touch -h -d "@$((1500000000 + $2 * 1000)).5" {} +
}

# Makes dst, empty or as old is, what the tree is.
bring() { # TREE COMMAND...
	local tree=$1
	shift
	brought=false # whoever calls this may not hear of a failure
	rm -rf dst
	[[ ! -d old ]] || cp -a old dst
	[[ ! -d dst ]] || cachemap evict dst >/dev/null
	said=$("$@" "$TIPTOE" -aH --delete --stats "${more[@]}" "$tree/" dst 2>errors) || {
		echo "exit code $? of $*: $(<errors)"
		return 1
	}
	[[ ! -s errors ]] || { echo "$* said: $(<errors)"; return 1; }
	brought=true
}

stat_line() { # TITLE
	sed -n "s/^$1: \([0-9,]*\).*/\1/p" <<<"$said" | tr -d ,
}

# Whether pages came or went, or some of the copy stayed.
is_left_as_found() { # TREE COMMAND...
	local left
	leaves_as_found "$1" bring "$@" || return
	$brought || return 1
	left=$(resident dst)
	((left == 0)) || { echo "$left pages of the copy stayed"; return 1; }
}

# A new copy, then one that updates and deletes, and wants both right. PROMISE: kept, or told (--stats says what was not).
works() { # PROMISE COMMAND...
	local promise=$1 tree code
	shift
	rm -rf dst old
	for tree in one two; do
		if [[ $promise == kept ]]; then
			is_left_as_found $tree "$@" || return 1
			expect "left or unknown" "$(($(stat_line 'Pages left because of us') + $(stat_line 'Files of unknown residency')))" == 0 || return 1
		else
			bring $tree "$@" || return 1
			if (($(stat_line 'Pages left because of us') + $(stat_line 'Files of unknown residency') == 0)) || [[ $said != *"Refused: "* ]]; then
				echo "nothing was told: $said"
				return 1
			fi
			# What was written goes unseen, if it may go at all.
			[[ $* == *fadvise* || $* == *" all" ]] || expect "pages of the copy" "$(resident dst)" == 0 || return 1
			cachemap evict $tree dst >/dev/null
			warm $tree/big --half 2M
		fi
		treecmp "${holes[@]}" $tree dst || return 1
		[[ -z $(temporaries dst) ]] || return 1
		rm -rf old
		[[ $tree == two ]] || cp -a dst old
	done
	code=0
	rsync -aHcni --delete two/ dst/ >differences || code=$?
	[[ $code -eq 0 && ! -s differences ]] || { echo "rsync finds: $(<differences)"; return 1; }
	cachemap evict two >/dev/null
	warm two/big --half 2M
	warm two/s7 --all
}

# All facilities are tried, then it is said which failed.
try_all() { # ERROR FACILITIES[:PROMISE]...
	local error=$1 each promise bad=
	shift
	for each; do
		promise=kept
		[[ $each != *:told ]] || promise=told
		# What is broken is so each time; a page that the kernel took of its own accord is not (see leaves_as_found).
		works $promise denycalls --error "$error" "${each%:told}" || works $promise denycalls --error "$error" "${each%:told}" || {
			echo "failed: without ${each%:told} ($error)"
			bad+=" ${each%:told}"
		}
	done
	[[ -z $bad ]] || { echo "$error:$bad"; return 1; }
}

# Those that matter are tried one by one; the others together, and one by one only if that fails.
try_all_of_them() { # ERROR
	local others
	others=$(denycalls --list | grep -vxF -f <(printf '%s\n' $alone fadvise io_uring io_uring_enter io_uring_register) | paste -sd,)
	# shellcheck disable=SC2086
	try_all "$1" $alone
	try_all "$1" "$others" || try_all "$1" ${others//,/ }
}

alone='cachestat mincore sync_file_range rwf_flags tmpfile openat2'

@test "each facility that an old kernel lacks (ENOSYS) has a substitute" {
	try_all_of_them ENOSYS
}

@test "each facility that a sandbox forbids (EPERM) has a substitute" {
	try_all_of_them EPERM
}

@test "so have several at once, and what cannot be kept is told" {
	try_all ENOSYS io_uring,cachestat,sync_file_range cachestat,mincore:told all:told
	try_all EPERM io_uring,sync_file_range io_uring,fadvise:told docker all:told
	try_all EOPNOTSUPP rwf_flags,copy_file_range,tmpfile,cachestat
}

@test "so they have in place and for O_DIRECT" {
	# A hole that comes where data was is made by fallocate, or is not.
	more=(--inplace) holes=(--no-sparse)
	try_all ENOSYS docker io_uring,cachestat,sync_file_range rwf_flags,statx,openat2,ioctls all:told
	try_all EPERM fallocate,tmpfile all:told
	more=(--cache=direct)
	try_all ENOSYS ioctls,statx_masks all:told
	try_all EPERM statx cachestat,statx_masks
}

@test "a promise that is weaker is a line at -v, and every refusal one of --stats" {
	said=$(denycalls cachestat,openat2 "$TIPTOE" -aHv one/ dst)
	[ "$(grep -c 'is not available' <<<"$said")" -eq 1 ]
	[[ $said == *"cachestat is not available (Operation not permitted): mincore"* ]]
	# From another file system, which nobody may try.
	said=$(denycalls cachestat "$TIPTOE" -a --stats one/ "$BATS_TEST_TMPDIR/elsewhere")
	[[ $said == *"Files of unknown residency: 0"* ]]
	[ -z "$(grep '^Mechanism:.*cachestat' <<<"$said")" ]
	rm -rf dst
	said=$(denycalls --error ENOSYS cachestat,openat2,statx,io_uring,sync_file_range "$TIPTOE" -aH --stats one/ dst)
	for name in cachestat openat2 statx io_uring sync_file_range; do
		[[ $said == *"Refused: $name is not available (Function not implemented): "* ]]
	done
	[[ $said == *"Mechanism: ext4 on loop"*"mincore"*"fdatasync"* ]]
	said=$("$TIPTOE" -aHv --stats two/ dst)
	[[ $said != *"not available"* && $said != *Refused* ]]
}

@test "--verify-cache and --probe say what they cannot know" {
	said=$(denycalls all "$TIPTOE" -aH --verify-cache one/ dst)
	grep -E '^Cache verified: 0 resident pages in [0-9]+ files, [0-9]+ of which could not be asked$' <<<"$said"
	denycalls all "$TIPTOE" --probe dst >probed
	grep -E '^cachestat.* no ' probed
	grep -E '^sync_file_range.* no ' probed
	grep -E '^io_uring.* no ' probed
}

# Of a memory cgroup of its own, so that nobody else's writes count.
@test "the dirt is bounded without them, too" {
	mkdir large
	make_big_file large/big 192M
	make_small_files large/small 1000
	cachemap evict large
	for facilities in io_uring,cachestat io_uring,sync_file_range all; do
		rm -rf dst
		code=0
		# shellcheck disable=SC2016 # for the inner shell
		withcgroup "tiptoe-restricted-$$" 2G -- bash -c 'dirtywatch --group "$TIPTOE_CGROUP" -o watch -- "$@"' - \
			denycalls "$facilities" "$TIPTOE" -a --dirty-limit=8M large/ dst || code=$?
		((code != 77)) || skip "no memory controller"
		[ "$code" -eq 0 ]
		peak=$(sed -n 's/^peak_above_idle_mib=\(-\{0,1\}[0-9]*\).*/\1/p' watch)
		echo "# without $facilities: $peak MiB of dirt at most" >&3
		expect "MiB without $facilities" "$peak" "<=" 16
		expect "MiB without $facilities" "$peak" ">=" 1
	done
}

# Counted from outside: calls that were answered with the error, by name. A refusal is remembered, so their number does not grow with the files: twice
# for each of up to 16 workers and the pacer, which may meet it at the same time.
@test "a refusal costs no failing call for each file" {
	make_small_files many 500 512
	for i in {0..149}; do
		ln "many/d0/f0$(printf %03d "$i")" "many/d0/second$i"
	done
	for i in {1..40}; do
		mkfifo -m 604 "many/fifo$i"
	done
	for error in EPERM ENOSYS; do
		rm -rf dst
		ASAN_OPTIONS=detect_leaks=0 strace -f -qq -Z -o log -e trace='!flock,getrandom' denycalls --error "$error" all "$TIPTOE" -aH --workers=16 many/ dst
		treecmp many dst
		grep -E "= -1 $error " log | sed -E 's/^[0-9]+ +([a-z0-9_]+)\(.*/\1/' | sort | uniq -c | tee counts
		[ -s counts ]
		[ -z "$(awk '$1 > 34' counts)" ]
	done
}

# btrfs shares blocks where it may.
@test "where files may not be clones they are copied, and space is not preallocated" {
	make_disk "$BATS_TEST_TMPDIR/btrfs" 512M btrfs
	cd "$BATS_TEST_TMPDIR/btrfs"
	mkdir src
	make_small_files src/small 500
	make_file src/big 9M
	cachemap evict src
	"$TIPTOE" -aH --stats src/ cloned >said
	grep 'clones (FICLONERANGE)' said
	for error in ENOSYS EPERM; do
		ASAN_OPTIONS=detect_leaks=0 strace -f -qq -Z -o log -e trace=ioctl denycalls --error $error ioctls "$TIPTOE" -aH src/ copy-$error
		treecmp --no-sparse src copy-$error
		grep -c 'FICLONERANGE' log
		expect "calls that failed" "$(grep -c FICLONERANGE log)" "<=" 34
		run denycalls --error $error ioctls "$TIPTOE" -aH --reflink=always src/ always-$error
		check_run 23
		[[ $output == *"big: "* ]]
		[ ! -e always-$error/big ]
		rsync -a --exclude=small src/ s-$error
		denycalls --error $error fallocate "$TIPTOE" -aS --preallocate --exclude=small src/ full-$error 2>errors
		treecmp --no-sparse s-$error full-$error
	done
}

# What an old kernel does with new bits of statx's mask: it leaves them out of the answer.
@test "mask bits that statx does not know are done without" {
	traced -e trace=statx -e inject=statx:poke_exit=@arg5=ff070000 "$TIPTOE" -aH --stats one/ dst >log
	treecmp one dst
	grep -E '^Mechanism: ext4 on loop' log
}
