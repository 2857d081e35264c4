#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# functions.sh: --functions on the command line: what is refused and how, and what a trace of calls holds.
#
#	functions.sh KYMO CALLS [SPANS]
#
set -u
kymo=$(realpath "$1")
calls=$(realpath "$2")
spans=${3:+$(realpath "$3")}
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# Print the rows of a query, without their heading.
ask() { # file, SQL
	"$kymo" query --csv "$1" "$2" 2>/dev/null | tail -n +2
}

refused() { # name, message, arguments
	local name=$1 said=$2
	shift 2
	run "$@"
	[ $code -eq 2 ] && grep -q -- "$said" err
	report "$name" $?
}

# ---- what makes no sense ----

refused 'min-size is about functions' 'needs --functions' run --min-size 64 -- true
refused 'entry-only is about functions' 'needs --functions' run --entry-only -- true
refused 'hot is about functions' 'needs --functions' run --hot 5 -- true
refused 'engines of functions are about functions' 'needs --functions' run --engine patch -- true
refused 'hot is a number' 'is not a number of calls' run --functions --hot often -- true
refused 'overhead is about functions' 'needs --functions' run --overhead 5 -- true
refused 'overhead is a share' 'is not a share' run --functions --overhead much -- true
refused 'an unknown engine' 'use auto, pt, nops, patch or sample' run --functions --engine magic -- true
refused 'record has no functions' 'kymo attach' record --functions
refused 'a list that selects nothing' 'the glob is empty' run --functions=module: -- true

refused 'an engine of triggers is a probe' 'use --probe uprobe' run --functions --engine uprobe -- true
refused 'an unknown probe' 'use auto, uprobe or breakpoint' run --probe patch -- true
run run --probe breakpoint -o plain.kymo -- true
[ $code -eq 0 ]
report 'probes need no functions' $?

run run --help
[ $code -eq 0 ] && grep -q -- --functions out && grep -q -- --entry-only out
report 'help of run' $?
run record --help
[ $code -eq 0 ] && ! grep -q -- --functions out
report 'help of record' $?

# ---- what is not possible here ----

run run --functions --engine pt -o pt.kymo -- touch ran
if [ $code -eq 0 ]; then
	skip 'an unavailable engine' 'this machine has Intel PT'
else
	[ $code -eq 77 ] && grep -q 'engine pt: ' err && [ ! -e ran ] && [ ! -e pt.kymo ]
	report 'an unavailable engine' $?
fi

# ---- every call ----

run run --functions --engine patch -o probe.kymo -- true
if [ $code -eq 77 ]; then
	skip 'every call' "$(head -1 err)"
	exit $((failures != 0))
fi

run run --functions --engine patch --hot 0 --json -o calls.kymo -- "$calls" 1000
[ $code -eq 0 ] && [ "$(ask calls.kymo "select count(*) from slice where name='leaf'")" = 2000 ] &&
	[ "$(ask calls.kymo "select count(*) from slice where name='work'")" = 1000 ] &&
	[ "$(ask calls.kymo "select count(*) from slice a join slice b on a.parent_id=b.id where a.name='leaf' and b.name='work'")" = 2000 ] &&
	[ "$(ask calls.kymo "select distinct category from slice where name='leaf'")" = "$(basename "$calls")" ]
report 'every call is a span, nested as it was called' $?
grep -q '"engine": "patch"' err && grep -q '"patched":' err && grep -q '"left_out":' err && grep -q '"stopped_ns":' err
report 'the summary as JSON has the facts' $?
run info calls.kymo
grep -q 'functions: patch: ' out && grep -q 'the program was stopped for' out
report 'the file tells how it was made' $?
run report --json calls.kymo
grep -q '"name": "leaf", .*"count": 2000,' out
report 'the report has the number of calls' $?

run run --functions --engine patch --hot 0 -q -o forks.kymo -- "$calls" forks 300
[ $code -eq 0 ] && [ "$(ask forks.kymo "select count(*) from slice where name='work'")" = 300 ] &&
	[ "$(ask forks.kymo "select count(distinct upid) from slice s join thread_track t on s.track_id=t.id join thread using(utid) where s.name='leaf'")" = 300 ]
report 'children that end at once are traced whole' $?
if grep -q 'off the CPU is not marked' err; then
	skip 'what is open ends with its process' "$(grep -m1 'off the CPU' err)"
else
	[ "$(ask forks.kymo "select count(*) > 0 and max(dur = -1) = 0 from slice where name='_exit'")" = 1 ]
	report 'what is open ends with its process' $?
fi

# What a child executes is noticed by perf's records alone.
if ! grep -q 'off the CPU is not marked' err; then
	run run --functions --engine patch --hot 0 -o shell.kymo -- sh -c '"$0" patched; "$0" patched && true' "$calls"
	[ $code -eq 0 ] && [ "$(ask shell.kymo "select count(*) from slice where name='work'")" = 200 ] &&
		[ "$(ask shell.kymo "select count(distinct upid) from slice s join thread_track t on s.track_id=t.id join thread using(utid) where s.name='work'")" = 2 ] &&
		[ "$(grep -c 'has executed' err)" = 2 ]
	report 'programs that children execute are traced' $?
fi

run run --functions='work' --engine patch -q -o work.kymo -- "$calls" 100
[ $code -eq 0 ] && [ "$(ask work.kymo "select count(*) from slice where name='work'")" = 100 ] &&
	[ "$(ask work.kymo "select count(*) from slice where name='leaf'")" = 0 ]
report 'a list of functions' $?

if [ -n "$spans" ]; then
	run run --functions --engine patch -q -o spans.kymo -- "$spans" 100
	[ $code -eq 0 ] && [ "$(ask spans.kymo "select count(*) from slice s join slice p on s.parent_id=p.id join slice c on c.parent_id=s.id where
			s.name='span' and p.name='work' and c.name='leaf'")" = 100 ] && "$kymo" validate spans.kymo >out
	report 'spans of trace points are within the calls around them' $?
	run run --functions --engine patch --trigger crash --before 1ms -o window.kymo -- "$spans" crash
	[ $code -eq 139 ] && [ "$(ask window.kymo "select count(*) from slice s join slice p on s.parent_id=p.id join slice c on c.parent_id=s.id where
			s.name='span' and p.name='work' and c.name='leaf'")" = 1 ] && "$kymo" validate window.kymo >out
	report 'also in a snapshot that begins after them' $?
else
	skip 'spans of trace points are within the calls around them' 'a program with a sanitizer'
fi

ln -s "$calls" another-name
run run --functions=module:another-name --engine patch -o none.kymo -- ./another-name 1
[ $code -eq 3 ] && grep -q 'module:another-name.*similar: functions_target' err
report 'a link is not the name of a module, and the message has that' $?

run run --functions='work,leaf' --entry-only --engine patch -q -o entry.kymo -- "$calls" 100
[ $code -eq 0 ] && [ "$(ask entry.kymo "select count(*) from slice where name='leaf' and dur=0")" = 200 ]
report 'entries alone are instants' $?

run run --functions --engine patch --trigger symbol:finish --before 60s -o symbol.kymo -- "$calls" 1000
[ $code -eq 0 ] && [ "$(ask symbol.kymo "select count(*) > 0 from slice where name='leaf'")" = 1 ] &&
	[ "$(ask symbol.kymo "select int_value from args where key='debug.arg1'")" = 41 ]
right=$?
if grep -q 'perf_event_open' err; then
	skip 'the time before a function is called' "$(grep -m1 perf_event_open err)"
else
	report 'the time before a function is called' $right
fi

run run --functions --engine patch --trigger crash --before 60s -o crash.kymo -- "$calls" 1000 crash
[ $code -eq 139 ] && [ "$(ask crash.kymo "select count(*) > 0 from slice where name='leaf'")" = 1 ] &&
	"$kymo" info crash.kymo | grep -q SIGSEGV
report 'the time before a crash' $?
"$kymo" info crash.kymo >out
grep -A1 '^  fall (functions_target.c:' out | grep -q '^  main (functions_target.c:' && ! grep -qE '^  0x[0-9a-f]*$' out
report 'its stack has the callers, not the stubs' $?

# A process that runs: attached to, and left as it was.
"$calls" forever >calls.out &
target=$!
started+=("$target")
wait_for grep -q ready calls.out
"$kymo" attach -p $target --functions --engine patch --hot 0 -o attach.kymo >out 2>err </dev/null &
attached=$!
started+=("$attached")
has_leaf() { [ "$(ask attach.kymo "select count(*) > 0 from slice where name='leaf'")" = 1 ]; }
wait_for has_leaf
kill -TERM $attached
wait $attached
code=$?
[ $code -eq 0 ] && [ "$(ask attach.kymo "select count(*) > 0 from slice where name='leaf'")" = 1 ] &&
	kill -0 $target
report 'a process that runs' $?
run attach -p $target --functions --engine patch --trigger crash --duration 200ms -o none.kymo
[ $code -eq 3 ] && kill -0 $target
report 'with a watch for its crash' $?
# The shell has its background jobs ignore SIGINT, which kymo would respect. The snapshot has calls only when the process has
# run since it was patched.
before=$(grep -c traced calls.out)
traced_again() { [ "$(grep -c traced calls.out)" -gt "$before" ]; }
env --default-signal=INT "$kymo" attach -p $target --functions --engine patch --hot 0 --trigger interrupt --before 60s -o interrupt.kymo \
	>out 2>interrupt.err </dev/null &
attached=$!
started+=("$attached")
wait_for traced_again
kill -INT $attached
wait $attached
code=$?
cp interrupt.err err
[ $code -eq 0 ] && [ "$(ask interrupt.kymo "select count(*) > 0 from slice where name='leaf'")" = 1 ] &&
	kill -0 $target
report 'the time before Ctrl-C' $?
kill -TERM $target
wait $target
code=$?
[ $code -eq 0 ]
report 'and it ends as ever' $?

finish_checks
