# SPDX-License-Identifier: MIT
# kymo.bash: completion of kymo's verbs, options and values for bash. kymo itself lists them.
_kymo()
{
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]}
	local words i
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ] || { [ "$COMP_CWORD" -eq 2 ] && [ "$verb" = help ]; }; then
		words=$(kymo help --complete 2> /dev/null)
		mapfile -t COMPREPLY < <(compgen -W "$words help --help --version" -- "$word")
		return
	fi
	# A command of its own follows the options of run.
	if [ "$verb" = run ]; then
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
	-p | --pid)
		mapfile -t COMPREPLY < <(compgen -W "$(ps -eo pid=,comm= 2> /dev/null)" -- "$word")
		return
		;;
	--*)
		words=$(kymo help --complete "$verb" "$before" 2> /dev/null)
		if [ -n "$words" ]; then
			mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
			return
		fi
		;;
	esac
	if [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(kymo help --complete "$verb" 2> /dev/null) --help" -- "$word")
		return
	fi
	mapfile -t COMPREPLY < <(compgen -f -- "$word")
}
complete -o filenames -F _kymo kymo
