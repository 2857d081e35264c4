// SPDX-License-Identifier: MIT
//
// checks_timeline.mjs: the page loads; keys and mouse move through time and tracks; the URL holds what is shown.
import assert from 'node:assert/strict';
import { seen } from './asked.mjs';
import { until } from './harness.mjs';

const span = (state) => state.to - state.from;

async function loads({ visit, traces }) {
	const { page } = await visit(traces.demo, { height: 1800 });
	assert.match(await page.title(), /demo/, 'the title');
	assert.equal(await page.locator('#timeline').getAttribute('role'), 'application');
	for (const name of ['worker 0', 'worker 3', 'gateway', 'scheduler'])
		assert.ok(await page.locator('.track', { hasText: name }).count() > 0, `a track for ${name}`);
	assert.match(await page.locator('#status').textContent(), /\d/, 'the status says what is loaded');
	const painted = await page.evaluate(colours);
	assert.ok(painted > 8, `the canvas has many colours, has ${painted}`);
}

// Counts the colours on the canvas: an empty one has hardly any.
function colours() {
	const seen = new Set();
	for (const canvas of document.querySelectorAll('#timeline canvas')) {
		const { width, height } = canvas;
		const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
		for (let i = 0; i < data.length; i += 4 * 7)
			seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
	}
	return seen.size;
}

async function pageIsSmall({ harness, traces }) {
	const answer = await fetch(await harness.address(traces.shop));
	const bytes = (await answer.arrayBuffer()).byteLength;
	assert.ok(bytes > 1000 && bytes < 500000, `the page has ${bytes} bytes`);
}

async function nothingShifts({ visit, traces }) {
	const { page } = await visit(traces.demo);
	const shifts = await page.evaluate(() => window.shifts);
	const sum = shifts.reduce((all, shift) => all + shift.value, 0);
	assert.ok(sum < 0.02, `what is there moves while the page loads: ${JSON.stringify(shifts)}`);
}

async function zoomsByKeyboard({ visit, traces, harness }) {
	const here = await visit(traces.shop, { motion: true });
	const [{ id, ts, dur }] = await harness.query(traces.shop,
		"select s.id, s.ts - (select min(ts) from slice) ts, s.dur from slice s where s.name = 'reply' limit 1 offset 7");
	await here.focus();
	await here.key('0');
	const whole = await here.state();
	await here.key('w', 'w');
	assert.ok(span(await here.state()) < span(whole), 'W zooms in');
	await here.key('d');
	assert.ok((await here.state()).from > whole.from, 'D goes on');
	await here.page.evaluate((slice) => window.kymo.select({ kind: 'slices', id: slice }, 'reveal'), id);
	await here.focus();
	await here.key('f');
	await here.wait(([at, length]) => {
		const { from, to } = window.kymo.state;
		return from <= at && to >= at + length && to - from < 4 * length;
	}, [ts, dur]);
	await here.key('0');
	await here.wait((before) => window.kymo.state.to - window.kymo.state.from >= before, span(whole) * 0.99);
}

async function walksFromSliceToSlice({ visit, traces }) {
	const here = await visit(traces.shop);
	await here.find('name:request');
	await here.focus();
	const named = (name) => here.detailsOf(name);
	await named('request');
	await here.key('ArrowDown');
	await named('parse');
	const span = async () => {
		const { from, to } = await here.state();
		return to - from;
	};
	const before = await span();
	const asked = [];
	here.page.on('request', (request) => /api\/(neighbour|tiles)/.test(request.url()) && asked.push(request.url()));
	await here.key('.');
	await named('query');
	await here.key('.');
	await named('reply');
	assert.equal(await span(), before, 'a step does not zoom');
	assert.equal(asked.filter((url) => url.includes('neighbour')).length, 2, 'a step is one request');
	await here.key(',');
	await named('query');
	await here.key('ArrowUp');
	await named('request');
	await here.key('Escape');
	await here.wait(() => window.kymo.state.selected === null);
}

async function mouse({ visit, traces }) {
	const here = await visit(traces.shop);
	const { page } = here;
	const canvas = await page.locator('#timeline canvas').first().boundingBox();
	const x = canvas.x + canvas.width / 2;
	const y = canvas.y + canvas.height / 2;
	const before = await here.state();
	await page.mouse.move(x, y);
	await page.keyboard.down('Control');
	await page.mouse.wheel(0, -400);
	await page.keyboard.up('Control');
	await here.wait((old) => window.kymo.state.to - window.kymo.state.from < old, span(before) * 0.95);
	await here.settled();
	const zoomed = await here.state();
	await page.mouse.down();
	await page.mouse.move(x - 200, y, { steps: 4 });
	await page.mouse.up();
	await here.wait((old) => window.kymo.state.from > old, zoomed.from);
	await here.settled();
	await page.mouse.move(x, y);
	await page.keyboard.down('Shift');
	await page.mouse.down();
	await page.mouse.move(x + 150, y, { steps: 4 });
	await page.mouse.up();
	await page.keyboard.up('Shift');
	await here.wait(() => window.kymo.state.range !== null);
}

async function clickSelects({ visit, traces, harness }) {
	const here = await visit(traces.shop);
	const trace = await here.trace();
	const track = trace.tracks.find((one) => one.kind === 'slices' && one.name.includes('worker'));
	const [job] = await harness.query(traces.shop,
		"select id, ts - (select min(ts) from slice) ts, dur from slice where name = 'job' limit 1");
	await here.page.evaluate(([from, to]) => window.kymo.set({ from, to }), [job.ts - job.dur, job.ts + 2 * job.dur]);
	await here.settled();
	const { x, y } = await here.place(track.key, job.ts + job.dur * 0.05);
	await here.page.mouse.click(x, y);
	await here.wait((id) => window.kymo.state.selected?.id === id, job.id);
	await here.detailsOf('job');
}

// A track shows its buttons on hover and focus.
async function press(page, button, name) {
	await page.locator('.track', { hasText: name }).first().hover();
	await page.getByRole('button', { name: new RegExp(`^${button} ${name}`) }).first().click();
}

async function pins({ visit, traces }) {
	const here = await visit(traces.shop);
	const { page } = here;
	const key = await page.locator('.track', { hasText: 'worker' }).first().getAttribute('data-key');
	await press(page, 'Pin', 'worker');
	await page.locator(`#pinned .track[data-key="${key}"]`).waitFor();
	assert.deepEqual((await here.state()).pinned, [key]);
	await press(page, 'Hide', 'busy');
	await here.wait(() => window.kymo.state.hidden.length === 1);
	await here.settled();
	assert.equal(await page.locator('.track', { hasText: 'busy' }).count(), 0, 'a hidden track is gone');
	await page.locator('.track', { hasText: 'front' }).first().focus();
	await here.key('p');
	await here.wait(() => window.kymo.state.pinned.length === 2);
	await page.locator('#track-filter').fill('front');
	await here.wait(() => window.kymo.state.filter === 'front');
	await here.settled();
	await page.locator('.track', { hasText: 'front' }).first().waitFor();
}

// Alt and the arrows move a track among its siblings; the URL keeps the order.
async function moves({ visit, traces }) {
	const here = await visit(traces.shop);
	const { page } = here;
	const order = () => page.locator('.track').evaluateAll((heads) => heads
		.toSorted((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top).map((head) => head.dataset.key));
	const before = await order();
	const [front, worker] = ['t101', 't102'].map((tid) => before.find((key) => key.includes(tid)));
	await page.locator(`.track[data-key="${front}"]`).focus();
	await here.key('Alt+ArrowDown');
	await here.wait(() => window.kymo.state.order.length > 0);
	await here.settled();
	const after = await order();
	assert.ok(before.indexOf(front) < before.indexOf(worker) && after.indexOf(front) > after.indexOf(worker),
		`from ${before} to ${after}`);
	await page.reload({ waitUntil: 'commit' });
	await here.settled();
	assert.deepEqual(await order(), after, 'after a reload');
}

async function doubleClick({ visit, traces, harness }) {
	const here = await visit(traces.shop);
	const track = (await here.trace()).tracks.find((one) => one.kind === 'slices' && one.name.includes('worker'));
	const [job] = await harness.query(traces.shop,
		"select id, ts - (select min(ts) from slice) ts, dur from slice where name = 'job' limit 1");
	await here.page.evaluate((slice) => window.kymo.set({ from: slice.ts - 20 * slice.dur, to: slice.ts + 21 * slice.dur }), job);
	await here.settled();
	const { x, y } = await here.place(track.key, job.ts + job.dur * 0.5);
	await here.page.mouse.dblclick(x, y);
	await here.wait(({ id, ts, dur }) => {
		const { selected, from, to } = window.kymo.state;
		return selected?.id === id && from <= ts && to >= ts + dur && to - from < 4 * dur;
	}, job);
}

// Both processes of the demo on one timeline, and an arrow from one to the other.
async function severalFiles({ visit, traces, harness }) {
	const { address: both } = await harness.serve(traces.demo, traces.demo.replace('.kymo', '-loadgen.kymo'));
	const here = await visit(both);
	const { tracks } = await here.trace();
	for (const name of ['demo server', 'demo loadgen'])
		assert.ok(tracks.some((track) => track.kind === 'group' && track.name.startsWith(name)), `a group of ${name}`);
}

async function folds({ visit, traces }) {
	const here = await visit(traces.shop);
	const { page } = here;
	const before = await page.locator('.track').count();
	await page.getByRole('button', { name: /^Fold shop/ }).first().focus();
	await page.keyboard.press('Enter');
	await here.settled();
	assert.ok(await page.locator('.track').count() < before, 'a folded process hides its threads');
}

async function marks({ visit, traces }) {
	const here = await visit(traces.shop);
	await here.find('name:request');
	await here.focus();
	await here.key('m');
	await here.wait(() => window.kymo.state.marks.length === 1);
	await here.key('r');
	await here.wait(() => window.kymo.state.range !== null);
	const { range } = await here.state();
	assert.equal(range.to - range.from, 2000000, 'R takes the time of the selected slice');
}

// The same state, and in the end the same picture: the selected slice's flows may come a little later.
async function same(visit, before, where) {
	await visit.focus();
	await visit.page.mouse.move(2, 2);
	assert.deepEqual((await seen(visit)).state, before.state, `the state ${where}`);
	await until(async () => (await seen(visit)).picture === before.picture, `the same picture ${where}`);
}

async function address({ visit, traces }) {
	const first = await visit(traces.shop);
	await first.find('name:query');
	await first.detailsOf('orders');
	await first.focus();
	await first.key('f', 'm', 'r', 's');
	await press(first.page, 'Pin', 'worker');
	await first.page.getByRole('tab', { name: 'Details' }).click();
	await first.detailsOf('orders');
	await first.focus();
	await first.page.mouse.move(2, 2);
	const before = await seen(first);
	const url = await first.address();
	await first.page.reload({ waitUntil: 'commit' });
	await first.settled();
	await first.detailsOf('orders');
	await same(first, before, 'after a reload');
	await same(await visit(url), before, 'of the same address elsewhere');
}

// To the pixel, even if the SQL page is shown first.
async function scrolled({ visit, traces }) {
	const size = { height: 500 };
	const first = await visit(traces.demo, size);
	const top = (visited) => visited.page.evaluate(() => document.querySelector('#tracks').scrollTop);
	await first.page.evaluate(() => (document.querySelector('#tracks').scrollTop = 137));
	await first.wait(() => window.kymo.state.scroll !== '');
	const url = await first.address();
	assert.equal(await top(await visit(url, size)), 137);
	const sql = await visit(`${url}&page=sql`, { ...size, ready: false });
	await sql.page.getByRole('button', { name: 'Timeline', exact: true }).click();
	await sql.settled();
	assert.equal(await top(sql), 137, 'on the way back from SQL');
}

// A hand-written link, and rows of SQL far from the trace: the page survives and leads back.
async function farAway({ visit, traces, harness }) {
	const fragments = ['9e18..9000000000000002048', '-1e300..1e300', '5..5.001', '1e17..1.0000000000000002e17']
		.map((window) => `#v=${window}&range=${window}&marks=1e300,-9e18`);
	const here = await visit(await harness.address(traces.shop) + fragments[0]);
	for (const fragment of fragments.slice(1)) {
		await here.page.evaluate((text) => (location.hash = text), fragment);
		await here.settled();
	}
	await here.page.evaluate(() => window.kymo.set({ from: 9e18, to: 9e18 + 2048 }));
	await here.focus();
	await here.key('w', '0');
	const { begin, end } = await here.trace();
	await here.wait((all) => window.kymo.state.to - window.kymo.state.from === all, end - begin);
}

export default [
	['load: the demo, its tracks and slices', loads],
	['load: the page is under 500 KB', pageIsSmall],
	['load: nothing shifts', nothingShifts],
	['load: several files on one timeline', severalFiles],
	['timeline: zooms to a slice by keyboard', zoomsByKeyboard],
	['timeline: from slice to slice by keyboard', walksFromSliceToSlice],
	['timeline: mouse zooms, drags and selects a range', mouse],
	['timeline: a click selects the slice under it', clickSelects],
	['timeline: a double click zooms to the slice', doubleClick],
	['timeline: marks, and the range of a slice', marks],
	['tracks: pin, hide and filter', pins],
	['tracks: fold', folds],
	['tracks: move', moves],
	['address: far from the trace', farAway],
	['address: where it is scrolled to', scrolled],
	['address: shows the same after a reload and elsewhere', address],
];
