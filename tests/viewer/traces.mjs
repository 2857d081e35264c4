// SPDX-License-Identifier: MIT
//
// traces.mjs: the traces for testing the page. Those made here are Chrome JSON, so that this file shows their content;
// the demo's are real.
import fs from 'node:fs';
import { promisify } from 'node:util';
import { execFile } from 'node:child_process';

const run = promisify(execFile);

export const names = (pid, process, threads) => [
	{ ph: 'M', name: 'process_name', pid, tid: pid, args: { name: process } },
	...Object.entries(threads).map(([tid, name]) => (
		{ ph: 'M', name: 'thread_name', pid, tid: Number(tid), args: { name } })),
];
const slice = (tid, name, ts, dur, args = {}, cat = 'shop') => ({ ph: 'X', pid: 100, tid, name, ts, dur, args, cat });

// A shop of three threads: a flow hands a request to a worker, and one thread is full of tiny slices.
export function shop() {
	const events = names(100, 'shop', { 101: 'front', 102: 'worker', 103: 'busy' });
	for (let i = 0; i < 20; i++) {
		const at = 1000 + i * 5000;
		events.push(
			slice(101, 'request', at, 2000, { id: i, path: `/cart/${i}`, items: [1, 2, { deep: true }] }),
			slice(101, 'parse', at + 10, 100),
			slice(101, 'query', at + 200, 1000, { table: 'orders', 'rows <b>': i * 3 }, 'db'),
			slice(101, 'reply', at + 1500, 400),
			slice(102, 'job', at + 400, 600, { id: i }),
			slice(102, 'write', at + 500, 200, {}, 'db'),
			{ ph: 's', pid: 100, tid: 101, name: 'handoff', cat: 'shop', id: i + 1, ts: at + 300 },
			{ ph: 'f', bp: 'e', pid: 100, tid: 102, name: 'handoff', cat: 'shop', id: i + 1, ts: at + 450 },
			{ ph: 'i', s: 't', pid: 100, tid: 102, name: 'tick', cat: 'shop', ts: at + 3000 },
			{ ph: 'C', pid: 100, name: 'queue', ts: at, args: { length: (i * 7) % 11 } },
			{ ph: 'b', pid: 100, tid: 101, name: 'session', cat: 'shop', id: `0x${i + 1}`, ts: at },
			{ ph: 'e', pid: 100, tid: 101, name: 'session', cat: 'shop', id: `0x${i + 1}`, ts: at + 7000 },
		);
	}
	for (let i = 0; i < 4000; i++)
		events.push(slice(103, `spin ${i % 3}`, 1000 + i * 25, 15));
	return events;
}

export const oddNames = [
	'<script>window.hacked = 1</script>', '<img src=x onerror="window.hacked = 1">', '</style></script><b>bold</b>',
	'שלום עולם', 'emoji 🧵🔥', 'line\nbreak\ttab', '"quotes\' & amps;', '\u202eoverride', 'x'.repeat(10240), '',
	'{{template}} ${dollar}', 'javascript:alert(1)',
];

export function odd() {
	const events = [];
	oddNames.forEach((name, i) => {
		events.push(...names(200 + i, name, { [200 + i]: name }), {
			ph: 'X', pid: 200 + i, tid: 200 + i, name, cat: name, ts: 10 + i, dur: 1000, args: { [name || 'none']: name },
		});
	});
	return events;
}

export function manyThreads(count) {
	const events = names(300, 'crowd', {});
	for (let i = 0; i < count; i++) {
		events.push(...names(300, 'crowd', { [1000 + i]: `member ${i}` }).slice(1));
		events.push({ ph: 'X', pid: 300, tid: 1000 + i, name: `work ${i % 10}`, ts: i, dur: 500 });
	}
	return events;
}

// Writes all of them into the harness' folder; returns their paths by name.
export async function makeTraces(harness) {
	const made = {};
	for (const [name, events] of Object.entries({ shop: shop(), odd: odd(), crowd: manyThreads(5000), empty: [] })) {
		made[name] = harness.file(`${name}.json`);
		fs.writeFileSync(made[name], JSON.stringify({ traceEvents: events }));
	}
	made.demo = harness.file('demo.kymo');
	await run(harness.demo, ['--trace-output', made.demo]);
	return made;
}
