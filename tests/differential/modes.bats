#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Options that change attributes on the way or leave some of them out: --chmod, -E, -O, -J, -U.

load compare

modes() {
	local place mode
	for mode in 0000 0400 0111 0100 0010 0001 0644 0755 0640 0600 0777 0664 0471 0237 4755 2755 1777 6711 7000 7777; do
		echo x >"s/f$mode"
		mkdir "s/d$mode"
		chmod "$mode" "s/f$mode" "s/d$mode"
	done
	mkfifo s/fifo
	ln -s x s/link
	settle s
}

# Runs of several --chmod each.
chmods() { # OPTIONS...
	local options word arguments
	for options; do
		arguments=()
		for word in $options; do
			arguments+=(--chmod="$word")
		done
		rm -rf r/* t/*
		compare_unordered "${how:--ai}" "${arguments[@]}" ../s/ ./ || return 1
	done
}

@test "--chmod: classes, operators, letters" {
	modes
	chmods u+x g-w o=r a=rw ug=rwx,o= u=rwX,go=rX go-rwx a+X a-x +x -w =r +X =rwX u+s g+s ug+s o+s a+s +s u-s g-s +t -t a=t u=s g=s ug=s =s u=,g=,o= \
		u+xX a-X u=rwxst g-rs +rwxXst
}

@test "--chmod: octal, D and F" {
	modes
	chmods 644 0644 4755 0 7777 D2775,F664 D755 F600 Du+x,Fu-x Dg+s,ug+w,Fo-w,+X DFu+x FDu-w D=rwx,F=rw DD700 00644
}

@test "--chmod: classes are copied" {
	modes
	chmods g=u o=g g-o u=g,g=o a=u ug=o o+u g=o,o= =u +g -o Dg=u,Fo=g u=u
}

@test "--chmod: several options are done in order" {
	modes
	chmods "u=rwx g=u" "D700 F600" "777 go-w" "go-w 777" "a-x +X" "u+x,g=u o=g"
}

@test "--chmod counts with -p only for what is there, and always for what is new" {
	modes
	how=-rlti chmods u+w,go-rwx 640 D700,F600 +x u+s
	both 'mkdir -p old; for m in 0644 0755 4755 0600; do echo y > f$m; chmod 0640 f$m; done; settle .'
	compare_unordered -rlti --chmod=a+rx ../s/ ./
	compare_unordered -rlpti --chmod=F644,D755 ../s/ ./
	compare_unordered -rlpti --chmod=F644,D755 ../s/ ./
	[ "$(grep -c '^[>.c]' t.out)" = 0 ]
}

@test "--chmod: refused is what rsync refuses" {
	mkdir s/d
	for bad in u+q u rw 8 9 08 u+rw-x u++x ,u+x u+x, u+x,,g+x g=ur g=uu g=rg u+7 u=7 DX X D F Q+x 77777 10000 0100000 'u +x' ' ' '' u+ug; do
		code=0
		rsync -a --chmod="$bad" s/ r/ 2>/dev/null || code=$?
		run "$TIPTOE" -a --chmod="$bad" s/ t/
		[ "$status" = "$code" ] || { echo "--chmod=$bad: rsync $code, tiptoe $status"; return 1; }
	done
}

@test "--chmod: what is empty behind the operator is nothing" {
	modes
	chmods u+ u- u= = + - a= Du= u+,g-
}

@test "--chmod as a user, and with a umask" {
	modes
	find s -type f -exec chmod u+r {} +
	find s -mindepth 1 -type d -exec chmod u+rwx {} +
	as_user
	umask 027
	how=-rlpti chmods +w F=rw F+x u+s Dg+s,F=r
	how=-rlti chmods +w a+w F-x
	how=-rlptgoi chmods F400,D500
	chmod -R u+w r t
}

@test "-E turns the right to execute on and off" {
	local mode
	for mode in 0644 0755 0700 0600 0444 0711 0654 0000 4755 0010; do
		echo x >"s/a$mode"
		echo x >"s/b$mode"
		echo x >"s/c$mode"
		echo x >"s/new$mode"
		mkdir "s/d$mode"
		chmod "$mode" s/?"$mode" "s/new$mode"
	done
	settle s
	both 'for m in 0644 0755 0700 0600 0444 0711 0654 0000 4755 0010; do echo x > a$m; echo y > b$m; chmod 644 a$m; chmod 640 b$m; echo xy > c$m; chmod 751 c$m; mkdir d$m; done; settle .'
	compare -rltEi ../s/ ./
	compare -rltEi ../s/ ./
	compare -rltEpi ../s/ ./
	compare -rEi ../s/ d/
	compare -rltEii ../s/ ./
}

@test "-E with --chmod, with -u, with -n, with --inplace" {
	for name in a b; do
		echo "$name" >s/$name
	done
	chmod 755 s/a
	settle s
	both 'echo a > a; echo x > b; chmod 644 a; chmod 755 b; settle .'
	compare -rltEin ../s/ ./
	compare -rltEi --chmod=a-x ../s/ ./
	compare -rltEi --inplace ../s/ ./
	compare -rltEi --executability --chmod=a+x ../s/ ./
	compare -rltuEi ../s/ ./
}

# Directories and links whose times differ.
late() {
	mkdir -p s/d/e
	echo x >s/d/file
	echo x >s/file
	ln -s file s/link
	ln -s file s/d/link
	settle s
	both 'mkdir -p d/e; echo x > file; ln -s other link; ln -s file d/link; touch -h -d @1500000000 d/e d/link link d .'
}

@test "-O leaves the times of directories, -J those of links" {
	for options in -aOi -aJi -aOJi -rlOi -rltOi -rltJi -aOii -aJii -aOJin "-ai --omit-dir-times" "-ai --omit-link-times" "-aOJi --no-O" "-aOJi --no-omit-link-times" \
		"-aHOJi" "-aciOJ" "-auOJi"; do
		rm -rf s r t
		mkdir s r t
		late
		# shellcheck disable=SC2086
		compare $options ../s/ ./ || return 1
		# shellcheck disable=SC2086
		compare $options ../s/ ./
	done
}

@test "-O: a directory gets the time of its change" {
	late
	compare -aO ../s/ ./
	run stat -c %Y t/d
	((output >= now))
}

@test "-O and -J with --delete" {
	late
	both 'touch d/extra; touch -d @1500000000 d'
	compare_unordered -aOJi --delete ../s/ ./
}

compare_accesses() {
	diff <(cd r && find . -type f -exec stat -c '%n %X' {} + | sort) <(cd t && find . -type f -exec stat -c '%n %X' {} + | sort)
}

@test "-U keeps times of access" {
	mkdir s/d
	for name in same access both content; do
		echo x >s/$name
		echo x >s/d/$name
	done
	ln -s same s/link
	mkfifo s/fifo
	settle s
	both 'mkdir d; for n in same access both content; do echo x > $n; echo x > d/$n; done; echo y > content; settle .; touch -a -d @1500000000 access d/access; touch -d @1400000000 both'
	touch -a -d @1300000000 s/d/same s/fifo
	compare -aUin ../s/ ./
	# Once, rsync would change the sources' by reading them.
	find s -type f -exec touch -a -d @1350000000 {} +
	compare -aUUi ../s/ ./
	compare_accesses
	[ "$(stat -c %X t/content)" = 1350000000 ]
	find s -type f -exec touch -a -d @1350000000 {} +
	compare -aUi ../s/ ./
	compare_unordered -rUi --atimes ../s/ new/
	compare -aUi --no-U ../s/ other/
	compare -aUiH --modify-window=1 ../s/ ./
}

@test "-U: a source is as it was, with --open-noatime and without" {
	echo x >s/file
	settle s
	touch -a -d @1350000000.123456789 s/file
	compare -aUUi ../s/ ./
	[ "$(stat -c %x s/file)" = "2012-10-12 00:00:00.123456789 +0000" ]
	run_one t "$TIPTOE" -aUI ../s/ ./
	run_one t "$TIPTOE" -aUc --open-noatime ../s/ ./new/
	[ "$(stat -c %X s/file)" = 1350000000 ]
	[ "$(stat -c %x t/file)" = "2012-10-12 00:00:00.123456789 +0000" ]
}
