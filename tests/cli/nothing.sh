#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# nothing.sh: what is named and does not exist: a line that says so, with the nearest names, and exit code 3.
#
#	nothing.sh KYMO TARGET
#
set -u
kymo=$(realpath "$1")
target=$(realpath "$2")
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

ends() { # name, code, text in the messages, arguments of kymo
	local name=$1 want=$2 text=$3
	shift 3
	timeout -k 1 $limit "$kymo" "$@" >out 2>err </dev/null
	code=$?
	[ "$code" -eq "$want" ] && grep -qF -- "$text" err
	report "$name" $?
}

# ---- categories and events
ends "a category that exists" 0 "events" run --categories target -o a.kymo -- "$target" rise
ends "a category that does not" 3 "no category matches 'tarket'; similar: target" run --categories tarket -o a.kymo -- "$target" rise
ends "one of several" 3 "no category matches 'nothing'" run --categories 'tar*,-x,nothing' -o a.kymo -- "$target" rise
ends "an exclusion need not exist" 0 "events" run --categories '-nothing' -o a.kymo -- "$target" rise
ends "the category of a trigger" 3 "no category matches 'tarket'; similar: target" run --trigger 'counter:tarket/level>100' -- "$target" rise
ends "the event of a trigger" 3 "is named 'levle'; similar: level" run --trigger 'counter:target/levle>100' -- "$target" rise
ends "a trigger that never fired" 3 "no trigger fired" run --trigger 'counter:target/level>100000' -- "$target" rise
ends "a trigger that fired" 0 "snapshots" run --trigger 'counter:target/level>100' -o a.kymo -- "$target" rise
ends "a program that failed has its own code" 9 "no trigger fired" run --trigger signal:USR1 -- sh -c 'exit 9'
timeout -k 1 $limit "$kymo" run --json --categories tarket -o a.kymo -- "$target" rise >out 2>err </dev/null
code=$?
grep -qF '"unmatched": 1' err && grep -qF "\"no category matches 'tarket'; similar: target\"" err
report "JSON has the lines, too" $?

# ---- functions and kernel events, where they are allowed
timeout -k 1 $limit "$kymo" run -q --trigger symbol:target_function -o a.kymo -- "$target" call >out 2>err
if grep -q perf_event_open err; then
	echo "a symbol that does not exist: skipped: $(head -1 err)"
else
	ends "a symbol that does not exist" 3 "similar: target_function" run --trigger symbol:target_fucntion -- "$target" call
fi
if "$kymo" run -q --functions=target_function --engine patch -o a.kymo -- "$target" call >out 2>err; then
	ends "a function that does not exist" 3 "no function matched --functions=target_fucntion: none was traced; similar: target_function" \
		run --functions=target_fucntion --engine patch -o a.kymo -- "$target" call
else
	echo "a function that does not exist: skipped: $(head -1 err)"
fi
if "$kymo" run -q --kernel=sched:sched_switch -o a.kymo -- true 2>err && [ ! -s err ]; then
	ends "a kernel event that does not exist" 3 "similar: sched:sched_switch" \
		run --kernel=sched:sched_swich -o a.kymo -- true
else
	echo "a kernel event that does not exist: skipped: $(head -1 err)"
fi

# ---- processes
cp "$(command -v sleep)" kymonaut
./kymonaut 600 &
helper=$!
started+=("$helper")
until [ "$(cat /proc/$helper/comm)" = kymonaut ]; do sleep 0.05; done
for verb in attach snapshot list top tail enable disable; do
	ends "$verb: a process that does not exist" 3 "no process is called 'kymonuat'; similar: kymonaut" $verb -p kymonuat
	ends "$verb: a number that no process has" 3 "no process with PID 99999999" $verb -p 99999999
done
ends "one of several processes" 3 "no process is called" attach -p no-such-process -p $helper --duration 10ms -o a.kymo
kill -9 $helper
wait $helper 2>/dev/null

# ---- a zombie: a process whose parent does not wait for it
python3 -c '
import os, signal
child = os.fork()
if child == 0:
    os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
print(child, flush=True)
signal.pause()' >zombie &
helper=$!
started+=("$helper")
until [ -s zombie ]; do sleep 0.05; done
for verb in attach snapshot list top tail enable disable; do
	ends "$verb: a zombie" 1 "is a zombie: it has ended" $verb -p "$(cat zombie)"
done
kill -9 $helper
wait $helper 2>/dev/null

finish_checks
