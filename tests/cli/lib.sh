# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# lib.sh: what the tests of the command line share. A test sets kymo and makes paths of its arguments absolute, then sources this: it is in a
# folder of its own from then on. A check is a line "name: ok", "name: skipped: why" or "name: FAILED" with what was seen; the last line of a
# test is "finish_checks", which exits with 1 when any failed.
#
# What the last command printed is in the files out and err, its exit code in code. The checks wait for what has to happen first; the limit
# only ends what hangs: a busy machine may be slow.
work=$(mktemp -d) || exit 1
started=() # processes to kill at the end
disk=      # a file system to unmount then
failures=0
code=0
limit=600
export LC_ALL=C.UTF-8
export XDG_CACHE_HOME=$work/cache
unset KYMO_TRACE KYMO_CATEGORIES KYMO_BUFFER KYMO_DRUM_DIR KYMO_MODE
clean_up() {
	for pid in "${started[@]}"; do
		kill -9 "$pid" 2>/dev/null
	done
	[ -n "$disk" ] && umount "$disk" 2>/dev/null
	cd / && rm -rf "$work"
}
trap clean_up EXIT
cd "$work" || exit 1

report() { # name, 0 or not
	if [ "$2" -eq 0 ]; then
		echo "$1: ok"
	else
		echo "$1: FAILED"
		echo "  exit $code; stdout: $(head -c 600 out)"
		echo "  stderr: $(head -c 1200 err)"
		failures=$((failures + 1))
	fi
}

skip() { # name, why
	echo "$1: skipped: $2"
}

finish_checks() {
	[ $failures -eq 0 ] || { echo "$failures failed"; exit 1; }
	echo "all ok"
	exit 0
}

run() { # arguments of kymo
	timeout -k 1 $limit "$kymo" "$@" >out 2>err </dev/null
	code=$?
}

# Exits with that code and says so in one line on standard error, or two of a wrong usage; nothing on standard output.
refuses() { # name, code, text in the message, arguments
	local name=$1 want=$2 text=$3
	shift 3
	run "$@"
	local lines
	lines=$(wc -l <err)
	[ "$code" -eq "$want" ] && [ ! -s out ] && grep -qF -- "$text" err &&
		{ [ "$want" -eq 2 ] || [ "$lines" -eq 1 ]; }
	report "$name" $?
}

# Exits with that code and prints that.
prints() { # name, code, text in the output, arguments
	local name=$1 want=$2 text=$3
	shift 3
	run "$@"
	[ "$code" -eq "$want" ] && grep -qF -- "$text" out
	report "$name" $?
}

# Wait for a command to succeed; fail at the limit.
wait_for() {
	local end=$((SECONDS + limit))
	until "$@" 2>/dev/null; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}
