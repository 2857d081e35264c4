#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh DEMO: runs the demo into a file of every format at once, and looks whether the files say what
# the demo's own summary says. What is in the files is asked of Google's trace_processor
# (tools/oracle); without it, only the files and the losses are checked.
set -eu
demo=$1
oracle=$(cd "$(dirname "$0")/../.." && pwd)/tools/oracle/trace-processor.mjs
suffixes='json json.gz pftrace fxt fxt.gz kymo'
work=$(mktemp -d)
failures=0

fail()
{
	echo "FAIL: $*"
	failures=$((failures + 1))
}

# The arrows by the spans they join. Perfetto draws one that directly follows an instant from that instant
# (docs/formats): the profiler's samples come anywhere, so for them it is the span around that counts.
arrows="select iif(a.name = 'sample', pa.name, a.name) source, iif(b.name = 'sample', pb.name, b.name) target
	from flow f join slice a on f.slice_out = a.id left join slice pa on a.parent_id = pa.id
	join slice b on f.slice_in = b.id left join slice pb on b.parent_id = pb.id"
arrows=$(echo "$arrows" | tr '\n\t' '  ')

# The number that the summary has for a name.
summary()
{
	sed -n "s/^ *$1  *\([0-9][0-9]*\)\$/\1/p" "$work/summary"
}

# expect_code CODE ARGUMENT...: the demo's exit code for a command line, and a message if it is wrong.
expect_code()
{
	wanted=$1
	shift
	code=0
	"$demo" "$@" > "$work/out" 2> "$work/err" || code=$?
	[ "$code" -eq "$wanted" ] || fail "demo $*: exit code $code instead of $wanted"
	[ "$wanted" -eq 0 ] || [ -s "$work/err" ] || fail "demo $*: no message"
}

check_command_line()
{
	expect_code 0 --help
	expect_code 2 --tasks 0
	expect_code 2 --tasks many
	expect_code 2 --no-such-option
	expect_code 2 surplus
	expect_code 2 --tasks 1 --trace-output "$work/out.nothing"
	expect_code 1 --tasks 1 --trace-output "$work/no/such/folder.json"
}

run_demo()
{
	outputs=
	for suffix in $suffixes; do
		outputs="$outputs --trace-output $work/out.$suffix"
	done
	# shellcheck disable=SC2086 # the options are words
	"$demo" --tasks 400 --seconds 0.5 $outputs > "$work/summary" || {
		cat "$work/summary"
		fail "demo: exit code $?"
		exit 1
	}
	cat "$work/summary"
}

check_files()
{
	for suffix in $suffixes; do
		for file in "$work/out.$suffix" "$work/out-loadgen.$suffix"; do
			if [ ! -s "$file" ]; then
				fail "$file was not written"
				continue
			fi
			grep -q "^trace .* $(wc -c < "$file" | tr -d ' ') bytes .* 0 lost  $file\$" \
				"$work/summary" || fail "$file: no such line, or losses"
		done
	done
	events=$(sed -n 's/^trace .* \([0-9]*\) events .*out\.[a-z.]*$/\1/p' "$work/summary" | sort -u)
	[ "$(echo "$events" | wc -l)" -eq 1 ] || fail "the files have different numbers of events"
}

# ask FILE: reads lines "expected value|SQL for it as n"; one start of the oracle answers them all.
ask()
{
	file=$1
	set --
	while IFS='|' read -r _ sql; do
		set -- "$@" "$sql"
	done < "$work/questions"
	code=0
	node "$oracle" "$file" "$@" > "$work/answers" 2> "$work/err" || code=$?
	if [ "$code" -eq 77 ]; then
		echo "no trace_processor on this machine: what is in the files was not checked"
		return 77
	fi
	[ "$code" -eq 0 ] || fail "$file: $(cat "$work/err")"
	sed 's/^\[{"n":"\{0,1\}\([^"}]*\)"\{0,1\}}\]$/\1/' "$work/answers" > "$work/values"
	i=0
	while IFS='|' read -r expected sql; do
		i=$((i + 1))
		value=$(sed -n "${i}p" "$work/values")
		[ "$value" = "$expected" ] ||
			fail "${file##*/}: $value instead of $expected: $sql"
	done < "$work/questions"
}

server_questions()
{
	runs=$(summary runs)
	tasks=$(summary tasks)
	commits=$(summary commits)
	conflicts=$(summary conflicts)
	local=$(($(summary requests) - $(summary 'from loadgen')))
	cat <<-QUESTIONS
	0|select count(*) n from slice where dur < 0
	none|select coalesce(group_concat(name), 'none') n from stats where severity in ('error', 'data_loss') and value > 0
	$(summary 'verb spans')|select count(*) n from slice where category = 'verb'
	$(summary 'builtin calls')|select count(*) n from slice where category = 'builtin'
	$runs|select count(*) n from slice where category = 'task' and name = 'run'
	$runs|select count(*) n from slice s join slice p on s.parent_id = p.id where s.name = 'running' and p.name = 'task'
	$tasks|select count(*) n from slice where category = 'task' and name = 'task'
	$local|select count(*) n from slice where category = 'request' and name = 'request'
	$runs|select count(*) n from slice s join slice p on s.parent_id = p.id where s.name = 'transaction' and p.name = 'run'
	$((commits + conflicts))|select count(*) n from slice where name = 'commit'
	$conflicts|select count(*) n from slice where name = 'rollback'
	$conflicts|select count(*) n from slice where name = 'conflict' and extract_arg(arg_set_id, '${args}version_read') < extract_arg(arg_set_id, '${args}version_found')
	$(summary samples)|select count(*) n from slice where name = 'sample'
	$((2 * local + runs + tasks))|select count(*) n from flow
	$local|select count(*) n from ($arrows) where source = 'send' and target = 'accept'
	$local|select count(*) n from ($arrows) where source = 'reply' and target = 'receive'
	active,commits,conflicts,queue_wait_ms,queued,suspended|select group_concat(name) n from (select distinct replace(name, '$value', '') name from counter_track order by name)
	$commits|select cast(max(value) as int) n from counter c join counter_track t on c.track_id = t.id where t.name = 'commits$value'
	0|select cast(value as int) n from counter c join counter_track t on c.track_id = t.id where t.name = 'active$value' order by ts desc limit 1
	1|select max(value != cast(value as int)) n from counter c join counter_track t on c.track_id = t.id where t.name = 'queue_wait_ms$value'
	client 0,client 1,gateway,main,scheduler,worker 0,worker 1,worker 2,worker 3|select group_concat(name) n from (select name from thread where name in ('main', 'gateway', 'scheduler') or name glob 'worker [0-9]' or name glob 'client [0-9]' order by name)
	QUESTIONS
}

loadgen_questions()
{
	requests=$(summary 'from loadgen')
	cat <<-QUESTIONS
	0|select count(*) n from slice where dur < 0
	0|select count(*) n from flow
	$requests|select count(*) n from slice where category = 'request' and name = 'request'
	$requests|select count(*) n from slice where name = 'send'
	$requests|select count(*) n from slice where name = 'receive'
	0|select count(*) n from slice where name in ('run', 'accept', 'commit')
	1|select count(*) n from thread where name = 'loadgen'
	1|select count(*) n from process where name = 'demo loadgen'
	QUESTIONS
}

# Perfetto's files can be laid together by cat: the arrows then cross from process to process.
both_questions()
{
	requests=$(summary requests)
	cat <<-QUESTIONS
	demo loadgen,demo server|select group_concat(name) n from (select name from process where name glob 'demo *' order by name)
	$requests|select count(*) n from slice where category = 'request' and name = 'request'
	$requests|select count(*) n from ($arrows) where source = 'send' and target = 'accept'
	$requests|select count(*) n from ($arrows) where source = 'reply' and target = 'receive'
	QUESTIONS
}

# How trace_processor calls arguments and counters, which depends on the format.
names_of()
{
	case $1 in
	json*) args=args. value=' value' ;;
	pftrace) args=debug. value= ;;
	fxt*) args='' value=:value:0 ;;
	esac
}

check_contents()
{
	if ! command -v node > "$work/out" || [ ! -e "$oracle" ]; then
		echo "no node or no $oracle: what is in the files was not checked"
		return 0
	fi
	for suffix in json json.gz pftrace fxt fxt.gz; do
		names_of $suffix
		server_questions > "$work/questions"
		ask "$work/out.$suffix" || return 0
	done
	for suffix in json pftrace fxt; do
		loadgen_questions > "$work/questions"
		ask "$work/out-loadgen.$suffix" || return 0
	done
	cat "$work/out.pftrace" "$work/out-loadgen.pftrace" > "$work/both.pftrace"
	both_questions > "$work/questions"
	ask "$work/both.pftrace" || return 0
}

# Only the environment: every process has a file of its own.
check_environment()
{
	KYMO_TRACE="$work/env-\${pid}.json" "$demo" --tasks 30 --seconds 0 > "$work/out" ||
		fail "demo with KYMO_TRACE: exit code $?"
	set -- "$work"/env-*.json
	[ $# -eq 2 ] || fail "KYMO_TRACE: $# files instead of 2"
	grep -q '"worker 0"' "$@" || fail "KYMO_TRACE: the server's threads are not in its file"
	grep -q '"loadgen"' "$@" || fail "KYMO_TRACE: the load generator's file lacks its thread"
}

check_categories()
{
	"$demo" --tasks 30 --seconds 0 --trace-categories 'db,-world' \
		--trace-output "$work/only.json" > "$work/out" || fail "--trace-categories: exit code $?"
	grep -q '"commit"' "$work/only.json" || fail "--trace-categories: db is missing"
	! grep -q '"accept"' "$work/only.json" || fail "--trace-categories: gateway is there"
}

check_command_line
run_demo
check_files
check_contents
check_environment
check_categories
if [ "$failures" -gt 0 ]; then
	echo "the files are kept in $work"
	exit 1
fi
rm -rf "$work"
echo "all is well"
