#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# capture.sh: run, attach, record and snapshot on the demo and on programs that know nothing of kymo.
#
#	capture.sh KYMO DEMO TARGET
#
set -u
kymo=$(realpath "$1")
demo=$(realpath "$2")
target_program=$(realpath "$3")
target_source=$(realpath "$(dirname "$0")/capture_target.c")
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# Print the number of rows of a trace.
count() { # file, what
	"$kymo" query --csv "$1" "select count(*) from $2" 2>/dev/null | tail -1
}

has() { # file, what: at least one
	local n
	n=$(count "$1" "$2")
	[ "${n:-0}" -gt 0 ]
}

# Nothing is broken in it; spans that were open when it began or ended are as they should be.
valid() {
	"$kymo" validate "$1" >valid.out 2>&1 && return 0
	grep -q '^severity' valid.out && ! grep -qE '^(error|data loss)' valid.out && return 0
	cat valid.out >>err
	return 1
}

has_drum() { # pid
	ls -l "/proc/$1/fd" 2>/dev/null | grep -q 'kymo-drum'
}

has_recorded() { # pid, category
	"$kymo" snapshot -q -p "$1" -o recorded.kymo && has recorded.kymo "slice where category = '$2'"
}

# A demo that runs for long; its pid is in $target.
start_demo() { # environment assignments
	env "$@" "$demo" --tasks 2500000 --seconds 1000 >/dev/null 2>&1 &
	target=$!
	started+=("$target")
	wait_for has_drum "$target"
}

stop_demo() {
	kill -9 "$target" 2>/dev/null
	wait "$target" 2>/dev/null
}

is_gone() {
	! kill -0 "$1"
}

# kymo in the background; its pid is in $capture. Its messages go to err. What an earlier check left in its output is
# removed, for that would be taken for what is waited for.
start_kymo() {
	local argument before=
	for argument in "$@"; do
		[ "$before" = -o ] && rm -f "$argument"
		before=$argument
	done
	: >err
	timeout -k 1 $limit "$kymo" "$@" >out 2>err </dev/null &
	waiter=$!
	wait_for pgrep -P "$waiter" >/dev/null
	capture=$(pgrep -P "$waiter")
	started+=("$capture")
	# It listens once it has blocked its signals.
	wait_for listens "$capture"
}

listens() {
	local blocked
	blocked=$(sed -n 's/^SigBlk:\s*//p' "/proc/$1/status")
	[ $((0x${blocked:-0} >> 39 & 1)) -eq 1 ]
}

end_kymo() {
	wait "$waiter"
	code=$?
}

# Capture until the file has that: how long it takes is the machine's affair.
capture_until() { # file, what, arguments of kymo
	local file=$1 what=$2
	shift 2
	rm -f "$file"
	start_kymo "$@"
	wait_for has "$file" "$what"
	kill -TERM "$capture"
	end_kymo
}

# ---- run ----

run run -o a.kymo -- "$demo" --tasks 300 --seconds 0.1
[ $code -eq 0 ] && valid a.kymo && has a.kymo slice && [ "$(count a.kymo "process where name like 'demo%'")" = 2 ] &&
	grep -q 'kymo report a.kymo' err && grep -q gold out
report "run records a program and its child" $?

run run -- "$demo" --tasks 20 --seconds 0.01
first=$code
run run --quiet -- "$demo" --tasks 20 --seconds 0.01
[ "$first" -eq 0 ] && [ $code -eq 0 ] && [ -s trace.kymo ] && [ -s trace.kymo.old ] && [ ! -s err ]
report "a default output that is there is kept as .old" $?

mkdir -p kept/trace.kymo.old/full && printf before >kept/trace.kymo
(cd kept && timeout $limit "$kymo" run -- "$demo" --tasks 20 --seconds 0.01 >../out 2>../err </dev/null)
code=$?
[ $code -eq 1 ] && [ "$(cat kept/trace.kymo)" = before ] && grep -q 'trace.kymo.old' err
report "and what cannot be kept is not written over" $?

run run -o a.kymo --categories 'db,-task' -- "$demo" --tasks 100 --seconds 0.05
[ $code -eq 0 ] && has a.kymo "slice where category = 'db'" && ! has a.kymo "slice where category = 'task'"
report "categories are chosen from outside" $?

run run -o a.kymo -- sh -c 'exit 7'
[ $code -eq 7 ]
report "the exit code is the program's" $?

run run -o a.kymo -- sh -c 'kill -SEGV $$'
[ $code -eq 139 ]
report "and 128 + N for a signal" $?

printf before >keep.kymo
run run -o keep.kymo -- no-such-program-of-kymo
[ $code -eq 127 ] && [ "$(cat keep.kymo)" = before ] && [ "$(wc -l <err)" -eq 1 ]
report "a program that is not there: 127, and nothing is touched" $?

run run -o keep.kymo -- /etc
[ $code -eq 126 ] && [ "$(cat keep.kymo)" = before ]
report "one that cannot be run: 126" $?

printf '#!/no/such/interpreter\n' >script
chmod +x script
run run -o keep.kymo -- ./script
[ $code -eq 127 ] && [ "$(cat keep.kymo)" = before ] && grep -q ./script err
report "a program whose exec fails: an error" $?

run run -o a.kymo -- sh -c 'echo to stdout; echo to stderr >&2; cat' <<<ignored
[ $code -eq 0 ] && grep -q 'to stdout' out && grep -q 'to stderr' err && grep -q 'no kymo trace points' err &&
	grep -q -- --sample err
report "a program without kymo: says so, and what would give more" $?

run run -o a.kymo -- sh -c 'test -t 0 || exit 3' -x
[ $code -eq 3 ]
report "options behind the program are its own" $?

run run -o a.kymo sh -c 'exit 4'
[ $code -eq 4 ]
report "the -- may be left out" $?

# ---- formats ----

run run -q -o 'p.${pid}.json' -- "$demo" --tasks 20 --seconds 0.01
files=(p.[0-9]*.json)
[ $code -eq 0 ] && [ ${#files[@]} -eq 1 ] && has "${files[0]}" slice && [ ! -e 'p.${pid}.json' ]
report "\${pid} is filled in, of other formats too" $?

for format in json json.gz pftrace fxt; do
	run run -o "b.$format" -- "$demo" --tasks 50 --seconds 0.02
	[ $code -eq 0 ] && has "b.$format" slice && [ ! -e "b.$format.capture.kymo" ]
	report "run writes $format" $?
done

run run --format pftrace -- "$demo" --tasks 20 --seconds 0.01
[ $code -eq 0 ] && has trace.pftrace slice
report "--format names the default output" $?

timeout $limit "$kymo" run -o - -- "$demo" --tasks 50 --seconds 0.02 2>err | "$kymo" info - >out 2>>err
code=${PIPESTATUS[0]}
[ "$code" -eq 0 ] && grep -q slices out
report "-o - streams to standard output, and the program's goes to standard error" $?

timeout $limit "$kymo" run -o - -- sh -c "'$demo' --tasks 2000 --seconds 0.2 >/dev/null; exit 5" 2>err | head -c 10 >out
code=${PIPESTATUS[0]}
[ "$code" -eq 5 ]
report "a reader that goes away ends the capture, not the program" $?

run run -o a.txt -- true
[ $code -eq 2 ]
report "a name without a format is refused" $?

run run -o no/such/folder/a.kymo -- touch ran
[ $code -eq 1 ] && [ ! -e ran ] && [ "$(wc -l <err)" -eq 1 ]
report "an output that cannot be written: an error before the program runs" $?

run run --json -o a.kymo -- "$demo" --tasks 20 --seconds 0.01
[ $code -eq 0 ] && grep -q '"events":' err && grep -q '"status": *0' err
report "--json sums up" $?

# ---- signals ----

cat >trap.sh <<'END'
trap 'echo got USR1' USR1
trap 'echo got INT' INT
trap 'echo got TERM; exit 3' TERM
echo ready
while :; do sleep 0.02; done
END
start_kymo run -o a.kymo -- sh trap.sh
wait_for grep -q ready out
kill -USR1 "$capture"
wait_for grep -q 'got USR1' out
kill -INT "$capture"
wait_for grep -q 'got INT' out
kill -TERM "$capture"
end_kymo
[ $code -eq 3 ] && grep -q 'got TERM' out
report "signals are passed on" $?

# ---- kill -9 ----

start_kymo run -o a.kymo -- "$demo" --tasks 2500000 --seconds 1000
wait_for pgrep -P "$capture" >/dev/null
program=$(pgrep -P "$capture")
wait_for test -s a.kymo
wait_for has a.kymo slice
kill -9 "$program"
end_kymo
[ $code -eq 137 ] && valid a.kymo && has a.kymo slice
report "kill -9 of the program: its events are there" $?

start_kymo run -o a.kymo -- "$demo" --tasks 1200 --seconds 6
wait_for pgrep -P "$capture" >/dev/null
program=$(pgrep -P "$capture")
started+=("$program")
wait_for has a.kymo slice
kill -9 "$capture"
end_kymo
wait_for is_gone "$program"
# The demo says how it went at its end, when it checked that nothing was lost.
[ $code -eq 137 ] && grep -q gold out && has a.kymo slice
report "kill -9 of kymo: the program goes on, and what was written is whole" $?

# ---- size ----

run run -o 'r.${rotation}.kymo' --max-size 64k --rotate 0 -- "$demo" --tasks 2000 --seconds 0.3
files=(r.*.kymo)
fine=$([ $code -eq 0 ] && [ ${#files[@]} -gt 1 ] && echo 0 || echo 1)
has r.0.kymo slice && has r.1.kymo slice || fine=1
for file in "${files[@]}"; do
	valid "$file" || fine=1
	[ "$(stat -c %s "$file")" -le 65536 ] || { fine=1 && ls -l r.*.kymo >>err; }
done
report "files rotate, each is complete, and none is larger than it may be" "$fine"

run run -o s.kymo --max-size 64k --rotate 2 -- "$demo" --tasks 2000 --seconds 0.3
files=(s.*.kymo)
[ $code -eq 0 ] && [ ${#files[@]} -eq 2 ]
report "the oldest are removed" $?

run run --json -o c.kymo --max-size 64k --rotate 2 -- "$target_program" fill 50000
kept=0
for file in c.*.kymo; do
	has "$file" "slice where name = 'fill'" || kept=-1000000
	kept=$((kept + $(count "$file" "slice where name = 'fill'")))
done
removed=$(grep -o '"events_removed": *[0-9]*' err | grep -o '[0-9]*$')
[ $code -eq 0 ] && [ "${removed:-0}" -gt 0 ] && grep -q '"events": *50000,' err && [ $((kept + removed)) -eq 50000 ]
report "the summary says how many events were removed, and no file is empty" $?

run run -o c.json --max-size 64k -- true
[ $code -eq 2 ] && grep -q 'max-size limits a .kymo file' err && [ ! -e c.json ]
report "a size of another format is refused" $?

run run -o full.kymo --max-size 32k -- sh -c "'$demo' --tasks 2000 --seconds 0.3; exit 6"
[ $code -eq 6 ] && has full.kymo slice && [ "$(stat -c %s full.kymo)" -le 32768 ]
report "a full file ends the capture, and the program goes on" $?

if [ "$(id -u)" -eq 0 ] && mkdir disk && mount -t tmpfs -o size=64k none disk 2>/dev/null; then
	disk=$work/disk
	run run -o disk/a.kymo -- sh -c "'$demo' --tasks 3000 --seconds 0.3; exit 6"
	[ $code -eq 6 ] && grep -q 'No space left' err && has disk/a.kymo slice
	report "a full disk ends the capture, the program goes on with its exit code" $?
	rm -f disk/a.kymo
	run run -o disk/a.kymo -- "$demo" --tasks 3000 --seconds 0.3
	[ $code -eq 1 ]
	report "which is 1 when the program had none to tell" $?
	umount disk
	disk=
else
	skip "a full disk" "only root can mount a small one"
fi

# ---- attach ----

start_demo A=1
capture_until a.kymo slice attach -p "$target" -o a.kymo
[ $code -eq 0 ] && valid a.kymo && has a.kymo slice
report "attach records a process that runs" $?

capture_until b.kymo "slice where category = 'db'" attach -p "$target" -o b.kymo --categories db
[ $code -eq 0 ] && has b.kymo "slice where category = 'db'" && ! has b.kymo "slice where category = 'task'"
report "what one attach switched on, the next does not see" $?

capture_until b.kymo slice attach -p "$target" -p 999999999 -o b.kymo
[ $code -eq 3 ] && grep -q 999999999 err && has b.kymo slice
report "a missing process is reported, the other recorded" $?

run attach -p "$target" -o d.kymo --duration 100ms
[ $code -eq 0 ] && [ -e d.kymo ]
report "attach ends after its time" $?

run attach -p no-such-process-of-kymo -o c.kymo
[ $code -eq 3 ] && [ ! -e c.kymo ]
report "none at all is a failure" $?

capture_until b.json.capture.kymo slice attach -p demo -o b.json --follow
[ $code -eq 0 ] && has b.json slice
report "attach finds a process by its name, and follows" $?

start_kymo attach -p "$target" -o d.kymo
wait_for has d.kymo slice
stop_demo
end_kymo
[ $code -eq 0 ] && valid d.kymo && has d.kymo slice
report "a process that is killed while attached is a normal end" $?

start_demo A=1
start_kymo attach -p "$target" -o d.kymo
wait_for has d.kymo slice
kill -9 "$capture"
end_kymo
capture_until e.kymo "slice where category = 'db'" attach -p "$target" -o e.kymo --categories db
[ $code -eq 0 ] && has d.kymo slice && has e.kymo "slice where category = 'db'" &&
	! has e.kymo "slice where category = 'task'"
report "what a killed kymo left switched on is repaired by the next" $?

start_kymo attach -p "$target" -o d.kymo
wait_for has d.kymo slice
kill -INT "$capture"
end_kymo
[ $code -eq 0 ] && valid d.kymo
report "an interrupt ends it in order" $?

if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	timeout $limit setpriv --reuid 65534 --clear-groups "$kymo" attach -p "$target" -o /tmp/none.kymo >out 2>err </dev/null
	code=$?
	[ $code -eq 1 ] && [ "$(wc -l <err)" -eq 1 ] && [ ! -e /tmp/none.kymo ]
	report "another user's process: refused with the remedy" $?
else
	skip "another user's process" "needs root and setpriv"
fi

# ---- snapshots and triggers ----

run snapshot -p "$target" -o n.kymo
[ $code -eq 0 ] && [ -s n.kymo ]
report "snapshot of a process that nobody records" $?
stop_demo

start_demo 'KYMO_CATEGORIES=*'
wait_for has_recorded "$target" task
run snapshot -p "$target" --last 10s -o n.kymo
[ $code -eq 0 ] && valid n.kymo && has n.kymo slice && has n.kymo "slice where category = 'task'"
report "snapshot reads the flight recorder of a program" $?

run snapshot -p "$target" --last 10s -o n.json
[ $code -eq 0 ] && has n.json slice && [ ! -e n.json.capture.kymo ]
report "in other formats too" $?

timeout $limit "$kymo" snapshot -p "$target" --last 10s -o - 2>err | "$kymo" info - >out 2>>err
code=${PIPESTATUS[0]}
[ "$code" -eq 0 ] && grep -q slices out
report "and to standard output" $?

run snapshot -p $$ -o none.kymo
[ $code -eq 1 ] && [ ! -e none.kymo ] && [ "$(wc -l <err)" -eq 1 ]
report "a process without kymo has none" $?

start_kymo attach -p "$target" --trigger signal:USR2 --before 10s -o t.kymo
kill -USR2 "$capture"
wait_for test -s t.kymo
kill -INT "$capture"
end_kymo
[ $code -eq 0 ] && valid t.kymo && has t.kymo slice && grep -q 'snapshots *1' err
report "signal:USR2 takes a snapshot" $?

start_kymo attach -p "$target" --trigger interrupt --before 10s -o u.kymo
kill -INT "$capture"
end_kymo
[ $code -eq 0 ] && has u.kymo slice
report "interrupt takes one and ends it" $?

start_kymo attach -p "$target" --trigger exit -o v.kymo
run snapshot -p "$capture" --last 10s
asked=$code
wait_for test -s v.kymo
cp err asked.err
kill -INT "$capture"
end_kymo
[ "$asked" -eq 0 ] && has v.kymo slice
report "a kymo that captures is asked for a snapshot" $?

run attach -p "$target" --trigger 'span:*/*>1us' --snapshots 1 --before 10s -o w.kymo
[ $code -eq 0 ] && has w.kymo slice && grep -q 'snapshots *1' err
report "span: takes one, and with --snapshots 1 that is the end" $?

run attach -p "$target" --trigger 'span:no/such>1s' --duration 100ms -o x.kymo
[ $code -eq 3 ] && [ ! -e x.kymo ] && grep -q 'no trigger fired' err
report "without a snapshot there is no file" $?
stop_demo

run run --trigger exit --before 20ms -o y.kymo -- "$demo" --tasks 200 --seconds 0.3
[ $code -eq 0 ] && valid y.kymo && has y.kymo slice &&
	[ "$("$kymo" query --csv y.kymo "select min(ts + dur) >= (select min(int_value) from args where key = 'debug.from')
		from slice where dur >= 0 and category <> 'kymo'" | tail -1)" = 1 ]
report "exit keeps what led up to the end" $?

printf before >z.kymo
run run --trigger signal:USR1 -o z.kymo -- sh -c 'exit 9'
[ $code -eq 9 ] && [ "$(cat z.kymo)" = before ]
report "run without a snapshot leaves the file as it was" $?

run run --trigger api --before 60s -o api.kymo -- "$target_program" api
[ $code -eq 0 ] && has api.kymo "slice where name = 'led up to it'" && ! has api.kymo "slice where name = 'too early'" &&
	"$kymo" info api.kymo | grep -q 'api .*asked for'
report "api: kymo_snapshot() takes one, back to kymo_mark_start()" $?

start_kymo run --trigger 'span:target/hang>20ms' --before 60s -o hang.kymo -- "$target_program" hang
wait_for test -s hang.kymo
kill -TERM "$capture"
end_kymo
[ $code -eq 0 ] && has hang.kymo "slice where name = 'hang'" && "$kymo" info hang.kymo | grep -q 'span:target/hang'
report "span: fires while the span is still open" $?

start_kymo run --trigger 'span:target/hang>20ms' --before 1ms -o open.kymo -- "$target_program" hang
wait_for test -s open.kymo
kill -TERM "$capture"
end_kymo
[ $code -eq 0 ] && [ "$(count open.kymo "slice where name in ('around', 'hang') and dur > 900000 and dur < 1100000")" = 2 ] &&
	has open.kymo "args where key = 'debug.what' and string_value = 'a hang'" && ! has open.kymo "slice where name = 'left open'" &&
	valid open.kymo
report "spans that were open before the window are in the snapshot, those of a thread that has ended are not" $?

run run --trigger 'gap:target/beat>100ms' --snapshots 1 --before 60s -o gap.kymo -- "$target_program" beat
[ $code -eq 0 ] && has gap.kymo "slice where name = 'beat'" && "$kymo" info gap.kymo | grep -q 'no target/beat for'
report "gap: fires when nothing has come for too long" $?

run run --trigger 'counter:target/level>100' --snapshots 1 --before 60s -o counter.kymo -- "$target_program" rise
[ $code -eq 0 ] && "$kymo" info counter.kymo | grep -q 'target/level is 101' &&
	[ "$("$kymo" query --csv counter.kymo 'select max(value) = 101 from counter' | tail -1)" = 1 ]
report "counter: fires at the first value beyond the limit, and what follows is not in the file" $?

run run --trigger 'counter:target/level<50' --trigger 'counter:target/level>1000' -o counter.kymo -- "$target_program" rise
[ $code -eq 0 ] && grep -q 'snapshots *1$' err && "$kymo" info counter.kymo | grep -q 'target/level is 0'
report "counter: below too, once, and not what stays within" $?

run run --trigger crash --before 60s -o crash.kymo -- "$target_program" crash
[ $code -eq 139 ] && has crash.kymo "slice where name = 'last words'" && "$kymo" info crash.kymo | grep -q 'crash .*SIGSEGV'
report "crash: the last events and the signal" $?

"$kymo" info crash.kymo >out && grep -q '^  store (capture_target.c:[0-9]*)' out && "$kymo" report crash.kymo >out &&
	grep -q '^  store (capture_target.c:[0-9]*)' out && "$kymo" info --json crash.kymo >out &&
	grep -q '"stack":.*\["store (capture_target.c:[0-9]*)"' <(tr -d '\n ' <out | sed 's/store(/store (/')
report "crash: the stack is in info and report" $?

# The handler never ends by itself: the snapshot must not wait for it.
start_kymo run --trigger crash --before 60s -o handled.kymo -- "$target_program" report
wait_for has handled.kymo "slice where name like '%own handler'"
has handled.kymo "slice where name = 'last words'" && "$kymo" info handled.kymo 2>/dev/null | grep -q '^  store (capture_target.c'
fine=$?
kill -TERM "$capture"
end_kymo
[ $code -eq 139 ] && [ $fine -eq 0 ] && [ "$(count handled.kymo "slice where category = 'kymo'")" = 1 ]
report "crash: before the program's own handler" $?

for engine in uprobe breakpoint; do
	run run --probe $engine --trigger symbol:target_function --snapshots 3 --before 60s -o symbol.kymo -- \
		"$target_program" call
	if [ $code -le 3 ] && [ ! -e symbol.kymo ] && grep -qE 'not permitted|Permission|not supported|No such device|root' err; then
		skip "symbol: by $engine" "$(head -1 err)"
	else
		[ $code -eq 0 ] && has symbol.kymo "slice where name = 'called'" && grep -q 'snapshots *3' err
		report "symbol: by $engine" $?
	fi
	rm -f symbol.kymo
done

line=$(grep -n 'line: is here' "$target_source" | tail -1 | cut -d: -f1)
run run --trigger "line:capture_target.c:$line" --snapshots 8 --before 60s -o line.kymo -- "$target_program" call
if [ $code -le 1 ] && [ ! -e line.kymo ] && grep -qE 'not permitted|Permission|not supported|No such device|root' err; then
	skip "line:" "$(head -1 err)"
else
	[ $code -eq 0 ] && has line.kymo "slice where name = 'called'" && grep -q 'snapshots *8' err &&
		"$kymo" info line.kymo | grep -q "line:capture_target.c:$line"
	report "line: fires when it is reached" $?
fi

if grep -q perf_event_open err; then
	skip "places that do not exist" "$(head -1 err)"
else
	run run --trigger line:capture_target.c:1 -o none.kymo -- "$target_program" api
	[ $code -eq 3 ] && [ ! -e none.kymo ] && grep -q 'capture_target.c' err
	report "a line without code is reported" $?

	run run --trigger symbol:no_such_function_here -o none.kymo -- "$target_program" api
	[ $code -eq 3 ] && [ ! -e none.kymo ] && grep -q no_such_function_here err
	report "an unknown function is reported" $?

	run run --trigger symbol:target_function --trigger symbol:no_such_function_here --snapshots 1 -o two.kymo -- \
		"$target_program" call
	[ $code -eq 3 ] && { [ ! -e two.kymo ] || grep -q no_such_function_here err; }
	report "and of several triggers too" $?
fi

cat >again.c <<'END'
#include <unistd.h>
static void again(int argc, char **argv, char **envp)
{
	char *next[] = {argv[0], 0};
	if (argc > 1)
		execve("/proc/self/exe", next, envp);
}
__attribute__((section(".preinit_array"), used)) static void (*first)(int, char **, char **) = again;
void reached(void);
__attribute__((noinline)) void reached(void)
{
	__asm__ volatile("");
}
int main(void)
{
	reached();
	return 8;
}
END
if cc -o again again.c 2>/dev/null; then
	run run --probe breakpoint --trigger symbol:reached -o again.kymo -- ./again once
	if [ ! -e again.kymo ] && grep -qE 'not permitted|Permission|not supported|No such device|No space' err; then
		skip "a program that executes itself" "$(head -1 err)"
	else
		[ $code -eq 8 ] && grep -q 'snapshots *1' err
		report "a program that executes itself before its first instruction" $?
	fi
else
	skip "a program that executes itself" "no compiler"
fi

# ---- programs that are hard to follow ----

run run -o children.kymo -- "$target_program" children 2000
[ $code -eq 0 ] && [ "$(count children.kymo "slice where name = 'child'")" = 2000 ]
report "two thousand children that live for a moment: an event of each" $?

run run -o threads.kymo -- "$target_program" threads 500
[ $code -eq 0 ] && [ "$(count threads.kymo "slice where name = 'thread'")" = 500 ]
report "five hundred threads at once" $?

run run -o left.kymo -- "$target_program" left-open
[ $code -eq 0 ] && [ "$(count left.kymo "slice as s, slice as after where s.name = 'left open' and
	after.name = 'after the thread' and s.dur >= 0 and s.ts + s.dur <= after.ts")" = 1 ]
report "a span that is open when its thread ends, ends then" $?

if [ "$(id -u)" -eq 0 ] && unshare -pmn true 2>/dev/null; then
	start_kymo run -o leave.kymo -- "$target_program" leave
	wait_for has leave.kymo "slice where name = 'inside'"
	kill -TERM "$capture"
	end_kymo
	[ $code -eq 0 ] && has leave.kymo "slice where name = 'outside'" && has leave.kymo "slice where name = 'inside'"
	report "a program that leaves its namespaces and its user" $?
else
	skip "a program that leaves its namespaces and its user" "this user may not"
fi

# ---- record ----

start_demo A=1
capture_until rec.kymo slice record --no-kernel -o rec.kymo
# Other programs of a busy machine may record faster than kymo reads.
[ $code -eq 0 ] && { valid rec.kymo || grep -q '^data loss' valid.out; } && has rec.kymo slice
report "record finds the drums of the machine" $?
stop_demo

if [ "$(id -u)" -eq 0 ] && [ -e /sys/kernel/tracing/events/sched ]; then
	capture_until kernel.kymo sched record -o kernel.kymo
	[ $code -eq 0 ] && has kernel.kymo sched && ! compgen -G "/sys/kernel/tracing/instances/kymo-$capture-*" >/dev/null
	report "record has the kernel's scheduling, and leaves no instance" $?
else
	skip "the kernel's scheduling" "tracefs is not for this user"
fi

# ---- used wrongly ----

for arguments in "run" "run --before abc -- true" "run --trigger nonsense -- true" "attach" "attach -p 1 extra" \
	"record extra" "snapshot" "run --rotate 2 -- true" "run -p 1 -- true" "run --snapshots 3 -- true" \
	"run --before 1s -- true" "record --kernel --no-kernel" "run --sample 0 -- true" "run --engine x -- true" "attach --max-size x -p 1"; do
	# shellcheck disable=SC2086
	run $arguments
	[ $code -eq 2 ] && [ ! -s out ]
	report "kymo $arguments: used wrongly" $?
done

left=$(find . -name '*.tmp' -o -name '*.capture.kymo')
[ -z "$left" ]
report "nothing is left behind" $?

finish_checks
