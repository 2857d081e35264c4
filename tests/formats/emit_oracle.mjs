#!/usr/bin/env node
// SPDX-License-Identifier: MIT
//
// What Perfetto's trace_processor makes of the files that kymo writes, against what was recorded.
//
//   emit_oracle.mjs DIR [FORMAT...]             DIR was filled by test_writers --write
//   emit_oracle.mjs TEST_WRITERS [FORMAT...]    that program, to be run first
//
// Without a FORMAT (json, pftrace, fxt) all are looked at, each in a process of its own.
//
// DIR/all.notes lists every event of all.json, all.pftrace and all.fxt, with texts as hexadecimal bytes. From these
// notes this script builds the spans, points, counters and flows that a reader has to find, by the rules of kymo and
// not by those of any format; the table of formats below has what the formats cannot carry. Then each file is
// cut off at 200 places and has to import up to the cut.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { execFileSync, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { load, needEngine, open, problems, rows } from '../../tools/oracle/trace-processor.mjs';

const CUTS = 200;
const SNAPSHOTS_TID = 2147483647;
const KIND = { BEGIN: 1, END: 2, INSTANT: 3, COUNTER: 4, ASYNC_BEGIN: 5, ASYNC_INSTANT: 6, ASYNC_END: 7, FLOW_BEGIN: 8,
	FLOW_STEP: 9, FLOW_END: 10, PRINT: 11, OBJECT_NEW: 12, OBJECT_SNAPSHOT: 13, OBJECT_DELETE: 14, METADATA: 15,
	CLOCK_SYNC: 16, SAMPLE: 17, SNAPSHOT: 18, MARK: 19, LOST: 20 };
const TYPE = { INT: 1, UINT: 2, DOUBLE: 3, BOOL: 4, POINTER: 5, STRING: 6 };
const SITE = { PROCESS: 0x20, GLOBAL: 0x40 };

// ---- what was recorded ----

/** Bytes as text, by the WHATWG decoder: an implementation of the replacement rules that is not ours. */
function text(hex, cut) {
	const bytes = Buffer.from(hex, 'hex');
	if (!cut) return new TextDecoder().decode(bytes);
	const whole = new TextDecoder().decode(bytes, { stream: true }); // leaves out a character that is not complete
	return whole + '\u2026';
}

function double(bits) {
	const view = new DataView(new ArrayBuffer(8));
	view.setBigUint64(0, BigInt(bits));
	return view.getFloat64(0);
}

const signed = (word) => BigInt.asIntN(64, BigInt(word));

function value(arg) {
	switch (arg.type) {
	case TYPE.INT: return signed(arg.value);
	case TYPE.UINT:
	case TYPE.POINTER: return BigInt(arg.value);
	case TYPE.DOUBLE: return double(arg.value);
	case TYPE.BOOL: return arg.value !== '0';
	default: return text(arg.string, arg.cut);
	}
}

const recordedArgs = (event) => event.args.map((arg) => ({ key: text(arg.key), type: arg.type, value: value(arg) }));
const own = (key, type, held) => ({ key, type, value: held });

/** The notes as events in the order of their times. */
function readNotes(file) {
	const notes = JSON.parse(fs.readFileSync(file, 'utf8'));
	const threads = new Map();
	for (const note of notes) if (note.thread !== undefined) threads.set(note.tid, text(note.thread));
	const events = notes.filter((note) => note.kind !== undefined)
		.map((note, order) => ({ ...note, order, time: BigInt(note.time), id: BigInt(note.id) }));
	events.sort((a, b) => (a.time === b.time ? a.order - b.order : a.time < b.time ? -1 : 1));
	return { pid: notes[0].pid, process: text(notes[0].process), threads, events };
}

/** Where an event that is a point belongs, in each format's eyes. */
function pointPlace(event, format) {
	if (event.kind === KIND.SNAPSHOT || event.kind === KIND.MARK) return 'snapshots';
	if (format.scopes && event.flags & SITE.GLOBAL) return 'global';
	if (format.scopes && (event.flags & SITE.PROCESS || event.kind === KIND.METADATA)) return 'process';
	return `thread ${event.tid}`;
}

function pointName(event) {
	if (event.kind === KIND.LOST) return 'events lost';
	return event.kind === KIND.MARK ? 'mark start' : text(event.name);
}

const objectStates = { [KIND.OBJECT_NEW]: 'new', [KIND.OBJECT_SNAPSHOT]: 'snapshot', [KIND.OBJECT_DELETE]: 'delete' };

function pointArgs(event) {
	if (event.kind === KIND.PRINT) return [];
	if (event.kind === KIND.LOST) return [own('count', TYPE.UINT, event.id)];
	const args = recordedArgs(event);
	if (objectStates[event.kind])
		args.push(own('object', TYPE.STRING, objectStates[event.kind]), own('id', TYPE.POINTER, event.id));
	if (event.kind === KIND.SNAPSHOT || event.kind === KIND.MARK)
		args.push(own('thread', TYPE.INT, BigInt(event.tid)));
	return args;
}

/** Plays the events: what is open on which track, and what comes of it. */
class Model {
	slices = [];
	counters = [];
	flows = [];
	#open = new Map();
	#flying = new Map();

	constructor(notes, format) {
		for (const event of notes.events) this.#take(event, format);
	}

	#stack(track) {
		if (!this.#open.has(track)) this.#open.set(track, []);
		return this.#open.get(track);
	}

	#add(event, track, place, dur, name, args) {
		const stack = this.#stack(track);
		const category = event.kind === KIND.LOST ? 'kymo' : text(event.category);
		const slice = { ts: event.time, dur, place, depth: stack.length, name, category, args };
		if (event.kind !== KIND.LOST && place !== 'snapshots')
			slice.source = `${text(event.file)}:${event.line} ${text(event.function)}`;
		this.slices.push(slice);
		if (dur < 0n) stack.push(slice);
	}

	#begin(event, track, place) {
		const args = recordedArgs(event);
		if (event.begin_lost) args.push(own('begin_lost', TYPE.BOOL, true));
		this.#add(event, track, place, -1n, text(event.name), args);
	}

	#end(event, track) {
		const slice = this.#stack(track).pop();
		slice.dur = event.time - slice.ts;
		slice.args.push(...recordedArgs(event));
	}

	#count(event, format) {
		const args = recordedArgs(event);
		for (const arg of args)
			this.counters.push({ ts: event.time, name: format.counter(text(event.name), arg.key, args.length),
				value: Number(arg.value) });
	}

	#flow(event) {
		const key = `${event.category} ${event.name} ${event.id}`;
		const slice = this.#stack(`thread ${event.tid}`).at(-1);
		if (event.kind !== KIND.FLOW_BEGIN) this.flows.push({ from: this.#flying.get(key), to: slice });
		this.#flying.set(key, slice);
	}

	#take(event, format) {
		const async = `async ${event.category} ${event.id}`;
		const thread = `thread ${event.tid}`;
		switch (event.kind) {
		case KIND.BEGIN: return this.#begin(event, thread, thread);
		case KIND.END: return this.#end(event, thread);
		case KIND.COUNTER: return this.#count(event, format);
		case KIND.ASYNC_BEGIN: return this.#begin(event, async, 'async');
		case KIND.ASYNC_INSTANT: return this.#add(event, async, 'async', 0n, text(event.name), recordedArgs(event));
		case KIND.ASYNC_END: return this.#end(event, async);
		case KIND.FLOW_BEGIN:
		case KIND.FLOW_STEP:
		case KIND.FLOW_END: return this.#flow(event);
		}
		if (format.omits.includes(event.kind)) return undefined;
		const place = pointPlace(event, format);
		return this.#add(event, place, place, 0n, pointName(event), pointArgs(event));
	}
}

// ---- what each format can carry, and how trace_processor shows it ----

const int64Max = (1n << 63n) - 1n;
const smallestNormal = 2 ** -1022;

function jsonValue({ type, value: held }) {
	if (type === TYPE.POINTER) return `string 0x${held.toString(16)}`;
	if (type === TYPE.UINT && held > int64Max) return `string ${held}`;
	if (type === TYPE.INT || type === TYPE.UINT) return `int ${held}`;
	if (type === TYPE.BOOL) return `bool ${Number(held)}`;
	if (type === TYPE.STRING) return `string ${held}`;
	if (!Number.isFinite(held)) return `string ${held}`;
	return `real ${Math.abs(held) < smallestNormal ? 0 : held}`; // its JSON parser takes subnormals for zero
}

const realValue = (held) => (Number.isNaN(held) ? 'real null' : `real ${held}`);

function protoValue({ type, value: held }) {
	switch (type) {
	case TYPE.INT: return `int ${held}`;
	case TYPE.UINT: return `uint ${signed(held)}`; // its tables know no more than int64
	case TYPE.POINTER: return `pointer ${signed(held)}`;
	case TYPE.BOOL: return `bool ${Number(held)}`;
	case TYPE.DOUBLE: return realValue(held);
	default: return `string ${held}`;
	}
}

const formats = {
	json: {
		prefix: 'args.', value: jsonValue, scopes: true, sources: false, lost: [],
		omits: [KIND.OBJECT_NEW, KIND.OBJECT_SNAPSHOT, KIND.OBJECT_DELETE, KIND.METADATA, KIND.CLOCK_SYNC, KIND.SAMPLE],
		counter: (name, key) => `${name} ${key}`,
		whole: wholeJson,
	},
	pftrace: {
		prefix: 'debug.', value: protoValue, scopes: true, sources: true, omits: [],
		lost: ['traced_buf_trace_writer_packet_loss'],
		counter: (name, key, count) => (count > 1 ? `${name} ${key}` : name),
		whole: wholePftrace,
	},
	fxt: {
		prefix: '', scopes: false, sources: false, lost: [], omits: [],
		value: (arg) => protoValue(arg.type === TYPE.UINT ? { type: TYPE.INT, value: signed(arg.value) } : arg),
		counter: (name, key) => `${name}:${key}:0`,
		whole: wholeFxt,
	},
};

// ---- what trace_processor found ----

const argValue = (row) => {
	const held = row.value_type === 'string' ? row.string_value ?? ''
		: row.value_type === 'real' ? row.real_value : row.int_value;
	return `${row.value_type} ${Number.isNaN(held) ? null : held}`;
};

async function foundArgs(engine) {
	const sets = new Map();
	for (const row of await rows(engine, 'select * from args')) {
		if (!sets.has(row.arg_set_id)) sets.set(row.arg_set_id, new Map());
		sets.get(row.arg_set_id).set(row.key, argValue(row));
	}
	return sets;
}

function foundPlace(row) {
	if (row.tid === SNAPSHOTS_TID || row.track === 'snapshots') return 'snapshots';
	if (row.tid !== null) return `thread ${row.tid}`;
	if (/async/.test(row.type) || row.type === 'process_merged_track_event') return 'async';
	return /global/.test(row.type) ? 'global' : 'process';
}

async function foundSlices(engine) {
	const sets = await foundArgs(engine);
	const found = await rows(engine, `select s.id, s.ts, s.dur, s.depth, s.name, s.category, s.arg_set_id, t.type,
		t.name as track, thread.tid from slice s join track t on s.track_id = t.id
		left join thread_track on thread_track.id = t.id left join thread using (utid)`);
	return found.map((row) => ({ ...row, place: foundPlace(row), args: sets.get(row.arg_set_id) ?? new Map() }));
}

// ---- comparing ----

const sorted = (list) => list.map(String).sort();
const argLine = (key, shown) => `${key}=${shown}`;

const sliceLine = (s, args, source) =>
	`${s.ts} +${s.dur} ${s.place} depth ${s.depth} ${JSON.stringify([s.category, s.name])} {${sorted(args)}} ${source}`;

function expectedLine(slice, format) {
	const args = slice.args.map((arg) => argLine(format.prefix + arg.key, format.value(arg)));
	return sliceLine(slice, args, format.sources ? slice.source ?? '' : '');
}

function foundLine(slice, format) {
	const shown = (key) => slice.args.get(key)?.replace(/^\w+ /, '');
	const source = slice.args.has('source.file_name')
		? `${shown('source.file_name')}:${shown('source.line_number')} ${shown('source.function_name')}` : '';
	const args = [...slice.args].filter(([key]) => !/^source[._]|^legacy_event|is_root_in_scope/.test(key))
		.map(([key, held]) => argLine(key, held));
	return sliceLine(slice, args, format.sources ? source : '');
}

async function compareSlices(engine, model, format) {
	const found = await foundSlices(engine);
	assert.deepEqual(sorted(found.map((s) => foundLine(s, format))),
		sorted(model.slices.map((s) => expectedLine(s, format))), 'slices');
}

async function compareCounters(engine, model) {
	const found = await rows(engine, 'select c.ts, t.name, c.value from counter c join track t on c.track_id = t.id');
	const line = (c) => `${c.ts} ${c.name} ${c.value}`;
	assert.deepEqual(sorted(found.map(line)), sorted(model.counters.map(line)), 'counters');
}

async function compareFlows(engine, model) {
	const found = await rows(engine, `select o.ts as from_ts, o.name as from_name, i.ts as to_ts, i.name as to_name
		from flow join slice o on slice_out = o.id join slice i on slice_in = i.id`);
	assert.deepEqual(sorted(found.map((f) => `${f.from_ts} ${f.from_name} > ${f.to_ts} ${f.to_name}`)),
		sorted(model.flows.map(({ from, to }) => `${from.ts} ${from.name} > ${to.ts} ${to.name}`)), 'flows');
}

async function compareNames(engine, notes) {
	const threads = await rows(engine, `select tid, thread.name, pid, process.name as process from thread
		join process using (upid) where tid > 0 and tid != ${SNAPSHOTS_TID}`);
	assert.deepEqual(sorted(threads.map((t) => `${t.pid} ${t.process} ${t.tid} ${t.name}`)),
		sorted([...notes.threads].map(([tid, name]) => `${notes.pid} ${notes.process} ${tid} ${name}`)), 'threads');
}

async function compareProblems(engine, format) {
	assert.deepEqual((await problems(engine)).map((p) => p.name), format.lost, 'errors and losses');
}

async function compareAll(engine, directory, name, format) {
	const notes = readNotes(path.join(directory, 'all.notes'));
	const model = new Model(notes, format);
	await load(engine, new Uint8Array(fs.readFileSync(path.join(directory, `all.${name}`))));
	await compareProblems(engine, format);
	await compareSlices(engine, model, format);
	await compareCounters(engine, model);
	await compareFlows(engine, model);
	await compareNames(engine, notes);
	console.log(`ok ${name}: ${model.slices.length} slices, ${model.counters.length} counter values, ` +
		`${model.flows.length} flows, ${notes.threads.size} threads as recorded`);
}

/** More names than any table of the formats holds. */
async function compareManyNames(engine, directory, name) {
	const notes = readNotes(path.join(directory, 'names.notes'));
	const expected = new Map();
	for (const event of notes.events.filter((e) => e.kind === KIND.BEGIN))
		expected.set(text(event.name), [...expected.get(text(event.name)) ?? [], event.time]);
	await load(engine, new Uint8Array(fs.readFileSync(path.join(directory, `names.${name}`))));
	assert.deepEqual(await problems(engine), []);
	const found = await rows(engine, `select name, count() as n, min(ts) as first, max(ts) as last, min(dur) as shortest
		from slice where category = 'names' group by name`);
	assert.equal(found.length, expected.size);
	for (const row of found) {
		const times = expected.get(row.name);
		assert.deepEqual([row.n, row.first, row.last, row.shortest],
			[times.length, Number(times[0]), Number(times.at(-1)), 101], row.name);
	}
	console.log(`ok ${name}: ${found.length} names`);
}

// ---- cut files ----

/** How many slices the whole events of a file make that may end anywhere. */
function wholeJson(bytes) {
	const lines = Buffer.from(bytes).toString('latin1').split('\n').slice(1);
	let slices = 0;
	for (const line of lines) {
		try {
			slices += 'Bibn'.includes(JSON.parse(line.replace(/,$/, '')).ph) ? 1 : 0;
		} catch {
			break;
		}
	}
	return slices;
}

function varint(bytes, at) {
	let held = 0;
	for (let scale = 1; ; scale *= 128) {
		if (at >= bytes.length) return [NaN, at];
		held += (bytes[at] & 0x7f) * scale;
		if (bytes[at++] < 0x80) return [held, at];
	}
}

/** Each field of a message, as number and either its value or its bytes. */
function* fields(bytes) {
	for (let at = 0; at < bytes.length;) {
		let tag, held;
		[tag, at] = varint(bytes, at);
		[held, at] = tag % 8 === 1 ? [8, at] : varint(bytes, at);
		if (tag % 8 === 0) {
			yield [tag >>> 3, held];
			continue;
		}
		if (!(at + held <= bytes.length)) return;
		yield [tag >>> 3, bytes.subarray(at, at + held)];
		at += held;
	}
}

function wholePftrace(bytes) {
	let slices = 0;
	for (const [, packet] of fields(bytes))
		for (const [field, event] of fields(packet))
			if (field === 11) for (const [number, type] of fields(event))
				slices += number === 9 && (type === 1 || type === 3) ? 1 : 0;
	return slices;
}

function wholeFxt(bytes) {
	const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
	let slices = 0;
	for (let at = 0; at + 8 <= bytes.length;) {
		const header = view.getUint32(at, true);
		const words = header >>> 4 & 0xfff;
		at += words * 8;
		if (at <= bytes.length && (header & 15) === 4) slices += [0, 2, 5, 6].includes(header >>> 16 & 15) ? 1 : 0;
	}
	return slices;
}

/** Numbers in [0, 1), the same in every run. */
function* random(seed) {
	for (let state = seed >>> 0; ;) {
		state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
		yield state / 2 ** 32;
	}
}

async function cutAnywhere(engine, directory, name, format) {
	const whole = new Uint8Array(fs.readFileSync(path.join(directory, `all.${name}`)));
	const numbers = random(42);
	const first = 128; // before the first event there is nothing to tell the formats by
	for (let i = 0; i < CUTS; i++) {
		const length = first + Math.floor(numbers.next().value * (whole.length - first));
		const bytes = whole.slice(0, length);
		try {
			await load(engine, bytes);
			const [{ n }] = await rows(engine, 'select count() as n from slice');
			assert.equal(n, format.whole(bytes), 'slices');
		} catch (error) {
			throw Error(`all.${name} cut after ${length} bytes: ${error.message ?? error}`);
		}
	}
	console.log(`ok ${name}: imports up to the cut, at ${CUTS} places`);
}

// ---- the rest ----

/** Chrome and others use a strict parser. */
function parseStrictly(directory) {
	for (const stem of ['all', 'names']) {
		const events = JSON.parse(fs.readFileSync(path.join(directory, `${stem}.json`), 'utf8'));
		assert.ok(events.every((event) => event.ph && event.pid), stem);
	}
	console.log('ok json: JSON.parse takes it');
}

function written(argument) {
	if (fs.statSync(argument).isDirectory()) return argument;
	const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'kymo-oracle-'));
	process.on('exit', () => fs.rmSync(directory, { recursive: true, force: true }));
	execFileSync(argument, ['--write', directory]);
	return directory;
}

async function check(directory, name) {
	const format = formats[name];
	const engine = await open();
	if (name === 'json') parseStrictly(directory);
	await compareAll(engine, directory, name, format);
	await compareManyNames(engine, directory, name);
	await cutAnywhere(engine, directory, name, format);
}

/** The engine keeps one core busy; there may be more. */
function checkInOwnProcess(directory, name) {
	return new Promise((resolve, reject) => {
		const child = spawn(process.execPath, [fileURLToPath(import.meta.url), directory, name], { stdio: 'inherit' });
		child.on('error', reject);
		child.on('exit', (code) => (code === 0 ? resolve() : reject(Error(`${name} is not as recorded`))));
	});
}

async function main([argument, ...names]) {
	if (!argument || names.some((name) => !formats[name])) {
		console.error('usage: oracle.mjs DIR|TEST_WRITERS [json|pftrace|fxt ...]');
		process.exit(1);
	}
	needEngine();
	const directory = written(argument);
	if (names.length) for (const name of names) await check(directory, name);
	else await Promise.all(Object.keys(formats).map((name) => checkInOwnProcess(directory, name)));
}

main(process.argv.slice(2)).then(() => process.exit(0), (error) => {
	console.error(error.message ?? error);
	process.exit(1);
});
