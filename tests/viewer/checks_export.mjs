// SPDX-License-Identifier: MIT
//
// checks_export.mjs: the exported file, opened from disk, shows the same as the server.
import assert from 'node:assert/strict';
import { pathToFileURL } from 'node:url';
import { allItems } from './asked.mjs';

async function exported(harness, file, name, ...options) {
	const out = harness.file(name);
	await harness.tool('view', '--export', out, ...options, file);
	return pathToFileURL(out).href;
}

async function sameSlices({ visit, traces, harness }) {
	for (const [name, levels] of [['shop', [12, 16, 20]], ['demo', [17, 21]]]) {
		const served = await visit(traces[name]);
		const opened = await visit(await exported(harness, traces[name], `${name}.html`));
		const [ours, theirs] = [await opened.trace(), await served.trace()];
		assert.deepEqual(ours.tracks, theirs.tracks, `the tracks of ${name}`);
		for (const level of levels)
			assert.deepEqual(await allItems(opened, level), await allItems(served, level), `${name} at level ${level}`);
	}
}

async function isUsed({ visit, traces, harness }) {
	const here = await visit(await exported(harness, traces.shop, 'used.html'));
	await here.find('name:query');
	await here.detailsOf('orders');
	await here.page.locator('#details .flow-out').first().click();
	await here.detailsOf('job');
	await here.page.evaluate(() => window.kymo.set({ tab: 'range', range: null }));
	await here.page.locator('#range tr[data-name="request"]').waitFor();
	const { count, total, self } = await here.page.evaluate(async () => {
		const { rows } = await window.kymo.source.range(0, window.kymo.trace.end);
		return rows.find((row) => row.name === 'request');
	});
	assert.deepEqual({ count, total, self }, { count: 20, total: 40e6, self: 10e6 });
	await here.page.evaluate(() => window.kymo.set({ page: 'sql' }));
	await here.wait(() => /kymo view/.test(document.querySelector('#app').textContent));
}

async function partOfTime({ visit, traces, harness }) {
	const here = await visit(await exported(harness, traces.shop, 'part.html', '--from', '20ms', '--to', '40ms'));
	const { counts } = await here.trace();
	assert.ok(counts.slices > 700 && counts.slices < 1200, `a fifth of 4140 slices: ${counts.slices}`);
}

async function oddNames({ visit, traces, harness }) {
	const here = await visit(await exported(harness, traces.odd, 'odd.html'));
	assert.equal(await here.page.evaluate(() => window.hacked), undefined);
	await here.page.locator('.track', { hasText: '<script>' }).first().waitFor();
}

export default [
	['export: the same slices from disk', sameSlices],
	['export: works without a server', isUsed],
	['export: a part of the time', partOfTime],
	['export: odd names', oddNames],
];
