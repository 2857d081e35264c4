// SPDX-License-Identifier: MIT
// flame_colours.ts: colours of a flame graph: a name has the one that it has on the timeline.
import { makePalette, ofName, type Palette, STEPS, STYLES, type Theme } from "../colour";

let palette: Palette | null = null;
let made = "";

function current(): Palette {
  const theme: Theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light";
  if (!palette || made !== theme) palette = makePalette(theme);
  made = theme;
  return palette;
}

export interface FrameColours {
  fill(name: string): string;
  text: string;
  plain: string; // of what has no name of its own
  plainText: string;
  ring: string;
}

export function frameColours(): FrameColours {
  const { fills, text, group, foreground, accent } = current();
  return {
    fill: (name) => fills[ofName(name) * STYLES + STEPS - 1],
    text,
    plain: group,
    plainText: foreground,
    ring: accent === "" ? foreground : accent,
  };
}
