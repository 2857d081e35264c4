#!/bin/bash
# SPDX-License-Identifier: MIT
# disk_full.sh KYMO TARGET: a capture whose file cannot be written to its end says what is in the file and which file that is. A limit
# on the size of files stands for a full disk; the program itself has none.
set -eu
kymo=$(realpath "$1")
target=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail()
{
	echo "disk_full.sh: $1" >&2
	exit 1
}

limited()
{
	(
		trap '' XFSZ
		ulimit -S -f 1500
		"$@"
	)
}

# number NAME: of the summary
number()
{
	grep -o "\"$1\": [0-9]*" summary.txt | grep -o '[0-9]*$'
}

unlimited='ulimit -S -f unlimited; exec "$@"'
for suffix in kymo json; do
	echo '[]' > out.json
	if limited "$kymo" run --json -o out.$suffix -- bash -c "$unlimited" - "$target" fill 300000 2> summary.txt; then
		fail "$suffix: it is no error"
	fi
	file=$(grep -o '"output": "[^"]*"' summary.txt | cut -d '"' -f 4)
	[ -s "$file" ] || fail "$suffix: there is no file '$file': $(cat summary.txt)"
	[ "$file" != out.json ] || fail "the file that was there before is called the result: $(cat summary.txt)"
	found=$("$kymo" query --csv "$file" "select count(*) from slice where name = 'fill'" 2> err.txt | tail -1)
	[ "$found" -gt 0 ] || fail "$suffix: the file has no events"
	[ "$(number events)" = "$found" ] || fail "$suffix: $(number events) events are said to be in the file, not $found"
	[ "$(number events_unwritten)" -gt 0 ] || fail "$suffix: others are not counted: $(cat summary.txt)"
done
[ "$(cat out.json)" = '[]' ] || fail "a file that was there before was changed"
