// SPDX-License-Identifier: MIT
//
// page.mjs: the page as a person uses it: opened, waited for, asked what it shows, worked by keys and mouse.
//
// A Visit is one tab of its own. It watches what the page does all the time: an error on the console, an exception, or
// a request to anywhere but its server makes the visit a failure when it ends.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { WAIT_MS, until, within } from './harness.mjs';

// Runs in the page before anything of it does: what moves after it was first painted.
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
	// motion: the window moves as people see it, and not at once. live: the trace grows, and a request for what is no more
	// is refused; the browser tells the console so.
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

	// Closes the tab; throws when the page did what it must not.
	async close() {
		await this.context.close();
		assert.deepEqual(this.wrong, [], 'errors and foreign requests');
	}

	async screenshot(folder, name) {
		fs.mkdirSync(folder, { recursive: true });
		await this.page.screenshot({ path: path.join(folder, `${name}.png`) }).catch(() => {});
	}

	// What is true of the page, asked until it is. (Not playwright's own wait, which needs the eval that the page forbids.)
	wait(condition, argument) {
		return until(() => this.page.evaluate(condition, argument), `${condition} of ${JSON.stringify(argument)}`);
	}

	// All that is to be seen is drawn. Two frames first: what was just asked for is under way then.
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

	// With all of the state in it: what changes often is put there a little later, or when the page is left.
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

	// The timeline has the keyboard.
	async focus() {
		await this.page.locator('#timeline').focus();
	}

	// Selects the match of a search that comes after the time shown, as people do: / text Enter.
	async find(text) {
		await this.page.locator('#search-input').fill(text);
		await this.wait((q) => window.kymo.state.search === q && window.kymo.search, text);
		await this.page.locator('#search-input').press('Enter');
		await this.wait(() => window.kymo.state.selected !== null);
		await this.settled();
	}

	// The details of a slice of that name are there.
	async detailsOf(name) {
		const details = this.page.locator('#details');
		await details.getByText(name, { exact: true }).first().waitFor();
		return details;
	}

	// What the details say: a list of [term, text].
	facts() {
		return this.page.evaluate(() => [...document.querySelectorAll('#details dt')].map((dt) => [
			dt.textContent.trim(), dt.nextElementSibling?.textContent.trim() ?? '']));
	}

	// Where time `ns` of a track is on the screen, in its first row.
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
