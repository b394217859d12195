# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# What the suites neutrality and fault share: disks of their own, files and trees of known content, and what every run of tiptoe must hold.
#
# A disk is a sparse image with an ext4 (or what else is asked for) on a loop device with direct I/O, so that its image is not in the page cache
# a second time. It is mounted below $BATS_FILE_TMPDIR or $BATS_TEST_TMPDIR; remove_disks takes all of them down, from teardown and teardown_file,
# which bats calls after failures too.
# Variables are set here for the tests, and by bats.
# shellcheck disable=SC2034,SC2154

begin_scratch() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	TIPTOE=${TIPTOE:-$ROOT/build/tiptoe}
	TIPTOE_TOOLS=${TIPTOE_TOOLS:-$(dirname "$TIPTOE")/tests/tools}
	PATH=$TIPTOE_TOOLS:$PATH
	export LC_ALL=C TZ=UTC
	umask 022
}

# Loop devices, cgroups and drop_caches are root's.
need_root() {
	((EUID == 0)) || skip "needs root"
}

make_disk() { # DIRECTORY SIZE [FSTYPE [MKFS-ARGUMENT...]]; FSTYPE is $TIPTOE_TEST_FS or ext4
	local dir=$1 size=$2 type=${3:-${TIPTOE_TEST_FS:-ext4}} device
	shift $(($# < 3 ? $# : 3))
	mkdir -p "$dir"
	truncate -s "$size" "$dir.img"
	case $type in
	# Tables and journal are written now, not by a kernel thread while a test looks.
	ext4) mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0,nodiscard "$@" "$dir.img" ;;
	*) "mkfs.$type" -q "$@" "$dir.img" ;;
	esac || return 1
	device=$(losetup --find --show --direct-io=on "$dir.img") || return 1
	mount "$device" "$dir" || {
		losetup -d "$device"
		return 1
	}
	# The lost+found of ext4 would be one more directory in every comparison.
	rm -rf "$dir/lost+found"
}

# A file system of the test's own that shows BELOW (tests/tools/faultfs.c); remove_disks takes it down too.
make_faultfs() { # DIRECTORY BELOW [OPTION,...]
	mkdir -p "$1" "$2"
	: >"$1.rules"
	: >"$1.log"
	faultfs ${3:+-o "$3"} --rules "$1.rules" --log "$1.log" "$2" "$1"
}

# What goes wrong from now on; without rules, nothing.
set_faults() { # DIRECTORY RULE...
	local dir=$1
	shift
	: >"$dir.log"
	printf '%s\n' "$@" >"$dir.rules.new"
	mv "$dir.rules.new" "$dir.rules"
}

disk_device() { # DIRECTORY
	awk -v dir="$1" '$2 == dir { print $1 }' /proc/mounts
}

remove_disks() { # DIRECTORY
	local target device attempt
	while read -r target; do
		for attempt in 1 2 3 4 5; do
			umount "$target" 2>/dev/null && break
			sleep 0.2
		done
		mountpoint -q "$target" && umount -l "$target"
	done < <(awk -v dir="$1/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r)
	while IFS=: read -r device _; do
		losetup -d "$device"
	done < <(losetup -a | grep -F "($1/")
	find "$1" -xdev -maxdepth 2 -name '*.img' -delete
}

# Text that says whose it is. The length of a line is no divisor of a block's, so that what is moved by blocks is noticed.
make_file() { # FILE SIZE [SEED]
	local line
	printf -v line '%-60s' "${3:-0} ${1##*/}"
	yes "$line" | head -c "$(numfmt --from=iec "$2")" >"$1"
}

# Large, with no page of it in the cache.
make_big_file() { # FILE SIZE
	yes "$(printf '%-60s' "${1##*/}")" | dd of="$1" bs=4M iflag=fullblock,count_bytes count="$2" oflag=direct status=none
}

# COUNT files of SIZE bytes (4096) in directories of 500.
make_small_files() { # DIRECTORY COUNT [SIZE]
	local made=0 dir size=${3:-4096}
	while ((made < $2)); do
		dir=$1/d$((made / 500))
		mkdir -p "$dir"
		yes "$(printf '%-60s' "$made")" | head -c $((500 * size)) | split -b "$size" -a 4 -d - "$dir/f"
		made=$((made + 500))
	done
	sync -f "$1"
}

# The same names for every SEED, sizes from nothing to 3 MiB, contents that say whose they are.
make_tree() { # DIRECTORY SEED
	mkdir -p "$1"/a{0..6}/b{0..2}
	awk -v top="$1" -v seed="$2" 'BEGIN {
		for (i = 0; i < 150; i++) {
			file = sprintf("%s/a%d/b%d/f%d", top, i % 7, i % 3, i)
			for (lines = int(i * i / 9); lines > 0; lines--)
				printf "%-30s %-30d\n", seed " " i, lines > file
			printf "%.*s", i % 40, "the end is in the middle of a block, and of a line" > file
			close(file)
		}
	}'
	make_file "$1/large" 3M "$2"
	make_file "$1/larger" 12M "$2"
	: >"$1/empty"
	ln -sfn "a0/b0" "$1/link"
	# rsync and tiptoe compare times by the second.
	find "$1" -exec touch -h -d "@$((1500000000 + $2 * 1000))" {} +
}

# Makes just the pattern resident.
warm() { # FILE PATTERN...
	# The kernel takes pages of its own accord (see leaves_as_found): tried again.
	cachemap warm "$@" 2>/dev/null || cachemap warm "$@" 2>/dev/null || cachemap warm "$@"
}

# Compares two snapshots: 0 the same, 1 pages have come, 2 pages have only gone; those are read again.
compare_pages() { # BEFORE AFTER
	python3 - "$1" "$2" <<-'END'
		import os, re, sys

		def read(path):
		    pages = {}
		    for line in open(path):
		        name, ranges = line.rstrip("\n").rsplit("\t", 1)
		        pages[name] = set()
		        for part in ranges.split(",") if ranges != "-" else []:
		            first, _, last = part.partition("-")
		            pages[name].update(range(int(first), int(last or first) + 1))
		    return pages

		before, after = read(sys.argv[1]), read(sys.argv[2])
		code = 0
		for name in sorted(before.keys() | after.keys()):
		    had, has = before.get(name, set()), after.get(name, set())
		    for word, some in (("came", has - had), ("went", had - has)):
		        if some:
		            print(f"{name}: {len(some)} of {len(had)} pages {word}, as {sorted(some)[:20]}")
		            code = 1 if word == "came" or code == 1 else 2
		if code == 2:
		    for name in before:
		        path = re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), os.fsencode(name))
		        fd = os.open(path, os.O_RDONLY | os.O_NOATIME)
		        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
		        for page in sorted(before[name] - after.get(name, set())):
		            os.pread(fd, 4096, page * 4096)
		        os.close(fd)
		sys.exit(code)
	END
}

# Runs a command after which the same pages of PATH must be resident as before, no more and no fewer. The kernel may take pages of its own accord:
# where DAMON's reclaim is on, single pages that were read into memory that had been idle for long go within a second (measured with no copy
# running). So when pages have only gone they are read again and the command is repeated; a copy that drops pages does so each time.
leaves_as_found() { # PATH COMMAND...
	local path=$1 try code
	shift
	cachemap snapshot "$path" >"$BATS_TEST_TMPDIR/before"
	for try in 1 2 3 4 5; do
		"$@"
		cachemap snapshot "$path" >"$BATS_TEST_TMPDIR/after"
		code=0
		compare_pages "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/after" || code=$?
		[[ $code -eq 2 ]] || break
	done
	return "$code"
}

resident() { # PATH...
	cachemap count "$@" | sed 's/.*resident=\([0-9]*\).*/\1/'
}

dirty() { # PATH...
	cachemap count "$@" | sed 's/.*dirty=\([0-9]*\).*/\1/'
}

# Names of tiptoe's form.
temporaries() { # DIRECTORY
	find "$1" -regextype posix-extended -regex '.*/\..*\.tt-[A-Za-z0-9]{6}'
}

# Until the run $HELPER is under way.
await_temporary() { # DIRECTORY
	until [[ -n $(temporaries "$1" 2>/dev/null) ]]; do
		kill -0 "$HELPER" || { echo "it ended too early"; return 1; }
		sleep 0.002
	done
}

# Runs tiptoe and holds what holds for every run: the exit code, and that all budgets came back. Its output is in $output.
tiptoe() { # EXIT-CODE ARGUMENT...
	local wanted=$1
	shift
	# On file systems that clone, content is to be moved all the same: what clones do is in clone.bats.
	run "$TIPTOE" ${TIPTOE_TEST_FS:+--reflink=never} "$@"
	check_run "$wanted"
}

check_run() { # EXIT-CODE
	if [[ $status -ne $1 ]]; then
		echo "exit code $status, wanted $1: $output"
		return 1
	fi
	if [[ $output == *"internal error"* || $output == *Assertion* || $output == *Sanitizer* ]]; then
		echo "$output"
		return 1
	fi
}

# strace, for the errors it can inject. LeakSanitizer cannot work under it.
traced() { # OPTION... COMMAND...
	ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 strace -f -qq -o /dev/null "$@"
}

# Stops what was started in the background, and waits for it.
end_process() { # PID
	kill "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}

# Lets other users reach a directory below TMPDIR.
let_others_in() { # DIRECTORY
	local dir=$1
	while [[ $dir == "${TMPDIR:-/tmp}"* && $dir != / ]]; do
		chmod o+x "$dir"
		dir=$(dirname "$dir")
	done
}

expect() { # WHAT LEFT OPERATOR RIGHT
	let "$2 $3 $4" && return 0
	echo "$1: $2, wanted $3 $4"
	return 1
}
