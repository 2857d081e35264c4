// SPDX-License-Identifier: MIT
//
// asked.mjs: reads what a page shows, for comparison with another page or with the tool.
import crypto from 'node:crypto';
import { until } from './harness.mjs';

const hash = (bytes) => crypto.createHash('sha256').update(bytes).digest('hex');

async function look(visit) {
	await visit.settled();
	const pictures = await visit.page.evaluate(() => [...document.querySelectorAll('#timeline canvas')]
		.map((canvas) => `${canvas.width}x${canvas.height} ${canvas.toDataURL()}`));
	return hash(pictures.join('\n'));
}

// Returns the whole state, and the timeline's canvases once they stop changing.
export async function seen(visit) {
	let picture = '';
	await until(async () => picture === (picture = await look(visit)), 'a picture that stays');
	return { state: await visit.state(), picture };
}

// Returns the content of every track at a level, as text: the items at least a pixel wide, and for each row of a tile
// the number of events. How small items are merged is up to the source.
export function allItems(visit, level) {
	return visit.page.evaluate(async (k) => {
		const { trace, source } = window.kymo;
		const AT_ONCE = 200; // tiles: the limit of one request
		const width = 512 * 2 ** k;
		const end = Math.floor(trace.end / width) + 1;
		const seen = [];
		const counts = new Map();
		const keep = (key, { index, items, points }) => {
			for (let i = 0; i < (items?.count ?? 0); i++) {
				const row = `${key} ${index} ${items.row[i]}`;
				counts.set(row, (counts.get(row) ?? 0) + items.merged[i]);
				if (items.merged[i] === 1 && items.dur[i] >= 2 ** k)
					seen.push(`${row} ${items.begin[i]} ${items.dur[i]} ${source.text(items.name[i])}`);
			}
			for (let i = 0; i < (points?.count ?? 0); i++)
				seen.push([key, index, points.at[i], points.min[i], points.max[i], points.last[i]].join(' '));
		};
		for (const track of trace.tracks.filter(({ kind }) => kind !== 'group'))
			for (let at = Math.floor(trace.begin / width); at < end; at += AT_ONCE)
				for (const tile of await source.tiles(k, at, Math.min(AT_ONCE, end - at), [track.id]))
					keep(track.key, tile);
		return [...seen, ...[...counts].map(([row, count]) => `${row}: ${count}`)];
	}, level);
}
