// SPDX-License-Identifier: MIT
//
// page_is_built.mjs: the committed page (viewer/dist/index.html), which the tool embeds, is byte for byte what its
// sources build; and it keeps the place that an export fills.
//
//	page_is_built.mjs
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { loadVite, viewer } from './bundle.mjs';
import { skip, temporaryFolder } from './harness.mjs';

const BYTES_MAX = 500 * 1024;

// Other versions build other bytes.
function checkVersions() {
	const { packages } = JSON.parse(fs.readFileSync(path.join(viewer, 'package-lock.json'), 'utf8'));
	for (const name of ['vite', 'rolldown']) {
		const locked = packages[`node_modules/${name}`]?.version;
		const file = path.join(viewer, 'node_modules', name, 'package.json');
		const installed = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')).version : undefined;
		if (locked && installed !== locked)
			skip(`${name} ${installed} is installed and not ${locked}: run npm ci in viewer/`);
	}
}

async function built() {
	const { build } = await loadVite();
	checkVersions();
	const folder = temporaryFolder('page');
	process.chdir(viewer);
	await build({ root: viewer, logLevel: 'error', build: { outDir: folder, emptyOutDir: true } });
	assert.deepEqual(fs.readdirSync(folder), ['index.html'], 'the page is one file');
	return fs.readFileSync(path.join(folder, 'index.html'));
}

const page = await built();
assert.ok(page.length < BYTES_MAX, `the page has ${page.length} bytes, and should have less than ${BYTES_MAX}`);
assert.equal(page.toString().split('<!-- kymo-data -->').length, 2, 'the place of an export is there once');
assert.equal(page.toString().split('<title>').length, 2, 'and one title');

const committed = path.join(viewer, 'dist', 'index.html');
if (!fs.existsSync(committed)) skip('viewer/dist/index.html is not there: make viewer builds it');
assert.ok(page.equals(fs.readFileSync(committed)),
	'viewer/dist/index.html is not what the sources build: run make viewer');
console.log(`${page.length} bytes, as committed`);
