// SPDX-License-Identifier: MIT
// input.ts: the mouse over the canvas and the ruler: dragging moves or selects a range, the wheel scrolls, pans and
// zooms, a click selects. Positions are CSS pixels from the canvas' left edge and the timeline's top.
import type { View } from "./motion";

export interface Moves {
  view(): View;
  timeAt(x: number): number;
  show(view: View): void; // without animation
  zoom(factor: number, x: number): void;
  scroll(y: number, by: number): void; // of the pane at y
  hover(x: number, y: number): void;
  leave(): void;
  range(from: number, to: number): void;
  clearRange(): void;
  click(x: number, y: number): void;
  doubleClick(x: number, y: number): void;
}

const FAR = 4; // pixels of movement that make it a drag
const LINE = 40; // pixels of a wheel's line

export function listen(canvas: HTMLElement, ruler: HTMLElement, moves: Moves): void {
  canvas.addEventListener("wheel", (event) => onWheel(event, moves), { passive: false });
  ruler.addEventListener("wheel", (event) => onWheel(event, moves), { passive: false });
  canvas.addEventListener("pointerdown", (event) => onDown(event, canvas, moves, event.shiftKey));
  ruler.addEventListener("pointerdown", (event) => onDown(event, ruler, moves, true));
  canvas.addEventListener("pointermove", (event) => moves.hover(event.offsetX, event.offsetY));
  ruler.addEventListener("pointermove", (event) => moves.hover(event.offsetX, -1));
  canvas.addEventListener("pointerleave", () => moves.leave());
  ruler.addEventListener("pointerleave", () => moves.leave());
  canvas.addEventListener("dblclick", (event) => moves.doubleClick(event.offsetX, event.offsetY));
}

function onWheel(event: WheelEvent, moves: Moves): void {
  event.preventDefault();
  const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE : 1;
  const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  const by = unit * (isSideways ? event.deltaX || event.deltaY : event.deltaY);
  if (event.ctrlKey || event.metaKey) {
    moves.zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY * unit)) / 300), event.offsetX);
  } else if (isSideways) {
    const { from, to } = moves.view();
    const shift = moves.timeAt(by) - moves.timeAt(0);
    moves.show({ from: from + shift, to: to + shift });
  } else {
    moves.scroll(event.offsetY, by);
  }
}

function onDown(event: PointerEvent, target: HTMLElement, moves: Moves, selects: boolean): void {
  if (event.button !== 0) return;
  const start = { x: event.offsetX, y: event.offsetY, lastY: event.clientY };
  const begin = moves.view();
  const perPixel = moves.timeAt(1) - moves.timeAt(0);
  const from = moves.timeAt(start.x);
  let isDrag = false;
  target.setPointerCapture(event.pointerId);
  const left = event.clientX - event.offsetX;
  const move = (at: PointerEvent): void => {
    const by = at.clientX - event.clientX;
    isDrag ||= Math.hypot(by, at.clientY - event.clientY) >= FAR;
    if (!isDrag) return;
    if (selects) {
      const to = moves.timeAt(at.clientX - left);
      moves.range(Math.min(from, to), Math.max(from, to));
      return;
    }
    moves.show({ from: begin.from - by * perPixel, to: begin.to - by * perPixel });
    moves.scroll(start.y, start.lastY - at.clientY);
    start.lastY = at.clientY;
  };
  const up = (at: PointerEvent): void => {
    target.removeEventListener("pointermove", move);
    target.removeEventListener("pointerup", up);
    target.removeEventListener("pointercancel", up);
    target.classList.remove("dragging");
    if (isDrag || at.type === "pointercancel") return;
    if (selects) moves.clearRange();
    else moves.click(start.x, start.y);
  };
  target.addEventListener("pointermove", move);
  target.addEventListener("pointerup", up);
  target.addEventListener("pointercancel", up);
}
