#!/bin/bash
# SPDX-License-Identifier: MIT
# disk_full.sh KYMO TARGET: a capture whose file cannot be written to its end says what is in the file and which file that is; all else that
# writes a trace leaves what was there before. First a limit on the size of files stands for a full disk, and the program itself has none;
# then, for root, the disk is full.
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
	grep -o "\"$1\": [0-9]*" summary.txt | grep -o '[0-9]*$' | head -1
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

# ---- a disk that is full, for everything that writes a trace
disk=$folder/disk
mkdir "$disk"
if [ "$(id -u)" -ne 0 ] || ! mount -t tmpfs -o size=256k kymo-full "$disk" 2> /dev/null; then
	echo "a full disk: skipped: it takes root and a file system to mount"
	exit 0
fi
trap 'umount "$disk" 2> /dev/null || umount -l "$disk"; rm -rf "$folder"' EXIT
"$kymo" run -q -o large.kymo -- "$target" fill 100000
"$kymo" convert -q large.kymo large.json
head -c $(($(stat -c %s large.kymo) - 10)) large.kymo > cut.kymo

# refuses NAME OUT COMMAND...: it ends with 1 and the reason; what was there before is as it was, and nothing else is there.
refuses()
{
	local name=$1 out=$disk/$2
	shift 2
	rm -rf "${disk:?}"/*
	echo 'what was there' > "$out"
	local code=0
	"$@" "$out" > out.txt 2> err.txt < /dev/null || code=$?
	[ $code -eq 1 ] || fail "$name: exit $code: $(cat err.txt)"
	grep -q 'No space left' err.txt || fail "$name: the reason is missing: $(cat err.txt)"
	[ "$(cat "$out")" = 'what was there' ] || fail "$name: the file that was there is another"
	[ "$(ls -A "$disk")" = "$(basename "$out")" ] || fail "$name leaves $(ls -A "$disk")"
}
for suffix in json pftrace fxt kymo json.gz; do
	refuses "convert to $suffix" "out.$suffix" "$kymo" convert large.kymo
	refuses "convert $suffix from JSON" "out.$suffix" "$kymo" convert large.json
	refuses "split $suffix" "out.$suffix" "$kymo" split --from 0 large.json -o
	refuses "merge $suffix" "out.$suffix" "$kymo" merge --offset large.kymo=0 --offset cut.kymo=0 large.kymo cut.kymo -o
	refuses "repair $suffix" "out.$suffix" "$kymo" repair cut.kymo -o
done
refuses "view --export" out.html "$kymo" view large.kymo --export

# A recording has what fits, and the summary says which file it is in and how many events that is.
recorded()
{
	local name=$1
	file=$(grep -ho '"output": "[^"]*"' summary.txt | cut -d '"' -f 4)
	[ -s "$file" ] || fail "$name: there is no file '$file': $(cat summary.txt)"
	found=$("$kymo" query --csv "$file" "select count(*) from slice where name = 'fill'" 2> err.txt | tail -1)
	[ "$(number events)" = "$found" ] || fail "$name: $(number events) events are said to be in the file, not $found"
	[ "$(number events_unwritten)" -gt 0 ] || fail "$name: others are not counted: $(cat summary.txt)"
}
rm -rf "${disk:?}"/*
! "$kymo" run --json -o "$disk/out.kymo" -- "$target" fill 100000 2> summary.txt || fail "run: it is no error"
recorded run
for verb in attach record; do
	rm -rf "${disk:?}"/*
	"$target" fill 100000000 & program=$!
	if [ $verb = attach ]; then where="-p $program"; else where="--categories target"; fi
	# It ends by itself when the disk is full.
	! "$kymo" $verb --json $where -o "$disk/out.kymo" > summary.txt 2> err.txt || fail "$verb: it is no error"
	kill "$program"
	wait "$program" 2> /dev/null || true
	recorded $verb
done

# A session stops; the program goes on, and what is in the file can be read.
for suffix in json pftrace fxt kymo json.gz; do
	rm -rf "${disk:?}"/*
	KYMO_TRACE=$disk/out.$suffix "$target" fill 100000 2> err.txt || fail "session $suffix: the program failed: $(cat err.txt)"
	found=$("$kymo" query --csv "$disk/out.$suffix" "select count(*) from slice where name = 'fill'" 2> err.txt | tail -1)
	[ "$found" -gt 0 ] || fail "session $suffix: nothing can be read: $(cat err.txt)"
	[ "$found" -lt 100000 ] || fail "session $suffix: the disk was not full"
	rm -rf "${disk:?}"/*
	KYMO_MODE=ring KYMO_TRACE=$disk/out.$suffix "$target" fill 100000 2> err.txt || fail "ring $suffix: the program failed"
	[ -z "$(ls -A "$disk")" ] || "$kymo" info "$disk/out.$suffix" > /dev/null || fail "ring $suffix: what is there cannot be read"
done
