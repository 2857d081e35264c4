// SPDX-License-Identifier: MIT
//
// checks_odd.mjs: unusual traces: hostile names, five thousand threads, an empty one, and a kernel trace with samples.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { oddNames } from './traces.mjs';

async function names({ visit, traces }) {
	const here = await visit(traces.odd);
	const { page } = here;
	const heads = await page.locator('.track').allTextContents();
	for (const name of oddNames.filter((one) => one && one.length < 100 && !/[\n\u202e]/.test(one)))
		assert.ok(heads.some((head) => head.includes(name)), `a head says ${name}`);
	await page.evaluate(() => window.kymo.select({ kind: 'slices', id: 0 }, 'reveal'));
	await here.detailsOf(oddNames[0]);
	for (const name of oddNames.filter((one) => /[<&{]/.test(one))) {
		await page.locator('#search-input').fill(`name:${name}`);
		await here.wait((q) => window.kymo.state.search === q && window.kymo.search?.count === 1, `name:${name}`);
	}
	await inEveryPanel(here);
	assert.equal(await page.evaluate(() => window.hacked), undefined, 'a name was run as a script');
	assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll('#app :is(img, b, script, style)')]
		.map((element) => element.outerHTML)), [], 'a name became elements');
}

// Every part that shows names shows the first odd one; it stays in the document when another tab is chosen.
async function inEveryPanel(here) {
	const { page } = here;
	const shows = (place) => here.wait(([where, name]) => document.querySelector(where).textContent.includes(name),
		[place, oddNames[0]]);
	for (const tab of ['Range', 'Flame']) {
		await page.getByRole('tab', { name: tab }).click();
		await shows(`#${tab.toLowerCase()}`);
	}
	await page.getByRole('tab', { name: 'Info' }).click();
	await page.locator('#info').waitFor();
	await page.locator('#search-input').fill('e');
	await shows('#search-list');
	await page.evaluate(() => window.kymo.set({ page: 'sql', sql: 'select ts, dur, name from slice order by ts' }));
	await shows('#sql-result');
	await page.locator('#sql-show').click();
	await here.wait(() => window.kymo.state.page === 'timeline' && window.kymo.overlay !== null);
	await here.settled();
}

async function crowd({ visit, traces }) {
	const here = await visit(traces.crowd);
	const { page } = here;
	const heads = await page.locator('.track').count();
	assert.ok(heads >= 5 && heads < 400, `heads of 5,000 threads are made for what is seen: there are ${heads}`);
	await here.find('name:work 7');
	await page.locator('#track-filter').fill('member 4321');
	await page.locator('.track', { hasText: 'member 4321' }).first().waitFor();
	await here.settled();
}

async function empty({ visit, traces }) {
	const here = await visit(traces.empty);
	assert.equal(await here.page.locator('.track').count(), 0);
	assert.match(await here.page.locator('#app').textContent(), /no events|empty|nothing/i, 'it says that there is nothing');
	await here.focus();
	await here.key('w', 's', 'a', 'd', 'f', '0', 'm');
	for (const tab of ['Range', 'Flame', 'Info', 'Details'])
		await here.page.getByRole('tab', { name: tab }).click();
	await here.settled();
}

// Records a real one if the kernel allows it; what is missing then is not the page's fault.
async function kernel({ visit, harness }) {
	const file = harness.file('kernel.kymo');
	try {
		await harness.tool('run', '-o', file, '--kernel', '--sample', '1000', '--', harness.demo);
	} catch (error) {
		console.log(`not recorded here: ${String(error.stderr).split('\n')[0]}`);
		return;
	}
	const here = await visit(file);
	const { tracks, counts } = await here.trace();
	const kinds = new Set(tracks.map((track) => track.kind));
	if (counts.sched > 0)
		assert.ok(kinds.has('sched') && kinds.has('state'), `tracks of scheduling: ${[...kinds]}`);
	if (counts.samples > 0)
		assert.ok(kinds.has('samples'), `tracks of samples: ${[...kinds]}`);
	for (const kind of ['sched', 'state', 'samples', 'counter'].filter((one) => kinds.has(one)))
		await selectsOneOf(here, kind, tracks.find((track) => track.kind === kind && track.events > 0));
	if (counts.samples > 0) {
		await here.page.evaluate(() => window.kymo.set({ tab: 'flame', flameOf: 'samples', range: null }));
		await here.wait(() => /\S/.test(document.querySelector('#flame').textContent));
	}
}

async function selectsOneOf(here, kind, track) {
	const id = await here.page.evaluate(async ([which, { id: number }]) => {
		const { trace, source } = window.kymo;
		const level = Math.max(0, Math.ceil(Math.log2((trace.end - trace.begin) / 512)) - 4);
		const tiles = await source.tiles(level, 0, 17, [number]);
		const tile = tiles.find(({ items, points }) => items?.count || points?.count);
		return which === 'counter' ? 0 : tile.items.event[0];
	}, [kind, track]);
	await here.page.evaluate((ref) => window.kymo.select(ref, 'reveal'), { kind, id });
	await here.wait((wanted) => window.kymo.state.selected?.kind === wanted &&
		document.querySelectorAll('#details dt').length > 2, kind);
}

// A profile has no slices: Flame shows its samples at once, and Range says where they are.
async function profile({ visit, harness }) {
	const file = harness.file('profile.folded');
	fs.writeFileSync(file, 'main;work 3\nmain;idle 2\n');
	const here = await visit(file);
	await here.page.getByRole('tab', { name: 'Flame' }).click();
	await here.wait(() => /main · total 1 sample/.test(document.querySelector('#flame').textContent));
	await here.page.getByRole('tab', { name: 'Range' }).click();
	await here.wait(() => /Flame tab/.test(document.querySelector('#range .empty').textContent));
}

// Losses are shown prominently, and in full in the Info tab.
async function losses({ visit, traces }) {
	const here = await visit(traces.odd);
	const { problems } = await here.trace();
	assert.ok(problems.some(({ severity }) => severity === 'data loss'), JSON.stringify(problems));
	assert.match(await here.page.locator('#status .warn').textContent(), /json_args_too_deep/, 'the status, in colour');
	await here.page.getByRole('tab', { name: 'Info' }).click();
	await here.wait(() => /json_args_too_deep|nested deeper/.test(document.querySelector('#panel').textContent));
}

export default [
	['odd: names are shown as text', names],
	['odd: losses are shown', losses],
	['odd: 5,000 threads', crowd],
	['odd: an empty trace', empty],
	['odd: samples only', profile],
	['odd: scheduling and samples', kernel],
];
