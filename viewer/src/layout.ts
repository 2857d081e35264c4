// SPDX-License-Identifier: MIT
// layout.ts: the layout of the page: header, the timeline with the panel below it, the SQL page, the status line.
import type { App, Panel, State } from "./app";
import { icon } from "./icons";
import { details } from "./panels/details";
import { button, element } from "./panels/dom";
import { flame } from "./panels/flame";
import { help } from "./panels/help";
import { info } from "./panels/info";
import { range } from "./panels/range";
import { search } from "./panels/search";
import { sql } from "./panels/sql";
import { panelSplitter } from "./splitter";

type Tab = State["tab"];

const tabs: { tab: Tab; name: string; panel: Panel }[] = [
  { tab: "details", name: "Details", panel: details },
  { tab: "range", name: "Range", panel: range },
  { tab: "flame", name: "Flame", panel: flame },
  { tab: "info", name: "Info", panel: info },
];

export interface Layout {
  header: HTMLElement;
  main: HTMLElement;
  help: HTMLDialogElement;
}

export function makeLayout(app: App, timeline: HTMLElement, toggleTheme: () => void): Layout {
  const dialog = help(app) as HTMLDialogElement;
  return {
    header: header(app, toggleTheme, () => dialog.showModal()),
    main: pages(app, timeline),
    help: dialog,
  };
}

function header(app: App, toggleTheme: () => void, openHelp: () => void): HTMLElement {
  const name = element("span", { class: "trace-name" });
  const update = (): void => {
    name.textContent = app.trace.name;
    name.title = app.trace.name;
    document.title = `${app.trace.name || "trace"} · kymo`;
  };
  app.on("trace", update);
  update();
  const theme = button("", { class: "icon", "aria-label": "Theme", title: "Light or dark theme (T)" }, toggleTheme);
  theme.append(icon("sun"));
  const question = button("", { class: "icon", "aria-label": "Help", title: "Keys and mouse (?)" }, openHelp);
  question.append(icon("help"));
  return element(
    "header",
    { class: "header" },
    element("span", { class: "brand" }, "kymo"),
    name,
    pageSwitch(app),
    element("span", { class: "space" }),
    element("div", { class: "search-place" }, search(app)),
    theme,
    question,
  );
}

function pageSwitch(app: App): HTMLElement {
  const make = (page: State["page"], label: string): HTMLButtonElement => {
    const one = button(label, { title: `${label} (G)` }, () => app.set({ page }));
    const update = (): void => one.setAttribute("aria-pressed", String(app.state.page === page));
    app.on("page", update);
    update();
    return one;
  };
  return element(
    "nav",
    { class: "segments", "aria-label": "Pages" },
    make("timeline", "Timeline"),
    make("sql", "SQL"),
  );
}

function pages(app: App, timeline: HTMLElement): HTMLElement {
  const lower = panel(app);
  const first = element("div", { class: "page page-timeline" });
  first.append(timeline, panelSplitter(first), lower);
  const second = element("div", { class: "page page-sql" }, sql(app));
  const update = (): void => {
    first.hidden = app.state.page !== "timeline";
    second.hidden = app.state.page !== "sql";
  };
  app.on("page", update);
  update();
  return element("main", { class: "page" }, first, second);
}

function panel(app: App): HTMLElement {
  const list = element("div", { class: "tabs", role: "tablist", "aria-label": "Panel" });
  const places = tabs.map(({ tab, name, panel: make }) => {
    const head = button(
      name,
      { role: "tab", id: `tab-${tab}`, "aria-controls": `place-${tab}` },
      () => app.set({ tab }),
    );
    const place = element("div", { role: "tabpanel", id: `place-${tab}`, "aria-labelledby": `tab-${tab}` }, make(app));
    list.append(head);
    return { tab, head, place };
  });
  const update = (): void => {
    for (const { tab, head, place } of places) {
      const isShown = app.state.tab === tab;
      head.setAttribute("aria-selected", String(isShown));
      head.tabIndex = isShown ? 0 : -1;
      place.hidden = !isShown;
    }
  };
  list.addEventListener("keydown", (event) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const at = places.findIndex(({ tab }) => tab === app.state.tab);
    const to = places[(at + by + places.length) % places.length];
    app.set({ tab: to.tab });
    to.head.focus();
  });
  app.on("tab", update);
  update();
  return element("section", { id: "panel", "aria-label": "Panel" }, list, ...places.map(({ place }) => place));
}
