// SPDX-License-Identifier: MIT
//
// checks_live.mjs: the page follows a running program and a growing recording, and reports a server that ends.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { until } from './harness.mjs';

// The browser logs failed requests to the console. Two kinds are expected: requests for a generation that is gone (409),
// and any request to a server that has ended.
function forgive(here) {
	here.wrong = here.wrong.filter((text) => !/Failed to load resource: .*(409|ERR_CONNECTION|ERR_SOCKET|ERR_EMPTY)/.test(text));
}

// Reports whether a process has created its buffer: an earlier view finds nothing to attach to.
function hasDrum(pid) {
	try {
		const dir = `/proc/${pid}/fd`;
		return fs.readdirSync(dir).some((fd) => fs.readlinkSync(`${dir}/${fd}`).includes('kymo-drum'));
	} catch {
		return false; // a descriptor closed since
	}
}

async function demoRuns(harness) {
	// Longer than any check takes; stopped when the check ends.
	const program = harness.start(harness.demo, ['--tasks', '60000', '--seconds', '120'], { stdio: 'ignore' });
	await until(() => hasDrum(program.child.pid), 'the drum of the demo');
	return program;
}

async function grows(here) {
	const first = await here.trace();
	assert.equal(first.live, true, 'the trace says that it is live');
	await here.wait(({ generation, slices }) => window.kymo.trace.generation > generation &&
		window.kymo.trace.counts.slices > slices, { generation: first.generation, slices: first.counts.slices });
	await here.settled();
	assert.ok((await here.trace()).end > first.end, 'time goes on');
}

async function ofProgram({ visit, harness }) {
	const program = await demoRuns(harness);
	const { address, program: server } = await harness.serve('-p', String(program.child.pid));
	const here = await visit(address, { ready: false, live: true });
	await here.wait(() => window.kymo?.trace.counts.slices > 0);
	await grows(here);
	await here.page.locator('.track', { hasText: 'worker' }).first().waitFor();
	await here.page.goto('about:blank');
	forgive(here);
	assert.equal(await server.stop('SIGINT'), 0, server.said);
	await program.stop();
}

async function ofRecording({ visit, harness }) {
	const file = harness.file('growing.kymo');
	const program = harness.start(harness.kymo, ['run', '-o', file, '--', harness.demo, '--tasks', '60000',
		'--seconds', '120'], { stdio: 'ignore' });
	await until(() => fs.existsSync(file) && fs.statSync(file).size > 4096, 'the file of the recording');
	const { address, program: server } = await harness.serve(file);
	const here = await visit(address, { ready: false, live: true });
	await here.wait(() => window.kymo?.trace.counts.slices > 0);
	await grows(here);
	await here.page.goto('about:blank');
	forgive(here);
	assert.equal(await server.stop(), 0, server.said);
	await program.stop('SIGINT');
}

async function serverEnds({ visit, traces, harness }) {
	const { address, program } = await harness.serve(traces.shop);
	const here = await visit(address);
	assert.equal(await program.stop(), 0, program.said);
	await here.wait(() => /kymo view|server|ended|gone|lost/i.test(document.querySelector('#status').textContent));
	// Leave for another page first: this one would retry.
	await here.page.goto('about:blank');
	forgive(here);
}

export default [
	['live: a running program', ofProgram],
	['live: a recording that grows', ofRecording],
	['live: the server ends', serverEnds],
];
