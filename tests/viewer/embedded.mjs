// SPDX-License-Identifier: MIT
//
// embedded.mjs: an exported page answers from its own data as the server does: the same tiles, details, sums, flame
// graphs and matches, on random traces, on the demo's and on those given.
//
//	embedded.mjs ASKER DEMO [FILE...]
//
// ASKER (tests/server/asker.c) exports a trace and answers as the server; the page's code is bundled as for the page.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { bundle } from './bundle.mjs';
import { temporaryFolder } from './harness.mjs';
import { crowdedTrace, randomTrace, Random } from './random_trace.mjs';

const [asker, demo, ...files] = process.argv.slice(2);
const folder = temporaryFolder('embedded');
const { embedded: { EmbeddedSource }, wire: { readTiles } } = await bundle(['embedded', 'wire']);

// Returns the server's answers, in order.
class Server {
	constructor(file, html, range) {
		this.child = spawn(asker, [file, html, ...range.map(String)], { stdio: ['pipe', 'pipe', 'inherit'] });
		this.ended = once(this.child, 'exit');
		this.bytes = Buffer.alloc(0);
		this.pieces = this.child.stdout[Symbol.asyncIterator]();
		this.html = html;
	}

	async more() {
		const { value, done } = await this.pieces.next();
		if (done) throw new Error(`asker ended: ${(await this.ended)[0]}`);
		this.bytes = this.bytes.length ? Buffer.concat([this.bytes, value]) : value;
	}

	async ask(what, parameters = {}) {
		const query = Object.entries(parameters).filter(([, value]) => value !== undefined)
			.map(([key, value]) => `${key}=${encodeURIComponent(value)}`);
		this.child.stdin.write(`api/${what}?${query.join('&')}\n`);
		let end;
		while ((end = this.bytes.indexOf(10)) < 0) await this.more();
		const [status, size] = this.bytes.subarray(0, end).toString().split(' ').map(Number);
		while (this.bytes.length < end + 1 + size) await this.more();
		const body = this.bytes.subarray(end + 1, end + 1 + size);
		this.bytes = this.bytes.subarray(end + 1 + size);
		assert.equal(status, 200, `${what} ${query}: ${body.subarray(0, 200)}`);
		return body;
	}

	async json(what, parameters) {
		return JSON.parse((await this.ask(what, parameters)).toString());
	}

	async close() {
		this.child.stdin.end();
		assert.equal((await this.ended)[0], 0);
	}
}

function dataOf(html) {
	const [, data] = /<script type="application\/x-kymo" id="kymo-data">([A-Za-z0-9+/=]+)<\/script>/.exec(html);
	return data;
}

// ---- the same request to both ----

// Numbers of names may differ: compares their texts.
function plain(tile, text) {
	const { items, points, ...rest } = tile;
	const rows = [];
	for (let i = 0; i < (items?.count ?? 0); i++)
		rows.push([items.begin[i], items.dur[i], items.event[i], text(items.name[i]), items.merged[i], items.row[i],
			items.fill[i], items.flags[i]].join(' '));
	for (let i = 0; i < (points?.count ?? 0); i++)
		rows.push([points.at[i], points.min[i], points.max[i], points.last[i]].join(' '));
	return { ...rest, rows };
}

class Both {
	constructor(server, page, trace) {
		Object.assign(this, { server, page, trace });
	}

	async tiles(level, first, count, tracks) {
		const names = new Map();
		const body = await this.server.ask('tiles', { g: 1, level, first, count, tracks: tracks.join(',') });
		const isCounter = (track) => this.trace.tracks[track].kind === 'counter';
		const bytes = body.buffer.slice(body.byteOffset, body.byteOffset + body.byteLength);
		const theirs = readTiles(bytes, { number: (n) => n, define: (n, text) => names.set(n, text) }, isCounter);
		const ours = await this.page.tiles(level, first, count, tracks);
		assert.deepEqual(ours.map((tile) => plain(tile, (n) => this.page.text(n))),
			theirs.map((tile) => plain(tile, (n) => names.get(n) ?? '')), `tiles of level ${level} from ${first}`);
		return ours.length;
	}

	async event(kind, id) {
		assert.deepEqual(await this.page.event(kind, id), await this.server.json('event', { kind, id }), `${kind} ${id}`);
	}

	async neighbour(start) {
		const { event } = await this.server.json('neighbour', { g: 1, ...start, forward: Number(start.forward) });
		assert.deepEqual(await this.page.neighbour(start), event, `the neighbour of ${JSON.stringify(start)}`);
		return event;
	}

	async range(from, to, tracks) {
		assert.deepEqual(await this.page.range(from, to, tracks),
			await this.server.json('range', { from, to, tracks: tracks?.join(',') }), `range ${from} to ${to} of ${tracks}`);
	}

	async flame(from, to, of, tracks) {
		assert.deepEqual(await this.page.flame(from, to, of, tracks),
			await this.server.json('flame', { from, to, of, tracks: tracks?.join(',') }), `${of} ${from} to ${to} of ${tracks}`);
	}

	async search(q, where) {
		const { names, ...ours } = await this.page.search(q, where);
		const { names: theirNames, ...theirs } = await this.server.json('search', { q, ...where,
			...(where && 'near' in where ? { forward: Number(where.forward) } : {}) });
		assert.deepEqual(ours, theirs, `search ${q} ${JSON.stringify(where)}`);
		assert.equal(names.length, theirNames.length);
		for (const name of names) assert.ok(/[:=]/.test(q) || this.page.text(name).toLowerCase().includes(q.toLowerCase()));
		return ours.count;
	}
}

async function open(file, range = []) {
	const server = new Server(file, path.join(folder, 'out.html'), range);
	const theirs = await server.json('trace');
	const html = fs.readFileSync(server.html, 'utf8');
	assert.match(html, /<title>a &lt;trace> &amp; more · kymo<\/title>/);
	const page = await EmbeddedSource.open(dataOf(html), () => {});
	return { both: new Both(server, page, theirs), server, page, theirs, bytes: html.length };
}

// ---- comparisons ----

async function compareTiles(both, random) {
	const { begin, end, tracks } = both.trace;
	const shown = tracks.filter((track) => track.kind !== 'group').map((track) => track.id);
	if (!shown.length) return;
	for (let level = 0; level <= 46; level++) {
		const width = 512 * 2 ** level;
		const whole = Math.ceil((end - begin) / width) + 2;
		if (whole <= 8) {
			for (let i = 0; i < shown.length; i += 200)
				await both.tiles(level, Math.floor(begin / width) - 1, whole, shown.slice(i, i + 200));
			continue;
		}
		for (let i = 0; i < 4; i++)
			await both.tiles(level, Math.floor((begin + random.below(end - begin)) / width), 2,
				random.some(shown, 20));
	}
}

async function compareEvents(both, random) {
	for (const kind of ['slices', 'counter', 'sched', 'state', 'samples', 'loss']) {
		const tracks = both.trace.tracks.filter((track) => track.kind === kind);
		const count = tracks.reduce((sum, track) => sum + track.events, 0);
		for (let i = 0; i < Math.min(count, 400); i++) await both.event(kind, count <= 400 ? i : random.below(count));
	}
}

// Walks rows from their first event to the last, and back.
async function compareNeighbours(both, random) {
	const { begin, end, tracks } = both.trace;
	const shown = tracks.filter(({ kind }) => kind !== 'group');
	for (const track of random.some(shown, 8)) {
		for (const forward of [true, false]) {
			const row = random.below(Math.max(1, track.rows));
			let start = { track: track.id, row, ts: forward ? begin : end, id: -1, forward };
			for (let i = 0; i < 50 && start; i++) {
				const event = await both.neighbour(start);
				if (event) assert.ok(forward ? event.ts >= start.ts : event.ts <= start.ts);
				start = event && { ...start, ts: event.ts, id: event.id };
			}
		}
	}
}

async function compareSums(both, random) {
	const { begin, end, tracks } = both.trace;
	const ids = tracks.map((track) => track.id);
	const ranges = [[begin, end + 1], [begin - 5, end / 2], [begin, begin], [end, begin]];
	for (let i = 0; i < 12; i++) {
		const from = begin + random.below(end - begin + 1);
		ranges.push([from + 0.5, from + random.below((end - begin) / 2 ** random.below(12) + 1)]);
	}
	for (const [from, to] of ranges) {
		const some = random.below(2) ? undefined : random.some(ids, 5);
		await both.range(from, to, some);
		await both.flame(from, to, 'slices', some);
		await both.flame(from, to, 'samples', some);
	}
}

async function compareSearches(both, random, texts) {
	const { begin, end } = both.trace;
	let found = 0;
	for (const text of texts) {
		const count = await both.search(text);
		found += count;
		for (const at of [0, count - 1, count, random.below(count + 1)]) await both.search(text, { at });
		for (const forward of [true, false])
			await both.search(text, { near: begin + random.below(end - begin + 1), forward });
	}
	return found;
}

async function compare(name, file, texts) {
	const random = new Random(7);
	const { both, server, page, theirs, bytes } = await open(file);
	assert.deepEqual(await page.trace(), theirs, name);
	await compareTiles(both, random);
	await compareEvents(both, random);
	await compareNeighbours(both, random);
	await compareSums(both, random);
	const found = await compareSearches(both, random, texts);
	await server.close();
	const { slices, instants } = theirs.counts;
	console.log(`${name}: ${slices + instants} slices, ${theirs.tracks.length} tracks, ${found} matches, ` +
		`${(bytes / (slices + instants || 1)).toFixed(1)} bytes a slice`);
}

// Each track is one of the whole trace, shows as many events as it claims, and its events name it.
async function checkPart(page, trace, whole) {
	for (const [i, track] of trace.tracks.entries()) {
		assert.equal(track.id, i);
		assert.ok(track.parent < i);
		assert.ok(whole.tracks.some((other) => other.key === track.key && other.kind === track.kind));
		if (track.kind === 'group') continue;
		const width = 512 * 2 ** 40;
		const tiles = await page.tiles(40, Math.floor(trace.begin / width), 1, [i]);
		assert.ok(track.events > 0);
		if (!tiles[0].items) continue;
		assert.equal(tiles[0].items.merged.reduce((sum, count) => sum + count, 0), track.events, track.key);
		assert.equal((await page.event(track.kind, tiles[0].items.event[0])).track, i);
	}
	for (const { event, reason } of trace.snapshots) assert.equal((await page.event('slices', event)).name, reason);
}

// A part of the time: everything in it is there, and its sums are those of the whole trace.
async function compareParts(file) {
	const random = new Random(3);
	const { server: whole, theirs: { begin, end } } = await open(file);
	await whole.close();
	for (let i = 0; i < 6; i++) {
		const from = Math.floor(begin + random.below(end - begin));
		const to = from + 1 + random.below((end - from) / 2 ** i);
		const { both, server, page, theirs } = await open(file, [from, to]);
		const trace = await page.trace();
		assert.ok(trace.begin >= from && trace.end <= to);
		await checkPart(page, trace, theirs);
		for (let j = 0; j < 4; j++) {
			const inFrom = from + random.below(to - from);
			const inTo = inFrom + random.below(to - inFrom + 1);
			await both.range(inFrom, inTo);
			await both.flame(inFrom, inTo, 'slices');
			await both.flame(inFrom, inTo, 'samples');
		}
		await both.range(from, to);
		await server.close();
	}
}

// Data that was cut off or changed is an error, never a hang.
async function refuseDamage(file) {
	const { server } = await open(file);
	await server.close();
	const data = dataOf(fs.readFileSync(server.html, 'utf8'));
	const random = new Random(5);
	for (let i = 0; i < 30; i++) {
		const at = random.below(data.length);
		const other = data[at] === 'A' ? 'B' : 'A';
		const damaged = data.slice(0, at) + (i % 2 ? '' : other + data.slice(at + 1));
		await assert.rejects(EmbeddedSource.open(damaged, () => {}), /export it again/, `damage at ${at}`);
	}
}

// Data with random bytes in its columns is refused or shown, in time proportional to its size.
async function bearAnyBytes(file) {
	const { server, theirs } = await open(file);
	await server.close();
	const data = gunzipSync(Buffer.from(dataOf(fs.readFileSync(server.html, 'utf8')), 'base64'));
	const columns = 8 + data.readUInt32LE(4);
	const random = new Random(11);
	const tracks = theirs.tracks.filter((track) => track.kind !== 'group').map((track) => track.id);
	for (let i = 0; i < 60; i++) {
		const changed = Buffer.from(data);
		for (let j = 0; j <= i % 5; j++) changed[columns + random.below(data.length - columns)] = random.below(256);
		try {
			const page = await EmbeddedSource.open(gzipSync(changed).toString('base64'), () => {});
			for (const level of [4, 16, 30]) await page.tiles(level, 0, 3, tracks);
			await page.range(0, theirs.end);
			await page.flame(0, theirs.end, 'slices');
			await page.flame(0, theirs.end, 'samples');
			await page.search('a', { at: 0 });
			for (let id = 0; id < 50; id++) await page.event('slices', id);
		} catch (error) {
			assert.ok(error instanceof Error && !(error instanceof TypeError), error);
		}
	}
}

const TEXTS = ['a', 'name:B', 'ärger', 'ÄRGER', 'category:net', 'arg:7', 'arg.size:1', 'arg:0x', 'arg.text:xyz', '1.5',
	'true', 'frame', 'nothing has this', '', 'name:', 'e', 'arg:e', '-'];

for (let seed = 1; seed <= 4; seed++) {
	const file = path.join(folder, `random${seed}.json`);
	fs.writeFileSync(file, JSON.stringify(randomTrace(seed, seed === 4 ? 40000 : 1500)));
	await compare(`random trace ${seed}`, file, TEXTS);
	if (seed === 1) {
		await compareParts(file);
		await refuseDamage(file);
		await bearAnyBytes(file);
	}
}
const crowded = path.join(folder, 'crowded.json');
fs.writeFileSync(crowded, JSON.stringify(crowdedTrace(1, 4000)));
await compare('crowded trace', crowded, ['reply', 'name=reply']);
const demoTrace = path.join(folder, 'demo.kymo');
execFileSync(demo, ['--trace-output', demoTrace], { stdio: 'ignore' });
await compareParts(demoTrace);
await compare('demo', demoTrace, [...TEXTS, 'request', 'name=request', 'NAME=Request', 'name=', 'arg.source.file_name:demo']);
for (const file of files) await compare(path.basename(file), file, TEXTS);
