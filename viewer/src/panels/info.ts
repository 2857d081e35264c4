// SPDX-License-Identifier: MIT
// info.ts: the panel that describes the trace: what it is, what it contains, and what is missing from it.
import type { App, Panel } from "../app";
import { count, duration, time } from "../format";
import type { Trace } from "../protocol";
import { button, cardColumns, type Child, element, refill } from "./dom";

const LINES_SHOWN = 200;

function card(title: string, ...content: Child[]): HTMLElement {
  return element("section", { class: "card" }, element("header", {}, element("h3", {}, title)), ...content);
}

function heading(text: string): HTMLElement {
  return element("th", { scope: "col", class: text === "Events" || text === "Count" ? "numeric" : "" }, text);
}

function facts(lines: [string, string][]): HTMLElement {
  const pairs = lines.filter(([, value]) => value !== "");
  return element(
    "dl",
    { class: "facts" },
    ...pairs.flatMap(([key, value]) => [element("dt", {}, key), element("dd", {}, value)]),
  );
}

function wallText({ wall, begin }: Trace): string {
  if (wall === null) return "";
  const ns = BigInt(wall) + BigInt(Math.round(begin));
  const date = new Date(Number(ns / 1_000_000n));
  if (Number.isNaN(date.getTime())) return "";
  const digits = String(ns % 1_000_000_000n).padStart(9, "0");
  return date.toISOString().replace(/\.\d+Z$/, `.${digits}Z`);
}

function about(trace: Trace): HTMLElement {
  return card(
    "Trace",
    facts([
      ["Name", trace.name],
      ["Format", trace.format],
      ["Length", duration(trace.end - trace.begin)],
      ["Start", wallText(trace)],
      ["Clock", trace.clock],
      ["Time 0", `${trace.base} ns`],
      ["Tracks", count(trace.tracks.filter((track) => track.kind !== "group").length)],
      ["Live", trace.live ? "yes: still recording" : "no"],
    ]),
  );
}

function contents(trace: Trace): HTMLElement {
  const lines = Object.entries(trace.counts).filter(([key, n]) => n > 0 && key !== "lost");
  const rows = lines.map(([key, n]) =>
    element(
      "tr",
      { "data-key": key },
      element("th", { scope: "row" }, key),
      element("td", { class: "numeric" }, count(n)),
    ),
  );
  if (rows.length === 0)
    return card("Contents", element("p", { class: "muted" }, "This trace has no events."));
  return card("Contents", element("table", { class: "plain" }, element("tbody", {}, ...rows)));
}

// Centres the view on a time, with the same length.
export function jump(app: App, ts: number): void {
  const half = (app.state.to - app.state.from) / 2;
  app.set({ from: ts - half, to: ts + half, page: "timeline" });
}

// A loss is the event of its row, if it is drawn.
function lossLine(app: App, loss: Trace["losses"][number], row: number): HTMLElement {
  const { ts, track, events, what } = loss;
  const go = () => {
    if (ts !== null) jump(app, ts);
    if (track >= 0) void app.select({ kind: "loss", id: row }, "reveal");
  };
  const when =
    ts === null
      ? element("span", { class: "muted" }, "time unknown")
      : jumpButton(app, ts, `the loss of ${events} events`, go);
  const where = app.trace.tracks[track]?.name ?? "";
  return element(
    "tr",
    {},
    element("td", {}, when),
    element("td", { class: "numeric" }, count(events)),
    element("td", {}, [what, where].filter(Boolean).join(" · ")),
  );
}

function jumpButton(app: App, ts: number, what: string, go: () => void): HTMLButtonElement {
  return button(time(ts - app.trace.begin), { class: "link", "aria-label": `Go to ${what}` }, go);
}

function losses(app: App): HTMLElement {
  const { trace } = app;
  const lost = Math.max(
    trace.counts.lost ?? 0,
    trace.losses.reduce((all, loss) => all + loss.events, 0),
  );
  if (lost === 0 && trace.losses.length === 0)
    return card("Losses", element("p", { class: "muted" }, "No events were lost."));
  const head = element("tr", {}, ...["When", "Events", "What"].map(heading));
  const lines = trace.losses.slice(0, LINES_SHOWN).map((loss, row) => lossLine(app, loss, row));
  const rest = trace.losses.length - lines.length;
  return card(
    "Losses",
    element("p", { class: "warn" }, `${count(lost)} events were lost.`),
    lines.length > 0 &&
      element("table", { class: "plain" }, element("thead", {}, head), element("tbody", {}, ...lines)),
    rest > 0 && element("p", { class: "muted" }, `${count(rest)} more losses are on the timeline.`),
  );
}

function problems(trace: Trace): HTMLElement {
  if (trace.problems.length === 0)
    return card("Problems", element("p", { class: "muted" }, "No problems: the whole trace was read."));
  const lines = trace.problems.map((problem) =>
    element(
      "tr",
      { "data-severity": problem.severity },
      element(
        "td",
        { class: problem.severity === "info" ? "muted" : problem.severity === "error" ? "error" : "warn" },
        problem.severity,
      ),
      element("td", {}, problem.name),
      element("td", { class: "numeric" }, count(problem.count)),
      element("td", {}, problem.first),
    ),
  );
  const head = element("tr", {}, ...["Severity", "Name", "Count", "First case"].map(heading));
  return card(
    "Problems",
    element("table", { class: "plain" }, element("thead", {}, head), element("tbody", {}, ...lines)),
  );
}

function snapshotLine(app: App, snapshot: Trace["snapshots"][number]): HTMLElement {
  const { ts, trigger, reason, event } = snapshot;
  const go = () => {
    jump(app, ts);
    if (event >= 0) void app.select({ kind: "slices", id: event }, "reveal");
  };
  const about = [trigger, reason].filter(Boolean).join(": ");
  return element(
    "tr",
    {},
    element("td", {}, jumpButton(app, ts, `the snapshot ${about}`, go)),
    element("td", {}, about),
  );
}

function snapshots(app: App): HTMLElement | null {
  const all = app.trace.snapshots;
  if (all.length === 0) return null;
  const lines = all.slice(0, LINES_SHOWN).map((each) => snapshotLine(app, each));
  const rest = all.length - lines.length;
  const head = element("tr", {}, ...["When", "Why"].map(heading));
  return card(
    `Snapshots (${count(all.length)})`,
    element("table", { class: "plain" }, element("thead", {}, head), element("tbody", {}, ...lines)),
    rest > 0 && element("p", { class: "muted" }, `${count(rest)} more are on the timeline.`),
  );
}

export const info: Panel = (app) => {
  const root = element("section", { id: "info", class: "panel-body", "aria-label": "Info", tabindex: -1 });
  function update(): void {
    const { trace } = app;
    refill(root, cardColumns([about(trace)], [contents(trace), snapshots(app)], [losses(app), problems(trace)]));
  }
  app.on("trace", update);
  update();
  return root;
};
