# SPDX-License-Identifier: MIT
# kymo.bash: completion of kymo's verbs and options for bash. Both are taken from kymo's own help, so that
# they cannot differ from it.
_kymo()
{
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]}
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ] || { [ "$COMP_CWORD" -eq 2 ] && [ "$verb" = help ]; }; then
		local verbs
		verbs=$(kymo --help 2>/dev/null | sed -n 's/^  \([a-z]\{1,\}\)  .*/\1/p')
		mapfile -t COMPREPLY < <(compgen -W "$verbs help --help --version" -- "$word")
		return
	fi
	# Behind the options of run comes a command of its own.
	if [ "$verb" = run ]; then
		local i
		for ((i = 2; i < COMP_CWORD; i++)); do
			if [ "${COMP_WORDS[i]}" = -- ]; then
				if [ "$COMP_CWORD" -eq $((i + 1)) ]; then
					mapfile -t COMPREPLY < <(compgen -c -- "$word")
				else
					mapfile -t COMPREPLY < <(compgen -f -- "$word")
				fi
				return
			fi
		done
	fi
	case $before in
	-p | --pid) mapfile -t COMPREPLY < <(compgen -W "$(ps -eo pid=,comm= 2>/dev/null)" -- "$word") ; return ;;
	--trigger)
		mapfile -t COMPREPLY < <(compgen -W "exit crash interrupt api signal: symbol: line: span: gap: counter:" -- "$word")
		return
		;;
	--engine) mapfile -t COMPREPLY < <(compgen -W "uprobe breakpoint pt nops patch sample auto" -- "$word") ; return ;;
	--by) mapfile -t COMPREPLY < <(compgen -W "name category thread process" -- "$word") ; return ;;
	--sort) mapfile -t COMPREPLY < <(compgen -W "total self count min mean p50 p95 p99 max" -- "$word") ; return ;;
	--measure) mapfile -t COMPREPLY < <(compgen -W "p50 mean p95 p99" -- "$word") ; return ;;
	--format)
		local formats
		formats=$(kymo --help 2>/dev/null | sed -n '/^formats/,/^$/{/^  /p;}' | tr -d ,)
		mapfile -t COMPREPLY < <(compgen -W "$formats" -- "$word")
		return
		;;
	esac
	if [[ $word == -* ]]; then
		local options
		options=$(kymo help "$verb" 2>/dev/null | sed '/^examples/,$d' | grep -oE -- '--[a-z][a-z-]*' | sort -u)
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
		return
	fi
	mapfile -t COMPREPLY < <(compgen -f -- "$word")
}
complete -o filenames -F _kymo kymo
