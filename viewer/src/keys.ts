// SPDX-License-Identifier: MIT
// keys.ts: what the keys and the mouse do: the table that the timeline obeys and the help shows.

export type Action =
  | "zoom-in"
  | "zoom-out"
  | "pan-left"
  | "pan-right"
  | "whole"
  | "focus"
  | "mark"
  | "range"
  | "next"
  | "previous"
  | "parent"
  | "child"
  | "flow-back"
  | "flow-forward"
  | "pin"
  | "hide"
  | "search"
  | "escape"
  | "page"
  | "theme"
  | "help";

export interface Key {
  group: "Move" | "Select" | "Tracks" | "Page";
  keys: string[]; // as in KeyboardEvent.key, letters in lower case
  shown: string[]; // for display
  what: string;
  action?: Action; // undefined: only listed in the help, handled elsewhere
}

const key = (group: Key["group"], keys: string, what: string, action?: Action, shown?: string): Key => ({
  group,
  keys: keys.split(" "),
  shown: (shown ?? keys.toUpperCase()).split(" "),
  what,
  action,
});

export const keys: Key[] = [
  key("Move", "w", "zoom in (hold: smoothly)", "zoom-in"),
  key("Move", "s", "zoom out", "zoom-out"),
  key("Move", "a", "move left", "pan-left"),
  key("Move", "d", "move right", "pan-right"),
  key("Move", "f", "zoom to the selection; again: the whole trace", "focus"),
  key("Move", "0", "show the whole trace", "whole"),
  key("Select", ". ArrowRight", "next slice in the row", "next", ". →"),
  key("Select", ", ArrowLeft", "previous slice in the row", "previous", ", ←"),
  key("Select", "ArrowUp", "parent of the slice", "parent", "↑"),
  key("Select", "ArrowDown", "first child of the slice", "child", "↓"),
  key("Select", "[", "follow a flow back", "flow-back"),
  key("Select", "]", "follow a flow forward", "flow-forward"),
  key("Select", "r", "select the time of the selection as a range", "range"),
  key("Select", "m", "set or remove a mark at the pointer or selection", "mark"),
  key("Select", "Escape", "clear the selection, close", "escape", "Esc"),
  key("Tracks", "p", "pin or unpin the track", "pin"),
  key("Tracks", "h", "hide the track", "hide"),
  key("Tracks", "ArrowUp ArrowDown", "in the tree: previous and next track", undefined, "↑ ↓"),
  key("Tracks", "ArrowLeft ArrowRight", "in the tree: fold and unfold", undefined, "← →"),
  key("Tracks", "Alt+ArrowUp Alt+ArrowDown", "in the tree: move the track", undefined, "Alt+↑ Alt+↓"),
  key("Page", "/", "search", "search"),
  key("Page", "Enter Shift+Enter", "in the search: next and previous match", undefined, "Enter Shift+Enter"),
  key("Page", "g", "switch between SQL and timeline", "page"),
  key("Page", "t", "switch between light and dark", "theme"),
  key("Page", "?", "this help", "help"),
];

export const mouse: { what: string; does: string }[] = [
  { what: "drag", does: "moves in time" },
  { what: "wheel", does: "scrolls the tracks; with Shift or sideways: moves in time" },
  { what: "Ctrl+wheel", does: "zooms at the pointer" },
  { what: "Shift+drag, drag in the ruler", does: "selects a range of time" },
  { what: "click", does: "selects" },
  { what: "double click", does: "selects and zooms to it" },
  { what: "drag a track's name", does: "moves the track" },
];

const byKey = new Map<string, Action>();
for (const { keys: names, action } of keys) {
  if (action) for (const name of names) byKey.set(name, action);
}

// Returns the action of a key press, or undefined. Ctrl, Alt and Meta belong to the browser.
export function actionOf(event: KeyboardEvent): Action | undefined {
  return event.ctrlKey || event.altKey || event.metaKey ? undefined : actionOfKey(event);
}

// Ignores modifiers: releasing a key ends its action whatever else is pressed by then.
export function actionOfKey(event: KeyboardEvent): Action | undefined {
  return byKey.get(event.key.length === 1 ? event.key.toLowerCase() : event.key);
}
