#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What --probe says is what a run does: on each file system, the mechanism that it names for {read, new, overwrite} x {own, somebody else's} x sizes
# against the lines "Mechanism" of runs that do just that; as root and as a user who may only read what is somebody else's.
load ../scratch

# Small, whole, in windows, large.
SIZES=(1000 70000 2000000 5000000)

setup() {
	begin_scratch
	need_root
	command -v jq >/dev/null || skip "jq is not installed"
	cd "$BATS_TEST_TMPDIR" || return 1
	cp "$TIPTOE" tiptoe
	cp "$TIPTOE_TOOLS/libhourlater.so" .
	let_others_in "$PWD"
	mkdir fs ram
	mount -t tmpfs -o size=200M,mode=1777 tmpfs ram
}

teardown() {
	cd / || return 1
	remove_disks "$BATS_TEST_TMPDIR"
}

# Somebody else's files are old for him: what has just been changed may be dirty, which --probe does not suppose.
as_user() { # USER ARGUMENT...
	local user=$1
	shift
	if [[ $user == root ]]; then
		./tiptoe "$@"
	else
		env "LD_PRELOAD=$PWD/libhourlater.so" setpriv --reuid=65534 --regid=65534 --clear-groups ./tiptoe "$@"
	fi
}

make_sizes() { # DIRECTORY OWNER
	local size
	mkdir -p "$1"
	for size in "${SIZES[@]}"; do
		make_file "$1/s$size" "$size"
	done
	chown -R "$2" "$1"
	cachemap evict "$1" >/dev/null
}

# "2 files read: WORDS" for all SIZES, as --probe has it.
foretold() { # OPERATION OWNER DONE
	jq -r --arg operation "$1" --arg owner "$2" --arg done "$3" '
		[.mechanisms[] | select(.operation == $operation and .owner == $owner)] as $cells
		| [$ARGS.positional[] | tonumber as $size | $cells[]
			| select(.from_bytes <= $size and ((.to_bytes // $size) >= $size)) | .description]
		| group_by(.)[] | "\(length) file\(if length == 1 then "" else "s" end) \($done): \(.[0])"' probed --args "${SIZES[@]}" | sort
}

# The same as the run has it, for the file system of fs.
told() { # DONE
	sed -n "s/^Mechanism: .* ($(stat -c '%Hd:%Ld' fs)): //p" <<<"$output" | sed 's/; /\n/g' | grep -E "^[0-9]+ files? $1: " | sort
}

agrees() { # USER OPERATION OWNER DONE ARGUMENT...
	local user=$1 operation=$2 owner=$3 done=$4
	shift 4
	run as_user "$user" -r --reflink=never --stats "$@"
	check_run 0 || return 1
	if [[ -z $(told "$done") || $(told "$done") != "$(foretold "$operation" "$owner" "$done")" ]]; then
		echo "$user, $operation, $owner: --probe says"
		foretold "$operation" "$owner" "$done"
		echo "and the run"
		grep '^Mechanism' <<<"$output"
		return 1
	fi
	# What was not counted is not said to be nothing.
	[[ $output != *"pages stay"* || $output == *"Pages left because of us: "*", not counting "*" of unknown residency"* ]] || { echo "$output"; return 1; }
}

probe_as() { # USER EXIT-CODE
	local code=0
	as_user "$1" --probe --json fs >probed 2>probed.err || code=$?
	[[ $code -eq $2 ]] || { echo "exit code $code"; cat probed.err; return 1; }
}

owner_is() { # USER OWNER
	if [[ $1 == "$2" ]]; then echo self; else echo other; fi
}

reads_agree() { # USER
	local whose
	for whose in root nobody; do
		rm -rf ram/copy
		cachemap evict fs/of_$whose >/dev/null
		agrees "$1" read "$(owner_is "$1" $whose)" read fs/of_$whose/ ram/copy || return 1
	done
}

writes_agree() { # USER
	local whose
	chmod 666 fs/of_*/* # whoever may write to a file may ask about it, too: not before
	mkdir fs/new_"$1"
	chown "$1" fs/new_"$1"
	agrees "$1" new self written ram/src/ "fs/new_$1" || return 1
	for whose in root nobody; do
		agrees "$1" overwrite "$(owner_is "$1" $whose)" overwritten -I --inplace ram/src/ fs/of_$whose || return 1
	done
}

agrees_on_all() {
	local user
	chmod 1777 fs
	make_sizes fs/of_root root
	make_sizes fs/of_nobody nobody
	sync -f fs
	make_sizes ram/src root
	for user in root nobody; do
		probe_as $user 0
		reads_agree $user
	done
	for user in root nobody; do
		probe_as $user 0
		writes_agree $user
	done
}

@test "ext4: a run moves files as --probe has said" {
	make_disk "$PWD/fs" 200M ext4
	agrees_on_all
}

@test "xfs: a run moves files as --probe has said" {
	make_disk "$PWD/fs" 400M xfs
	agrees_on_all
}

@test "btrfs: a run moves files as --probe has said, small ones that lie with the inode too" {
	make_disk "$PWD/fs" 300M btrfs
	agrees_on_all
	probe_as nobody 0
	# For 1000 bytes and for the others.
	[ "$(foretold read other read | wc -l)" -eq 2 ]
	[[ $(foretold read other read) == *"3 files read: O_DIRECT"* ]]
}

@test "tmpfs: a run moves files as --probe has said" {
	mount -t tmpfs -o size=100M tmpfs fs
	agrees_on_all
}

@test "overlayfs: a run moves files as --probe has said" {
	make_disk "$PWD/disk" 200M ext4
	mkdir disk/lower disk/upper disk/work
	mount -t overlay overlay -o "lowerdir=$PWD/disk/lower,upperdir=$PWD/disk/upper,workdir=$PWD/disk/work" fs
	agrees_on_all
	probe_as nobody 0
	[[ $(foretold read other read) == *"O_DIRECT"* ]]
}

@test "FUSE: a run moves files as --probe has said" {
	command -v faultfs >/dev/null || skip "no libfuse3"
	make_disk "$PWD/disk" 200M ext4
	mkdir disk/below
	chmod 1777 disk/below
	faultfs disk/below fs
	agrees_on_all
	probe_as nobody 0
	[[ $(foretold read other read) == *"O_DIRECT"* ]]
}

@test "squashfs and erofs: a run reads files as --probe has said, and nothing can be written" {
	make_sizes tree/of_root root
	make_sizes tree/of_nobody nobody
	mksquashfs tree fs.img -quiet -no-progress >/dev/null
	mount -o loop,ro fs.img fs
	for user in root nobody; do
		probe_as $user 23
		reads_agree $user
		[[ $(jq -r '[.mechanisms[] | select(.operation != "read") | .mechanism] | unique | @json' probed) == '["none"]' ]]
	done
	[[ $(foretold read other read) == "4 files read: ordinary reads, pages stay" ]]
	[[ $(jq -r .facts.dontcache_read.answer probed) == no ]]
	./tiptoe --probe fs >text || true
	grep -A 1 '^write new files *any size *nothing can be written$' text | grep 'the file system is read-only'
	grep -A 1 '^overwrite *any size *nothing can be written$' text | grep 'the file system is read-only'
	[ -z "$(grep 'may be dirty on this disk' text)" ]
	umount fs
	mkfs.erofs --quiet erofs.img tree >/dev/null
	mount -o loop,ro erofs.img fs
	for user in root nobody; do
		probe_as $user 23
		reads_agree $user
	done
	# Where there is no file nobody can know.
	umount fs
	mkdir empty
	rm -f fs.img
	mksquashfs empty fs.img -quiet -no-progress >/dev/null
	mount -o loop,ro fs.img fs
	probe_as nobody 23
	[[ $(jq -r '[.mechanisms[] | select(.operation == "read") | .reason] | unique | @json' probed) == '["there is no file to ask: the first one tells"]' ]]
}
