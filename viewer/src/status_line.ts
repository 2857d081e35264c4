// SPDX-License-Identifier: MIT
// status_line.ts: the line at the bottom: what is loaded, what was lost or is wrong with it, whether it is live, and
// whether the server still answers.
import type { App } from "./app";
import { count, duration } from "./format";
import { element } from "./panels/dom";

const shown: [string, string][] = [
  ["slices", "slices"],
  ["instants", "instants"],
  ["counters", "counter values"],
  ["samples", "samples"],
  ["sched", "scheduling slices"],
];

export class StatusLine {
  readonly element = element("footer", { id: "status", role: "status" });
  private app: App | null = null;
  private trouble = "";

  setApp(app: App): void {
    this.app = app;
    app.on("trace", () => this.update());
    this.update();
  }

  // Shows what is wrong now; "" clears it.
  setTrouble(text: string): void {
    if (text === this.trouble) return;
    this.trouble = text;
    this.update();
  }

  private update(): void {
    const parts: HTMLElement[] = [];
    if (this.trouble) parts.push(element("span", { class: "error" }, this.trouble));
    if (this.app) parts.push(...summary(this.app));
    if (this.app?.trace.live && !this.trouble) parts.push(element("span", { class: "live" }, "● live"));
    this.element.replaceChildren(...parts);
  }
}

function summary({ trace }: App): HTMLElement[] {
  const parts = [element("span", {}, duration(trace.end - trace.begin))];
  for (const [key, name] of shown) {
    if (trace.counts[key]) parts.push(element("span", {}, `${count(trace.counts[key])} ${name}`));
  }
  const { lost } = trace.counts;
  if (lost) parts.push(element("span", { class: "error" }, `${count(lost)} events lost`));
  const errors = trace.problems.filter(({ severity }) => severity !== "info");
  for (const { severity, name, count: times, first } of errors.slice(0, 3)) {
    const text = times > 1 ? `${name} (${count(times)})` : name;
    parts.push(element("span", { class: severity === "error" ? "error" : "warn", title: first }, text));
  }
  return parts;
}
