#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# convert.sh: the verbs that write traces, end to end: outputs that appear whole or not at all, backups, messages,
# exit codes. Usage: convert.sh KYMO
set -u
kymo=$(realpath "$1")
fixtures=$(realpath "$(dirname "$0")/../fixtures")
dir=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0

fail() {
	echo "FAILED: $*" >&2
	failed=1
}

expect() { # code, what, command...
	local code=$1 what=$2
	shift 2
	"$@" >out.txt 2>err.txt
	local got=$?
	[ "$got" = "$code" ] || fail "$what: exit code $got, not $code: $(cat err.txt)"
}

files() {
	find . -maxdepth 1 -type f ! -name out.txt ! -name err.txt ! -name input.json | sort | tr '\n' ' '
}

slices() {
	"$kymo" query --csv "$1" "select ts, dur, name, depth from slice order by ts, dur, name" 2>/dev/null
}

cat >input.json <<'JSON'
[{"ph":"B","pid":1,"tid":2,"ts":1000,"cat":"net","name":"outer","args":{"n":1,"deep":{"list":[1,2]}}},
{"ph":"B","pid":1,"tid":2,"ts":2000.5,"cat":"net","name":"inner"},
{"ph":"s","pid":1,"tid":2,"ts":2001,"cat":"net","name":"hop","id":"0x7"},
{"ph":"E","pid":1,"tid":2,"ts":3000.123},
{"ph":"E","pid":1,"tid":2,"ts":9000},
{"ph":"B","pid":1,"tid":3,"ts":4000,"cat":"db","name":"read"},
{"ph":"f","bp":"e","pid":1,"tid":3,"ts":4001,"cat":"net","name":"hop","id":"0x7"},
{"ph":"E","pid":1,"tid":3,"ts":5000},
{"ph":"C","pid":1,"tid":3,"ts":1500,"name":"load","args":{"value":3}}]
JSON

# Every format, and back.
for suffix in json json.gz pftrace fxt fxt.gz kymo; do
	expect 0 "convert to $suffix" "$kymo" convert input.json "o.$suffix"
	[ "$(slices input.json)" = "$(slices "o.$suffix")" ] || fail "$suffix: other slices"
done
expect 0 "a chain" "$kymo" convert o.json c.pftrace
expect 0 "a chain" "$kymo" convert c.pftrace c.fxt
expect 0 "a chain" "$kymo" convert c.fxt c.json
[ "$(slices input.json)" = "$(slices c.json)" ] || fail "the chain changed slices"
grep -q '"list":\[1,2\]' o.json || fail "nested arguments are flat"

# Asynchronous spans of two processes may have the same id, and must not get into each other.
cat >async.json <<'JSON'
[{"ph":"b","pid":1,"tid":1,"ts":1,"cat":"c","name":"a","id2":{"local":"0x3"}},
{"ph":"b","pid":2,"tid":2,"ts":2,"cat":"c","name":"a","id2":{"local":"0x3"}},
{"ph":"e","pid":1,"tid":1,"ts":5,"cat":"c","name":"a","id2":{"local":"0x3"}},
{"ph":"e","pid":2,"tid":2,"ts":9,"cat":"c","name":"a","id2":{"local":"0x3"}}]
JSON
for suffix in json pftrace fxt kymo; do
	expect 0 "convert to $suffix" "$kymo" convert async.json "o.$suffix"
	[ "$(slices async.json)" = "$(slices "o.$suffix")" ] || fail "$suffix: async spans are mixed up"
done

# A flow that arrives before another of its id leaves is no arrow, also when both are written where slices begin.
cat >loose.json <<'JSON'
[{"ph":"B","pid":1,"tid":1,"ts":1,"name":"leaves"},
{"ph":"B","pid":1,"tid":2,"ts":2,"name":"arrives"},
{"ph":"f","pid":1,"tid":2,"ts":3,"cat":"c","name":"x","id":7,"bp":"e"},
{"ph":"s","pid":1,"tid":1,"ts":4,"cat":"c","name":"x","id":7},
{"ph":"E","pid":1,"tid":1,"ts":5},
{"ph":"E","pid":1,"tid":2,"ts":6}]
JSON
for suffix in json pftrace fxt; do
	expect 0 "convert to $suffix" "$kymo" convert loose.json "o.$suffix"
	grep -q "cannot carry 2 flows" err.txt || fail "$suffix: ends of flows are gone: $(cat err.txt)"
	[ "$("$kymo" query --csv "o.$suffix" "select count(*) from flow" 2>err.txt | tail -n 1)" = 0 ] ||
		fail "$suffix: an arrow out of nothing"
done

# An end that no format can say: Z outlives A, and B, which it is in, has no end. It costs nothing else.
cat >late.json <<'JSON'
[{"ph":"B","pid":1,"tid":1,"ts":0,"name":"P"},
{"ph":"B","pid":1,"tid":1,"ts":0,"name":"A"},
{"ph":"B","pid":1,"tid":1,"ts":1,"name":"B"},
{"ph":"E","pid":1,"tid":1,"ts":10,"name":"A"},
{"ph":"X","pid":1,"tid":1,"ts":10,"dur":1,"name":"Z"}]
JSON
for suffix in json pftrace; do
	expect 0 "convert to $suffix" "$kymo" convert late.json "o.$suffix"
	grep -q "cannot carry 1 end of a slice" err.txt || fail "$suffix: it is not said: $(cat err.txt)"
	[ "$(slices late.json | grep -v Z)" = "$(slices "o.$suffix" | grep -v Z)" ] ||
		fail "$suffix: other slices: $(slices "o.$suffix")"
done
cat >twice.json <<'JSON'
[{"ph":"X","pid":1,"tid":1,"ts":0,"dur":10,"name":"A"},
{"ph":"B","pid":1,"tid":1,"ts":1,"name":"A"}]
JSON
expect 0 "a name twice" "$kymo" convert twice.json o.json
[ "$(slices o.json | grep -c '^0,10000,A,0$')" = 1 ] || fail "the wrong one ended: $(slices o.json)"

# What is no row of a table is counted too.
expect 0 "convert to fxt" "$kymo" convert o.pftrace o.fxt
grep -q "clock snapshots" err.txt || fail "clock snapshots are gone: $(cat err.txt)"
echo '{"traceEvents":[{"ph":"i","pid":1,"tid":1,"ts":1,"name":"a"}],"metadata":{"os":"x"}}' >meta.json
expect 0 "convert to fxt" "$kymo" convert meta.json o.fxt
grep -q "1 line of metadata" err.txt || fail "fxt: metadata is gone: $(cat err.txt)"
# .kymo holds everything, and what comes of it later is the same as without it.
for file in loose.json late.json meta.json "$fixtures/demo.pftrace" "$fixtures/demo.fxt"; do
	expect 0 "convert to kymo" "$kymo" convert "$file" o.kymo
	[ ! -s err.txt ] || fail "kymo: something is left out: $(cat err.txt)"
	for suffix in json pftrace fxt; do
		"$kymo" convert "$file" "direct.$suffix" 2>direct.txt
		"$kymo" convert o.kymo "detour.$suffix" 2>detour.txt
		cmp "direct.$suffix" "detour.$suffix" || fail "$file: by way of .kymo to $suffix"
		[ "$(sed s/direct// direct.txt)" = "$(sed s/detour// detour.txt)" ] ||
			fail "$file: other messages: $(cat detour.txt)"
	done
done
rm -f direct.* detour.*
# The time of day stays, also in JSON, and its message counts the rest.
now="select to_realtime(ts) from slice order by ts limit 1"
expect 0 "time of day" "$kymo" convert "$fixtures/demo.pftrace" o.json
grep -q "10 clock snapshots" err.txt || fail "clock snapshots: $(cat err.txt)"
[ "$("$kymo" query --csv o.json "$now")" = "$("$kymo" query --csv "$fixtures/demo.pftrace" "$now")" ] ||
	fail "JSON: another time of day: $("$kymo" query --csv o.json "$now")"
expect 0 "nothing left to lose" "$kymo" convert o.json c.json
! grep -q "clock" err.txt || fail "a clock snapshot is gone: $(cat err.txt)"
cmp o.json c.json || fail "JSON to JSON is another file"
rm -f async.json loose.json late.json twice.json meta.json

# Standard input and output.
"$kymo" convert - - --format fxt <input.json 2>err.txt | "$kymo" convert - piped.json 2>>err.txt ||
	fail "a pipe: $(cat err.txt)"
[ "$(slices input.json)" = "$(slices piped.json)" ] || fail "a pipe changed slices"

# Used wrongly.
expect 2 "no output" "$kymo" convert input.json
expect 2 "no format" "$kymo" convert input.json x.txt
expect 2 "an unknown format" "$kymo" convert input.json x.json --format svg
expect 1 "no input" "$kymo" convert missing.json x.json
[ ! -e x.json ] || fail "an output without an input"
rm -f o.* c.* piped.json

# What cannot be written leaves nothing, and what was there stays.
echo precious >kept.json
chmod 444 kept.json
if [ "$(id -u)" != 0 ]; then
	expect 1 "a file that may not be written" "$kymo" convert input.json kept.json
fi
expect 1 "a full device" "$kymo" convert input.json /dev/full --format json
expect 1 "a directory that is not there" "$kymo" convert input.json no/such/x.json
expect 1 "a directory" "$kymo" convert input.json . --format json
[ "$(cat kept.json)" = precious ] || fail "the file that was there is lost"
if [ "$(id -u)" != 0 ]; then
	mkdir sealed && chmod 555 sealed
	expect 1 "a sealed directory" "$kymo" convert input.json sealed/x.json
fi
chmod 644 kept.json
[ "$(files)" = "./kept.json " ] || fail "files are left behind: $(files)"
echo precious >kept.json
expect 1 "a damaged input" "$kymo" convert "$kymo" kept.json
[ "$(cat kept.json)" = precious ] || fail "a damaged input cost the output"
expect 0 "an output that is named is overwritten" "$kymo" convert input.json kept.json
[ "$(slices input.json)" = "$(slices kept.json)" ] || fail "it was not overwritten"
rm -f kept.json

# A file system that gets full in the middle.
if mkdir small && mount -t tmpfs -o size=64k none small 2>/dev/null; then
	awk 'BEGIN { print "["; for (i = 0; i < 20000; i++)
		printf "%s{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":%d,\"dur\":1,\"name\":\"n%d\"}\n", i ? "," : "", i * 2, i
		print "]" }' >big.json
	echo precious >small/kept.json
	expect 1 "a full disk" "$kymo" convert big.json small/kept.json
	grep -q "No space" err.txt || fail "the error does not say why: $(cat err.txt)"
	[ "$(cat small/kept.json)" = precious ] || fail "a full disk cost the file"
	[ "$(ls small)" = kept.json ] || fail "a full disk left files: $(ls small)"
	cp big.json small.json
	ln -s "$dir/small.json" small/big.json
	echo precious >small/big.part.json
	echo older >small/big.part.json.old
	expect 1 "a full disk under a default name" "$kymo" split --from 1us small/big.json
	[ "$(cat small/big.part.json)" = precious ] || fail "the name does not hold the good file"
	[ "$(cat small/big.part.json.old)" = older ] || fail "the older file is gone"
	[ "$(ls small | wc -l)" = 4 ] || fail "a full disk left files: $(ls small)"
	umount small
	rm -f big.json small.json
fi

# Split: the edges, and parts that are the whole together.
expect 0 "a range" "$kymo" split --from 1.5ms --to 3ms input.json -o part.json
slices part.json | grep -q '^2500000,' || fail "a span is not cut at the edge: $(slices part.json)"
expect 0 "parts" "$kymo" split --parts 2 input.json
[ -s input.1.json ] && [ -s input.2.json ] || fail "the parts are not there: $(files)"
expect 0 "parts again" "$kymo" split --parts 2 input.json
[ -s input.1.json.old ] || fail "the old part is not kept"
echo precious >input.1.json
expect 0 "parts a third time" "$kymo" split --parts 2 input.json
[ "$(cat input.1.json.old)" = precious ] || fail "the old part is not the last one"
[ "$(slices input.1.json)" != "" ] || fail "the new part is not there"
mkdir input.part.json
expect 1 "a default name that is a directory" "$kymo" split --from 1ms input.json
[ -d input.part.json ] || fail "the directory was moved"
rmdir input.part.json
expect 0 "a range to kymo" "$kymo" split --from 1.5ms --to 3ms input.json -o part.kymo
[ "$(slices part.json)" = "$(slices part.kymo)" ] || fail "a part in .kymo: $(slices part.kymo)"
expect 0 "parts of a .kymo" "$kymo" split --parts 2 part.kymo
[ -s part.1.kymo ] && [ -s part.2.kymo ] || fail "no parts of a .kymo"
expect 0 "a category" "$kymo" split --category db input.json -o db.kymo
[ -n "$(slices db.kymo)" ] || fail "no slices of a category"
db=$(slices db.kymo)
expect 0 "a category" "$kymo" split --category db input.json -o db.json
[ "$(slices db.json)" = "$db" ] || fail "a category in .kymo: $db"
[ "$(slices db.json | tail -n +2 | wc -l)" = 1 ] || fail "other categories are there"
expect 0 "a thread" "$kymo" split --thread 3 input.json -o thread.pftrace
[ "$(slices thread.pftrace | tail -n +2 | wc -l)" = 1 ] || fail "other threads are there"
expect 2 "both" "$kymo" split --parts 2 --every 1s input.json
rm -f ./*.old input.?.json part.json db.json thread.pftrace

# Merge: no clocks in common needs an offset; flows that match need none.
cp input.json second.json
expect 0 "an offset" "$kymo" merge -o m.json input.json second.json --offset second.json=+1ms
grep -q "by the offset given; how exact that is, is not known" err.txt ||
	fail "an offset that is given is said to be exact: $(cat err.txt)"
sed -n '1,5p' input.json | sed '$s/,$/]/' >sender.json
(echo '['; sed -n '6,8p' input.json | sed '$s/,$/]/') >receiver.json
expect 0 "flows" "$kymo" merge -o m.pftrace sender.json receiver.json
grep -q "matching flows" err.txt || fail "it does not say how: $(cat err.txt)"
grep -v '"hop"' sender.json >alone.json
cat >sched.txt <<'TEXT'
# tracer: nop
  app-1 ( 1) [000] d..3 0.000001: sched_switch: prev_comm=app prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120
  b-2 ( 2) [000] d..3 0.000005: sched_waking: comm=app pid=1 prio=120 target_cpu=000
  b-2 ( 2) [000] d..3 0.000008: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=R ==> next_comm=app next_pid=1 next_prio=120
TEXT
states="select ts, dur, cpu, state, waker_utid is null, tid from thread_state join thread using (utid) order by ts, tid"
expect 0 "scheduling" "$kymo" merge -q -o m.kymo sched.txt alone.json --offset alone.json=0
[ "$("$kymo" query --csv m.kymo "$states")" = "$("$kymo" query --csv sched.txt "$states")" ] ||
	fail "merge: other states: $("$kymo" query --csv m.kymo "$states")"
expect 1 "nothing in common" "$kymo" merge -o n.json alone.json receiver.json
grep -q -- "--offset" err.txt || fail "no remedy: $(cat err.txt)"
expect 0 "machine readable" "$kymo" merge --json -o m.json sender.json receiver.json
grep -q '"by": "flows"' out.txt || fail "no JSON: $(cat out.txt)"

# Validate and repair.
expect 0 "a good file" "$kymo" validate input.json
head -c 300 input.json >cut.json
expect 1 "a cut file" "$kymo" validate cut.json
expect 1 "as JSON" "$kymo" validate --json cut.json
grep -q '"valid": false' out.txt || fail "no JSON: $(cat out.txt)"
expect 0 "repair" "$kymo" repair cut.json
[ -s cut.repaired.json ] || fail "nothing was repaired: $(files)"
[ "$(stat -c %s cut.json)" = 300 ] || fail "the damaged file was touched"
expect 0 "repair to another" "$kymo" repair cut.json -o fixed.kymo
[ "$(slices cut.repaired.json)" = "$(slices fixed.kymo)" ] || fail "the repaired ones differ"

# Losses: markers in JSON and FXT are losses, not events.
cat >lossy.json <<-'END'
	[
	{"pid":7,"tid":8,"ts":1,"ph":"B","cat":"net","name":"recv"},
	{"pid":7,"tid":8,"ts":3,"ph":"i","cat":"kymo","name":"events lost","args":{"count":17}},
	{"pid":7,"tid":8,"ts":5,"ph":"E"},
	{"pid":7,"ph":"M","name":"process_labels","args":{"labels":"20 events lost"}}
	]
END
expect 0 "losses to FXT" "$kymo" convert lossy.json lossy.fxt
for file in lossy.json lossy.fxt; do
	expect 1 "losses of $file" "$kymo" validate --json "$file"
	grep -q '"events_lost".*"count": 20' out.txt || fail "$file: validate: $(cat out.txt)"
	for verb in "info --all" "report --limit=0" "report --tree"; do
		expect 0 "$verb of $file" "$kymo" ${verb%% *} --json ${verb#* } "$file"
		tr -d ' \n' <out.txt >flat.txt
		grep -q '"lost":20,' flat.txt &&
			grep -q '"what":"ringoverwritten","events":17,"tid":8' flat.txt ||
			fail "$file: $verb: $(cat out.txt)"
	done
	[ "$("$kymo" query --csv "$file" "select events, what from loss; select count(*) from slice" |
		tr '\n' ' ')" = "events,what 17,ring overwritten 3,no buffer for their thread  count(*) 1 " ] ||
		fail "$file: query counts losses as events"
done

exit $failed
