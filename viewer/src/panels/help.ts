// SPDX-License-Identifier: MIT
// help.ts: the dialog that lists all keys, the mouse actions, and the search prefixes.
import type { Panel } from "../app";
import { type Key, keys, mouse } from "../keys";
import { button, type Child, element } from "./dom";
import { PREFIXES } from "./search";

function keyNames(shown: string[]): Child[] {
  return shown.flatMap((name, i) => [i > 0 && " ", element("kbd", {}, name)]);
}

function list(title: string, lines: { what: Child[]; does: string }[]): HTMLElement {
  const pairs = lines.flatMap(({ what, does }) => [element("dt", {}, ...what), element("dd", {}, does)]);
  return element("section", {}, element("h3", {}, title), element("dl", {}, ...pairs));
}

function keyLists(): HTMLElement[] {
  const groups = new Map<string, Key[]>();
  for (const key of keys) groups.set(key.group, [...(groups.get(key.group) ?? []), key]);
  return [...groups].map(([group, members]) =>
    list(
      group,
      members.map((key) => ({ what: keyNames(key.shown), does: key.what })),
    ),
  );
}

const PANEL_KEYS: [string[], string][] = [
  [["Tab"], "next control; a table or the flame graph is one stop"],
  [["↑", "↓", "Enter"], "in a table: move and open"],
  [["←", "→", "↑", "↓"], "in the flame graph: go to callers, callees and siblings"],
  [["Enter", "Backspace"], "in the flame graph: zoom in and out"],
  [["Ctrl+Enter"], "run the SQL"],
];

export const help: Panel = () => {
  const dialog = element("dialog", { id: "help", "aria-labelledby": "help-title" });
  const close = button("Close", { autofocus: true }, () => dialog.close());
  const panels = PANEL_KEYS.map(([names, does]) => ({ what: keyNames(names), does }));
  const prefixes = PREFIXES.map(([prefix, does]) => ({ what: [element("code", {}, prefix)], does }));
  dialog.append(
    element("header", {}, element("h2", { id: "help-title" }, "Keys and mouse"), close),
    element(
      "div",
      { class: "help-columns" },
      ...keyLists(),
      list("Panels", panels),
      list(
        "Mouse",
        mouse.map(({ what, does }) => ({ what: [what], does })),
      ),
      list("Search", prefixes),
    ),
  );
  // A click outside the dialog closes it; it handles its keys itself.
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "?") dialog.close();
  });
  return dialog;
};
