// SPDX-License-Identifier: MIT
//
// harness.mjs: the environment of the page's tests: the real tool serving a trace, Debian's Chromium driven by
// playwright-core, a temporary folder, and checks that are counted and reported.
//
// No fixed sleeps: every wait is for a condition, with WAIT_MS as the timeout.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { execFile, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const WAIT_MS = 1000 * Number(process.env.KYMO_VIEWER_WAIT_S || 60);
export const NOT_POSSIBLE = 77;

const run = promisify(execFile);

// Exits as a test that this machine cannot run.
export function skip(reason) {
	console.log(`skipped: ${reason}`);
	process.exit(NOT_POSSIBLE);
}

export function findChromium() {
	const names = ['chromium', 'chromium-browser', 'google-chrome'];
	const folders = (process.env.PATH ?? '').split(':');
	const found = names.flatMap((name) => folders.map((folder) => path.join(folder, name)));
	return process.env.KYMO_CHROMIUM || found.find((file) => fs.existsSync(file));
}

// Returns a browser, or exits if there is none.
export async function launch() {
	const executablePath = findChromium();
	if (!executablePath)
		skip('there is no Chromium: tools/deps.sh test installs it (apt-get install chromium)');
	let playwright;
	try {
		playwright = createRequire(path.join(root, 'viewer/package.json'))('playwright-core');
	} catch {
		skip('playwright-core is not installed: run npm ci in viewer/, or tools/deps.sh test');
	}
	// Without its sandbox: it needs rights that a container does not give, and the only page is our own.
	return playwright.chromium.launch({
		executablePath,
		timeout: WAIT_MS,
		args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--force-color-profile=srgb'],
	});
}

// Resolves as promise does; after a timeout the error names what was awaited.
export function within(promise, what, ms = WAIT_MS) {
	let timer;
	const late = new Promise((_, reject) => {
		timer = setTimeout(() => reject(new Error(`${what} did not come within ${ms / 1000} s`)), ms);
	});
	return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// Polls until the answer is truthy, and returns it.
export async function until(ask, what, ms = WAIT_MS) {
	for (const end = Date.now() + ms; ;) {
		const answer = await ask();
		if (answer)
			return answer;
		if (Date.now() > end)
			throw new Error(`${what} did not come within ${ms / 1000} s`);
		await new Promise((resolve) => setTimeout(resolve, 20));
	}
}

// Makes a folder that is removed at exit, however the program ends.
export function temporaryFolder(name) {
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), `kymo-${name}-`));
	process.once('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
	for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'])
		process.once(signal, () => process.exit(1));
	return folder;
}

// A program that runs until it is stopped.
export class Program {
	constructor(file, args, options = {}) {
		this.name = path.basename(file);
		this.child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
		this.said = '';
		this.child.stderr?.on('data', (data) => (this.said += data));
		this.lines = this.child.stdout ? readline.createInterface({ input: this.child.stdout }) : null;
		this.ended = new Promise((resolve) => this.child.once('close', (code, signal) => resolve(signal ?? code)));
	}

	// Returns the first line that it prints.
	line() {
		const line = new Promise((resolve) => this.lines.once('line', resolve));
		const ended = this.ended.then((how) => {
			throw new Error(`${this.name} ended with ${how} before it printed a line: ${this.said}`);
		});
		ended.catch(() => {});
		return within(Promise.race([line, ended]), `a line of ${this.name}`);
	}

	// Asks it to end, and returns its exit status.
	async stop(signal = 'SIGTERM') {
		if (this.child.exitCode === null && this.child.signalCode === null)
			this.child.kill(signal);
		return within(this.ended, `the end of ${this.name}`);
	}
}

export class Harness {
	constructor({ kymo, demo, logs }) {
		Object.assign(this, { kymo, demo, logs });
		this.programs = [];
		process.once('exit', () => this.askAll());
		this.dir = temporaryFolder('viewer');
		this.servers = new Map();
		this.failed = [];
		this.passed = 0;
	}

	file(name) {
		return path.join(this.dir, name);
	}

	start(file, args, options) {
		const program = new Program(file, args, options);
		this.programs.push(program);
		return program;
	}

	// Returns what the tool prints; throws with its messages if it fails.
	async tool(...args) {
		const { stdout } = await run(this.kymo, args, { maxBuffer: 1 << 28 });
		return stdout;
	}

	async query(file, sql) {
		return JSON.parse(await this.tool('query', '--json', file, sql));
	}

	// Serves with these arguments; returns {address, program}.
	async serve(...args) {
		const program = this.start(this.kymo, ['view', '--no-browser', '--port', '0', ...args]);
		const address = (await program.line()).trim();
		assert.match(address, /^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/$/, 'the address that kymo view prints');
		return { address, program };
	}

	// Returns the address of one server per file.
	async address(file) {
		if (!this.servers.has(file))
			this.servers.set(file, await this.serve(file));
		return this.servers.get(file).address;
	}

	async check(name, body) {
		const begin = Date.now();
		try {
			await body();
			this.passed++;
			console.log(`${name}: ok (${Date.now() - begin} ms)`);
		} catch (error) {
			this.failed.push(name);
			console.log(`${name}: FAILED\n  ${String(error.message ?? error).replaceAll('\n', '\n  ')}`);
			if (error.stack && !(error instanceof assert.AssertionError))
				console.log(`  ${error.stack.split('\n').filter((line) => line.includes('/viewer/')).join('\n  ')}`);
		}
	}

	// For an abrupt exit. Sends SIGTERM, because some have children of their own to end.
	askAll() {
		for (const { child } of this.programs)
			if (child.exitCode === null && child.signalCode === null)
				child.kill('SIGTERM');
	}

	async close() {
		for (const program of this.programs)
			await program.stop().catch(() => program.child.kill('SIGKILL'));
	}
}
