#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// difftests.mjs KYMO DIFFERENCES FOLDER...: run the same queries over the same files, here and by Perfetto's trace_processor,
// and compare the rows.
//
// A FOLDER has fixtures; one that is absent is skipped, with a line that says so. DIFFERENCES lists what is known to differ and why: file,
// query, reason, by tabs; * is any. KYMO_FILTER=TEXT runs the files whose names contain it, KYMO_FILTER=all every file.
import fs from 'node:fs';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { needEngine } from '../../tools/oracle/trace-processor.mjs';

const [kymo, differences, ...folders] = process.argv.slice(2);
const filter = process.env.KYMO_FILTER;
const tool = fileURLToPath(new URL('../../tools/oracle/trace-processor.mjs', import.meta.url));
needEngine();

// The files of a normal run: a few of each kind, since trace_processor takes two seconds to start.
const usual = [
	'demo.json', 'demo.fxt', 'sampled.pftrace',
	'JsonParser__json_instants', 'SchedParser__', 'TrackEvent__track_event_typed_args_slices', 'Profiling__perf_sample',
	'DynamicTables__', 'track_event_counters_counters.pftrace', 'Tables__android_logs',
];

const queries = {
	slices: `select s.ts, s.dur, s.name, s.category, s.depth, t.tid, p.pid from slice s
		left join thread_track k on s.track_id = k.id left join thread t using (utid)
		left join process p using (upid) order by 1, 5, 2 desc, 3, 6`,
	sums: `select name, count(*) n, sum(dur) s, min(ts) a, max(dur) b, avg(dur) c from slice group by name order by name`,
	categories: `select category, depth, count(*) n, count(name) m from slice where dur >= 0 group by 1, 2 order by 1, 2`,
	args: `select s.ts, s.name, a.flat_key, a.key, a.int_value, a.string_value, a.real_value, a.value_type, a.display_value
		from slice s join args a using (arg_set_id) order by s.ts, s.name, s.dur, a.key, a.display_value`,
	instants: `select ts, name from instant order by ts, name`,
	ancestors: `select s.ts, s.name, a.name up from slice s, ancestor_slice(s.id) a order by s.ts, s.name, a.depth`,
	descendants: `select s.ts, s.name, count(*) n from slice s, descendant_slice(s.id) d group by s.id order by 1, 2, 3`,
	flows: `select o.ts, o.name, i.ts as ts2, i.name as name2 from flow f join slice o on o.id = f.slice_out
		join slice i on i.id = f.slice_in order by 1, 2, 3, 4`,
	following: `select s.ts, s.name, s.dur, count(*) n from slice s, following_flow(s.id) f group by s.id order by 1, 2, 3, 4`,
	preceding: `select s.ts, s.name, s.dur, count(*) n from slice s, preceding_flow(s.id) f group by s.id order by 1, 2, 3, 4`,
	connected: `select s.ts, s.name, s.dur, count(*) n from slice s, directly_connected_flow(s.id) f group by s.id
		order by 1, 2, 3, 4`,
	counters: `select c.ts, c.value, t.name, t.unit from counter c join counter_track t on c.track_id = t.id order by 1, 3, 2`,
	process_counters: `select t.name, p.pid, count(*) n, sum(c.value) s from counter c join process_counter_track t
		on c.track_id = t.id join process p using (upid) group by 1, 2 order by 1, 2`,
	cpu_counters: `select t.name, t.cpu, count(*) n from counter c join cpu_counter_track t on c.track_id = t.id
		group by 1, 2 order by 1, 2`,
	sched: `select ts, dur, cpu, tid, end_state, priority, ts_end from sched join thread using (utid) order by ts, cpu, tid`,
	states: `select ts, dur, cpu, tid, state, io_wait, blocked_function from thread_state join thread using (utid)
		where utid != 0 order by ts, tid, state`,
	raw: `select name, cpu, count(*) n from ftrace_event group by 1, 2 order by 1, 2`,
	threads: `select tid, t.name, is_main_thread, pid from thread t left join process using (upid) where tid != 0
		order by 1, 2, 4`,
	processes: `select pid, name from process where pid != 0 order by 1, 2`,
	perf: `select s.ts, s.cpu, s.cpu_mode, f.name, m.name as file from perf_sample s left join stack_profile_callsite c
		on c.id = s.callsite_id left join stack_profile_frame f on f.id = c.frame_id left join stack_profile_mapping m
		on m.id = f.mapping order by 1, 2, 4`,
	stacks: `select s.ts, c.depth, f.name from cpu_profile_stack_sample s join stack_profile_callsite c
		on c.id = s.callsite_id join stack_profile_frame f on f.id = c.frame_id order by 1, 2, 3`,
	logs: `select ts, prio, tag, msg from android_logs order by ts, msg`,
	clocks: `select ts, clock_id, clock_name, clock_value from clock_snapshot order by ts, snapshot_id, clock_id, clock_value`,
	context: `include perfetto module slices.with_context; select ts, name, thread_name, tid, process_name, pid
		from thread_slice order by 1, 2, 4`,
	bounds: `select start_ts, end_ts, trace_dur() d from trace_bounds`,
	times: `select to_timecode(123456789012) a, abs_time_str(trace_start()) b, to_realtime(trace_start()) c,
		to_monotonic(trace_start()) d`,
	texts: `select str_split('a,b,c', ',', 1) s, str_split('a,b', ',', 9) t, 'abc' regexp 'b' r, reverse('abc') v,
		regexp_extract('abc123', '[0-9]+') x`,
	percentiles: `select percentile(dur, 50) a, percentile(dur, 95) b, median(dur) c from slice`,
};

function known() {
	return fs.readFileSync(differences, 'utf8').split('\n').filter((l) => l && !l.startsWith('#')).map((l) => l.split('\t'));
}

const list = known();
const reason = (file, query) => list.find(([f, q]) => (f === '*' || file.includes(f)) && (q === '*' || q === query))?.[2];

function files(dir) {
	return fs.readdirSync(dir, { withFileTypes: true }).flatMap((e) => {
		const full = path.join(dir, e.name);
		return e.isDirectory() ? files(full) : [full];
	}).filter((f) => /\.(pftrace|json|systrace|fxt)$/.test(f) || /ftrace-text.*\.txt$/.test(f))
		.filter((f) => !/oracle\.txt$/.test(f)).sort();
}

// Both sides as text: integers beyond 2^53 are texts there, reals are rounded.
const plain = (v) => typeof v === 'number' && !Number.isInteger(v) ? Number(v.toPrecision(12)) : v;
const text = (rows) => rows.map((r) => JSON.stringify(Object.values(r).map(plain)));

function perfetto(file) {
	const sql = Object.values(queries);
	try {
		return execFileSync('node', [tool, file, ...sql], { encoding: 'utf8', maxBuffer: 1 << 29, stdio: ['ignore', 'pipe', 'ignore'] })
			.split('\n').filter((l) => l.startsWith('[')).map((l) => text(JSON.parse(l)));
	} catch {
		return null;
	}
}

const big = (s) => s.replace(/(: )(-?\d{16,})(?=[,}])/g, (all, a, n) => (Number.isSafeInteger(Number(n)) ? all : `${a}"${n}"`));

function ours(file, sql) {
	try {
		const out = execFileSync(kymo, ['query', '--quiet', '--lines', file, sql],
			{ encoding: 'utf8', maxBuffer: 1 << 29, stdio: ['ignore', 'pipe', 'pipe'] });
		return text(out.split('\n').filter(Boolean).map((l) => JSON.parse(big(l))));
	} catch (e) {
		return [String(e.stderr || e.message).trim()];
	}
}

let same = 0, explained = 0, different = 0, refused = 0;

function compare(name, file) {
	const theirs = perfetto(file);
	if (!theirs) {
		refused++;
		return;
	}
	Object.entries(queries).forEach(([query, sql], i) => {
		const mine = ours(file, sql);
		if (theirs[i] === undefined || JSON.stringify(theirs[i]) === JSON.stringify(mine)) {
			same++;
			return;
		}
		if (reason(name, query)) {
			explained++;
			return;
		}
		different++;
		const at = mine.findIndex((row, n) => row !== theirs[i][n]);
		const place = at < 0 ? mine.length : at;
		console.log(`${name}\t${query}\t${mine.length} rows here, ${theirs[i].length} there; row ${place}: ` +
			`${mine[place]} here, ${theirs[i][place]} there`);
	});
}

for (const folder of folders) {
	if (!fs.existsSync(folder)) {
		console.log(`skipped: no fixtures at ${folder}`);
		continue;
	}
	for (const file of files(folder)) {
		const name = path.relative(folder, file);
		if (filter === 'all' || (filter ? [filter] : usual).some((part) => name.includes(part))) compare(name, file);
	}
}
console.log(`${same} the same, ${explained} explained, ${different} different, ${refused} files refused by trace_processor`);
process.exit(different ? 1 : 0);
