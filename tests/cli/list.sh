#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# list.sh: the real kymo list on the demo while it runs.
#
#	list.sh KYMO DEMO
#
# A check is a line "name: ok" or "name: FAILED" with what was seen. Exit 1 when any failed.
set -u
kymo=$(realpath "$1")
demo=$(realpath "$2")
work=$(mktemp -d)
cd "$work" || exit 1
failures=0
limit=600 # ends what hangs
code=0
export LC_ALL=C.UTF-8

report() { # name, 0 or not
	if [ "$2" -eq 0 ]; then
		echo "$1: ok"
	else
		echo "$1: FAILED"
		echo "  exit $code; stdout: $(head -c 600 out)"
		echo "  stderr: $(head -c 600 err)"
		failures=$((failures + 1))
	fi
}

run() { # arguments of kymo list
	timeout $limit "$kymo" list "$@" >out 2>err </dev/null
	code=$?
}

check() { # name, command that must succeed
	local name=$1
	shift
	"$@"
	report "$name" $?
}

until_true() { # process that it is about, command
	local about=$1
	shift
	until "$@" 2>>err; do
		if ! kill -0 "$about" 2>/dev/null; then
			echo "process $about has ended before: $*"
			exit 1
		fi
		sleep 0.05
	done
}

# Traces until it is killed. A copy, with its library, that every user may run; its name makes it one of a kind.
program=kymo-list-$$
cp "$demo" "$program"
library=$(ldd "$demo" | awk '/libkymo/ { print $3 }')
if [ -n "$library" ]; then
	cp -L "$library" .
	export LD_LIBRARY_PATH=$work
fi
trace() { # categories, command in front
	local categories=$1
	shift
	KYMO_CATEGORIES=$categories exec "$@" "./$program" --seconds 3600 --tasks 10000000
}
trace '*,-db' env >/dev/null 2>&1 &
traced=$!
sleep 1000 &
untraced=$!
own=
ended() {
	kill "$traced" "$untraced" $own 2>/dev/null
	wait
	rm -rf "$work"
}
trap ended EXIT

has_categories() { # process
	"$kymo" list --json -p "$1" 2>/dev/null | python3 -c '
import json, sys
row = json.load(sys.stdin)["processes"][0]
sys.exit(0 if row["categories"] >= 10 and row["threads"] >= 5 else 1)'
}
until_true "$traced" has_categories "$traced"

run
[ "$code" -eq 0 ] && grep -qE '^ *pid +name +threads +categories +events/s +lost +recorders +memory' out &&
	grep -qE "^ *$traced +demo server +[0-9]+ +[0-9]+/[0-9]+ " out
report "a process that traces is listed" $?
! grep -qE "^ *$untraced " out
report "one that does not is not" $?

run -p "$traced"
[ "$code" -eq 0 ] && grep -qE '^ +db +off$' out && grep -qE '^ +task +on$' out
report "its categories are shown" $?
[ "$(grep -cE "^ *$traced " out)" -eq 2 ]
report "and no other process" $?

run -p "$program"
[ "$code" -eq 0 ] && grep -qE "^ *$traced " out && grep -q "demo loadgen" out
report "a name is that of all processes of the program" $?

run -p 'demo server'
[ "$code" -eq 0 ] && grep -qE "^ *$traced " out && ! grep -q "demo loadgen" out
report "a name that a process gave itself is its name, too" $?

run --json
cat >judge.py <<'PY'
import json, sys
pid, listed = int(sys.argv[1]), json.load(open(sys.argv[2]))
row = [r for r in listed["processes"] if r["pid"] == pid][0]
assert row["name"] == "demo server" and row["events"] > 0 and row["memory_bytes"] > 0, row
assert 0 < row["categories_on"] < row["categories"] and row["damaged"] == 0, row
assert row["events_per_second"] >= 0 and "category" not in row and listed["hidden"] >= 0, row
PY
[ "$code" -eq 0 ] && python3 judge.py "$traced" out 2>>err
report "machines get JSON" $?

run -p "$untraced"
[ "$code" -eq 1 ] && [ ! -s out ] && grep -q "has no buffer" err && [ "$(wc -l <err)" -eq 1 ]
report "a process without a buffer is an error that says the remedy" $?
run -p no-such-name
[ "$code" -eq 3 ] && grep -q "no process is called 'no-such-name'; with trace points" err
report "a name of nobody says who there is" $?
run -p 999999999
[ "$code" -eq 3 ] && grep -q "no process with PID" err
report "a number of nobody" $?
run something
[ "$code" -eq 2 ] && [ ! -s out ]
report "what is no option is refused" $?

# Blocks of lines, until Ctrl-C.
"$kymo" list --watch -p "$traced" >out 2>err &
watching=$!
two_blocks() { [ "$(grep -cE "^ *$traced +demo" out)" -ge 2 ]; }
until_true "$watching" two_blocks
kill -INT "$watching"
wait "$watching"
code=$?
[ "$code" -eq 0 ]
report "--watch without a terminal prints blocks until Ctrl-C" $?

: >out # what is there is of the check before
"$kymo" list --watch --json >out 2>err &
watching=$!
two_lines() { [ "$(wc -l <out)" -ge 2 ]; }
until_true "$watching" two_lines
kill -TERM "$watching"
wait "$watching"
code=$?
[ "$code" -eq 0 ] && head -1 out >line && python3 judge.py "$traced" line 2>>err
report "--watch --json prints an object a line" $?

# As an ordinary user.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$work"
	cp "$kymo" kymo-for-all 2>/dev/null && chmod 755 kymo-for-all
	setpriv --reuid 65534 --regid 65534 --clear-groups ./kymo-for-all list -p "$traced" >out 2>err
	code=$?
	[ "$code" -eq 1 ] && grep -q "run as the user of the process, or as root" err
	report "another user's process is refused with the remedy" $?
	setpriv --reuid 65534 --regid 65534 --clear-groups ./kymo-for-all list >out 2>err
	code=$?
	[ "$code" -eq 0 ] && ! grep -qE "^ *$traced " out &&
		[ "$(grep -c "may not be looked into, and may have buffers too: run as root" err)" -eq 1 ]
	report "what may not be looked into is counted in one line" $?
	trace '*' setpriv --reuid 65534 --regid 65534 --clear-groups >/dev/null 2>&1 &
	own=$!
	sees_own() {
		setpriv --reuid 65534 --regid 65534 --clear-groups ./kymo-for-all list -p "$own" >out 2>err
	}
	until_true "$own" sees_own
	code=0
	grep -qE "^ *$own +demo" out
	report "an ordinary user sees the own ones" $?
else
	echo "as an ordinary user: skipped: it takes root to become one"
fi

kill "$traced"
wait "$traced" 2>/dev/null
run -p "$traced"
check "a process that ended is not there" [ "$code" -eq 3 ]
[ "$failures" -eq 0 ]
