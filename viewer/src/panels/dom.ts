// SPDX-License-Identifier: MIT
// dom.ts: makes elements in one expression. Texts become text nodes, never markup: names in a trace may be hostile.

type Attribute = string | number | boolean | undefined | ((event: Event) => void);
export type Child = Node | string | null | undefined | false;

function setAttribute(node: HTMLElement, key: string, value: Attribute): void {
  if (typeof value === "function") node.addEventListener(key, value);
  else if (key === "style") node.style.cssText = String(value ?? ""); // the page's policy forbids the attribute
  else if (value === true) node.setAttribute(key, "");
  else if (value !== undefined && value !== false) node.setAttribute(key, String(value));
}

// Attributes by their HTML names; a function becomes the listener of the event of that name.
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Attribute> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) setAttribute(node, key, value);
  node.append(...present(children));
  return node;
}

export function present(children: Child[]): (Node | string)[] {
  return children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false);
}

export function button(label: string, attributes: Record<string, Attribute>, press: () => void): HTMLButtonElement {
  return element("button", { type: "button", click: press, ...attributes }, label);
}

// Replaces the content of a node and keeps its scroll position. The focus stays in the node, even if the focused
// element is gone.
export function refill(node: HTMLElement, ...children: Child[]): void {
  const top = node.scrollTop;
  const focused = node.contains(document.activeElement);
  node.replaceChildren(...present(children));
  node.scrollTop = top;
  if (focused) node.focus({ preventScroll: true });
}

export function plural(n: number, shown: string, noun: string): string {
  return `${shown} ${noun}${n === 1 ? "" : "s"}`;
}

// Cards side by side; an empty column is left out.
export function cardColumns(...columns: Child[][]): HTMLElement {
  const filled = columns.map(present).filter((cards) => cards.length > 0);
  return element("div", { class: "cards" }, ...filled.map((cards) => element("div", {}, ...cards)));
}
