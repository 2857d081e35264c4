#!/usr/bin/env node
// SPDX-License-Identifier: MIT
//
// What Perfetto's trace_processor makes of a trace as it is, and of the same trace converted by kymo: slices, flows,
// counters and arguments have to be the same in every format.
//
//   export_oracle.mjs KYMO [TRACE...]     without a TRACE: one that is made here, with one of everything
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { load, needEngine, open, problems, rows } from '../../tools/oracle/trace-processor.mjs';

const events = [
	{ ph: 'M', pid: 1, tid: 1, name: 'process_name', args: { name: 'server' } },
	{ ph: 'M', pid: 1, tid: 2, name: 'thread_name', args: { name: 'worker' } },
	{ ph: 'B', pid: 1, tid: 2, ts: 1000.001, cat: 'net', name: 'outer', args: { n: -1, f: 0.5, b: true, s: 'é "x"',
		deep: { list: [1, { two: 2 }], name: 'x' } } },
	{ ph: 's', pid: 1, tid: 2, ts: 1000.5, cat: 'net', name: 'hop', id: '0x7' },
	{ ph: 'B', pid: 1, tid: 2, ts: 2000, cat: 'net', name: 'inner' },
	{ ph: 'E', pid: 1, tid: 2, ts: 3000.999 },
	{ ph: 'i', pid: 1, tid: 2, ts: 3500, s: 't', cat: 'net', name: 'point' },
	{ ph: 'E', pid: 1, tid: 2, ts: 9000 },
	{ ph: 'B', pid: 5, tid: 2, ts: 4000, cat: 'db', name: 'read' },
	{ ph: 't', pid: 5, tid: 2, ts: 4001, cat: 'net', name: 'hop', id: '0x7' },
	{ ph: 'E', pid: 5, tid: 2, ts: 5000 },
	{ ph: 'B', pid: 5, tid: 3, ts: 6000, cat: 'db', name: 'answer' },
	{ ph: 'f', bp: 'e', pid: 5, tid: 3, ts: 6001, cat: 'net', name: 'hop', id: '0x7' },
	{ ph: 'E', pid: 5, tid: 3, ts: 7000 },
	{ ph: 'b', pid: 1, tid: 2, ts: 1500, cat: 'rpc', name: 'call', id2: { local: '0x11' } },
	{ ph: 'e', pid: 1, tid: 2, ts: 8000, cat: 'rpc', name: 'call', id2: { local: '0x11' } },
	{ ph: 'B', pid: 5, tid: 3, ts: 7500, cat: 'db', name: 'unfinished' },
	{ ph: 'C', pid: 1, tid: 2, ts: 1500, name: 'load', args: { value: 3.25 } },
	{ ph: 'C', pid: 1, tid: 2, ts: 2500, name: 'load', args: { value: 4 } },
];

/** Scheduling as ftrace's text: who woke whom, a new task, one that is renamed, one that is woken and never runs. */
const scheduling = `# tracer: nop
  bash-10    [000] d..2.  1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=bash next_pid=10 next_prio=120
  bash-10    [000] .....  1.000100: task_newtask: pid=11 comm=bash clone_flags=1200000 oom_score_adj=0
  bash-10    [000] d..2.  1.000150: sched_wakeup_new: comm=bash pid=11 prio=120 target_cpu=001
  bash-10    [000] d..2.  1.000200: sched_waking: comm=bash pid=11 prio=120 target_cpu=001
  <idle>-0   [001] d..2.  1.000300: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=bash next_pid=11 next_prio=120
  bash-11    [001] .....  1.000400: task_rename: pid=11 oldcomm=bash newcomm=sleep oom_score_adj=0
  sleep-11   [001] d..2.  1.000500: sched_switch: prev_comm=sleep prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
  bash-10    [000] d..2.  1.000600: sched_waking: comm=sleep pid=11 prio=120 target_cpu=001
  <idle>-0   [001] d..2.  1.000800: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=sleep next_pid=11 next_prio=120
  bash-10    [000] d..2.  1.000850: sched_waking: comm=late pid=12 prio=120 target_cpu=000
  bash-10    [000] d..2.  1.000900: sched_switch: prev_comm=bash prev_pid=10 prev_prio=120 prev_state=D ==> next_comm=swapper/0 next_pid=0 next_prio=120
  sleep-11   [001] .....  1.000950: sched_process_exit: comm=sleep pid=11 prio=120
`;

const states = `select s.ts, s.dur, t.tid, s.state, s.cpu, w.tid as waker from thread_state s join thread t using (utid)
	left join thread w on w.utid = s.waker_utid where t.tid != 0 order by 1, 3, 4`;
const names = 'select distinct tid, name from thread where tid != 0 order by 1';

const queries = {
	slices: `select ts, dur, name, ifnull(category, '') as category, depth from slice order by 1, 2, 3, 4, 5`,
	flows: `select o.ts as left_at, o.name as left, i.ts as came_at, i.name as came from flow
		join slice o on o.id = slice_out join slice i on i.id = slice_in order by 1, 2, 3, 4`,
	counters: 'select ts, value from counter order by 1, 2',
	args: `select s.ts, s.name, replace(replace(key, 'args.', ''), 'debug.', '') as key,
		ifnull(string_value, ifnull(int_value, real_value)) as value
		from slice s join args using (arg_set_id)
		where key not like 'legacy_event.%' order by 1, 2, 3`,
};

async function contents(engine, file) {
	await load(engine, new Uint8Array(fs.readFileSync(file)));
	const found = { problems: await problems(engine) };
	for (const [name, sql] of Object.entries(queries)) found[name] = await rows(engine, sql);
	return found;
}

/** Arguments of FXT are flat: names with dots in them. */
const flat = (list) => list.map((row) => ({ ...row, key: row.key.replace(/[.[\]]/g, '_'), value: String(row.value) }))
	.sort((a, b) => a.ts - b.ts || (a.key < b.key ? -1 : 1));

async function check(engine, kymo, directory, trace) {
	const expected = await contents(engine, trace);
	for (const suffix of ['json', 'pftrace', 'fxt']) {
		const file = path.join(directory, `out.${suffix}`);
		execFileSync(kymo, ['convert', '-q', trace, file]);
		const found = await contents(engine, file);
		for (const name of ['slices', 'flows', 'counters'])
			assert.deepEqual(found[name], expected[name], `${trace} as ${suffix}: ${name}`);
		assert.deepEqual(flat(found.args), flat(expected.args), `${trace} as ${suffix}: args`);
		assert.deepEqual(found.problems, [], `${trace} as ${suffix}: problems`);
	}
}

async function checkScheduling(engine, kymo, directory) {
	const text = path.join(directory, 'sched.txt'), file = path.join(directory, 'sched.pftrace');
	fs.writeFileSync(text, scheduling);
	execFileSync(kymo, ['convert', '-q', text, file]);
	await load(engine, new Uint8Array(fs.readFileSync(file)));
	/* Perfetto's importer of text knows less: what kymo makes of it is expected. */
	for (const [name, sql, columns] of [['thread_state', states, ['ts', 'dur', 'tid', 'state', 'cpu', 'waker']],
		['names', names, ['tid', 'name']]]) {
		const expected = execFileSync(kymo, ['query', '-q', '--csv', text, sql], { encoding: 'utf8' }).trim();
		const found = (await rows(engine, sql)).map((row) => columns.map((column) => row[column] ?? '').join(','));
		assert.equal([columns.join(','), ...found].join('\n'), expected, `${name} of the converted trace`);
		assert.ok(name !== 'thread_state' || /,R,,10$/m.test(expected), 'there are wakers');
	}
	assert.deepEqual(await problems(engine), [], 'problems of the converted trace');
}

async function main([kymo, ...traces]) {
	needEngine();
	const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'kymo-oracle-'));
	try {
		const own = path.join(directory, 'in.json');
		fs.writeFileSync(own, JSON.stringify(events));
		const engine = await open();
		for (const trace of traces.length ? traces : [own]) await check(engine, kymo, directory, trace);
		if (!traces.length) await checkScheduling(engine, kymo, directory);
	} finally {
		fs.rmSync(directory, { recursive: true });
	}
}

main(process.argv.slice(2)).then(() => process.exit(0), (error) => {
	console.error(error.message ?? error);
	process.exit(1);
});
