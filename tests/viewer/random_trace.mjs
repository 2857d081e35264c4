// SPDX-License-Identifier: MIT
//
// random_trace.mjs: traces in Chrome's JSON with some of everything: nested and unfinished slices, instants, async
// spans, counters, flows, arguments of all types, odd names, samples with stacks, scheduling.

export class Random {
	constructor(seed) {
		this.state = seed >>> 0 || 1;
	}

	// Mulberry32.
	next() {
		this.state = (this.state + 0x6d2b79f5) >>> 0;
		let t = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
		t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
	}

	below(limit) {
		return Math.floor(this.next() * limit);
	}

	// Returns up to this many of them, each once.
	some(list, count) {
		return [...new Set(Array.from({ length: count }, () => this.of(list)))];
	}

	of(list) {
		return list[this.below(list.length)];
	}
}

const NAMES = ['alpha', 'Beta', 'gamma ray', 'Ärger', '</script><b>', 'quote"\\', '😀 work', 'x'.repeat(300),
	'net.read', ''];
const CATEGORIES = ['net', 'db,slow', 'ui', ''];

function args(random) {
	const values = {
		size: random.below(2000),
		text: random.of(['xyz', 'Ärger', '', 'long '.repeat(50)]),
		ratio: random.below(64) / 32,
		tenth: random.below(100) / 10,
		tiny: 1e-9 * random.below(9),
		ok: random.below(2) === 1,
		nothing: null,
		far: -random.below(2 ** 40),
		list: [1, 'two', { three: 3 }],
		pointer: `0x${random.below(2 ** 32).toString(16)}`,
	};
	const keys = Object.keys(values).filter(() => random.below(4) === 0);
	return Object.fromEntries(keys.map((key) => [key, values[key]]));
}

class Maker {
	constructor(seed) {
		this.random = new Random(seed);
		this.events = [];
		this.ts = 1000; // us
		this.depths = new Map();
	}

	add(event) {
		const { random, ts } = this;
		const usual = { pid: 10 + random.below(2), ts, cat: random.of(CATEGORIES), name: random.of(NAMES) };
		this.events.push({ ...usual, ...event });
	}

	// Most steps are short, some are pauses.
	step() {
		const { random } = this;
		const us = random.below(20) * random.next() ** 3 * (random.below(200) ? 1 : 2000);
		this.ts = Math.round((this.ts + us) * 1000) / 1000;
	}

	nested(tid) {
		const depth = this.depths.get(tid) ?? 0;
		const begins = this.random.below(2) && depth < 12;
		this.depths.set(tid, Math.max(0, depth + (begins ? 1 : -1)));
		if (begins) this.add({ ph: 'B', pid: 10 + tid % 2, tid, args: args(this.random) });
		else if (depth) this.add({ ph: 'E', pid: 10 + tid % 2, tid });
	}

	one() {
		const { random } = this;
		const tid = 100 + random.below(5);
		const pid = 10 + tid % 2;
		const what = random.below(20);
		this.step();
		if (what < 11) this.nested(tid);
		else if (what < 13) this.add({ ph: 'i', s: 't', pid, tid, args: args(random) });
		else if (what < 15) this.add({ ph: 'C', name: random.of(['queue', 'load']), args: { value: random.below(100) / 8 } });
		else if (what === 15) this.add({ ph: 'b', id: random.below(40), cat: 'net', name: random.of(['request', 'reply']) });
		else if (what === 16) this.add({ ph: 'e', id: random.below(40), cat: 'net', name: random.of(['request', 'reply']) });
		else if (what === 17)
			this.add({ ph: random.of(['s', 'f']), bp: 'e', id: random.below(30), pid, tid, name: 'flow', cat: 'net' });
		else this.add({ ph: 'X', pid, tid: 200 + random.below(2), dur: random.below(30) / 4, args: args(random) });
	}
}

function stacks(random, end) {
	const stackFrames = {};
	for (let i = 1; i <= 20; i++)
		stackFrames[i] = { name: `frame ${random.below(12)}`, ...(i > 1 ? { parent: String(1 + random.below(i - 1)) } : {}) };
	const samples = [];
	for (let ts = 1000; ts < end && samples.length < 2000; ts += random.below(5) ? 100 : 1500)
		samples.push({ ts, cpu: 0, tid: 100 + random.below(2), name: random.below(9) ? 'cycles' : 'misses',
			sf: String(1 + random.below(20)), weight: 1 + random.below(3) });
	return { stackFrames, samples };
}

const seconds = (us) => (us / 1e6).toFixed(6);

function scheduling(random, end) {
	const lines = ['# tracer: nop', '#'];
	const on = [0, 0];
	for (let ts = 1000; ts < end && lines.length < 1500; ts += 1 + random.below(400)) {
		const cpu = random.below(2);
		const next = random.of([0, 100, 101, 102, 103].filter((tid) => !on.includes(tid) || tid === 0));
		const task = (tid) => (tid ? `work${tid}` : `swapper/${cpu}`);
		const head = (tid) => `${task(tid)}-${tid} [00${cpu}] d... ${seconds(ts)}: `;
		if (next && random.below(2))
			lines.push(`${head(on[cpu])}sched_waking: comm=${task(next)} pid=${next} prio=120 target_cpu=00${cpu}`);
		const prev = `prev_comm=${task(on[cpu])} prev_pid=${on[cpu]} prev_prio=120 prev_state=${random.of(['S', 'R', 'D'])}`;
		const then = `next_comm=${task(next)} next_pid=${next} next_prio=${120 - random.below(3)}`;
		lines.push(`${head(on[cpu])}sched_switch: ${prev} ==> ${then}`);
		on[cpu] = next;
	}
	return lines.join('\n');
}

export function randomTrace(seed, count) {
	const maker = new Maker(seed);
	for (let i = 0; i < count; i++) maker.one();
	const { random, events, ts } = maker;
	return { traceEvents: events, ...stacks(random, ts), systemTraceEvents: scheduling(random, ts) };
}

// So many concurrent spans that rows run out and they overlap.
export function crowdedTrace(seed, count) {
	const random = new Random(seed);
	const events = [];
	for (let id = 0; id < count; id++) {
		const ts = 1000 + Math.round(random.below(1e6) * random.next() ** 4) / 1000;
		const usual = { cat: 'net', name: random.of(['request', 'reply']), pid: 1, id };
		events.push({ ...usual, ph: 'b', ts }, { ...usual, ph: 'e', ts: ts + random.below(1e6) / 1000 });
	}
	return { traceEvents: events };
}
