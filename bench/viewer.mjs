#!/usr/bin/env node
// SPDX-License-Identifier: MIT
//
// viewer.mjs KYMO FILE [FRAMES ASKS]: what looking at a trace costs: `kymo view` and the page in a real Chromium.
// Prints numbers for bench/viewer.c, one line: seconds from the start of the tool to the first complete picture; the
// server's peak of memory in KiB; while panning, script time a frame p50 and p95 and the time between frames p50 and p95,
// in ms. Then a line for each of five zooms, from the whole trace to microseconds: ns a pixel, and p50 and p99 of the
// answer to what a screen shows there, over HTTP, in ms; and its mean KB.
//
// Exit codes: 0 measured, 1 failed, 77 there is no browser.
import fs from 'node:fs';
import http from 'node:http';
import { Harness, WAIT_MS, launch, within } from '../tests/viewer/harness.mjs';
import { Visit } from '../tests/viewer/page.mjs';

const SCREEN_PIXELS = 1500;
const TILE_PIXELS = 512;
const TRACKS_MAX = 40;
const ZOOMS = 5;

const [kymo, file, frames = '600', asks = '200'] = process.argv.slice(2);

const rank = (values, share) => {
	const sorted = values.toSorted((a, b) => a - b);
	return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
};

// The same sequence each time, so that runs can be compared.
function* randoms() {
	for (let x = 12345; ; x = (x * 1103515245 + 12345) % 2 ** 31)
		yield x / 2 ** 31;
}

function peakKib(pid) {
	return Number(/VmHWM:\s*(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
}

async function firstPicture(harness, browser) {
	const begin = performance.now();
	const { address, program } = await harness.serve(file);
	const visit = await Visit.open(browser, address, { width: 1400, height: 900, motion: true });
	return { seconds: (performance.now() - begin) / 1000, address, program, visit };
}

// D held down over a hundredth of the trace a screen: new tiles come in all the time.
async function pan(visit) {
	const { page } = visit;
	await page.evaluate(() => {
		const { begin, end } = window.kymo.trace;
		const width = (end - begin) / 100;
		window.kymo.set({ from: begin + 5 * width, to: begin + 6 * width });
	});
	await visit.settled();
	await page.locator('#timeline').focus();
	await page.evaluate(() => {
		window.kymoFrames.length = 0;
		window.between = [];
		let last = performance.now();
		const tick = (now) => {
			window.between.push(now - last);
			last = now;
			requestAnimationFrame(tick);
		};
		requestAnimationFrame(tick);
	});
	await page.keyboard.down('d');
	const drawn = await within(page.evaluate(async (count) => {
		const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
		while (window.between.length < count)
			await frame();
		return { script: [...window.kymoFrames], between: window.between.slice(1) };
	}, Number(frames)), 'the frames', 4 * WAIT_MS);
	await page.keyboard.up('d');
	return drawn;
}

function get(agent, url) {
	return new Promise((resolve, reject) => {
		const begin = performance.now();
		http.get(url, { agent }, (answer) => {
			let bytes = 0;
			answer.on('data', (data) => (bytes += data.length));
			answer.on('end', () => (answer.statusCode === 200
				? resolve({ ms: performance.now() - begin, bytes })
				: reject(new Error(`${url}: ${answer.statusCode}`))));
		}).on('error', reject);
	});
}

// A screen at one zoom, at random places.
async function zoom(agent, address, trace, level, random) {
	const tracks = trace.tracks.filter(({ kind }) => kind !== 'group').slice(0, TRACKS_MAX).map(({ id }) => id);
	const tile = TILE_PIXELS * 2 ** level;
	const count = Math.ceil(SCREEN_PIXELS / TILE_PIXELS) + 1;
	const answers = [];
	for (let i = 0; i < Number(asks); i++) {
		const at = trace.begin + random.next().value * Math.max(0, trace.end - trace.begin - SCREEN_PIXELS * 2 ** level);
		const query = `g=${trace.generation}&level=${level}&first=${Math.floor(at / tile)}&count=${count}&tracks=${tracks}`;
		answers.push(await get(agent, `${address}api/tiles?${query}`));
	}
	const ms = answers.map((answer) => answer.ms);
	const kb = answers.reduce((sum, answer) => sum + answer.bytes, 0) / answers.length / 1000;
	return [2 ** level, rank(ms, 0.5), rank(ms, 0.99), kb];
}

async function zooms(address, trace) {
	const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
	const random = randoms();
	const widest = Math.max(0, Math.ceil(Math.log2((trace.end - trace.begin) / SCREEN_PIXELS)));
	const lines = [];
	for (let i = 0; i < ZOOMS; i++)
		lines.push(await zoom(agent, address, trace, Math.round(widest * (1 - i / (ZOOMS - 1))), random));
	agent.destroy();
	return lines;
}

const browser = await launch();
const harness = new Harness({ kymo });
try {
	const { seconds, address, program, visit } = await firstPicture(harness, browser);
	const { script, between } = await pan(visit);
	const trace = await visit.trace();
	await visit.close();
	const lines = await zooms(address, trace);
	console.log([seconds, peakKib(program.child.pid), rank(script, 0.5), rank(script, 0.95),
		rank(between, 0.5), rank(between, 0.95)].join(' '));
	for (const line of lines)
		console.log(line.join(' '));
} finally {
	await browser.close();
	await harness.close();
}
