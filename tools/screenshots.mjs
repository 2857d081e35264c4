#!/usr/bin/env node
// SPDX-License-Identifier: MIT
//
// screenshots.mjs KYMO DEMO OUT: makes OUT/viewer-light.png and OUT/viewer-dark.png, the pictures of the README: a run of
// the demo with its load generator, a slice selected whose flow crosses processes.
//
// Exit codes: 0 made, 1 failed, 77 there is no browser.
import fs from 'node:fs';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { Harness, launch } from '../tests/viewer/harness.mjs';
import { Visit } from '../tests/viewer/page.mjs';

const WIDTH = 1400;
const HEIGHT = 900;
const BYTES_MAX = 250000;

const [kymo, demo, out] = process.argv.slice(2);

// Visible time around the slice, in ns.
const BEFORE = 2200000;
const AFTER = 3800000;

// Of the tasks that ran soon after they were handed over and long enough to look into, picks the one with most activity
// around it.
const choice = `select s.id id, s.ts - (select min(ts) from slice) ts,
		(select count(distinct r.track_id) * 100 + count(*) from slice r
			where r.name = 'run' and r.ts between s.ts - ${BEFORE} and s.ts + ${AFTER}) busy
	from slice s join flow f on f.slice_in = s.id join slice o on f.slice_out = o.id
	where s.name = 'run' and s.dur between 200000 and 900000 and o.name = 'accept' and s.ts - o.ts < ${BEFORE} / 2
	order by busy desc limit 1`;

async function picture(browser, address, slice, theme) {
	const visit = await Visit.open(browser, address, { width: WIDTH, height: HEIGHT, theme });
	await visit.page.evaluate(async (id) => {
		const pinned = ['queued', 'gateway'].map((name) => window.kymo.trace.tracks.find(
			(track) => track.kind !== 'group' && track.name.startsWith(name)).key);
		window.kymo.set({ pinned });
		await window.kymo.select({ kind: 'slices', id }, 'reveal');
	}, slice.id);
	await visit.settled();
	await visit.page.evaluate((shown) => window.kymo.set(shown), { from: slice.ts - BEFORE, to: slice.ts + AFTER });
	await visit.settled();
	await visit.wait(() => document.querySelectorAll('#details dt').length > 0);
	await visit.page.mouse.move(WIDTH - 2, 2);
	const file = path.join(out, `viewer-${theme}.png`);
	await visit.page.screenshot({ path: file, animations: 'disabled', caret: 'hide' });
	await visit.close();
	const bytes = fs.statSync(file).size;
	console.log(`${file}: ${bytes} bytes`);
	if (bytes > BYTES_MAX)
		throw new Error(`${file} is larger than ${BYTES_MAX} bytes`);
}

const browser = await launch();
const harness = new Harness({ kymo, demo });
try {
	fs.mkdirSync(out, { recursive: true });
	const file = harness.file('demo.kymo');
	execFileSync(kymo, ['run', '-o', file, '--', demo], { stdio: 'ignore' });
	const [slice] = await harness.query(file, choice);
	const address = await harness.address(file);
	for (const theme of ['light', 'dark'])
		await picture(browser, address, slice, theme);
} finally {
	await browser.close();
	await harness.close();
}
