// SPDX-License-Identifier: MIT
// state.ts: the state of the page as the fragment of the URL, and back: "#v=1200..5600&sel=slices:7&pin=p1/t2". The
// fragment lists only what differs from the defaults. Parts that cannot be read get the default: anyone may type one.
import type { State } from "./app";
import type { Kind, Track } from "./protocol";

const kinds: Kind[] = ["group", "slices", "counter", "sched", "state", "samples", "loss"];
const tabs: State["tab"][] = ["details", "range", "flame", "info"];

// Rounds to thousandths of a nanosecond: the URL holds exactly what is shown.
export const exact = (ns: number): number => Math.round(ns * 1000) / 1000;

type TimeRange = Pick<State, "from" | "to">;

// Returns the shortest view that can be shown, in ns. Times are doubles: far from zero the next one is far away, and
// tiles and ticks could not be counted.
export const narrowest = (begin: number, end: number): number =>
  Math.max(1, Math.max(Math.abs(begin), Math.abs(end)) / 2 ** 44);

// Limits a view, which a link or a row of SQL may put anywhere, to what can be shown.
export function showable(view: TimeRange, begin: number, end: number): TimeRange {
  if (!Number.isFinite(view.from) || !Number.isFinite(view.to)) return { from: exact(begin), to: exact(end) };
  const least = narrowest(begin, end);
  const room = end - begin + 1e9; // beside the trace
  const from = Math.min(Math.max(view.from, begin - room), end + room - least);
  return { from: exact(from), to: exact(Math.min(Math.max(view.to, from + least), end + room)) };
}

export function defaults(begin: number, end: number): State {
  return {
    from: exact(begin),
    to: exact(end),
    page: "timeline",
    tab: "details",
    selected: null,
    range: null,
    marks: [],
    pinned: [],
    hidden: [],
    folded: {},
    order: [],
    filter: "",
    scroll: "",
    search: "",
    sql: "",
    flameOf: "slices",
  };
}

// Escapes only what would end a value and what the browser itself escapes, so that people can read the rest.
const escape = (text: string): string =>
  text.toWellFormed().replace(/[%&#\s"<>\\^`{|}\p{C}]/gu, (character) => encodeURIComponent(character));

function unescape(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

const list = (texts: string[]): string => texts.map((text) => escape(text).replace(/,/g, "%2C")).join(",");
const unlist = (text: string): string[] => (text ? text.split(",").map(unescape).filter(Boolean) : []);
const rangeText = (from: number, to: number): string => `${exact(from)}..${exact(to)}`;

function rangeFrom(text: string): TimeRange | null {
  const [from, to] = text.split("..").map(Number);
  return Number.isFinite(from) && Number.isFinite(to) && from < to ? { from, to } : null;
}

function unselected(text: string): State["selected"] {
  const [kind, id] = text.split(":");
  const known = kinds.find((one) => one === kind);
  return known && /^\d+$/.test(id ?? "") ? { kind: known, id: Number(id) } : null;
}

const folds = (folded: State["folded"], want: boolean): string =>
  list(Object.keys(folded).filter((key) => folded[key] === want));

export function toFragment(state: State): string {
  const parts: [string, string][] = [
    ["v", rangeText(state.from, state.to)],
    ["page", state.page === "timeline" ? "" : state.page],
    ["tab", state.tab === "details" ? "" : state.tab],
    ["sel", state.selected ? `${state.selected.kind}:${state.selected.id}` : ""],
    ["range", state.range ? rangeText(state.range.from, state.range.to) : ""],
    ["marks", state.marks.map(exact).join(",")],
    ["pin", list(state.pinned)],
    ["hide", list(state.hidden)],
    ["fold", folds(state.folded, true)],
    ["open", folds(state.folded, false)],
    ["order", list(state.order)],
    ["filter", escape(state.filter)],
    ["at", escape(state.scroll)],
    ["q", escape(state.search)],
    ["sql", escape(state.sql)],
    ["flame", state.flameOf === "slices" ? "" : state.flameOf],
  ];
  return `#${parts
    .filter(([, value]) => value)
    .map(([key, value]) => `${key}=${value}`)
    .join("&")}`;
}

function foldsOf(parts: Map<string, string>): State["folded"] {
  const folded: State["folded"] = {};
  for (const key of unlist(parts.get("fold") ?? "")) folded[key] = true;
  for (const key of unlist(parts.get("open") ?? "")) folded[key] = false;
  return folded;
}

export function fromFragment(fragment: string, begin: number, end: number): State {
  const parts = new Map(
    fragment
      .replace(/^#/, "")
      .split("&")
      .map((part): [string, string] => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)]),
  );
  const of = (key: string): string => parts.get(key) ?? "";
  const state = defaults(begin, end);
  const tab = tabs.find((one) => one === of("tab"));
  const view = rangeFrom(of("v"));
  return {
    ...state,
    ...(view && showable(view, begin, end)),
    page: of("page") === "sql" ? "sql" : "timeline",
    tab: tab ?? state.tab,
    selected: unselected(of("sel")),
    range: rangeFrom(of("range")),
    marks: of("marks").split(",").filter(Boolean).map(Number).filter(Number.isFinite),
    pinned: unlist(of("pin")),
    hidden: unlist(of("hide")),
    folded: foldsOf(parts),
    order: unlist(of("order")),
    filter: unescape(of("filter")),
    scroll: unescape(of("at")),
    search: unescape(of("q")),
    sql: unescape(of("sql")),
    flameOf: of("flame") === "samples" ? "samples" : "slices",
  };
}

// Returns the tracks that a filter shows: those with the text in their name, what is below them, and the way to them;
// null: all.
export function matching(tracks: readonly Track[], filter: string): Set<number> | null {
  const text = filter.trim().toLowerCase();
  if (!text) return null;
  const own = tracks.map(({ name }) => name.toLowerCase().includes(text));
  const shown = new Set<number>();
  for (const { id, parent } of tracks) {
    own[id] ||= own[parent] ?? false;
    for (let at = id; own[id] && at >= 0 && !shown.has(at); at = tracks[at].parent) shown.add(at);
  }
  return shown;
}
