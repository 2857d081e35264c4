// SPDX-License-Identifier: MIT
// splitter.ts: the line between the timeline and the panel, moved by dragging or with the arrow keys. The browser's
// storage keeps its place, if it has any.
import { element } from "./panels/dom";
import { loadPreference, savePreference } from "./preferences";

const LEAST = 80;
const STEP = 24;

export function panelSplitter(page: HTMLElement): HTMLElement {
  const line = element("div", {
    class: "splitter",
    role: "separator",
    tabindex: 0,
    "aria-orientation": "horizontal",
    "aria-label": "Height of the panel",
    "aria-valuemin": LEAST,
  });
  let height = Number(loadPreference("panel-height")) || 230;
  const set = (wanted: number): void => {
    const most = Math.max(LEAST, (page.clientHeight || innerHeight) - 200);
    height = Math.round(Math.min(most, Math.max(LEAST, wanted)));
    page.style.setProperty("--panel-height", `${height}px`);
    line.setAttribute("aria-valuemax", String(most));
    line.setAttribute("aria-valuenow", String(height));
    savePreference("panel-height", String(height));
  };
  line.addEventListener("pointerdown", (event) => {
    const start = { y: event.clientY, height };
    line.setPointerCapture(event.pointerId);
    const move = (at: PointerEvent): void => set(start.height + start.y - at.clientY);
    line.addEventListener("pointermove", move);
    line.addEventListener("lostpointercapture", () => line.removeEventListener("pointermove", move), { once: true });
  });
  line.addEventListener("keydown", (event) => {
    const by = event.key === "ArrowUp" ? STEP : event.key === "ArrowDown" ? -STEP : 0;
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    set(height + by);
  });
  addEventListener("resize", () => set(height));
  set(Math.min(height, innerHeight * 0.36));
  return line;
}
