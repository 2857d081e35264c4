// SPDX-License-Identifier: MIT
// tooltip.ts: describes the item under the pointer. Requests the category and arguments when the pointer rests.
import type { App } from "../app";
import { count, duration, value } from "../format";
import { element } from "../panels/dom";
import type { Hit } from "./hit";

const REST_MS = 120;

export class Tooltip {
  readonly element = element("div", { class: "tooltip", hidden: true, role: "tooltip" });
  private key = "";
  private timer = 0;

  constructor(private readonly app: App) {}

  hide(): void {
    this.element.hidden = true;
    this.key = "";
    clearTimeout(this.timer);
  }

  show(hit: Hit, x: number, y: number): void {
    const key = `${hit.kind}:${hit.id}:${hit.ts}:${hit.count}`;
    if (key !== this.key) {
      this.key = key;
      this.fill(hit, "");
      clearTimeout(this.timer);
      const isOne = hit.count === 1 && hit.kind === "slices" && hit.track >= 0;
      if (isOne) this.timer = window.setTimeout(() => void this.ask(hit, key), REST_MS);
    }
    this.element.hidden = false;
    this.put(x, y);
  }

  private put(x: number, y: number): void {
    const { offsetWidth, offsetHeight, offsetParent } = this.element;
    const room = offsetParent ?? document.body;
    const left = x + 14 + offsetWidth > room.clientWidth ? x - 14 - offsetWidth : x + 14;
    const top = y + 18 + offsetHeight > room.clientHeight ? y - 10 - offsetHeight : y + 18;
    this.element.style.transform = `translate(${Math.round(Math.max(2, left))}px, ${Math.round(Math.max(2, top))}px)`;
  }

  private fill(hit: Hit, category: string): void {
    const name = hit.name.length > 200 ? `${hit.name.slice(0, 200)}…` : hit.name;
    const title = element("div", { class: "name" }, name || "(no name)");
    const lines = [title, element("div", { class: "more" }, facts(hit))];
    if (category) lines.push(element("div", { class: "more" }, category));
    this.element.replaceChildren(...lines);
  }

  private async ask(hit: Hit, key: string): Promise<void> {
    const details = await this.app.source.event(hit.kind, hit.id).catch(() => null);
    if (!details || key !== this.key) return;
    const args = details.args.slice(0, 4).map((arg) => `${arg.key}: ${arg.value.slice(0, 60)}`);
    this.fill(hit, [details.category, ...args].filter(Boolean).join(" · "));
  }
}

function facts(hit: Hit): string {
  if (hit.value) {
    const { low, high, unit } = hit.value;
    return low === high ? value(high, unit) : `${value(low)} … ${value(high, unit)}`;
  }
  if (hit.count > 1) return `longest of ${count(hit.count)} in ${duration(hit.dur)}`;
  return hit.dur === 0 ? "instant" : duration(hit.dur);
}
