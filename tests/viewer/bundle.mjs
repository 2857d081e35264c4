// SPDX-License-Identifier: MIT
//
// bundle.mjs: bundles modules of the page in memory, as the page is bundled, so that node can import them.
import path from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { skip } from './harness.mjs';

export const viewer = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../viewer');

// Returns Vite, or exits as a skipped test: it is not installed, or this node is too old for it.
export async function loadVite() {
	try {
		return await import(pathToFileURL(createRequire(path.join(viewer, 'package.json')).resolve('vite')));
	} catch (error) {
		return skip(error.code === 'MODULE_NOT_FOUND'
			? 'vite is not installed: run npm ci in viewer/, or tools/deps.sh test'
			: `vite does not load with node ${process.version}: ${error.message}`);
	}
}

// Exports each of these files of viewer/src under its name without folders. Define browser globals before the call.
export async function bundle(files) {
	const { build } = await loadVite();
	const entry = 'virtual:modules';
	const code = files.map((file) => `export * as ${path.basename(file)} from ${JSON.stringify(
		path.join(viewer, 'src', `${file}.ts`))};`).join('\n');
	const { output } = await build({
		configFile: false,
		root: viewer,
		logLevel: 'error',
		plugins: [{
			name: 'entry',
			resolveId: (id) => (id === entry ? id : null),
			load: (id) => (id === entry ? code : null),
		}],
		build: { write: false, minify: false, target: 'es2022', ssr: true, rollupOptions: { input: entry } },
	});
	return import(`data:text/javascript;base64,${Buffer.from(output[0].code).toString('base64')}`);
}
