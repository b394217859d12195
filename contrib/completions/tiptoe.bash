# SPDX-License-Identifier: MIT
# Completion of tiptoe for bash; tests/cli/options.bats holds it against tiptoe --dump-options.

_tiptoe()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}

	# "--cache=dr" comes as three words, since = is one of COMP_WORDBREAKS.
	if [[ $cur == = ]]; then
		cur=''
	elif [[ $prev == = ]] && ((COMP_CWORD >= 2)); then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi

	COMPREPLY=()
	case $prev in
	--cache)
		mapfile -t COMPREPLY < <(compgen -W 'leave keep drop direct' -- "$cur")
		return
		;;
	--reflink)
		mapfile -t COMPREPLY < <(compgen -W 'auto always never' -- "$cur")
		return
		;;
	--dirty-limit)
		mapfile -t COMPREPLY < <(compgen -W '1M 8M 16M 48M' -- "$cur")
		return
		;;
	--workers)
		mapfile -t COMPREPLY < <(compgen -W '1 2 4 8 16' -- "$cur")
		return
		;;
	--probe)
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return
		;;
	--exclude-from | --include-from)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--exclude | --include | --filter | -f)
		return
		;;
	esac

	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W '
			-a --archive
			-r --recursive
			-d --dirs
			--old-dirs
			--old-d
			-l --links
			-H --hard-links
			-p --perms
			-E --executability
			--chmod=
			-t --times
			-O --omit-dir-times
			-J --omit-link-times
			-U --atimes
			--open-noatime
			-o --owner
			-g --group
			--chown=
			--usermap=
			--groupmap=
			--super
			-D
			--devices
			--specials
			--numeric-ids
			-x --one-file-system
			--max-size=
			--min-size=
			-m --prune-empty-dirs
			--exclude=
			--include=
			--exclude-from=
			--include-from=
			-f --filter=
			-F
			-C --cvs-exclude
			-0 --from0
			-c --checksum
			--size-only
			-I --ignore-times
			-@ --modify-window=
			-u --update
			--existing
			--ignore-non-existing
			--ignore-existing
			-W --whole-file
			-S --sparse
			--inplace
			--append
			--append-verify
			--preallocate
			--no-seek-hole
			--mkpath
			--reflink=
			--fsync
			-n --dry-run
			--delete
			--del
			--delete-before
			--delete-during
			--delete-delay
			--delete-after
			--delete-excluded
			--max-delete=
			--force
			--ignore-errors
			--remove-source-files
			--ignore-missing-args
			--delete-missing-args
			-v --verbose
			-q --quiet
			-i --itemize-changes
			-h --human-readable
			--stats
			--progress
			--cache=
			--dirty-limit=
			--verify-cache
			--probe
			--json
			--workers=
			-V --version
			--help
			' -- "$cur")
		[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
		return
	fi
	compopt -o filenames
	mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

complete -F _tiptoe tiptoe
