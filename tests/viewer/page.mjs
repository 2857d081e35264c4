// SPDX-License-Identifier: MIT
//
// page.mjs: the page as a user drives it: opened, awaited, read, operated with keys and mouse.
//
// A Visit is one tab. It watches the page all the time: an error on the console, an exception, or a request to anywhere
// but its server fails the visit when it ends.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { WAIT_MS, until, within } from './harness.mjs';

// Runs in the page before its own scripts: records layout shifts after the first paint.
function watchShifts() {
	window.shifts = [];
	new PerformanceObserver((list) => {
		for (const entry of list.getEntries())
			if (!entry.hadRecentInput)
				window.shifts.push({
					value: entry.value,
					what: entry.sources.map(({ node }) => node?.id || node?.className || node?.nodeName),
				});
	}).observe({ type: 'layout-shift', buffered: true });
}

export class Visit {
	// motion: animate the view instead of jumping. live: the trace grows, so requests for an older generation are refused
	// and the browser logs that to the console.
	static async open(browser, address,
		{ width = 1280, height = 800, theme = 'light', ready = true, motion = false, live = false } = {}) {
		const context = await browser.newContext({
			viewport: { width, height },
			colorScheme: theme,
			reducedMotion: motion ? 'no-preference' : 'reduce',
		});
		context.setDefaultTimeout(WAIT_MS);
		const visit = new Visit(context, await context.newPage(), address, live ? /status of 409/ : /^$/);
		await visit.page.addInitScript(watchShifts);
		await visit.page.goto(address, { waitUntil: 'commit' });
		if (ready)
			await visit.settled();
		return visit;
	}

	constructor(context, page, address, expected) {
		Object.assign(this, { context, page, wrong: [] });
		const own = address.startsWith('file:') ? 'file:' : new URL(address).origin + '/';
		page.on('console', (message) => {
			if (['error', 'warning'].includes(message.type()) && !expected.test(message.text()))
				this.wrong.push(`console: ${message.text()}`);
		});
		page.on('pageerror', (error) => this.wrong.push(`exception: ${error.message}`));
		page.on('request', (request) => {
			if (!request.url().startsWith(own) && !/^(data|blob):/.test(request.url()))
				this.wrong.push(`request to ${request.url()}`);
		});
	}

	// Closes the tab; throws if the page did anything forbidden.
	async close() {
		await this.context.close();
		assert.deepEqual(this.wrong, [], 'errors and foreign requests');
	}

	async screenshot(folder, name) {
		fs.mkdirSync(folder, { recursive: true });
		await this.page.screenshot({ path: path.join(folder, `${name}.png`) }).catch(() => {});
	}

	// Polls a condition in the page. (Not playwright's own wait, which needs the eval that the page forbids.)
	wait(condition, argument) {
		return until(() => this.page.evaluate(condition, argument), `${condition} of ${JSON.stringify(argument)}`);
	}

	// Waits until everything visible is drawn. Waits two animation frames first, so that requests are under way.
	async settled() {
		const drawn = this.page.evaluate(async () => {
			const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
			await frame();
			await frame();
			while (document.documentElement.dataset.ready !== '1')
				await frame();
		});
		await within(drawn, 'a complete picture');
	}

	state() {
		return this.page.evaluate(() => structuredClone(window.kymo.state));
	}

	trace() {
		return this.page.evaluate(() => structuredClone(window.kymo.trace));
	}

	// Returns the URL with the whole state: frequent changes reach it a little later, or when the page is left.
	address() {
		return this.page.evaluate(() => {
			dispatchEvent(new Event('pagehide'));
			return location.href;
		});
	}

	async key(...keys) {
		for (const key of keys)
			await this.page.keyboard.press(key);
		await this.settled();
	}

	// Gives the timeline the keyboard.
	async focus() {
		await this.page.locator('#timeline').focus();
	}

	// Selects the first match of a search after the visible time, as a user would: / text Enter.
	async find(text) {
		await this.page.locator('#search-input').fill(text);
		await this.wait((q) => window.kymo.state.search === q && window.kymo.search, text);
		await this.page.locator('#search-input').press('Enter');
		await this.wait(() => window.kymo.state.selected !== null);
		await this.settled();
	}

	// Waits for the details of a slice of that name.
	async detailsOf(name) {
		const details = this.page.locator('#details');
		await details.getByText(name, { exact: true }).first().waitFor();
		return details;
	}

	// Returns the details as a list of [term, text].
	facts() {
		return this.page.evaluate(() => [...document.querySelectorAll('#details dt')].map((dt) => [
			dt.textContent.trim(), dt.nextElementSibling?.textContent.trim() ?? '']));
	}

	// Returns where time `ns` of a track is on the screen, in its first row.
	place(key, ns) {
		return this.page.evaluate(([wanted, at]) => {
			const head = [...document.querySelectorAll('.track')].find((one) => one.dataset.key === wanted);
			const canvas = document.querySelector('#timeline canvas').getBoundingClientRect();
			const { from, to } = window.kymo.state;
			const box = head.getBoundingClientRect();
			return { x: canvas.left + ((at - from) / (to - from)) * canvas.width, y: box.top + 8 };
		}, [key, ns]);
	}
}
