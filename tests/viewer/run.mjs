#!/usr/bin/env node
// SPDX-License-Identifier: MIT
//
// run.mjs KYMO DEMO LOGS [CHECK...]: the viewer end to end: `kymo view` of real traces in a real Chromium. LOGS is the
// folder for screenshots of failures; CHECK is a part of the names of the checks to run (default: all).
//
// Exit codes: 0 success, 1 a check failed, 77 no browser or no npm packages (says how to get them).
import { Harness, launch } from './harness.mjs';
import { Visit } from './page.mjs';
import { makeTraces } from './traces.mjs';
import access from './checks_access.mjs';
import exported from './checks_export.mjs';
import live from './checks_live.mjs';
import odd from './checks_odd.mjs';
import panelKeys from './checks_panel_keys.mjs';
import panels from './checks_panels.mjs';
import timeline from './checks_timeline.mjs';

// Runs one check: closes its visits afterwards, and fails if they saw anything go wrong.
async function run(harness, browser, traces, [name, body]) {
	const visits = [];
	const test = {
		harness, traces,
		async visit(what, options) {
			const address = /^\w+:\/\//.test(what) ? what : await harness.address(what);
			visits.push(await Visit.open(browser, address, options));
			return visits.at(-1);
		},
	};
	await harness.check(name, async () => {
		try {
			await body(test);
		} catch (error) {
			for (const visit of visits) {
				await visit.screenshot(harness.logs, `viewer-${name.replaceAll(/\W+/g, '-')}`);
				error.message += visit.wrong.map((wrong) => `\n${wrong}`).join('');
				visit.wrong.length = 0;
			}
			throw error;
		} finally {
			for (const visit of visits)
				await visit.close();
		}
	});
}

const [kymo, demo, logs, ...wanted] = process.argv.slice(2);
const checks = [...timeline, ...panels, ...panelKeys, ...odd, ...access, ...exported, ...live]
	.filter(([name]) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
const browser = await launch();
const harness = new Harness({ kymo, demo, logs });
try {
	const traces = await makeTraces(harness);
	for (const check of checks)
		await run(harness, browser, traces, check);
} finally {
	await browser.close();
	await harness.close();
}
console.log(`${harness.passed} passed, ${harness.failed.length} failed${harness.failed.map((name) => `\n  ${name}`).join('')}`);
process.exitCode = harness.failed.length > 0 ? 1 : 0;
