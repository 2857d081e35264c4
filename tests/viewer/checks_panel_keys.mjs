// SPDX-License-Identifier: MIT
//
// checks_panel_keys.mjs: the panels by keyboard: rows of tables, frames of the flame graph, the list of tracks with
// matches, SQL completion; and rows of SQL that lead to the timeline or into a file.
import assert from 'node:assert/strict';
import fs from 'node:fs';

// Opens a tab of the panel and returns its element.
async function open(here, tab) {
	await here.page.getByRole('tab', { name: tab }).click();
}

async function tableByKeys({ visit, traces }) {
	const here = await visit(traces.shop);
	const { page } = here;
	await open(here, 'Range');
	await page.locator('#range tr[data-name="request"]').waitFor();
	const shown = await page.evaluate(() => [...document.querySelectorAll('#range tr[data-name]')].map((line) => line.dataset.name));
	await page.locator('#range tbody').focus();
	const current = () => page.evaluate(() => document.querySelector('#range tr.current').dataset.name);
	await page.keyboard.press('End');
	assert.equal(await current(), shown.at(-1));
	await page.keyboard.press('Home');
	await page.keyboard.press('ArrowDown');
	assert.equal(await current(), shown[1]);
	await page.keyboard.press('Enter');
	await here.wait((name) => window.kymo.state.search === `name=${name}` && window.kymo.state.selected !== null, shown[1]);
	await here.wait(() => /^\d+ of \d+/.test(document.querySelector('#search-count').textContent));
	assert.equal((await here.state()).tab, 'range', 'the table stays');
	await page.locator('#range').getByRole('searchbox').fill('reque');
	await here.wait(() => [...document.querySelectorAll('#range tr[data-name]')].every((line) => /reque/.test(line.dataset.name)));
	await page.locator('#range').getByRole('searchbox').fill('no such name');
	await page.locator('#range').getByText('No name contains this text.').waitFor();
}

async function flameByKeys({ visit, traces }) {
	const here = await visit(traces.shop);
	const { page } = here;
	await open(here, 'Flame');
	await here.wait(() => document.querySelectorAll('#flame [role=treeitem]').length > 1);
	await page.getByRole('tree', { name: 'Flame graph' }).focus();
	const current = () => page.evaluate(() => document.getElementById(
		document.querySelector('#flame [role=tree]').getAttribute('aria-activedescendant')).textContent);
	assert.match(await current(), /^all · total/);
	for (let i = 0; i < 20 && !/^request ·/.test(await current()); i++)
		await page.keyboard.press(i === 0 ? 'ArrowDown' : 'ArrowRight');
	assert.match(await current(), /^request · total 40\.0 ms .* self 10\.0 ms .* count 20$/);
	await page.keyboard.press('ArrowDown');
	const inside = await current();
	await page.keyboard.press('Enter');
	assert.equal(await page.getByRole('button', { name: 'Zoom out' }).isEnabled(), true);
	await page.keyboard.press('Backspace');
	await page.keyboard.press('Escape');
	assert.equal(await page.getByRole('button', { name: 'Zoom out' }).isDisabled(), true);
	assert.equal(await current(), inside, 'zooming keeps the current frame');
	await page.locator('#flame').getByRole('searchbox').fill('request');
	await here.wait(() => / %$/.test(document.querySelector('#flame output').textContent));
}

async function searchByTrack({ visit, traces }) {
	const here = await visit(traces.shop);
	const { page } = here;
	await page.locator('#search-input').fill('e');
	await here.wait(() => document.querySelectorAll('#search-list .track-matches').length > 1);
	const tracks = await page.evaluate(() => window.kymo.search.tracks);
	const most = tracks.reduce((found, track) => (track.count > found.count ? track : found));
	await page.locator('#search-input').press('ArrowDown');
	await page.keyboard.press('Enter');
	await here.wait((first) => document.querySelector('#search-count').textContent.startsWith(`${first + 1} of`), most.first);
	const { selected } = await here.state();
	const event = await page.evaluate(({ kind, id }) => window.kymo.source.event(kind, id), selected);
	assert.equal(event.track, most.track, 'the match is in the track that was chosen');
	await page.locator('#search-input').press('Escape');
	await here.wait(() => window.kymo.search === null && window.kymo.state.search === '');
}

async function sameName({ visit, traces }) {
	const here = await visit(traces.shop);
	const { page } = here;
	await here.find('name:request');
	await here.detailsOf('request');
	const first = (await here.state()).selected;
	await page.getByRole('button', { name: 'Same name ›' }).click();
	await here.wait((id) => window.kymo.state.selected.id !== id, first.id);
	await here.detailsOf('request');
	await page.getByRole('button', { name: '‹ Same name' }).click();
	await here.wait((id) => window.kymo.state.selected.id === id, first.id);
}

async function rowsLead({ visit, traces }) {
	const here = await visit(traces.shop);
	const { page } = here;
	await page.evaluate(() => window.kymo.set({ page: 'sql' }));
	await page.locator('.sql-tables details').first().waitFor();
	await page.locator('#sql-text').focus();
	await page.keyboard.type('select id, ts, dur, name from thread_sl');
	await page.locator('.sql-words').getByRole('button', { name: 'thread_slice' }).waitFor();
	await page.keyboard.press('Tab');
	assert.match(await page.locator('#sql-text').inputValue(), /from thread_slice$/);
	await page.locator('#sql-text').fill("select id, ts, dur, name from slice where name = 'job' order by dur desc, ts");
	await page.keyboard.press('Control+Enter');
	await page.locator('#sql-result tr[data-index="0"]').waitFor();
	const id = Number(await page.locator('#sql-result tr[data-index="0"] td[data-column="id"]').textContent());
	const coming = page.waitForEvent('download');
	await page.getByRole('button', { name: 'CSV', exact: true }).click();
	const lines = fs.readFileSync(await (await coming).path(), 'utf8').split('\r\n');
	assert.deepEqual([lines[0], lines.length], ['id,ts,dur,name', 22], 'a head, 20 rows, and the end of the last line');
	await page.locator('#sql-result tbody').focus();
	await page.keyboard.press('Home');
	await page.keyboard.press('Enter');
	await here.wait((row) => window.kymo.state.page === 'timeline' && window.kymo.state.selected?.id === row, id);
	await here.detailsOf('job');
	assert.ok(await page.getByLabel('History').locator('option').count() >= 2, 'what was run is remembered');
}

export default [
	['panels: a table by keys', tableByKeys],
	['panels: the flame graph by keys', flameByKeys],
	['panels: matches by track', searchByTrack],
	['panels: the next of the same name', sameName],
	['panels: SQL completion, rows that lead to the timeline and to a file', rowsLead],
];
