// SPDX-License-Identifier: MIT
//
// timeline_modules.mjs: the parts of the timeline that need no page: the state in the URL, the axis, movement of the
// view, the list of tracks, the requests for tiles, finding events in them, reading the server's.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bundle } from './bundle.mjs';

globalThis.matchMedia = () => ({ matches: false, addEventListener() {} });
globalThis.window = { setTimeout: () => 0 }; // a retry that never comes
const { state, wire, remote, tiles, axis, items, motion, ruler, tree, format, reveal, paint_counter } = await bundle(
	['state', 'wire', 'remote', 'tiles', 'format',
		...['axis', 'items', 'motion', 'ruler', 'tree', 'reveal', 'paint_counter'].map((name) => `timeline/${name}`)]);

test('state: the URL holds all of it and reads back the same', () => {
	const full = {
		...state.defaults(0, 1e9), from: 12.345, to: 678901.5, page: 'sql', tab: 'flame', selected: { kind: 'sched', id: 7 },
		range: { from: 5, to: 9 }, marks: [1, 2.5], pinned: ['p1/t2', 'a,b&c=d#e'], hidden: ['ä "<>%'], folded: { x: true, y: false },
		order: ['p1', '$'], filter: 'a b,c', scroll: 'p1/t2', search: 'name:ü&=', sql: 'select 1;\n-- 100 %\t😀', flameOf: 'samples',
	};
	assert.deepEqual(state.fromFragment(state.toFragment(full), 0, 1e9), full);
	assert.equal(state.toFragment(state.defaults(0, 10)), '#v=0..10');
});

test('state: an unreadable URL gives the defaults', () => {
	for (const text of ['#', '#v', '#v=5..1', '#v=NaN..2&sel=slices:-1&tab=x', '#sel=foo:1&range=1&marks=a,b', '#q=%E0%A4%A&pin=%', '#=&&=='])
		assert.deepEqual(state.fromFragment(text, 0, 10), state.defaults(0, 10), text);
	assert.deepEqual(state.fromFragment(`#q=${'\ud800'}`, 0, 1).search, '\ud800');
	assert.doesNotThrow(() => state.toFragment({ ...state.defaults(0, 1), search: '\ud800' }));
});

test('state: a view that cannot be drawn is moved near the trace; others stay unchanged', () => {
	const window = (text, end = 1e9) => {
		const { from, to } = state.fromFragment(`#v=${text}`, 0, end);
		return [from, to];
	};
	assert.deepEqual(window('12.345..12.945'), [12.345, 13.345], 'at least a nanosecond');
	assert.deepEqual(window('-500..1000000500'), [-500, 1000000500]);
	assert.deepEqual(window('-1e300..1e300'), [-2e9, 3e9]);
	assert.deepEqual(window('1e300..2e300'), [3e9 - 1, 3e9]);
	const [from, to] = window('9e18..9000000000000002048', 9e18);
	assert.ok(to - from > 9e18 / 2 ** 45, 'far from zero it is as wide as numbers need');
	assert.deepEqual(state.showable({ from: NaN, to: 5 }, 0, 10), { from: 0, to: 10 });
	const bounded = motion.bounded({ from: 8e18, to: 8e18 + 50 }, 0, 9e18);
	assert.ok(bounded.to - bounded.from > 9e18 / 2 ** 45);
});

test('ruler: the number of ticks is bounded even where doubles are sparse', () => {
	const one = new axis.Axis();
	one.set(1000, 2000, 1000);
	assert.deepEqual(ruler.ticksOf(one, 1), { step: 200, ticks: [4, 5, 6, 7, 8, 9, 10] });
	one.set(9e18, 9e18 + 2048, 1000);
	assert.ok(ruler.ticksOf(one, 1).ticks.length <= 500);
	one.set(9e18, 9e18, 1000);
	assert.deepEqual(ruler.ticksOf(one, 1).ticks, []);
});

// Returns a response with one item for each of the names, which are [number, text].
function answerOf(names) {
	const texts = names.map(([, text]) => new TextEncoder().encode(text));
	const at = 40 + 32 * names.length;
	const bytes = new ArrayBuffer(at + texts.reduce((sum, text) => sum + 8 + Math.ceil(text.length / 8) * 8, 0));
	const view = new DataView(bytes);
	[0x3154594b, 1, 1, names.length, at, 0, 0, names.length].forEach((value, i) => view.setUint32(i * 4, value, true));
	let place = at;
	for (const [i, [number]] of names.entries()) {
		view.setUint32(40 + 32 * i + 20, number, true);
		view.setUint32(place, number, true);
		view.setUint32(place + 4, texts[i].length, true);
		new Uint8Array(bytes).set(texts[i], place + 8);
		place += 8 + Math.ceil(texts[i].length / 8) * 8;
	}
	return bytes;
}

test('remote: a text keeps its number through generations, whatever numbers the server uses', async () => {
	const answers = {};
	globalThis.fetch = async (path) => new Response(answers[path.split('?')[0]]);
	const source = new remote.RemoteSource();
	const seen = new Set();
	for (let generation = 1; generation <= 50; generation++) {
		answers['api/trace'] = JSON.stringify({ generation, tracks: [] });
		answers['api/search'] = JSON.stringify({ count: 2, tracks: [], names: [generation, 1000 + generation], at: -1, event: null });
		answers['api/tiles'] = answerOf([[generation, 'run'], [generation + 1, ''], [generation + 2, `x${generation % 3}`]]);
		await source.trace();
		const [{ items: { name } }] = await source.tiles(0, 0, 1, [0]);
		assert.deepEqual([...name].map((one) => source.text(one)), ['run', '', `x${generation % 3}`]);
		const { names: found } = await source.search('run');
		assert.equal(found[0], name[0], 'what a search finds is what is drawn');
		for (const one of [...name, ...found])
			seen.add(one);
	}
	assert.ok(seen.size <= 6, `${seen.size} numbers for five texts and one that never got a text`);
});

test('axis: moving in time is whole pixels of the same scale, even far from the beginning', () => {
	const one = new axis.Axis();
	const begin = 8e15;
	assert.equal(one.set(begin, begin + 1000, 1000), true);
	const x = one.x(begin + 100);
	assert.equal(one.set(begin + 37, begin + 1037, 1000), false);
	assert.equal(one.x(begin + 100), x - 37);
	assert.ok(Math.abs(one.time(one.x(begin + 100)) - begin - 100) < 1);
	assert.equal(one.set(begin, begin + 500, 1000), true);
	assert.equal(one.level, 0);
	one.set(0, 2 ** 20 * 800, 800);
	assert.equal(one.level, 20);
});

test('axis: the same view gives the same picture, whatever was shown before', () => {
	const [moved, fresh] = [new axis.Axis(), new axis.Axis()];
	for (let from = 123456789.125; from < 123456789.125 + 4e8; from += 7654321.5)
		moved.set(from, from + 12345.678, 1237);
	const from = 123456789.125 + 4e8;
	assert.equal(moved.set(from, from + 12345.678, 1237), false);
	fresh.set(from, from + 12345.678, 1237);
	for (let ns = from; ns < from + 12345; ns += 97.3)
		assert.ok(Math.abs(moved.x(ns) - fresh.x(ns)) < 1e-3);
});

test('motion: stays within the trace and arrives at its target', () => {
	assert.deepEqual(motion.bounded({ from: -500, to: 5000 }, 0, 1000), { from: 0, to: 1000 });
	const small = motion.bounded({ from: 400, to: 401 }, 0, 1000);
	assert.equal(small.to - small.from, motion.SPAN_LEAST);
	const away = motion.bounded({ from: 5000, to: 5100 }, 0, 1000);
	assert.equal((away.from + away.to) / 2 <= 1000, true);
	const one = new motion.Motion();
	let window = { from: 0, to: 1e9 };
	one.go({ from: 500, to: 1500 });
	let steps = 0;
	for (let next; (next = one.step(16, steps * 16, window, 0, 1e9)); steps++)
		window = next;
	assert.deepEqual(window, { from: 500, to: 1500 });
	assert.ok(steps > 5 && steps < 200, `${steps} steps`);
	assert.equal(one.moving, false);
});

test('motion: zooming keeps the time at the pointer', () => {
	const { from, to } = motion.zoomed({ from: 0, to: 100 }, 0.5, 25);
	assert.deepEqual([from, to, (25 - from) / (to - from)], [12.5, 62.5, 0.25]);
});

function sampleTrace() {
	const track = (id, parent, kind, name, rows = 1) => ({ id, parent, kind, key: `k${id}`, name, rows, events: 1, tid: parent });
	return { begin: 0, end: 100, tracks: [
		track(0, -1, 'group', 'server', 0), track(1, 0, 'slices', 'main', 3), track(2, 0, 'counter', 'memory'), track(3, 0, 'samples', 'stacks', 30),
		track(4, -1, 'group', 'client', 0), track(5, 4, 'slices', 'main'), track(6, 4, 'slices', 'worker', 40)] };
}
const names = (entries) => entries.map((entry) => entry.track.name);

test('tree: hidden, folded, filtered, moved and pinned tracks', () => {
	const one = new tree.Tree(sampleTrace());
	const list = (part) => one.entries({ ...state.defaults(0, 100), ...part });
	assert.deepEqual(names(list({}).main), ['server', 'main', 'memory', 'stacks', 'client', 'main', 'worker']);
	assert.deepEqual(names(list({ hidden: ['k0'] }).main), ['client', 'main', 'worker']);
	assert.deepEqual(names(list({ folded: { k0: true } }).main), ['server', 'client', 'main', 'worker']);
	assert.deepEqual(names(list({ filter: 'WORK' }).main), ['client', 'worker']);
	assert.deepEqual(names(list({ filter: 'client', folded: { k4: true } }).main), ['client', 'main', 'worker']);
	assert.deepEqual(names(list({ order: ['k6', 'k5', 'k0', '$', 'gone', 'k1'] }).main), ['client', 'worker', 'main', 'server', 'main', 'memory', 'stacks']);
	const { pinned, main } = list({ pinned: ['k6', 'gone', 'k2'] });
	assert.deepEqual([names(pinned), names(main)], [['worker', 'memory'], ['server', 'main', 'stacks', 'client', 'main']]);
});

test('tree: entries lie one below the other; tall tracks are cut into bands; call stacks begin folded', () => {
	const one = new tree.Tree(sampleTrace());
	const { main } = one.entries(state.defaults(0, 100));
	for (const [i, entry] of main.entries())
		assert.equal(entry.y, i ? main[i - 1].y + main[i - 1].height : 0);
	for (const [i, entry] of main.entries()) {
		assert.equal(tree.entryAt(main, entry.y), i);
		assert.equal(tree.entryAt(main, entry.y + entry.height - 1), i);
	}
	const worker = main.find(({ track }) => track.id === 6);
	assert.deepEqual(one.bandsOf(worker).map(({ row, rows }) => [row, rows]), [[0, 16], [16, 16], [32, 8]]);
	const stacks = main.find(({ track }) => track.id === 3);
	assert.equal(stacks.folded, true);
	assert.ok(one.bandsOf(stacks)[0].rows > 5);
});

test('reveal: unfolds and unhides an event, and moves the view no further than needed', () => {
	const one = new tree.Tree(sampleTrace());
	const before = { ...state.defaults(0, 1000), folded: { k4: true, k0: true }, hidden: ['k4', 'k1'], filter: 'memory' };
	const after = reveal.uncovered(one, before, { track: 6, row: 3, ts: 0, dur: 1 });
	assert.deepEqual([after.folded, after.hidden, after.filter], [{ k4: false, k0: true }, ['k1'], '']);
	const shown = { from: 0, to: 1000 };
	assert.equal(reveal.viewFor(shown, 400, 500), null);
	assert.deepEqual(reveal.viewFor(shown, 2000, 2100), { from: 1550, to: 2550 });
	assert.deepEqual(reveal.viewFor(shown, 400, 401), { from: 380.5, to: 420.5 });
	assert.deepEqual(reveal.viewFor(shown, 5000, 9000), { from: 4900, to: 5900 });
	assert.equal(reveal.viewFor(shown, 400, 401, 'pan'), null, 'a step does not zoom');
	assert.deepEqual(reveal.viewFor(shown, 2000, 2001, 'pan'), { from: 1500.5, to: 2500.5 });
	assert.equal(reveal.viewFor(shown, 0, 1000, 'fit'), null);
	assert.deepEqual(reveal.viewFor(shown, -500, 1500, 'fit'), { from: -700, to: 1700 }, 'a parent is shown whole');
	assert.deepEqual(reveal.viewFor(shown, 900, 1100, 'fit'), { from: 500, to: 1500 });
});

// Slices of one row of track 0: [begin, dur], as tiles of any level by a simple version of wire.h's rules.
function fakeSource(slices) {
	const asked = [];
	const make = (level, index) => {
		const size = items.tileNs(level);
		const pixel = 2 ** level;
		const reach = slices.map(([begin, dur], id) => ({ begin, dur, id }))
			.filter(({ begin, dur }) => begin < (index + 1) * size && begin + Math.max(dur, 1) > index * size);
		const out = [];
		for (const one of reach) {
			const last = out.at(-1);
			if (one.dur >= pixel)
				out.push({ ...one, count: 1, flags: one.dur === 0 ? 2 : 0 });
			else if (last && last.small && Math.floor(last.begin / pixel) === Math.floor(one.begin / pixel))
				Object.assign(last, { count: last.count + 1, dur: one.begin + one.dur - last.begin, flags: 1 });
			else
				out.push({ ...one, count: 1, small: true, flags: one.dur === 0 ? 2 : 0 });
		}
		const column = (Type, key) => Type.from(out, key);
		return { track: 0, level, index, items: {
			count: out.length, begin: column(Float64Array, (o) => o.begin), dur: column(Float64Array, (o) => o.dur),
			event: column(Uint32Array, (o) => o.id), name: new Uint32Array(out.length), merged: column(Uint32Array, (o) => o.count),
			row: new Uint16Array(out.length), fill: new Uint8Array(out.length), flags: column(Uint8Array, (o) => o.flags) } };
	};
	return { asked, text: () => '', async tiles(level, first, count, tracks, signal) {
		asked.push({ level, first, count, tracks, signal });
		return tracks.flatMap((track) => Array.from({ length: count }, (_, i) => ({ ...make(level, first + i), track })));
	} };
}

test('tiles: few requests, none twice, unwanted ones are cancelled', async () => {
	const source = fakeSource([[0, 10]]);
	const cache = new tiles.Tiles(source, () => {}, (error) => assert.fail(error));
	const tracks = Array.from({ length: 60 }, (_, id) => ({ id, key: `k${id}` }));
	cache.setTracks(1, tracks);
	const wanted = (level, first, last) => [{ level, first, last, tracks: tracks.map(({ id }) => id) }];
	assert.equal(cache.want(wanted(4, 0, 2)), false);
	assert.equal(cache.want(wanted(4, 0, 2)), false);
	assert.deepEqual(source.asked.map(({ count, tracks: of }) => [count, of.length]), [[3, 48], [3, 12]]);
	await new Promise((done) => setImmediate(done));
	assert.equal(cache.want(wanted(4, 0, 2)), true);
	assert.equal(cache.get(59, 4, 2).track, 59);
	cache.want(wanted(4, 1, 3));
	assert.deepEqual([source.asked[2].first, source.asked[2].count], [3, 1], 'only what is missing');
	cache.want(wanted(9, 0, 0));
	assert.equal(source.asked[2].signal.aborted, true);
});

test('tiles: those of an older generation are shown, but requested again; tracks are known by key', async () => {
	const source = fakeSource([[0, 10]]);
	const cache = new tiles.Tiles(source, () => {}, () => {});
	cache.setTracks(1, [{ id: 0, key: 'a' }, { id: 1, key: 'b' }]);
	cache.want([{ level: 0, first: 0, last: 0, tracks: [0] }]);
	await new Promise((done) => setImmediate(done));
	cache.setTracks(2, [{ id: 0, key: 'new' }, { id: 1, key: 'a' }]);
	assert.ok(cache.get(1, 0, 0));
	assert.equal(cache.get(0, 0, 0), undefined);
	assert.equal(cache.want([{ level: 0, first: 0, last: 0, tracks: [1] }]), false);
	await new Promise((done) => setImmediate(done));
	assert.equal(cache.has(1, 0, 0), true);
});

test('items: finer tiles or a coarser one replace a missing tile', () => {
	const there = new Map([['0 4 0', 'coarse'], ['0 1 6', 'left'], ['0 1 7', 'right']].map(([key, name]) => [key, { name }]));
	const get = (track, level, index) => there.get(`${track} ${level} ${index}`);
	const found = (level, index) => items.pieces(get, 0, level, index).list.map(({ tile }) => tile.name);
	assert.deepEqual(found(4, 0), ['coarse']);
	assert.deepEqual(found(2, 3), ['left', 'right']);
	assert.deepEqual(found(2, 1), ['coarse']);
	assert.deepEqual(found(2, 77), []);
});

test('counters: a strip shows no value of the strips left of it', () => {
	const values = Array.from({ length: 200 }, (_, i) => (i % 50 === 7 ? 100 : i % 5));
	const points = {
		count: values.length, at: Float64Array.from(values, (_, i) => i * 10), min: Float64Array.from(values),
		max: Float64Array.from(values), last: Float64Array.from(values),
	};
	const scene = {
		dpr: 1, end: 2000, bounds: () => ({ min: 0, max: 100 }), trackName: () => 'memory',
		palette: { fills: new Array(1000).fill('area'), lines: new Array(1000).fill('line') },
	};
	// Returns the highest pixel drawn in each column of a part of the axis.
	const columns = (x0, width, piece) => {
		const tops = new Array(width).fill(Infinity);
		const ctx = { fillRect: (x, y, wide) => { for (let i = x; i < x + wide; i++) tops[i] = Math.min(tops[i], y); } };
		const on = { origin: 0, nsPerPx: 1, level: 0, x0, width };
		paint_counter.paintPoints(ctx, scene, { track: 0, rowHeight: 101 }, on, { tile: { points }, from: 0, to: 2000, ...piece }, 0);
		return tops;
	};
	const whole = columns(0, 2000);
	assert.equal(whole[70], 0, 'the spike is there');
	assert.deepEqual([0, 500, 1000, 1500].flatMap((x0) => columns(x0, 500)), whole);
	// Part of a coarser tile, while the wanted one is missing.
	assert.deepEqual(columns(0, 2000, { from: 900, to: 1200 }).slice(900, 1200), whole.slice(900, 1200));
});

test('items: the item at a position, or near it', () => {
	const list = { count: 4, begin: Float64Array.of(0, 100, 300, 50), dur: Float64Array.of(50, 100, 0, 10), row: Uint16Array.of(0, 0, 0, 2) };
	assert.deepEqual([...items.rowsOf(list)], [0, 3, 3, 4]);
	assert.equal(items.itemAt(list, 0, 120, 0), 1);
	assert.equal(items.itemAt(list, 0, 70, 5), -1);
	assert.equal(items.itemAt(list, 0, 303, 5), 2);
	assert.equal(items.itemAt(list, 1, 120, 5), -1);
	assert.equal(items.itemAt(list, 2, 55, 0), 3);
	assert.equal(items.itemAt(list, 9, 55, 0), -1);
});

test('wire: reads a response; a truncated or foreign one is an error', () => {
	const bytes = new ArrayBuffer(24 + 16 + 32 + 16);
	const view = new DataView(bytes);
	[0x3154594b, 1, 1, 1, 72, 5].forEach((value, i) => view.setUint32(i * 4, value, true));
	view.setUint32(24, 3, true);
	view.setUint32(28, 1, true);
	view.setBigInt64(32, -2n, true);
	view.setFloat64(40, -1000.5, true);
	view.setFloat64(48, 64, true);
	[9, 42].forEach((value, i) => view.setUint32(56 + i * 4, value, true));
	view.setUint32(64, 1, true);
	view.setUint16(68, 6, true);
	view.setUint32(72, 42, true);
	view.setUint32(76, 3, true);
	new Uint8Array(bytes).set(new TextEncoder().encode('ab\n'), 80);
	const told = new Map();
	const read = (from) => wire.readTiles(from, { number: (name) => name, define: (name, text) => told.set(name, text) }, () => false);
	const [tile] = read(bytes);
	assert.deepEqual([tile.track, tile.level, tile.index, tile.items.begin[0], tile.items.event[0], tile.items.row[0]], [3, 5, -2, -1000.5, 9, 6]);
	assert.equal(told.get(42), 'ab\n');
	for (let length = 0; length < bytes.byteLength - 8; length++)
		assert.throws(() => read(bytes.slice(0, length)));
	view.setUint32(28, 0xffffffff, true);
	assert.throws(() => read(bytes));
});

test('format: durations, times and values as people read them', () => {
	assert.deepEqual([0, 999, 1500, 999_960, 1.5e9, 90e9].map(format.duration), ['0 ns', '999 ns', '1.50 µs', '1.00 ms', '1.50 s', '1.50 min']);
	assert.equal(format.time(1234567890), '1.234\u202f567\u202f890 s');
	assert.equal(format.time(999999999.6), '1.000\u202f000\u202f000 s');
	assert.equal(format.count(1234567), '1,234,567');
	assert.deepEqual([12, 12345, 2.5e9, 0.1].map((n) => format.value(n)), ['12', '12.35\u202fk', '2.5\u202fG', '0.1']);
});
