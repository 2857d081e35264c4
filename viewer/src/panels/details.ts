// SPDX-License-Identifier: MIT
// details.ts: the panel with the details of the selected event: what it is, when, its parents and children, its
// arguments, and its flows. Every event named here is a button that goes there.
import type { App, Panel } from "../app";
import { count, duration, percent, time } from "../format";
import type { Details, EventRef } from "../protocol";
import { argsCard } from "./args";
import { copyButton } from "./copy";
import { button, cardColumns, type Child, element, plural, refill } from "./dom";
import { Latest } from "./latest";
import { sameName } from "./same_name";

const KINDS: Record<string, string> = {
  slices: "slice",
  counter: "counter value",
  sched: "running on a CPU",
  state: "thread state",
  samples: "samples",
  loss: "loss",
};

function lasts(event: EventRef): string {
  return event.dur < 0 ? "never ended" : duration(event.dur);
}

function goTo(app: App, event: EventRef, attributes: Record<string, string>, label: string): HTMLButtonElement {
  const title = `${event.name}\n${lasts(event)}, at ${time(event.ts)}`;
  return button(label, { title, ...attributes }, () => void app.select(event, "reveal"));
}

function fact(name: string, ...value: Child[]): Child[] {
  return [element("dt", {}, name), element("dd", {}, ...value)];
}

function selfTime(event: Details): Child[] {
  if (event.self === null || event.instant) return [];
  const share = event.dur > 0 ? ` (${percent(event.self, event.dur)})` : "";
  return fact("Self time", duration(event.self) + share);
}

function source(event: Details): Child[] {
  if (!event.source) return [];
  const { file, line, function: name } = event.source;
  const place = line > 0 ? `${file}:${line}` : file;
  if (!place) return name ? fact("Function", name) : [];
  const where = element("code", {}, place);
  return fact(
    "Source",
    where,
    name && ` ${name} `,
    copyButton("Copy the source location", () => place),
  );
}

function whereItIs(app: App, event: Details): Child[] {
  const track = app.trace.tracks[event.track];
  const lines: [string, string][] = [
    ["Process", event.process],
    ["Thread", event.thread],
    ["Track", !event.thread && track ? track.name : ""],
    ["Category", event.category],
  ];
  return lines.flatMap(([name, value]) => (value ? fact(name, value) : []));
}

function factsCard(app: App, event: Details): HTMLElement {
  const list = element(
    "dl",
    { class: "facts" },
    ...fact("Start", time(event.ts - app.trace.begin)),
    ...(event.instant ? [] : fact("Duration", lasts(event))),
    ...selfTime(event),
    ...whereItIs(app, event),
    ...source(event),
    ...event.facts.flatMap(({ key, value }) => fact(key.charAt(0).toUpperCase() + key.slice(1), value)),
    ...(event.wall ? fact("Wall time", event.wall) : []),
    ...fact(app.trace.clock || "Clock", `${event.absolute} ns`),
  );
  return element("section", { class: "card" }, element("header", {}, element("h3", {}, "Facts")), list);
}

function parents(app: App, event: Details): HTMLElement | null {
  if (event.parents.length === 0) return null;
  const outermost = [...event.parents].reverse();
  const steps = outermost.map((each) => element("li", {}, goTo(app, each, { class: "parent link" }, each.name)));
  const own = element("li", { "aria-current": "location" }, event.name);
  return element("nav", { class: "parents", "aria-label": "Parents" }, element("ol", {}, ...steps, own));
}

function childLine(app: App, child: EventRef, whole: number): HTMLTableRowElement {
  const share = whole > 0 && child.dur >= 0 ? percent(child.dur, whole) : "";
  return element(
    "tr",
    {},
    element("td", {}, goTo(app, child, { class: "child link" }, child.name)),
    element("td", { class: "numeric" }, time(child.ts - app.trace.begin)),
    element("td", { class: "numeric" }, lasts(child)),
    element("td", { class: "numeric" }, share),
  );
}

function childrenCard(app: App, event: Details): HTMLElement | null {
  if (event.children.length === 0) return null;
  const body = element("tbody");
  const fill = (by: "time" | "duration") => {
    const order = [...event.children].sort((a, b) => (by === "time" ? a.ts - b.ts : b.dur - a.dur));
    body.replaceChildren(...order.map((child) => childLine(app, child, event.dur)));
    for (const [key, head] of heads)
      head.setAttribute("aria-sort", key !== by ? "none" : by === "time" ? "ascending" : "descending");
  };
  const head = (by: "time" | "duration", label: string) =>
    element(
      "th",
      { scope: "col", class: "numeric" },
      button(label, {}, () => fill(by)),
    );
  const heads = new Map([
    ["time", head("time", "Start")] as const,
    ["duration", head("duration", "Duration")] as const,
  ]);
  const line = element(
    "tr",
    {},
    element("th", { scope: "col" }, "Name"),
    ...heads.values(),
    element("th", { scope: "col", class: "numeric" }, "Share"),
  );
  fill("time");
  return element(
    "section",
    { class: "card" },
    element("header", {}, element("h3", {}, childrenTitle(event))),
    element("table", { class: "children" }, element("thead", {}, line), body),
  );
}

function childrenTitle(event: Details): string {
  const shown = event.children.length;
  const all = Math.max(event.childrenCount, shown);
  return all > shown ? `Children: the first ${count(shown)} of ${count(all)}` : `Children (${count(all)})`;
}

function flowButton(app: App, event: EventRef, out: boolean, name: string): HTMLElement {
  const track = app.trace.tracks[event.track];
  const press = goTo(app, event, { class: out ? "flow-out flow" : "flow-in flow" }, "");
  press.append(
    element("span", { class: "flow-arrow", "aria-hidden": "true" }, out ? "→" : "←"),
    element("span", { class: "flow-name" }, event.name),
    element(
      "span",
      { class: "flow-where" },
      [name, track?.name, time(event.ts - app.trace.begin)].filter(Boolean).join(" · "),
    ),
  );
  press.setAttribute("aria-label", `${out ? "Flow to" : "Flow from"} ${event.name}${track ? `, ${track.name}` : ""}`);
  return element("li", {}, press);
}

function flowsCard(app: App, event: Details): HTMLElement | null {
  const from = event.flowsIn.map((flow) => flowButton(app, flow.from, false, flow.name));
  const to = event.flowsOut.map((flow) => flowButton(app, flow.to, true, flow.name));
  if (from.length + to.length === 0) return null;
  const keys = element("span", { class: "hint" }, element("kbd", {}, "["), " back ", element("kbd", {}, "]"), " next");
  return element(
    "section",
    { class: "card" },
    element("header", {}, element("h3", {}, `Flows (${from.length + to.length})`), keys),
    element("ul", { class: "flows" }, ...from, ...to),
  );
}

function stackCard(event: Details): HTMLElement | null {
  if (event.stack.length === 0) return null;
  const frames = event.stack.map((frame) => {
    const place = frame.file ? `${frame.file}${frame.line > 0 ? `:${frame.line}` : ""}` : frame.module;
    return element(
      "li",
      {},
      element("span", {}, frame.name),
      element("span", { class: "frame-place", title: frame.module }, place),
    );
  });
  const text = () =>
    event.stack.map((frame) => `${frame.name}\t${frame.file}:${frame.line}\t${frame.module}`).join("\n");
  return element(
    "section",
    { class: "card" },
    element("header", {}, element("h3", {}, "Stack, innermost first"), copyButton("Copy the stack", text)),
    element("ol", { class: "stack" }, ...frames),
  );
}

function actions(app: App, event: Details): HTMLElement {
  const step = (forward: boolean) => async () => {
    const found = await sameName(app.source, event, forward).catch(() => null);
    if (found) await app.select(found, "reveal");
    else app.announce(`No ${forward ? "later" : "earlier"} event named ${event.name}`);
  };
  const end = event.ts + Math.max(event.dur, 0);
  return element(
    "div",
    { class: "actions", role: "group", "aria-label": "Actions" },
    button("‹ Same name", { title: "Previous event of this name" }, step(false)),
    button("Same name ›", { title: "Next event of this name" }, step(true)),
    button("Focus", { title: "Zoom to it (F)" }, () => void app.select(event, "focus")),
    event.dur > 0 &&
      button("Range", { title: "Select its time as a range (R)" }, () =>
        app.set({ range: { from: event.ts, to: end } }),
      ),
  );
}

function heading(app: App, event: Details): HTMLElement {
  const what = event.instant ? "instant" : (KINDS[event.kind] ?? event.kind);
  const time = event.instant ? "" : lasts(event);
  return element(
    "header",
    { class: "details-head" },
    element("h2", { title: event.name }, event.name || "(no name)"),
    element("span", { class: "muted" }, [what, time].filter(Boolean).join(" · ")),
    actions(app, event),
  );
}

function eventPage(app: App, event: Details): Child[] {
  const columns = cardColumns(
    [factsCard(app, event)],
    [argsCard(event.args), flowsCard(app, event)],
    [stackCard(event), childrenCard(app, event)],
  );
  return [heading(app, event), parents(app, event), columns];
}

function nothing(): HTMLElement {
  const key = (name: string) => element("kbd", {}, name);
  return element(
    "p",
    { class: "empty" },
    "Select a slice: click it, or move with ",
    key("."),
    " and ",
    key(","),
    " along the row, ",
    key("↑"),
    " and ",
    key("↓"),
    " to its parent and children. ",
    key("F"),
    " zooms to it, ",
    key("?"),
    " shows all keys.",
  );
}

function sentence(event: Details): string {
  const about = [event.name, event.instant ? "instant" : lasts(event), event.thread || event.process];
  const inside =
    event.childrenCount > 0
      ? plural(event.childrenCount, count(event.childrenCount), "child").replace("childs", "children")
      : "";
  return [...about, inside].filter(Boolean).join(", ");
}

export const details: Panel = (app) => {
  const root = element("section", { id: "details", class: "panel-body", "aria-label": "Details", tabindex: -1 });
  const latest = new Latest(root);
  let shown: Details | null = null;

  function show(event: Details): void {
    const same = shown?.kind === event.kind && shown.id === event.id;
    if (same && JSON.stringify(shown) === JSON.stringify(event)) return; // a live trace has grown elsewhere
    if (!same) root.scrollTop = 0;
    refill(root, ...eventPage(app, event));
    if (!same) app.announce(sentence(event));
    shown = event;
  }
  function update(): void {
    const selected = app.state.selected;
    if (!selected) {
      latest.forget();
      shown = null;
      refill(root, nothing());
      return;
    }
    const fail = (why: string) => {
      shown = null;
      refill(root, element("p", { class: "empty error" }, why));
    };
    void latest.ask(() => app.source.event(selected.kind, selected.id), show, fail);
  }

  app.on("selection", update);
  app.on("trace", update);
  update();
  return root;
};
