#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# However many workers there are, with the ring or without, with hardly any room for dirty pages: the same bytes are printed, the same tree made.

load compare

# A few thousand names of all types; and a second state of them.
medium() {
	python3 - "$work/s" <<'EOF'
import os, stat, sys
root = sys.argv[1]
for i in range(60):
    d = f"{root}/{i % 7}/{i}"
    os.makedirs(d)
    for k in range(50):
        with open(f"{d}/f{k}", "wb") as out:
            out.write(b"%d %d\n" % (i, k) * (1 + (i * 50 + k) % 997))
        os.chmod(f"{d}/f{k}", [0o644, 0o600, 0o4755, 0o440][k % 4])
    os.link(f"{d}/f1", f"{d}/linked")
    os.link(f"{root}/0/0/f0", f"{d}/far-linked") if i else None
    os.symlink("f0", f"{d}/symlink")
    os.mkfifo(f"{d}/fifo")
    os.mknod(f"{d}/device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.chown(f"{d}/f2", 7, 8)
with open(f"{root}/sparse", "wb") as out:
    out.truncate(30 << 20)
    out.seek(9 << 20)
    out.write(b"middle")
with open(f"{root}/large", "wb") as out:
    out.write(os.urandom(1 << 20) * 12)
EOF
	settle s
}

# Another state of the same tree, made from a copy.
second() { # DESTINATION
	rm -r "$1"/2 "$1"/3/10
	find "$1" -name 'f3' -exec rm {} +
	find "$1" -name 'f4' -exec touch -d @5 {} +
	find "$1" -name 'f5' -exec chmod 777 {} +
	find "$1" -name symlink -delete
	mkdir "$1"/extra "$1"/4/4/f9.d
	touch "$1"/extra/{1..40} "$1"/4/4/f9.d/x
	settle "$1"/extra
}

variant() { # NAME
	case $1 in
	plain) "$TIPTOE" "${@:2}" ;;
	one) "$TIPTOE" --workers=1 "${@:2}" ;;
	sixteen) "$TIPTOE" --workers=16 "${@:2}" ;;
	twin) TIPTOE_RING=off "$TIPTOE" "${@:2}" ;;
	tight) "$TIPTOE" --dirty-limit=1M --workers=16 "${@:2}" ;;
	esac
}

@test "workers, ring and dirty limit change neither output nor tree" {
	medium
	for name in plain one sixteen twin tight; do
		mkdir "$name"
		(cd "$name" && variant "$name" -aHi ../s/ d/) >"$name.1"
		"$TREECMP" s "$name/d"
		second "$name/d"
		(cd "$name" && variant "$name" -aHii --delete ../s/ d/) >"$name.2"
		"$TREECMP" s "$name/d"
		(cd "$name" && variant "$name" -aHv --delete ../s/ d/) | grep -vE '^sent |io_uring|ring' >"$name.3"
		for run in 1 2 3; do cmp "plain.$run" "$name.$run"; done
		rm -r "${name:?}/d"
	done
	[ "$(wc -l <plain.1)" -gt 3000 ]
	[ "$(grep -c deleting plain.2)" -gt 40 ]
}

@test "a medium tree is the same by rsync, which then finds nothing to do" {
	medium
	"$TIPTOE" -aH s/ d/
	rsync -aHcni --delete s/ d/ >left
	[ ! -s left ]
	# Lines of a tree without far links, which rsync says elsewhere.
	rm s/*/*/far-linked
	settle s
	compare_unordered -aHi ../s/ e/
}
