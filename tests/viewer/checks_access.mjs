// SPDX-License-Identifier: MIT
//
// checks_access.mjs: the page without mouse and screen: names and roles as Chromium reports them to a screen reader,
// visible focus, contrast, help; and both themes.
import assert from 'node:assert/strict';

const INTERACTIVE = new Set(['button', 'link', 'textbox', 'searchbox', 'combobox', 'checkbox', 'radio', 'tab', 'treeitem',
	'application', 'slider', 'spinbutton', 'separator', 'menuitem', 'option', 'switch']);

// Returns every node of the accessibility tree with such a role and without a name.
async function nameless(visit) {
	const session = await visit.context.newCDPSession(visit.page);
	const { nodes } = await session.send('Accessibility.getFullAXTree');
	await session.detach();
	const usable = nodes.filter((node) => !node.ignored && INTERACTIVE.has(node.role?.value));
	assert.ok(usable.length > 10, `only ${usable.length} usable elements`);
	return usable.filter((node) => !node.name?.value?.trim()).map((node) => `${node.role.value} ${node.backendDOMNodeId}`);
}

async function roles({ visit, traces }) {
	const here = await visit(traces.shop);
	const { page } = here;
	await page.getByRole('application', { name: 'Timeline' }).waitFor();
	assert.ok(await page.getByRole('tree').count() >= 1, 'the tracks are a tree');
	assert.ok(await page.getByRole('treeitem').count() >= 3, 'of items');
	for (const name of ['Details', 'Range', 'Flame', 'Info'])
		await page.getByRole('tab', { name }).waitFor();
	assert.equal(await page.locator('#live').getAttribute('aria-live'), 'polite');
	await here.find('name:request');
	await here.detailsOf('request');
	assert.deepEqual(await nameless(here), [], 'things without a name, on the timeline');
	await here.wait(() => /request/.test(document.querySelector('#live').textContent));
	await page.evaluate(() => window.kymo.set({ page: 'sql' }));
	await page.locator('#sql-text').waitFor();
	assert.deepEqual(await nameless(here), [], 'things without a name, on the page of SQL');
	assert.ok(await page.evaluate(() => document.documentElement.lang), 'the page says its language');
}

// Returns a name for the focused element, and whether its focus is visible.
function focused() {
	const element = document.activeElement;
	const style = getComputedStyle(element);
	const box = element.getBoundingClientRect();
	window.order ??= new Map();
	const known = window.order.has(element);
	window.order.set(element, true);
	return {
		what: element === document.body ? '' : `${element.tagName}#${element.id}.${element.className} ` +
			(element.getAttribute('aria-label') ?? element.textContent.slice(0, 30)),
		known,
		seen: box.width > 0 && (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 ||
			style.boxShadow !== 'none'),
	};
}

// Tab goes through everything once and comes back; each element shows that it has the focus.
async function tabOrder({ visit, traces }) {
	const here = await visit(traces.shop);
	const reached = [];
	const unseen = [];
	for (let i = 0; i < 200; i++) {
		await here.page.keyboard.press('Tab');
		const { what, known, seen } = await here.page.evaluate(focused);
		if (what === '' || known)
			break;
		reached.push(what);
		if (!seen)
			unseen.push(what);
	}
	assert.ok(reached.length < 200, 'Tab comes back to the first');
	for (const id of ['search-input', 'track-filter', 'timeline'])
		assert.ok(reached.some((what) => what.includes(`#${id}.`)), `Tab reaches #${id}: ${reached.join(', ')}`);
	assert.deepEqual(unseen, [], 'what has the focus and does not show it');
}

// From nothing to the details of a flow's target, with the keyboard alone.
async function keyboardOnly({ visit, traces }) {
	const here = await visit(traces.shop);
	const { page } = here;
	await page.keyboard.press('/');
	await here.wait(() => document.activeElement.id === 'search-input');
	await page.keyboard.type('name:query');
	await here.wait(() => window.kymo.search?.count === 20);
	await page.keyboard.press('Enter');
	await here.detailsOf('query');
	await page.keyboard.press('Escape');
	await here.focus();
	await here.key('f', ']');
	await here.detailsOf('job');
	await here.key('p');
	await here.wait(() => window.kymo.state.pinned.length === 1);
	await here.key('?');
	await page.getByRole('dialog').waitFor();
	assert.match(await page.locator('#help').textContent(), /zoom/i);
	await page.keyboard.press('Escape');
	await page.locator('#help').waitFor({ state: 'hidden' });
	await here.focus();
	await here.key('g');
	await here.wait(() => window.kymo.state.page === 'sql');
}

// Returns elements whose text has too little contrast (WCAG AA: 4.5, large text 3).
function faint() {
	const parse = (colour) => (colour.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
	const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
		.map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
		.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (element) => {
		for (let one = element; one; one = one.parentElement) {
			const colour = parse(getComputedStyle(one).backgroundColor);
			if ((colour[3] ?? 1) > 0.5)
				return colour;
		}
		return [255, 255, 255];
	};
	const found = [];
	for (const element of document.querySelectorAll('#app *')) {
		const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
		const style = getComputedStyle(element);
		if (!own || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || element.disabled)
			continue;
		const [high, low] = [light(parse(style.color)), light(behind(element))].sort((a, b) => b - a);
		const contrast = (high + 0.05) / (low + 0.05);
		const enough = parseFloat(style.fontSize) >= 18 ? 3 : 4.5;
		if (contrast < enough)
			found.push(`${element.tagName}#${element.id}.${element.className} "${element.textContent.trim().slice(0, 20)}" ` +
				contrast.toFixed(2));
	}
	return [...new Set(found)];
}

async function themes({ visit, traces }) {
	for (const theme of ['light', 'dark']) {
		const here = await visit(traces.shop, { theme });
		const { page } = here;
		assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), theme, 'as the system says');
		await here.find('name:request');
		await here.detailsOf('request');
		assert.deepEqual(await page.evaluate(faint), [], `faint texts in the ${theme} theme`);
		const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
		const before = await colour();
		await here.focus();
		await here.key('t');
		assert.notEqual(await page.evaluate(() => document.documentElement.dataset.theme), theme, 'T changes it');
		assert.notEqual(await colour(), before);
		await page.reload({ waitUntil: 'commit' });
		await here.settled();
		assert.notEqual(await page.evaluate(() => document.documentElement.dataset.theme), theme, 'and it stays');
	}
}

async function small({ visit, traces }) {
	const here = await visit(traces.demo, { width: 900, height: 600 });
	const wide = await here.page.evaluate(() => document.documentElement.scrollWidth);
	assert.ok(wide <= 900, `the page is ${wide} wide on a screen of 900`);
	const { height } = await here.page.locator('#timeline canvas').first().boundingBox();
	assert.ok(height > 120, `the timeline is ${height} high`);
}

export default [
	['access: roles and names', roles],
	['access: Tab reaches everything with a visible focus', tabOrder],
	['access: keyboard only', keyboardOnly],
	['access: both themes, with contrast', themes],
	['access: a small window', small],
];
