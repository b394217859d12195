# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Places like those that containers give to programs, built with unshare and setpriv: namespaces of their own, nothing in /sys, a read-only /proc
# whose sys is masked, and what docker's default seccomp profile denies. Each function sets `inside`, the command that goes before another.
# shellcheck disable=SC2034 # for the tests

container_script() { # FILE LINE...
	local file=$1
	shift
	printf '%s\n' '#!/bin/bash' 'set -e' "$@" >"$file"
	chmod 755 "$file"
}

hide_the_machine='mount -t tmpfs -o ro,size=4k none /sys
mount -t proc -o ro proc /proc
mount -t tmpfs -o ro,size=4k none /proc/sys'

drop_capabilities='setpriv --no-new-privs --bounding-set=-all --inh-caps=-all'

# A user of the machine (nobody) without anything, as `docker run -u` gives it.
inside_as_nobody() { # SCRIPT
	container_script "$1" "$hide_the_machine" \
		"exec $drop_capabilities --reuid=65534 --regid=65534 --clear-groups denycalls docker \"\$@\""
	inside=(unshare --mount --pid --fork --kill-child "$1")
}

# An ordinary user (1000) who is root in a user namespace: podman without root. Only his ids are mapped.
inside_as_mapped_root() { # SCRIPT
	container_script "$1" "$hide_the_machine" 'exec denycalls docker "$@"'
	inside=(setpriv --reuid=1000 --regid=1000 --clear-groups unshare --user --map-root-user --mount --pid --fork --kill-child "$1")
}

# The same, and every capability dropped: user id 0 that may do nothing.
inside_as_powerless_root() { # SCRIPT
	container_script "$1" "$hide_the_machine" "exec $drop_capabilities denycalls docker \"\$@\""
	inside=(setpriv --reuid=1000 --regid=1000 --clear-groups unshare --user --map-root-user --mount --pid --fork --kill-child "$1")
}
