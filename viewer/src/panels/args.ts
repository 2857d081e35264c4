// SPDX-License-Identifier: MIT
// args.ts: the arguments of an event as a table. Long values are folded, so that the others stay in view.
import type { Arg } from "../protocol";
import { copyButton } from "./copy";
import { button, element } from "./dom";
import { prettyJson } from "./json_text";

const LONG_CHARACTERS = 400;
const LONG_LINES = 8;

function textOf(arg: Arg): string {
  if (arg.type === "null") return "null";
  return arg.type === "json" ? prettyJson(arg.value) : arg.value;
}

function isLong(text: string): boolean {
  return text.length > LONG_CHARACTERS || text.split("\n", LONG_LINES + 1).length > LONG_LINES;
}

function foldable(text: string): HTMLElement[] {
  const shown = element("div", { class: "arg-value folded" }, text);
  const more = button(`Show all ${text.length} characters`, { class: "quiet", "aria-expanded": "false" }, () => {
    const folded = shown.classList.toggle("folded");
    more.setAttribute("aria-expanded", String(!folded));
    more.textContent = folded ? `Show all ${text.length} characters` : "Show less";
  });
  return [shown, more];
}

function argLine(arg: Arg): HTMLTableRowElement {
  const text = textOf(arg);
  const value = isLong(text) ? foldable(text) : [element("div", { class: "arg-value" }, text)];
  return element(
    "tr",
    { "data-key": arg.key, "data-type": arg.type },
    element("th", { scope: "row", title: arg.key }, arg.key),
    element("td", {}, ...value),
    element(
      "td",
      { class: "arg-copy" },
      copyButton(`Copy the value of ${arg.key}`, () => arg.value),
    ),
  );
}

// Returns one JSON object; values that JSON numbers cannot hold become strings.
function asJson(args: Arg[]): string {
  const plain = (arg: Arg) => (arg.type === "json" ? arg.value : JSON.stringify(typed(arg)));
  return `{\n${args.map((arg) => `  ${JSON.stringify(arg.key)}: ${plain(arg)}`).join(",\n")}\n}`;
}

function typed(arg: Arg): string | number | boolean | null {
  if (arg.type === "null") return null;
  if (arg.type === "bool") return arg.value === "true" || arg.value === "1";
  const number = Number(arg.value);
  const exact = arg.type === "real" ? Number.isFinite(number) : Number.isSafeInteger(number);
  return (arg.type === "int" || arg.type === "real") && exact ? number : arg.value;
}

export function argsCard(args: Arg[]): HTMLElement | null {
  if (args.length === 0) return null;
  return element(
    "section",
    { class: "card" },
    element(
      "header",
      {},
      element("h3", {}, "Arguments"),
      copyButton("Copy all arguments as JSON", () => asJson(args)),
    ),
    element("table", { class: "args" }, element("tbody", {}, ...args.map(argLine))),
  );
}
