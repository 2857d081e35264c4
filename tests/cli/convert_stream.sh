#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# convert_stream.sh: a recording converted event by event is the trace that it is through the model.
#
#	convert_stream.sh KYMO DEMO
set -u
kymo=$(realpath "$1")
demo=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

check() { # name, condition as a command
	local name=$1
	shift
	if "$@"; then
		echo "$name: ok"
	else
		echo "$name: FAILED"
		failures=$((failures + 1))
	fi
}

trace() { # file: what must be the same
	"$kymo" query --csv "$1" "select ts, dur, depth, name, category from slice order by ts, depth, name, dur;
		select ts, value from counter order by ts, value;
		select o.name, i.name, o.ts, i.ts from flow join slice o on o.id = slice_out join slice i on i.id = slice_in
		order by 3, 4, 1, 2" 2>/dev/null
}

"$demo" --trace-output demo.kymo >/dev/null 2>&1 </dev/null || { echo "the demo failed"; exit 1; }
trace demo.kymo >expected
check "there is a trace" test "$(wc -l <expected)" -gt 1000
for suffix in json pftrace fxt json.gz; do
	check "to $suffix" "$kymo" convert demo.kymo "out.$suffix"
	trace "out.$suffix" >got
	check "$suffix is the same trace" cmp -s expected got
done

# A truncated file goes through the model, which reports that.
head -c $(($(wc -c <demo.kymo) / 2)) demo.kymo >cut.kymo
check "a cut file" "$kymo" convert cut.kymo cut.json 2>said
check "says that it is cut" grep -q "problem\|kymo_" said
check "has what was whole" test "$("$kymo" query --csv cut.json 'select count(*) from slice' 2>/dev/null | tail -1)" -gt 100

"$kymo" convert demo.kymo /dev/full --format json 2>said
check "a full device is an error" test $? -eq 1
check "of one line" test "$(wc -l <said)" -eq 1

[ "$failures" = 0 ]
