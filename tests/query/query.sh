#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# query.sh: kymo query as people and scripts use it: where SQL comes from, how rows go out, what errors say.
#
#   query.sh KYMO
set -u
kymo=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0

cat > "$dir/t.json" <<'EOF'
{"traceEvents": [
 {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "main"}},
 {"ph": "X", "pid": 1, "tid": 2, "ts": 1, "dur": 10, "cat": "c", "name": "a, \"b\"\nc", "args": {"n": 5}},
 {"ph": "X", "pid": 1, "tid": 2, "ts": 2, "dur": 3, "cat": "c", "name": "plain"},
 {"ph": "X", "pid": 1, "tid": 2, "ts": 6, "dur": 3.5, "cat": "c", "name": "plain"}
]}
EOF

# is NAME EXPECTED-CODE EXPECTED-OUTPUT COMMAND...: what is printed on standard output, to the byte
is() {
	local name=$1 code=$2 expected=$3
	shift 3
	local got
	got=$("$@" 2> "$dir/err"; echo "code $?")
	if [ "$got" != "$expected${expected:+
}code $code" ]; then
		printf 'FAILED: %s\n--- expected (code %s)\n%s\n--- got\n%s\n--- said\n%s\n' "$name" "$code" \
			"$expected" "$got" "$(cat "$dir/err")"
		failed=1
	fi
}

# says PATTERN: the last command said one line that matches
says() {
	if [ "$(wc -l < "$dir/err")" != 1 ] || ! grep -qE "$1" "$dir/err"; then
		printf 'FAILED: expected one line like %s, but it said\n%s\n' "$1" "$(cat "$dir/err")"
		failed=1
	fi
}

q() { "$kymo" query "$dir/t.json" "$@"; }
from() { local input=$1; shift; printf '%s' "$input" | q "$@"; }

is 'a table' 0 'name   count(*)  sum(dur)
-----  --------  --------
plain         2      6500' q "select name, count(*), sum(dur) from slice where name = 'plain' group by name"
is 'SQL may begin with a comment' 0 'a
-
1' q $'-- what it is\n-- for\nselect 1 as a'
is 'nothing found is a table without rows' 0 'id
--' q 'select id from slice where id = 99'
is 'CSV quotes what must be' 0 'name,dur,x,e
"a, ""b""
c",10000,,""' q --csv "select name, dur, null as x, '' as e from slice where id = 0"
is 'JSON escapes what must be' 0 '[
  {"name": "a, \"b\"\nc", "dur": 10000, "half": 0.5, "x": null, "dur_2": 1, "b": "00ff"},
  {"name": "plain", "dur": 3000, "half": 0.5, "x": null, "dur_2": 1, "b": "00ff"}
]' \
	q --json "select name, dur, 0.5 as half, null as x, 1 as dur, x'00ff' as b from slice limit 2"
is 'JSON of nothing' 0 '[]' q --json 'select id from slice where id = 99'
is 'JSON lines' 0 '{"id": 0}
{"id": 1}' q --lines 'select id from slice where id < 2'
is 'the last form of output wins' 0 'n
3' q --json --lines --csv 'select count(*) as n from slice'
is 'and JSON after CSV' 0 '[
  {"n": 3}
]' q --csv --json 'select count(*) as n from slice'
is 'JSON in lines, in any order' 0 '{"n": 3}' q --lines --json 'select count(*) as n from slice'
is 'infinity is no JSON' 0 '[
  {"i": null}
]' q --json 'select 9e999 as i'
is 'several statements' 0 'a
1

b
2' q --csv 'select 1 as a;' 'select 2 as b; -- no more'
is 'standard input' 0 'n
3' from 'select count(*) as n from slice;' --csv
is 'many rows keep their widths' 0 '1500' bash -c "'$kymo' query '$dir/t.json' 'with recursive r(x) as
	(select 1 union all select x + 1 from r where x < 1500) select x from r' | tail -1 | tr -d ' '"

printf 'include perfetto module x;\nselect name\nfrom slice where id = 1;\nselect nam from slice;' > "$dir/q.sql"
is 'a file, and the place of an error in it' 1 'name
plain' q --csv -f "$dir/q.sql"
says '^kymo query: .*q.sql: line 4, column 8: no such column: nam$'

is 'a wrong statement' 1 '' q 'selec 1'
says '^kymo query: line 1, column 1: near "selec": syntax error$'
is 'nothing is written' 1 '' q "insert into slice(name) values ('x')"
says '^kymo query: table slice may not be modified$'
is 'no file is reached' 1 '' q "attach '$dir/x.db' as x"
says '^kymo query: not authorized$'
[ ! -e "$dir/x.db" ] || { echo 'FAILED: x.db was made'; failed=1; }
is 'no trace is used wrongly' 2 '' "$kymo" query
is 'an unknown option is used wrongly' 2 '' q --nope
is 'a missing file of SQL' 1 '' q -f "$dir/none.sql"
says 'none.sql: No such file or directory$'
is 'a missing trace' 1 '' "$kymo" query "$dir/none.json" 'select 1'
printf 'garbage\001' > "$dir/garbage"
is 'garbage' 1 '' "$kymo" query "$dir/garbage" 'select 1'
says '^kymo query: '
is 'a trace from standard input' 0 'n
3' bash -c "'$kymo' query --csv - 'select count(*) as n from slice' < '$dir/t.json'"

# The prompt, on a terminal that script(1) makes: lines go on until the semicolon, names complete, history is kept.
if ! script -qec true /dev/null > /dev/null 2>&1; then
	echo 'the prompt: skipped: no script(1), or no pseudo-terminal: mount devpts on /dev/pts'
else
	export XDG_STATE_HOME=$dir/state
	printf 'select COUNT(*) as n\nfrom slice, trace_bou\t;\n.schema stats\n.tables\n.nonsense\nselect nam from slice;\n.quit\n' |
		TERM=dumb timeout 60 script -qec "'$kymo' query '$dir/t.json'" /dev/null > "$dir/out" 2>&1
	for part in '^ *3.$' '1 row, ' 'severity  *TEXT' 'thread_counter_track' 'there is no command .nonsense' 'no such column: nam'; do
		grep -qE "$part" "$dir/out" || { echo "FAILED: no $part at the prompt"; cat "$dir/out"; failed=1; }
	done
	grep -qi 'count(\*) as n from slice, trace_bounds' "$dir/state/kymo/query_history" ||
		{ echo 'FAILED: no history'; failed=1; }
fi
[ "$failed" = 0 ] && echo 'kymo query: all as expected'
exit "$failed"
