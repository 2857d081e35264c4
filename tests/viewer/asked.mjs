// SPDX-License-Identifier: MIT
//
// asked.mjs: what of a page is held against another page or against the tool.
import crypto from 'node:crypto';
import { until } from './harness.mjs';

const hash = (bytes) => crypto.createHash('sha256').update(bytes).digest('hex');

async function look(visit) {
	await visit.settled();
	const pictures = await visit.page.evaluate(() => [...document.querySelectorAll('#timeline canvas')]
		.map((canvas) => `${canvas.width}x${canvas.height} ${canvas.toDataURL()}`));
	return hash(pictures.join('\n'));
}

// All of the state, and what the timeline's canvases show once nothing changes there any more.
export async function seen(visit) {
	let picture = '';
	await until(async () => picture === (picture = await look(visit)), 'a picture that stays');
	return { state: await visit.state(), picture };
}

// What is in every track at a level, as text: the items that are at least a pixel wide as they are, and of each row of a
// tile how many events there are in all. How the small ones are merged is the source's own affair.
export function allItems(visit, level) {
	return visit.page.evaluate(async (k) => {
		const { trace, source } = window.kymo;
		const AT_ONCE = 200; // tiles: a server takes no more in one request
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
