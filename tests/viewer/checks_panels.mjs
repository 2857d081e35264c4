// SPDX-License-Identifier: MIT
//
// checks_panels.mjs: details of a slice, a range and a search; SQL. Compares figures with those of `kymo report` and
// `kymo query`.
import assert from 'node:assert/strict';
import { until } from './harness.mjs';

async function details({ visit, traces }) {
	const here = await visit(traces.shop);
	await here.find('name:request');
	await here.detailsOf('request');
	const facts = await here.facts();
	const text = facts.map((fact) => fact.join(' ')).join('\n');
	for (const expected of [/shop/, /front/, /2(\.00?0?)? ms/, /500 µs/])
		assert.match(text, expected, `the facts of a request: ${text}`);
	const cells = (key) => here.page.locator(`#details table.args tr[data-key="${key}"]`);
	assert.match(await cells('path').textContent(), /\/cart\/0/);
	assert.match(await cells('id').textContent(), /0/);
	assert.equal(await here.page.locator('#details .child').count(), 3, 'parse, query and reply are its children');
	await here.page.locator('#details .child', { hasText: 'query' }).first().click();
	await here.detailsOf('orders');
	assert.match(await cells('rows <b>').textContent(), /0/);
	await here.page.locator('#details .parent', { hasText: 'request' }).first().click();
	await here.wait(() => document.querySelector('#details table.args tr[data-key="path"]') !== null);
}

async function flows({ visit, traces }) {
	const here = await visit(traces.shop);
	await here.find('name:query');
	await here.detailsOf('query');
	await here.page.locator('#details .flow-out').first().click();
	await here.detailsOf('job');
	const job = await here.state();
	await here.page.locator('#details .flow-in').first().click();
	await here.detailsOf('query');
	await here.focus();
	await here.key(']');
	await here.detailsOf('job');
	assert.deepEqual((await here.state()).selected, job.selected, 'the key and the button lead to the same slice');
	await here.key('[');
	await here.detailsOf('query');
}

async function search({ visit, traces, harness }) {
	const here = await visit(traces.demo);
	const { page } = here;
	const [{ n }] = await harness.query(traces.demo, "select count(*) n from slice where name like '%run%'");
	await here.focus();
	await page.keyboard.press('/');
	await page.keyboard.type('name:run');
	const counted = () => page.evaluate(() => document.querySelector('#search-count').textContent);
	await here.wait((count) => document.querySelector('#search-count').textContent.replaceAll(/[\s,\u202f]/g, '')
		.endsWith(`of${count}`), n);
	await page.keyboard.press('Enter');
	await here.wait(() => /^1\s*of/.test(document.querySelector('#search-count').textContent));
	const first = (await here.state()).selected;
	await page.keyboard.press('Enter');
	await here.wait((id) => window.kymo.state.selected?.id !== id, first.id);
	assert.match(await counted(), /^2\s*of/);
	await page.locator('#search-prev').click();
	await here.wait((id) => window.kymo.state.selected?.id === id, first.id);
	await page.locator('#search-next').click();
	await here.wait((id) => window.kymo.state.selected?.id !== id, first.id);
}

async function searchOfArguments({ visit, traces }) {
	const here = await visit(traces.shop);
	await here.find('arg.path:/cart/13');
	await here.detailsOf('request');
	assert.match(await here.page.locator('#details table.args tr[data-key="path"]').textContent(), /\/cart\/13/);
	assert.match(await here.page.locator('#search-count').textContent(), /1\s*of\s*1\b/);
	await here.page.locator('#search-input').fill('nothing has this name');
	await here.wait(() => window.kymo.search?.count === 0);
	assert.match(await here.page.locator('#search-count').textContent(), /0|no|none/i);
}

// Returns the range table of the page, by name.
function tableOfRange() {
	return Object.fromEntries([...document.querySelectorAll('#range tr[data-name]')].map((row) => [
		row.dataset.name,
		Object.fromEntries([...row.querySelectorAll('td[data-column]')].map((cell) => [
			cell.dataset.column, Number(cell.dataset.value)])),
	]));
}

async function range({ visit, traces, harness }) {
	const here = await visit(traces.demo, { height: 1000 });
	const { base, end } = await here.trace();
	const wanted = { from: Math.round(end * 0.3), to: Math.round(end * 0.55) };
	await here.page.evaluate((chosen) => window.kymo.set({ range: chosen, tab: 'range' }), wanted);
	await here.page.locator('#range tr[data-name]').first().waitFor();
	const at = (ns) => `@${BigInt(base) + BigInt(ns)}`;
	const report = JSON.parse(await harness.tool('report', '--json', '--limit', '0', '--from', at(wanted.from),
		'--to', at(wanted.to), traces.demo));
	// The report has a row for each category of a name.
	const byName = new Map();
	for (const { name, count, total_ns: total, self_ns: self } of report.rows) {
		const sum = byName.get(name) ?? { count: 0, total: 0, self: 0 };
		byName.set(name, { count: sum.count + count, total: sum.total + total, self: sum.self + self });
	}
	const [longest] = [...byName].sort(([, a], [, b]) => b.total - a.total)[0];
	await here.wait((name) => document.querySelector('#range tr[data-name]')?.dataset.name === name, longest);
	const shown = Object.entries(await here.page.evaluate(tableOfRange));
	assert.ok(shown.length >= 5, `${shown.length} names are shown`);
	for (const [name, cells] of shown.filter(([, { count }]) => count))
		assert.deepEqual({ count: cells.count, total: cells.total, self: cells.self }, byName.get(name), name);
	const all = await here.page.evaluate(({ from, to }) => window.kymo.source.range(from, to), wanted);
	// Messages go by their format in the report, and by their text here.
	assert.deepEqual(all.rows.map((row) => [row.name, row.count, row.total, row.self]).filter(([, count]) => count).sort(),
		[...byName].map(([name, { count, total, self }]) => [name, count, total, self]).filter(([, count]) => count).sort(),
		'all names');
}

async function rangeByMouse({ visit, traces }) {
	const here = await visit(traces.shop);
	const box = await here.page.locator('#timeline canvas').first().boundingBox();
	await here.page.mouse.move(box.x + box.width * 0.25, box.y + box.height / 2);
	await here.page.keyboard.down('Shift');
	await here.page.mouse.down();
	await here.page.mouse.move(box.x + box.width * 0.5, box.y + box.height / 2, { steps: 5 });
	await here.page.mouse.up();
	await here.page.keyboard.up('Shift');
	await here.page.getByRole('tab', { name: 'Range' }).click();
	// A quarter of 20 requests; while the mouse moves, the page may show an intermediate range.
	await here.wait(() => {
		const cell = document.querySelector('#range tr[data-name="request"] td[data-column="count"]');
		const requests = Number(cell?.dataset.value);
		return requests >= 4 && requests <= 7;
	});
	await here.page.evaluate(() => window.kymo.set({ filter: 'no such track' }));
	await here.wait(() => document.querySelector('#range .empty')?.textContent === 'No events in this range.');
	await here.page.evaluate(() => window.kymo.set({ filter: '' }));
	await here.wait(() => document.querySelector('#range tr[data-name="request"]'));
	const heading = here.page.locator('#range').getByRole('columnheader', { name: /Count/i });
	await heading.getByRole('button').or(heading).first().click();
	await here.wait(() => document.querySelector('#range tr[data-name]')?.dataset.name.startsWith('spin'));
	await here.page.evaluate(() => window.kymo.set({ range: null }));
	await here.wait(() => document.querySelector('#range tr[data-name="request"]'));
	await here.page.locator('#range tr[data-name="request"]').click();
	await here.wait(() => window.kymo.state.search === 'name=request' && window.kymo.search?.count === 20);
}

async function flame({ visit, traces }) {
	const here = await visit(traces.shop);
	await here.page.getByRole('tab', { name: 'Flame' }).click();
	await here.wait(() => /request/.test(document.querySelector('#flame').textContent));
	const nodes = await here.page.evaluate(() => window.kymo.source.flame(0, window.kymo.trace.end, 'slices'));
	const request = nodes.nodes.find((node) => node.name === 'request');
	assert.deepEqual([request.count, request.total, request.self], [20, 40e6, 10e6]);
}

async function info({ visit, traces }) {
	const here = await visit(traces.demo);
	await here.page.getByRole('tab', { name: 'Info' }).click();
	await here.page.locator('#info').waitFor();
	const text = await here.page.locator('#info').textContent();
	const { name, format, base, counts, snapshots } = await here.trace();
	// The demo's speed decides how many snapshots it requested.
	for (const expected of [name, format, base, counts.slices.toLocaleString('en-US'), ...snapshots.slice(0, 1).map(({ reason }) => reason)])
		assert.ok(text.includes(expected), `the info has no ${expected}: ${text}`);
}

async function sql({ visit, traces }) {
	const here = await visit(traces.shop);
	const { page } = here;
	await here.focus();
	await page.keyboard.press('g');
	await page.locator('#sql-text').waitFor();
	await page.locator('#sql-text').fill("select id, ts, dur, name from slice where name = 'job' order by ts");
	await page.locator('#sql-run').click();
	await page.locator('#sql-result tbody tr:not(.space)').first().waitFor();
	assert.ok(await page.locator('#sql-result').getByText('job').count() >= 5, 'rows are shown');
	await page.locator('#sql-show').click();
	await here.wait(() => window.kymo.overlay?.rows.length === 20);
	await page.locator('#sql-text').or(page.locator('#timeline')).first().waitFor();
	await page.evaluate(() => window.kymo.set({ page: 'sql' }));
	await page.locator('#sql-text').fill('select nonsense from nowhere');
	await page.keyboard.press('Control+Enter');
	await here.wait(() => /nowhere|nonsense/.test(document.querySelector('#sql-error').textContent));
	assert.equal(await page.locator('#sql-error').isVisible(), true);
}

async function sqlIsCancelled({ visit, traces }) {
	const here = await visit(traces.shop);
	const { page } = here;
	await page.evaluate(() => window.kymo.set({ page: 'sql' }));
	await page.locator('#sql-text').fill('select count(*) from slice a, slice b, slice c, slice d');
	await page.locator('#sql-run').click();
	// Press until it works: the first press may come before the query has begun.
	await until(() => page.evaluate(() => {
		document.querySelector('#sql-cancel:enabled')?.click();
		return document.querySelector('#sql-error').textContent.trim() !== '';
	}), 'the end of the query');
	await page.locator('#sql-text').fill('select 6 * 7 as answer');
	await page.locator('#sql-run').click();
	await page.locator('#sql-result').getByText('42').waitFor();
}

export default [
	['details: facts, arguments, children and parents', details],
	['flows: followed by button and by key', flows],
	['search: counts what SQL counts; next and previous', search],
	['search: arguments; nothing found', searchOfArguments],
	['range: the table is that of kymo report', range],
	['range: selected by mouse, sorted', rangeByMouse],
	['flame: of the whole trace', flame],
	['info: what the trace is', info],
	['sql: rows, on the timeline, errors', sql],
	['sql: a long query is cancelled', sqlIsCancelled],
];
