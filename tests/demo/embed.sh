#!/bin/sh
# SPDX-License-Identifier: MIT
# embed.sh HELLO HOST_CUSTOM HOST_KYMO HOST_NONE TWO_COPIES PLUGIN...: the examples of programs that
# have kymo's header alone, or several copies of the library.
set -eu
hello=$1 host_custom=$2 host_kymo=$3 host_none=$4 two_copies=$5
shift 5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail()
{
	echo "FAIL: $*"
	exit 1
}

# count NUMBER WHAT FILE: so many lines or events of a file have the fixed string.
count()
{
	found=$(grep -o -F -e "$2" "$3" | wc -l)
	[ "$found" -eq "$1" ] || fail "$2 is $found times in ${3##*/}, not $1: $(cat "$3")"
}

KYMO_TRACE="$work/hello.json" "$hello" > "$work/out" || fail "hello: exit code $?"
count 3 'hello, world' "$work/out"
count 3 '"again"' "$work/hello.json"

"$host_custom" > "$work/custom" || fail "host_custom: exit code $?"
count 1 'begin       greeter greet who="world" times=2 often=false' "$work/custom"
count 2 'counter     greeter bytes_per_name value=1.625' "$work/custom"
count 1 'instant     greeter  name="world" nobody=null' "$work/custom"
count 1 'async begin greeter afterglow id=42' "$work/custom"
count 3 'end         greeter' "$work/custom"
count 1 '12 events, 0 lost' "$work/custom"

"$host_none" > "$work/none" || fail "host_none: exit code $?"
count 1 'hello, world' "$work/none"

"$host_kymo" "$work/kymo.json" > "$work/out" || fail "host_kymo: exit code $?"
count 1 '"greeted world with 39 bytes"' "$work/kymo.json"
count 1 '"often":true' "$work/kymo.json"
count 1 '"cat":"host"' "$work/kymo.json"

"$two_copies" "$work/copies.json" "$@" > "$work/out" || fail "two_copies: exit code $?"
count 2 ': 15' "$work/out"
count 1 '"the last word is mine"' "$work/copies.json"
count 1 '"a works"' "$work/copies.json"
count 1 '"b works"' "$work/copies.json"
count 2 '"use_plugin"' "$work/copies.json"

# Nothing of the session's own: the copies agree about the environment as well.
KYMO_TRACE="$work/env.json" "$two_copies" "$work/copies.json" "$@" > "$work/out" ||
	fail "two_copies with KYMO_TRACE: exit code $?"
count 1 '"the last word is mine"' "$work/env.json"

echo "all is well"
