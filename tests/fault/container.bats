#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The promise in places like containers: an overlay as root, an ordinary user, docker's seccomp filter, nothing in /sys; little memory, few
# descriptors.
load ../scratch
load ../container

setup_file() {
	begin_scratch
	((EUID == 0)) || return 0
	make_disk "$BATS_FILE_TMPDIR/disk" 2G
}

teardown_file() {
	remove_disks "$BATS_FILE_TMPDIR"
}

setup() {
	begin_scratch
	need_root
	DISK=$BATS_FILE_TMPDIR/disk
	cd "$DISK" || return 1
	let_others_in "$DISK"
}

teardown() {
	cd / || return 1
	rm -rf "${DISK:?}"/*
}

# An image (lower) over the machine's own root, a layer for what is written (upper). Seen from outside the files are those of the layers.
make_layers() {
	mkdir -p lower/image upper/data work root
	chmod 755 lower upper
	install -m 755 "$TIPTOE" lower/image/tiptoe
	install -m 755 "$TIPTOE_TOOLS/denycalls" lower/image/denycalls
	container_script enter \
		"mount -t overlay overlay -o 'lowerdir=$DISK/lower:/,upperdir=$DISK/upper,workdir=$DISK/work' '$DISK/root'" \
		"cd '$DISK/root'" \
		'mount --rbind /dev dev' \
		'mount -t tmpfs -o ro,size=4k none sys' \
		'mount -t proc -o ro proc proc' \
		'mount -t tmpfs -o ro,size=4k none proc/sys' \
		"exec chroot . $drop_capabilities --reuid=65534 --regid=65534 --clear-groups /image/denycalls \"\$@\""
	inside=(unshare --mount --pid --fork --kill-child ./enter)
	export ASAN_OPTIONS=detect_leaks=0
}

copy_inside() { # DENIED SOURCE
	rm -rf upper/data/dst
	run "${inside[@]}" $1 /image/tiptoe -aH --stats "$2" /data/dst
	check_run 0
}

@test "a user's copy on the overlay of a container is right, and leaves the cache as found" {
	make_layers
	make_tree upper/data/src 1
	make_file upper/data/src/big 20M
	cp -a upper/data/src lower/image/src
	chown -R 65534:65534 upper/data lower/image/src
	cachemap evict upper lower
	warm upper/data/src/big --half 2M
	warm lower/image/src/big --half 2M
	for denied in docker docker,cachestat,tmpfile "--error ENOSYS all"; do
		for source in upper/data lower/image; do
			if [[ $denied == *all ]]; then
				copy_inside "$denied" "/${source#*/}/src/"
				[[ $output == *"Refused: mincore is not available"* ]]
			else
				leaves_as_found "$source/src" copy_inside "$denied" "/${source#*/}/src/"
				expect "pages of the copy" "$(resident upper/data/dst)" == 0
				[[ $output == *"Files of unknown residency: 0"* ]]
				[[ $output == *"Mechanism: overlay"*"mincore"*"fdatasync"* ]]
			fi
			treecmp "$source/src" upper/data/dst
			[ -z "$(temporaries upper/data/dst)" ]
		done
	done
}

@test "somebody else's files leave no page where nobody may know, if the file system has RWF_DONTCACHE" {
	make_tree src 1
	make_file src/big 20M
	mkdir dst
	chown 65534:65534 dst
	cachemap evict src
	warm src/big --half 2M
	inside_as_nobody "$BATS_TEST_TMPDIR/enter"
	copy_as_nobody() {
		find dst -mindepth 1 -delete
		run "${inside[@]}" "$TIPTOE" -rlpt --stats src/ dst
		check_run 0
	}
	leaves_as_found src copy_as_nobody
	expect "pages of the copy" "$(resident dst)" == 0
	treecmp --no-owner src dst
}

@test "64 MiB of memory and 256 descriptors are enough" {
	mkdir src
	make_small_files src/small 2500
	make_big_file src/big 128M
	cachemap evict src
	for denied in io_uring all; do
		rm -rf dst
		code=0
		# shellcheck disable=SC2016 # for the inner shell
		withcgroup "tiptoe-container-$$" 64M -- bash -c 'ulimit -n 256
			"$@"
			code=$?
			cat "$TIPTOE_CGROUP"/memory.oom_control "$TIPTOE_CGROUP"/memory.events >oom 2>/dev/null
			exit $code' - denycalls "$denied" "$TIPTOE" -aH --stats src/ dst >said 2>&1 || code=$?
		((code != 77)) || skip "no memory controller"
		expect "exit code ($(<said))" "$code" == 0
		grep -E '^oom_kill 0$' oom
		treecmp src dst
		expect "MiB of budget" "$(sed -n 's/^Peak dirty bytes: \([0-9,]*\).*/\1/p' said | tr -d ,) >> 20" "<=" 16
		[[ $denied == all ]] || expect "pages of source and copy" "$(resident src dst)" == 0
	done
}
