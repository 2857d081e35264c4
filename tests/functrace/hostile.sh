#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# hostile.sh: kymo traces the functions of programs of another user that do their worst. It ends by itself, with a message, and
# leaves alone what that user may not write to.
#
#	hostile.sh KYMO TARGET
#
# A check is a line "name: ok" or "name: FAILED" with what was seen. Exit 1 when any failed, 77 when not root.
set -u
if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
	echo "skipped: it takes root and setpriv to be two users"
	exit 77
fi
kymo=$(realpath "$1")
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; rm -rf "$work"' EXIT
cp "$2" "$work/target"
cd "$work" || exit 1
chmod 755 . target
export XDG_CACHE_HOME=$work/cache
failures=0
: >out
: >err
echo secret >file
chmod 644 file

report() { # name, 0 or not
	if [ "$2" -eq 0 ]; then
		echo "$1: ok"
	else
		echo "$1: FAILED"
		echo "  exit $code; stdout: $(head -c 600 out)"
		echo "  stderr: $(tail -c 600 err)"
		failures=$((failures + 1))
	fi
}

attach() { # options
	timeout 300 "$kymo" attach -p "$pid" -o out.kymo --duration 200ms "$@" >out 2>err </dev/null
	code=$?
	# A code above 4 but 77 (impossible here) is a signal's, or of a kymo that had to be ended.
	{ [ "$code" -le 4 ] || [ "$code" -eq 77 ]; } && [ -s err ] && [ "$(cat file)" = secret ]
}

for kind in scribble unmap threads exec descriptors traced; do
	mkfifo number
	setpriv --reuid 54321 --regid 54321 --clear-groups ./target $kind "$work/file" >number 2>/dev/null &
	started=$!
	pid=
	read -r pid <number
	rm number
	if [ -z "$pid" ]; then
		wait "$started"
		code=$?
		if [ "$code" -eq 77 ]; then
			echo "$kind: skipped: ptrace is forbidden here"
		else
			report "$kind: the program starts" 1
		fi
		continue
	fi
	for options in --functions '--functions=more,work --trigger crash' '--functions --engine sample' --functions; do
		# shellcheck disable=SC2086
		attach $options
		report "$kind, $options" $?
	done
	if [ $kind = traced ]; then
		attach --functions --engine patch
		[ "$code" -ne 0 ] && grep -q "traces it already" err
		report "traced: the tracer is named" $?
	fi
	# Those that harm only kymo go on.
	case $kind in threads | exec | descriptors | traced)
		kill -0 "$pid" 2>/dev/null
		report "$kind: the program goes on" $?
		;;
	esac
	kill -9 "$pid" 2>/dev/null
	wait 2>/dev/null
	pid=
done
[ "$failures" -eq 0 ]
