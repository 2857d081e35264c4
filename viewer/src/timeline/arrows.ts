// SPDX-License-Identifier: MIT
// arrows.ts: draws the flows of the selected slice as arrows between slices.
import type { Details } from "../protocol";
import type { Scene } from "./scene";
import type { Spot } from "./picture";

export interface Arrow {
  from: Spot;
  to: Spot;
}

export function arrowsOf(details: Details): Arrow[] {
  return [
    ...details.flowsIn.map(({ from }) => ({ from, to: details as Spot })),
    ...details.flowsOut.map(({ to }) => ({ from: details as Spot, to })),
  ].filter(({ from, to }) => from.track >= 0 && to.track >= 0);
}

type Box = { x: number; y: number; width: number; height: number };

// An arrow leaves where its slice ends, or earlier if the next slice has begun by then.
export function drawArrows(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  arrows: Arrow[],
  boxOf: (spot: Spot) => Box | null,
): void {
  ctx.save();
  ctx.scale(scene.dpr, scene.dpr);
  for (const { from, to } of arrows) {
    const a = boxOf(from);
    const b = boxOf(to);
    if (!a || !b) continue;
    const x0 = Math.max(a.x, Math.min(a.x + Math.max(0, a.width), b.x));
    drawArrow(ctx, scene, x0, a.y + a.height / 2, b.x, b.y + b.height / 2);
  }
  ctx.restore();
}

function drawArrow(ctx: CanvasRenderingContext2D, scene: Scene, x0: number, y0: number, x1: number, y1: number): void {
  const bend = Math.min(120, Math.max(18, Math.abs(x1 - x0) / 2));
  const back = x1 < x0 + 4 ? 18 : bend;
  for (const [colour, width] of [
    [scene.palette.background, 4.5],
    [scene.palette.accent, 2],
  ] as const) {
    ctx.strokeStyle = colour;
    ctx.fillStyle = colour;
    ctx.lineWidth = width;
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.bezierCurveTo(x0 + back, y0, x1 - back - 6, y1, x1 - 6, y1);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x1 - 8, y1 - 4.5);
    ctx.lineTo(x1 - 8, y1 + 4.5);
    ctx.closePath();
    ctx.fill();
  }
  ctx.beginPath();
  ctx.arc(x0, y0, 3, 0, 7);
  ctx.fill();
}
