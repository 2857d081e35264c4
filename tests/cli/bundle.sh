#!/bin/bash
# SPDX-License-Identifier: MIT
# bundle.sh KYMO MAKER: the verbs on .kymo files of several sources, whole and cut. MAKER --write FILE makes one.
set -eu
kymo=$(realpath "$1")
maker=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail()
{
	echo "bundle.sh: $1" >&2
	exit 1
}

# has FILE TEXT: kymo info says it
has()
{
	"$kymo" info "$1" > info.txt || fail "info $1"
	grep -q -- "$2" info.txt || fail "info $1 does not say '$2': $(cat info.txt)"
}

"$maker" --write all.kymo
bytes=$(stat -c %s all.kymo)
cp all.kymo before.kymo

has all.kymo "1: drum of server, pid 10: 20 events"
has all.kymo "3: call-stack samples"
has all.kymo "kernel: not recorded: no permission"
has all.kymo "span:net/server>1us  server took 2 us"
"$kymo" info --json all.kymo | grep -q '"reason": "server took 2 us"' || fail "snapshots are not in JSON"
"$kymo" validate -q all.kymo || fail "a whole file is not valid"

# Every format carries the snapshot.
for suffix in json pftrace fxt kymo; do
	"$kymo" convert -q all.kymo out.$suffix || fail "convert to $suffix"
	has out.$suffix "server took 2 us"
	[ "$("$kymo" query --csv out.$suffix "select count(*) from slice where name = 'client'" | tail -1)" = 10 ] ||
		fail "spans are missing in $suffix"
done

# Cut anywhere: invalid, and valid again after a repair, with as many spans as can be read.
for cut in 100 1000 $((bytes / 2)) $((bytes - 100)) $((bytes - 1)); do
	head -c "$cut" all.kymo > cut.kymo
	! "$kymo" validate -q cut.kymo || fail "a file cut at $cut is valid"
	"$kymo" repair cut.kymo 2> /dev/null || fail "repair of a file cut at $cut"
	"$kymo" validate -q cut.repaired.kymo || fail "a file cut at $cut is not valid after its repair"
	for file in cut cut.repaired; do
		"$kymo" query --csv $file.kymo "select count(*), sum(dur) from slice" > $file.txt 2> /dev/null ||
			fail "query of $file.kymo"
	done
	cmp -s cut.txt cut.repaired.txt || fail "a repair loses spans of a file cut at $cut"
done
# The samples were whole, and the model is not in the way.
has cut.repaired.kymo "3: call-stack samples"
has cut.repaired.kymo "server took 2 us"

"$kymo" merge all.kymo cut.kymo -o merged.pftrace 2> /dev/null || fail "merge"
has merged.pftrace "server took 2 us"
"$kymo" split -q --from 0 --to 5us all.kymo -o part.json || fail "split"
[ "$("$kymo" query --csv part.json "select count(*) from slice where name = 'server'" | tail -1)" = 5 ] ||
	fail "a part has not the spans of its time"
cmp -s all.kymo before.kymo || fail "the input was changed"
