#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# run.sh: the real kymo on small traces that are written here, and on all that is no trace.
#
#	run.sh KYMO
#
set -u
kymo=$(realpath "$1")
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

is_json() { # name, arguments
	local name=$1
	shift
	run "$@"
	[ "$code" -eq 0 ] && node -e 'JSON.parse(require("fs").readFileSync("out", "utf8"))' 2>>err
	report "$name" $?
}

# A trace of requests: 300 of each name, with a work that is slower by a factor. $1: file, $2: factor
make_trace() {
	awk -v factor="$2" 'BEGIN {
		srand(7)
		print "["
		print "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"server\"}},"
		print "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"thread_name\",\"args\":{\"name\":\"worker\"}},"
		ts = 1000
		for (i = 0; i < 300; i++) {
			work = (90 + rand() * 20) * factor
			printf "{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":%.3f,\"dur\":%.3f,\"name\":\"request\",\"cat\":\"net\"},\n", ts, work + 20
			printf "{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":%.3f,\"dur\":%.3f,\"name\":\"work\",\"cat\":\"db,slow\"},\n", ts + 5, work
			ts += work + 50
		}
		print "{\"ph\":\"i\",\"s\":\"t\",\"pid\":1,\"tid\":1,\"ts\":1500,\"name\":\"tick\",\"cat\":\"net\"}"
		print "]"
	}' >"$1"
}

make_trace a.json 1
make_trace b.json 1.2
make_trace same.json 1

# ---- kymo itself
prints "help lists the verbs" 0 "report" --help
prints "help lists the formats" 0 "pftrace" --help
prints "the version" 0 "kymo 0." --version
prints "completion lists the verbs" 0 "snapshot" help --complete
prints "completion lists options" 0 "--before" help --complete run
prints "completion lists values" 0 "span:" help --complete attach --trigger
prints "completion lists formats" 0 "pftrace" help --complete report --input-format
run help --complete
verbs=$(cat out)
[ "$(wc -w <out)" -ge 17 ]
report "all verbs" $?
for verb in $verbs; do
	run help --man $verb
	[ $code -eq 0 ] && grep -q "^.SH OPTIONS" out && grep -q "^.SH EXAMPLES" out
	report "the man page of $verb" $?
	if command -v groff >/dev/null; then
		groff -man -Tutf8 -ww -z out >warnings 2>&1
		[ ! -s warnings ]
		report "the man page of $verb is proper troff: $(head -n 1 warnings)" $?
	fi
	prints "help of $verb has examples" 0 "examples" help $verb
	prints "$verb --help" 0 "usage: kymo $verb" $verb --help
	refuses "$verb with an unknown option" 2 "no option --nonsense" $verb --nonsense
done
prints "the version by a letter" 0 "kymo 0." -V
refuses "record: -a, -F, -g, -c and -d are known" 2 "--nonsense" record -a -F 99 -g -c net -d 1s --nonsense
refuses "attach: and are the long ones: -d" 2 "--duration 1 has no unit" attach -p 1 -d 1
refuses "run: -F" 2 "--sample 0" run -F 0 -- true
refuses "run: -a" 2 "'kymo record' records all" run -a -- true
refuses "attach: -a" 2 "'kymo record' records all" attach -a
refuses "report: --format is not the input's" 2 "--input-format names" report --format json a.json
for verb in info report hist validate query diff convert merge split repair view; do
	prints "$verb has --input-format" 0 "--input-format" $verb --help
done
for verb in run attach record snapshot convert merge split repair; do
	run $verb --help
	grep -qE -- '--format NAME +(the format|the output)' out
	report "--format of $verb is the output's" $?
done
run run --help
awk '/--engine/ { engine = NR } /--probe/ { probe = NR } /pt +Intel/ { pt = NR } /uprobe / { uprobe = NR }
	END { exit !(engine && pt > engine && probe && uprobe > probe) }' out
report "--engine is of functions, --probe of triggers" $?
refuses "record has no functions' engine" 2 "record has no such option" record --engine pt
refuses "a verb mistyped" 2 "did you mean 'report'" reprot
refuses "an unknown verb" 2 "'kymo --help' lists all" frobnicate
refuses "a file instead of a verb" 2 "kymo info a.json" a.json
refuses "an option without its value" 2 "needs a value" report --limit
refuses "an option with a value too many" 2 "takes no value" report --tree=3 a.json
run
[ $code -eq 2 ] && [ ! -s out ] && grep -q usage: err
report "nothing at all is a wrong use" $?

# ---- what is no trace
: >empty
head -c 3000 /dev/urandom >garbage
head -c 100 a.json | gzip -c | head -c 60 >cut.gz
mkdir directory
for verb in info report hist; do
	refuses "$verb: a missing file" 1 "missing.json" $verb missing.json
	refuses "$verb: a directory" 1 "directory" $verb directory
	refuses "$verb: garbage" 1 "garbage" $verb garbage
	refuses "$verb: without a file" 2 "the file is missing" $verb
done
run info empty
[ $code -eq 0 ] && grep -q "is empty, expected a trace" out
report "info: an empty file is a trace without rows, and says so" $?
run validate empty
[ $code -eq 1 ] && grep -q "input_empty" out
report "validate: an empty file is a problem" $?
refuses "no number of a process" 1 "as in pid:1234" info pid:self
refuses "a name of nothing" 1 "cannot read ''" info ""
(node -e 'require("net").createServer().listen("socket", () => process.kill(process.pid, "SIGKILL"))'; :) 2>err
refuses "a socket" 1 "it is a socket" info socket
if [ "$(id -u)" -ne 0 ]; then
	mkdir -m 0 closed
	refuses "a directory that cannot be read" 1 "Permission denied" info closed
	chmod 700 closed
fi
# What follows the end of a terminal's input is not waited for: Ctrl-D once is enough.
ctrl_d()
{
	timeout $limit python3 -c '
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.dup2(os.open("err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.execv(sys.argv[1], [sys.argv[1], "info", "-"])
os.write(fd, b"\x04")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))' "$kymo"
	code=$?
	: >out
	[ $code -eq 0 ]
	report "info: one Ctrl-D ends standard input" $?
}
if python3 -c 'import pty; pty.openpty()' 2>/dev/null; then
	ctrl_d
else
	echo "info: one Ctrl-D ends standard input: skipped: no pseudo-terminal: mount devpts on /dev/pts"
fi
refuses "diff: the second is missing" 2 "missing.json" diff a.json missing.json
refuses "diff: one file" 2 "two files are needed" diff a.json
head -c 20000 a.json >cut.json
run report cut.json
[ $code -eq 0 ] && grep -q request out && [ "$(wc -l <err)" -le 1 ]
report "report: what is whole of a cut file" $?

# ---- the input's format
run report --input-format json --csv a.json
[ $code -eq 0 ] && grep -q '^request,' out
report "report: as the format that is named" $?
refuses "report: as another format" 1 "a.json" report --input-format kymo a.json
refuses "split: as another format" 1 "a.json" split --input-format kymo a.json -o part.json
refuses "merge: as another format" 1 "a.json" merge --input-format kymo a.json b.json -o m.json
refuses "repair: as another format" 1 "a.json" repair --input-format kymo a.json -o m.json

# ---- info
prints "info: the format" 0 "Chrome Trace Event JSON" info a.json
prints "info: the process" 0 "server 1" info a.json
prints "info: the thread" 0 "worker 2" info a.json
is_json "info: JSON" info --json a.json
run info - <a.json
timeout $limit "$kymo" info - <a.json >out 2>err
code=$?
[ $code -eq 0 ] && grep -q "worker 2" out
report "info: standard input" $?

# ---- report
run report --csv a.json
[ $code -eq 0 ] && [ "$(grep -c '^request,0,0,300,' out)" -eq 1 ] && [ "$(grep -c '^tick,1,0,0,' out)" -eq 1 ]
report "report: CSV" $?
is_json "report: JSON" report --json a.json
is_json "report: JSON of a tree" report --tree --json a.json
run report --tree a.json
[ $code -eq 0 ] && grep -q '  request$' out && grep -q '    work$' out
report "report: a tree" $?
prints "report: by thread" 0 "worker 2" report --by thread a.json
prints "report: by category" 0 "db,slow" report --by category a.json
run report --name work --csv a.json
[ $code -eq 0 ] && [ "$(wc -l <out)" -eq 2 ]
report "report: one name" $?
run report --category slow --csv a.json
[ $code -eq 0 ] && grep -q '^work,' out && ! grep -q '^request,' out
report "report: one member of a list of categories" $?
run report --from 10ms --to 20ms --csv a.json
[ $code -eq 0 ] && awk -F, '$1 == "request" { exit !($4 > 10 && $4 < 100 && $5 < 10000000) }' out
report "report: a time range" $?
run report --limit 1 a.json
[ $code -eq 0 ] && grep -q "and 2 more" out
report "report: a limit" $?
refuses "report: a bad time" 2 "is not a time" report --from soon a.json
refuses "report: a time without a unit" 2 "has no unit" report --from 1 a.json
refuses "attach: a time without a unit" 2 "--duration 1 has no unit: 1s, 1ms, 1ns?" attach -p 1 --duration 1
refuses "run: a time without a unit" 2 "has no unit" run --before 10 --trigger api -- true
refuses "run: a trigger's time without a unit" 2 "'5' has no unit: try 5ms" run --trigger 'span:a/b>5' -- true
refuses "split: a time without a unit" 2 "has no unit" split --every 5 a.json
refuses "snapshot: a time without a unit" 2 "has no unit" snapshot --last 1.5 -p 1
refuses "merge: a time without a unit" 2 "has no unit" merge -o m.json --offset b.json=+5 a.json b.json
prints "report: 0 needs none, a time of the clock neither" 0 "request" report --from 0 --to @999999999 a.json
refuses "report: a range that ends before it begins" 2 "is not after" report --from 2ms --to 1ms a.json
refuses "report: a bad order" 2 "--sort size is not known: use count, total" report --sort size a.json
refuses "report: a bad group" 2 "--by colour is not known: use name" report --by colour a.json
refuses "split: parts of no length" 2 "is not a time" split --every 0 a.json
refuses "snapshot: of no time" 2 "is not a time" snapshot --last 0 -p 1
refuses "split: by name" 2 "use --category" split --name x a.json
refuses "run: a process" 2 "kymo attach" run -p 1 -- true
prints "the last of two formats counts" 0 "name,instants" report --json --csv a.json
run query -f /dev/fd/3 a.json 3< <(echo 'select 42 as x')
[ $code -eq 0 ] && grep -q 42 out
report "query: statements from a pipe" $?
refuses "report: a name that nothing has" 3 "no slice has a name that matches 'nothing'" report --name nothing a.json
refuses "report: a name that is nearly right" 3 "similar: request" report --name requset a.json
refuses "report: a category that nothing has" 3 "no slice has a category that matches 'nte'; similar: net" report --category nte a.json
refuses "report: a thread that is not there" 3 "no slice has a thread that matches 'wroker'; similar: worker" report --thread wroker a.json
refuses "report: a process that is not there" 3 "no slice has a process that matches 'sever'; similar: server" report --tree --process sever a.json
refuses "report: filters that exclude each other" 3 "no slice matches these filters" report --name work --category net a.json
prints "report: JSON of nothing" 3 '"rows": []' report --json --name nothing a.json

# ---- report of samples: a function is a name in a module
printf 'a 1 1.0: 1 cpu-clock:\n\tf1 main+0x1 (/bin/a)\n\nb 2 1.1: 1 cpu-clock:\n\tf1 main+0x1 (/bin/b)\n\nb 2 1.2: 1 cpu-clock:\n\tf2 [unknown] (/lib/c)\n\n' >script.txt
run report --csv script.txt
[ $code -eq 0 ] && grep -q '^main,a,1,1,' out && grep -q '^main,b,1,1,' out && grep -q 'unknown.*,c,1,1,' out
report "report: functions of one name in two modules" $?
refuses "report: a function that no sample has" 3 "no sample has a name that matches 'mian'" report --name mian script.txt
refuses "report: an event that no sample has" 3 "no sample is of an event 'cpu-clok'; similar: cpu-clock" report --event cpu-clok script.txt

# ---- validate
printf '[{"ph":"X","pid":1,"tid":1,"ts":0,"dur":9,"name":"a"},{"ph":"s","pid":1,"tid":1,"ts":1,"id":5,"name":"f","cat":"c"}]' >flow.json
awk 'BEGIN {
	print "["
	for (i = 0; i < 200; i++)
		printf "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":9,\"name\":\"n%d\"},\n{\"ph\":\"s\",\"pid\":1,\"tid\":1,\"ts\":%d,\"id\":%d,\"name\":\"f\",\"cat\":\"c\"},\n", i * 10, i, i * 10 + 1, i * 7919
	print "{\"ph\":\"i\",\"s\":\"t\",\"pid\":1,\"tid\":1,\"ts\":9000,\"name\":\"tick\"}]"
}' >flows.json
prints "validate: the first of many is the first in time" 0 "'n0' sends a flow" validate flows.json
prints "validate: a flow to another trace is no fault" 0 "flow_without_end" validate flow.json
printf '[{"ph":"X","pid":1,"tid":1,"ts":0,"dur":9,"name":"a"},{"ph":"X","pid":1,"tid":1,"ts":5,"dur":9,"name":"b"}]' >overlap.json
run validate overlap.json
[ $code -eq 1 ] && [ "$(grep -c slice_overlap out)" -eq 1 ]
report "validate: an overlap is reported once" $?
run validate --json missing.json a.json
[ $code -eq 2 ] && node -e '
const list = JSON.parse(require("fs").readFileSync("out", "utf8"));
process.exit(list.length === 2 && !list[0].valid && list[1].valid ? 0 : 1)' 2>>err
report "validate: JSON of several, one of them missing" $?
refuses "validate: JSON of a missing file" 2 "missing.json" validate --json missing.json
run validate overlap.json missing.json a.json
[ $code -eq 2 ]
report "validate: the worst of several counts" $?
timeout $limit "$kymo" validate a.json >/dev/full 2>err
code=$?
[ $code -eq 2 ]
report "validate: a full disk is trouble, not a problem of the trace" $?

# ---- hist
prints "hist: percentiles are marked" 0 "◀" hist a.json work
prints "hist: the number" 0 "300 slices" hist a.json work
is_json "hist: JSON" hist --json --log a.json work
prints "hist: the last scale wins: linear" 0 '"scale": "linear"' hist --json --log --linear a.json work
prints "hist: the last scale wins: log" 0 '"scale": "log"' hist --json --linear --log a.json work
refuses "hist: a part of a name" 3 "similar: work" hist a.json wor
refuses "hist: no such name" 3 "no slice has a name that matches 'nothing'" hist a.json nothing
refuses "hist: a trace of samples" 1 "no slices" hist script.txt
refuses "hist: no buckets" 2 "--buckets" hist --buckets 0 a.json work

# ---- diff
prints "diff: slower" 1 "slower" diff a.json b.json
prints "diff: faster" 1 "faster" diff b.json a.json
prints "diff: a failure for CI" 1 "failed: 2 names are slower by more than 5 %" diff --fail-over 5% a.json b.json
prints "diff: below the limit" 0 "passed" diff --fail-over 50% a.json b.json
prints "diff: the other way" 0 "passed" diff --fail-over 5% b.json a.json
prints "diff: the same" 0 "0 slower, 0 faster of 2 names" diff --fail-over 0% a.json same.json
prints "diff: the same without a limit" 0 "0 slower, 0 faster" diff a.json same.json
sed 's/"work"/"toil"/' a.json >renamed.json
prints "diff: a name that only one has" 1 "toil" diff --all a.json renamed.json
prints "diff: but not one with few slices" 0 "0 slower, 0 faster" diff --min-count 301 a.json renamed.json
is_json "diff: JSON" diff --json a.json same.json
prints "diff: JSON of a difference" 1 '"slower": 2' diff --json a.json b.json
refuses "diff: a name that neither has" 3 "similar: work" diff --name wrok a.json b.json
refuses "diff: a bad percentage" 2 "not a percentage" diff --fail-over much a.json b.json

refuses "diff: nothing to compare" 2 "no slices" diff --fail-over 5% a.json script.txt

# ---- merge: what the recorder writes into JSON about its clocks
clocks='"boottime_ns":"5000000000","monotonic_ns":"4000000000","realtime_ns":"1700000000000000000"'
for i in 1 2; do
	printf '[{"ph":"M","pid":%d,"tid":%d,"name":"process_name","args":{"name":"p","command":"p",%s}},{"ph":"X","pid":%d,"tid":%d,"ts":5000100,"dur":9,"name":"a"}]' \
		$i $i "$clocks" $i $i >"clocks$i.json"
done
prints "info: the time of day of a recording in JSON" 0 "2023-11-14T22:13:20.000100000Z" info clocks1.json
run merge -o merged.json clocks1.json clocks2.json
[ $code -eq 0 ] && grep -q "same boot" err
report "merge: recordings in JSON by their clocks" $?

# ---- split
refuses "split: a range outside of the trace" 3 "has nothing in that range" split --from 100s a.json -o part.json
[ ! -e part.json ]
report "and nothing is written" $?
refuses "split: a thread that is not there" 3 "similar: worker" split --thread wroker a.json -o part.json
refuses "split: a category that is not there" 3 "similar: net" split --category nte a.json -o part.json
[ ! -e part.json ]
report "and again nothing is written" $?

# ---- doctor
prints "doctor: the kernel" 0 "kernel" doctor
is_json "doctor: JSON" doctor --json
refuses "doctor: one program" 2 "one program at a time" doctor a.json b.json
refuses "doctor: --all without a program" 2 "name one" doctor --all
refuses "doctor: a file that is not a program" 1 "it is not an ELF file" doctor ./a.json
refuses "doctor: a program that is nowhere" 1 "no program" doctor no-such-program
if [ "$(uname -m)" = x86_64 ]; then
	prints "doctor: functions of a program" 0 "can be traced" doctor "$kymo"
	prints "doctor: the engine" 0 "engine" doctor "$kymo"
	prints "doctor: each function that is left out" 0 "_start" doctor --all "$kymo"
	is_json "doctor: functions as JSON" doctor --json --all "$kymo"
	# A program that names a loader of anybody's, in as many bytes: it is not run.
	loader=/tmp/ky.$(printf %019d $$)
	printf '#!/bin/sh\n: >"%s"\n' "$work/was-run" >"$loader"
	chmod 777 "$loader"
	LC_ALL=C sed "s,/lib64/ld-linux-x86-64[.]so[.]2,$loader," "$kymo" >other
	prints "doctor: a program with a loader that is not root's" 0 "can be traced" doctor ./other
	grep -q "is not root's" err && [ ! -e was-run ]
	report "doctor: and that is not run" $?
	rm -f "$loader"
fi

# ---- query: commands outside of the prompt
prints "query: .tables" 0 "slice " query a.json .tables
is_json "query: .tables as JSON" query --json a.json .tables
run query a.json .tables
! grep -q ' $' out
report "query: .tables has no blanks at the ends of lines" $?
prints "query: .schema of a table" 0 "dur" query a.json '.schema slice'
prints "query: .schema of all" 0 "thread_state" query --csv a.json .schema
prints "query: a command, then SQL" 0 "300" query a.json .tables "select count(*) from slice where name = 'work'"
refuses "query: a table that does not exist" 3 "no table 'slcie'; similar: slice" query a.json '.schema slcie'
refuses "query: a command that does not exist" 2 "no command .nonsense" query a.json .nonsense
printf '.mode csv\n.tables\nselect 42 as x;\n' >commands
timeout $limit "$kymo" query a.json <commands >out 2>err
code=$?
[ $code -eq 0 ] && grep -q '^slice$' out && grep -q '^42$' out
report "query: commands from standard input" $?
printf 'select 42 as x;\n.mode csv\nselect 43\nas y;\n.tables\nselect nope;\n' >commands
timeout $limit "$kymo" query a.json <commands >out 2>err
code=$?
[ $code -eq 1 ] && grep -q '^42$' out && [ "$(grep -A1 '^y$' out | tail -1)" = 43 ] && grep -q '^slice$' out && grep -q 'line 6, column 8.*nope' err
report "query: commands between statements" $?

# ---- a terminal that shows ASCII alone, and one of few columns
printf '[{"ph":"X","pid":1,"tid":1,"ts":0,"dur":5,"name":"caf\u00e9"}]' >accent.json
for arguments in "hist a.json work" "report a.json" "info a.json" "report accent.json" "doctor" "diff --all a.json b.json" "query accent.json 'select name from slice'"; do
	eval "LC_ALL=C timeout $limit '$kymo' $arguments >out 2>err"
	code=$?
	[ -s out ] && ! LC_ALL=C grep -q '[^ -~	]' out
	report "LC_ALL=C: ASCII: $arguments" $?
done
LC_ALL=C timeout $limit "$kymo" hist a.json work >out 2>err
grep -q '##' out && grep -q '< p50' out && grep -q ' us' out
report "LC_ALL=C: hist has bars and marks" $?
LC_ALL=C timeout $limit "$kymo" report --json accent.json >out 2>err
grep -q 'caf\(é\|.u00e9\)' out
report "LC_ALL=C: data are as they were" $?
for columns in 60 200; do
	COLUMNS=$columns timeout $limit "$kymo" hist a.json work >out 2>err
	code=$?
	widest=$(wc -L <out)
	[ "$widest" -le $columns ] && [ "$widest" -gt $((columns * 8 / 10)) ]
	report "hist: COLUMNS=$columns: the widest line has $widest" $?
done

# ---- standard output
timeout $limit "$kymo" report --limit 0 --csv a.json >/dev/full 2>err
code=$?
: >out
[ $code -eq 1 ] && grep -q "No space left" err
report "a full disk is an error" $?
timeout $limit "$kymo" query a.json "with recursive c(x) as (select 1 union all select x+1 from c limit 20000) select * from c" \
	>/dev/full 2>err
code=$?
[ $code -eq 1 ] && grep -q "No space left" err
report "and so is one that is full before the end" $?
(timeout $limit "$kymo" info --json a.json; echo $? >code) 2>err | true
code=$(cat code)
[ "$code" -eq 0 ] && [ ! -s err ]
report "a reader that goes away is no failure" $?
run report a.json
! grep -q $'\033' out
report "no colours in a file" $?

# ---- a name must not talk to the terminal
printf '[{"ph":"X","pid":1,"tid":1,"ts":0,"dur":5,"name":"a\\u001b[31mb\\nc"}]' >evil.json
run report evil.json
[ $code -eq 0 ] && ! grep -q $'\033' out && [ "$(wc -l <out)" -eq 2 ]
report "control characters of names are not printed" $?
is_json "and are escaped in JSON" report --json evil.json
printf '[{"ph":"X","pid":1,"tid":1,"ts":0,"dur":5,"name":"a\\u001b[31m\\u009b31m\\u202eb"}]' >evil.json
on_terminal() { # arguments of kymo; what it shows is in out
	timeout $limit python3 -c 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' \
		"$kymo" "$@" >out 2>err </dev/null
	code=$?
}
talks() { LC_ALL=C grep -qE $'\033\\[31m|\302\233|\342\200\256' "$1"; }
for form in --csv --json --lines; do
	on_terminal query $form evil.json "select name from slice"
	[ $code -eq 0 ] && [ -s out ] && ! talks out
	report "query $form: control characters do not reach a terminal" $?
done
on_terminal report --csv evil.json
[ $code -eq 0 ] && [ -s out ] && ! talks out
report "report --csv: nor there" $?
run query --csv evil.json "select name from slice"
talks out
report "query --csv: in a file they are what they were" $?
evil=$'x\033[31m\302\233y.json'
cp evil.json "$evil"
for verb in validate info "split --parts 2" repair; do
	# shellcheck disable=SC2086
	run $verb "$evil"
	cat err >>out
	[ $code -le 1 ] && [ -s out ] && ! talks out
	report "$verb: nor those of a file's name" $?
done
rm -f "$evil"*

# ---- what a query may take
refuses "query: one that needs too much memory fails" 1 "out of memory: --memory" query --memory 16M a.json \
	"with recursive c(x) as (select 1 union all select x+1 from c limit 1000000)
	select count(*) from (select x, hex(randomblob(100)) as y from c order by y)"

# ---- Ctrl-C: standard input that never comes
mkfifo pipe
exec 3<>pipe
# A job of a script has SIGINT ignored: node starts one that has not.
# shellcheck disable=SC2016
node -e '
const child = require("child_process").spawn(process.argv[1], ["report", "-"], {stdio: [fs.openSync("pipe", "r+"), "pipe", "pipe"]});
let text = "";
child.stderr.on("data", (d) => { text += d; });
setTimeout(() => child.kill("SIGINT"), 300);
setTimeout(() => child.kill("SIGKILL"), 5000).unref();
child.on("close", (code, signal) => { process.stdout.write(`${code} ${signal} ${text}`); process.exit(0); });
' "$kymo" >out 2>err
code=$?
grep -q "^1 null kymo report: interrupted, nothing written" out
report "Ctrl-C ends it" $?

finish_checks
