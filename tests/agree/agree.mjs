#!/usr/bin/env node
// SPDX-License-Identifier: MIT
//
// agree.mjs DEMO KYMO_DUMP: one run of the demo, recorded by a session for each format at once. What trace_processor
// reads from .json, .pftrace and .fxt, and our reader from .kymo, must be the same: every span, instant and counter
// with its thread, times to the nanosecond and arguments, every arrow between the same spans.
//
// Exit codes: 0 they agree, 1 they do not, 77 trace_processor is unavailable.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { needEngine, open, rows } from '../../tools/oracle/trace-processor.mjs';

const [demo, dump] = process.argv.slice(2);
const formats = ['pftrace', 'json', 'fxt'];

// What trace_processor calls an argument, a counter and the track of a thread differs from format to format.
const prefixes = { pftrace: 'debug.', json: 'args.', fxt: '' };
const counterSuffix = { pftrace: '', json: ' value', fxt: ':value:0' };

const byTime = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

async function threadSpans(engine, format) {
	const prefix = prefixes[format];
	const spans = await rows(engine, `select s.ts, s.dur, s.depth, s.name, s.category, t.tid, s.arg_set_id a
		from slice s join thread_track k on s.track_id = k.id join thread t using (utid)
		where s.category != 'kymo'`); // snapshots have a thread of their own in some formats, a track in others
	const args = new Map();
	for (const r of await rows(engine, 'select arg_set_id a, key, display_value v from args')) {
		if (!r.key.startsWith(prefix) || r.key.includes('source_') || r.key.startsWith('legacy')) continue;
		if (!args.has(r.a)) args.set(r.a, []);
		args.get(r.a).push(`${r.key.slice(prefix.length)}=${r.v}`);
	}
	return spans.map((s) => [s.ts, s.dur, s.tid, s.depth, s.category, s.name, (args.get(s.a) ?? []).sort().join(' ')]
		.join('|')).sort(byTime);
}

async function asyncSpans(engine) {
	return (await rows(engine, `select s.ts, s.dur, s.name, s.category from slice s
		where s.track_id not in (select id from thread_track) and s.category != 'kymo'`))
		.map((s) => [s.ts, s.dur, s.category, s.name].join('|')).sort(byTime);
}

async function counters(engine, format) {
	return (await rows(engine, `select c.ts, c.value, t.name from counter c join counter_track t on c.track_id = t.id`))
		.map((c) => [c.ts, c.name.replace(counterSuffix[format], ''), Number(c.value).toPrecision(12)].join('|'))
		.sort(byTime);
}

async function flows(engine) {
	return (await rows(engine, `select a.ts at, a.name an, b.ts bt, b.name bn from flow f
		join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id`))
		.map((f) => [f.at, f.an, f.bt, f.bn].join('|')).sort(byTime);
}

async function imported(file, format) {
	const engine = await open(file);
	const problems = await rows(engine,
		"select name from stats where value > 0 and severity in ('error', 'data_loss')");
	assert.deepEqual(problems.map((p) => p.name), [], `${format}: trace_processor complains`);
	return { spans: await threadSpans(engine, format), async: await asyncSpans(engine),
		counters: await counters(engine, format), flows: await flows(engine) };
}

// The same from our own reader's events: spans of a thread are a stack.
function dumped(file) {
	const spans = [], async = [], stacks = new Map(), open = new Map(), counted = [];
	for (const line of execFileSync(dump, [file], { encoding: 'utf8', maxBuffer: 1 << 30 }).split('\n')) {
		if (!line) continue;
		const e = JSON.parse(line.replace(/"ts":(\d+)/, '"ts":"$1"'));
		if (e.summary) {
			assert.equal(e.summary.lost, 0);
			continue;
		}
		const stack = stacks.get(e.tid) ?? [];
		stacks.set(e.tid, stack);
		const key = `${e.category}|${e.id}`;
		if (!open.has(key)) open.set(key, []);
		switch (e.kind) {
		case 'begin': stack.push(e); break;
		case 'end': {
			const b = stack.pop();
			spans.push([b.ts, BigInt(e.ts) - BigInt(b.ts), e.tid, stack.length, b.category, b.name].join('|'));
			break;
		}
		case 'instant':
		case 'print': spans.push([e.ts, 0, e.tid, stack.length, e.category, e.name].join('|')); break;
		case 'counter': counted.push([e.ts, e.name, Number(e.args.value).toPrecision(12)].join('|')); break;
		case 'async_begin': open.get(key).push(e); break;
		case 'async_instant': async.push([e.ts, 0, e.category, e.name].join('|')); break;
		case 'async_end': {
			const b = open.get(key).pop();
			async.push([b.ts, BigInt(e.ts) - BigInt(b.ts), b.category, b.name].join('|'));
			break;
		}
		}
	}
	return { spans: spans.sort(byTime), async: async.sort(byTime), counters: counted.sort(byTime) };
}

function same(what, a, b, names) {
	for (let i = 0; i < Math.max(a.length, b.length); i++)
		if (a[i] !== b[i])
			assert.fail(`${what} ${i} of ${a.length} and ${b.length}: ${names[0]} has ${a[i]}, ${names[1]} has ${b[i]}`);
	console.log(`ok: ${a.length} ${what} in ${names.join(' and ')}`);
}

needEngine();
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'kymo-agree-'));
try {
	const outputs = [...formats, 'kymo'].flatMap((f) => ['--trace-output', path.join(work, `out.${f}`)]);
	execFileSync(demo, ['--tasks', '300', '--seconds', '0.3', ...outputs], { stdio: 'ignore' });
	const reference = await imported(path.join(work, 'out.pftrace'), 'pftrace');
	for (const format of formats.slice(1)) {
		const other = await imported(path.join(work, `out.${format}`), format);
		for (const what of ['spans', 'async', 'counters', 'flows'])
			same(what, reference[what], other[what], ['pftrace', format]);
	}
	const ours = dumped(path.join(work, 'out.kymo'));
	same('spans', reference.spans.map((s) => s.split('|').slice(0, 6).join('|')).sort(byTime), ours.spans, ['pftrace', 'kymo']);
	same('async', reference.async, ours.async, ['pftrace', 'kymo']);
	same('counters', reference.counters, ours.counters, ['pftrace', 'kymo']);
} finally {
	fs.rmSync(work, { recursive: true, force: true });
}
process.exit(0);
