// SPDX-License-Identifier: MIT
//
// modules.mjs: the pure functions of the page: the layout of flame graphs, the meaning of SQL rows, JSON texts and the
// order of tables. Bundled as for the page, and run here.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bundle } from './bundle.mjs';

const MODULES = ['flame_layout', 'json_text', 'same_name', 'sql_result', 'sql_rows', 'sql_text', 'table'];

const modules = await bundle([...MODULES.map((name) => `panels/${name}`), 'format']);

test('flame graph: the widest first, children within their parent', () => {
	const { framesOf, boxesOf, callersOf, depthOf } = modules.flame_layout;
	const node = (name, parent, total) => ({ name, parent, count: 1, total, self: 0 });
	const frames = framesOf({ unit: 'ns', nodes: [
		node('small', -1, 100), node('large', -1, 300), node('a', 1, 50), node('b', 1, 200), node('c', 3, 200)] });
	assert.deepEqual(frames[0].children.map((child) => frames[child].name), ['large', 'small']);
	assert.equal(frames[0].total, 400);
	assert.equal(depthOf(frames), 4);
	const c = frames.findIndex((frame) => frame.name === 'c');
	assert.deepEqual(callersOf(frames, c).map((frame) => frames[frame].name), ['b', 'large', 'all']);
	const boxes = Object.fromEntries(boxesOf(frames, 0, 400).map((box) => [frames[box.frame].name, [box.x, box.width, box.depth]]));
	assert.deepEqual(boxes, { all: [0, 400, 0], large: [0, 300, 1], small: [300, 100, 1], b: [0, 200, 2], a: [200, 50, 2], c: [0, 200, 3] });
});

test('flame graph: a zoomed frame is as wide as the picture, with its callers', () => {
	const { framesOf, boxesOf } = modules.flame_layout;
	const nodes = [['x', -1, 100], ['y', -1, 300], ['z', 0, 50]].map(([name, parent, total]) => ({ name, parent, total, count: 1, self: 0 }));
	const frames = framesOf({ unit: 'samples', nodes });
	const boxes = boxesOf(frames, 1, 1000).map((box) => [frames[box.frame].name, box.width]);
	assert.deepEqual(boxes, [['x', 1000], ['all', 1000], ['z', 500]]);
});

test('flame graph: narrow frames are one box, and nothing is wider than its parent', () => {
	const { framesOf, boxesOf } = modules.flame_layout;
	const nodes = [{ name: 'p', parent: -1, count: 1, total: 1000, self: 0 }];
	for (let i = 0; i < 1000; i++)
		nodes.push({ name: `child ${i}`, parent: 0, count: 1, total: i === 500 ? 900 : 1, self: 0 });
	const boxes = boxesOf(framesOf({ unit: 'ns', nodes }), 0, 100).filter((box) => box.depth === 2);
	assert.deepEqual(boxes.map((box) => box.frame), [502, -1]);
	assert.ok(Math.abs(boxes[0].width + boxes[1].width - 100) < 1e-6, 'as wide as the parent');
	assert.deepEqual(framesOf({ unit: 'ns', nodes: [] }).length, 1);
	assert.equal(boxesOf(framesOf({ unit: 'ns', nodes: [] }), 0, 100).length, 1);
});

test('flame graph: matches are counted once', () => {
	const { framesOf, matched } = modules.flame_layout;
	const nodes = [['run', -1, 100], ['x', 0, 90], ['run again', 1, 80], ['y', -1, 50], ['run', 3, 20]]
		.map(([name, parent, total]) => ({ name, parent, total, count: 1, self: 0 }));
	assert.equal(matched(framesOf({ unit: 'ns', nodes }), (name) => name.includes('run')), 120);
});

test('JSON: lines and indents, all digits; other text stays', () => {
	const { prettyJson } = modules.json_text;
	const text = '{"id":12345678901234567890,"l":[1,{"a":"x, {y} \\" :"}],"e":{},"n":[ ]}';
	const pretty = prettyJson(text);
	assert.match(pretty, /"id": 12345678901234567890,\n/);
	assert.match(pretty, /"e": \{\},\n {2}"n": \[\]\n\}$/);
	assert.deepEqual(JSON.parse(pretty), JSON.parse(text));
	assert.equal(prettyJson('{"never ends'), '{"never ends');
	assert.equal(prettyJson('  '), '');
	assert.ok(prettyJson('['.repeat(90000)).length < 1e7, 'depth costs no more than length');
	assert.equal(prettyJson('[1]'.repeat(50000)), '[1]'.repeat(50000), 'what is very long stays');
});

test('shares have three digits', () => {
	const { percent } = modules.format;
	assert.deepEqual([percent(1, 3), percent(1, 2000), percent(1, 1), percent(0, 5), percent(5, 0)],
		['33.3 %', '0.05 %', '100 %', '0 %', '0 %']);
});

const TRACE = { base: '9007199254740993000' };
const result = (columns, rows) => ({ columns, rows, more: false, ms: 1 });

test('SQL: rows with a time and an id lead to the timeline, exactly', () => {
	const { meaningOf, overlayOf } = modules.sql_rows;
	const rows = [[7, '9007199254740993123', 50, 'x'], [8, null, null, null]];
	const meaning = meaningOf(result(['id', 'ts', 'dur', 'name'], rows), 'select * from slice', TRACE);
	assert.deepEqual(meaning.place(rows[0]), { ts: 123, dur: 50, ref: { kind: 'slices', id: 7 } });
	assert.deepEqual(meaning.place(rows[1]), { ts: null, dur: 0, ref: { kind: 'slices', id: 8 } });
	const overlay = overlayOf(rows, meaning, 'select *\nfrom slice');
	assert.equal(overlay.name, 'SQL: select * from slice');
	assert.deepEqual(overlay.rows, [{ ts: 123, dur: 50, name: 'x', ref: { kind: 'slices', id: 7 } }]);
});

test('SQL: an id belongs to the table of the rows', () => {
	const { meaningOf } = modules.sql_rows;
	const kind = (sql, columns = ['id']) => meaningOf(result(columns, [[1]]), sql, TRACE).place([1]).ref?.kind;
	assert.equal(kind('SELECT id FROM sched'), 'sched');
	assert.equal(kind('select id from thread_state -- from slice'), 'state');
	assert.equal(kind("select id from (select id from slice where name = 'from sched')"), undefined);
	assert.equal(kind('select id from thread'), undefined);
	assert.equal(kind('with a as (select 1 from sched) select id from "slice" where id in (select 2 from counter)'), 'slices');
	assert.equal(kind('select slice_id from anything', ['slice_id']), 'slices');
	assert.equal(meaningOf(result(['n'], [[1]]), 'select 1 n', TRACE).placed, false);
});

test('SQL: completions of the word at the cursor', () => {
	const { completions, errorPlace } = modules.sql_text;
	const tables = [{ name: 'slice', columns: ['id', 'dur', 'depth'] }, { name: 'sched', columns: ['dur_other', 'cpu'] }];
	assert.deepEqual(completions(tables, 'select * from sl', 16), ['slice']);
	assert.deepEqual(completions(tables, 'select du from slice', 9).slice(0, 2), ['dur', 'dur_other']);
	assert.deepEqual(completions(tables, 'select d', 8), []);
	assert.deepEqual(completions([{ name: 'a(b', columns: ['column'] }], 'co', 2), ['COUNT', 'column'], 'any name of a table');
	assert.equal(errorPlace('select\nnonsense', 'line 2, column 1: no such column: nonsense'), 7);
	assert.equal(errorPlace('select', 'interrupted'), -1);
});

test('SQL: CSV and JSON of hostile cells', () => {
	const { asCsv, asJson } = modules.sql_result;
	const rows = [['a,"b"\n', null], ['9007199254740993', 1.5]];
	assert.equal(asCsv(['x', 'y'], rows), 'x,y\r\n"a,""b""\n",\r\n9007199254740993,1.5\r\n');
	assert.deepEqual(JSON.parse(asJson(['x', '__proto__'], rows))[1].x, '9007199254740993');
});

test('tables: empty cells first, long digits by value', () => {
	const { compareCells } = modules.table;
	const cells = ['9007199254740994', null, '9007199254740993', 5, -1, 'abc', null];
	assert.deepEqual([...cells].sort(compareCells).slice(0, 4), [null, null, -1, 5]);
	assert.ok(compareCells('9007199254740993', '9007199254740994') < 0);
	assert.ok(compareCells('10', '9') > 0);
});

test('the next of the same name is not one whose name only contains it', async () => {
	const events = ['run', 'run all', 'rerun', 'run', 'x'].map((name, id) => ({ name, id, ts: id, dur: 1, kind: 'slices' }));
	const matches = events.filter((event) => event.name.includes('run'));
	const source = {
		search: async (q, where) => {
			assert.equal(q, 'name:run');
			const found = 'at' in where ? where.at : where.forward
				? matches.findIndex((event) => event.ts > where.near)
				: matches.findLastIndex((event) => event.ts < where.near);
			return { count: matches.length, at: found, event: matches[found] ?? null };
		},
	};
	const { sameName } = modules.same_name;
	assert.equal((await sameName(source, events[0], true)).id, 3);
	assert.equal((await sameName(source, events[3], false)).id, 0);
	assert.equal(await sameName(source, events[3], true), null);
});
