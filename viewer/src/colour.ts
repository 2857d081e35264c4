// SPDX-License-Identifier: MIT
// colour.ts: the colours of what is drawn. A hash of the text (without digits, so that "request 17" and "request 18"
// look alike) picks a name's colour from a palette, so a name has the same colour in every trace. All colours of a
// palette are equally light (OKLCH), so that one text colour is readable on each.

export type Theme = "light" | "dark";

// Each colour is mixed with the background beforehand: four steps for how much of the time is covered, and the same
// again, pale, for what a search did not find.
export const STEPS = 4;
export const STYLES = STEPS * 2;
const strength = [0.45, 0.62, 0.8, 1];
const pale = 0.22;

export interface Palette {
  background: string;
  group: string;
  foreground: string;
  muted: string;
  line: string;
  accent: string;
  warn: string;
  error: string;
  fills: string[]; // STYLES for each colour
  packed: Uint32Array; // the same as pixels of an image
  lines: string[]; // a stronger shade of each colour
  text: string; // on full colours
  paleText: string;
}

type Rgb = [number, number, number];

const HUES = 20;
const shades: Record<Theme, [number, number][]> = {
  light: [
    [0.83, 0.085],
    [0.77, 0.1],
  ],
  dark: [
    [0.47, 0.085],
    [0.41, 0.08],
  ],
};
const named = HUES * 2;

// Meanings have colours of their own, after those of the names.
const meanings: Record<string, Record<Theme, [number, number, number]>> = {
  running: { light: [0.76, 0.15, 150], dark: [0.52, 0.13, 150] },
  runnable: { light: [0.87, 0.11, 110], dark: [0.5, 0.09, 105] },
  sleeping: { light: [0.93, 0.008, 260], dark: [0.27, 0.012, 260] },
  waiting: { light: [0.72, 0.15, 28], dark: [0.5, 0.14, 28] },
  idle: { light: [0.95, 0.004, 260], dark: [0.24, 0.006, 260] },
  stopped: { light: [0.78, 0.09, 305], dark: [0.48, 0.1, 305] },
  loss: { light: [0.68, 0.18, 28], dark: [0.6, 0.17, 28] },
};
const meaning = Object.fromEntries(Object.keys(meanings).map((key, i) => [key, named + i]));

function oklch(lightness: number, chroma: number, hue: number): Rgb {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map((v) => {
    const curved = v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055;
    return Math.round(255 * Math.min(1, Math.max(0, curved)));
  }) as Rgb;
}

// Parses "#fff" and "#ffffff": the CSS minifier writes the short form.
function rgb(text: string): Rgb {
  const digits = text.replace("#", "");
  const full = digits.length < 6 ? [...digits].map((digit) => digit + digit).join("") : digits;
  return [0, 2, 4].map((at) => parseInt(full.slice(at, at + 2), 16)) as Rgb;
}

const hex = (colour: Rgb): string => `#${colour.map((v) => v.toString(16).padStart(2, "0")).join("")}`;
const pixel = ([red, green, blue]: Rgb): number => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
const mix = (over: Rgb, under: Rgb, part: number): Rgb =>
  over.map((v, i) => Math.round(v * part + under[i] * (1 - part))) as Rgb;

function colours(theme: Theme): Rgb[] {
  const all: Rgb[] = [];
  for (let i = 0; i < named; i++) {
    const [lightness, chroma] = shades[theme][i % 2];
    all.push(oklch(lightness, chroma, ((i >> 1) * 360) / HUES + 8));
  }
  for (const key of Object.keys(meanings)) all.push(oklch(...meanings[key][theme]));
  return all;
}

// Returns the palette of the current theme: the page's own colours come from theme.css.
export function makePalette(theme: Theme): Palette {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => hex(rgb(style.getPropertyValue(name).trim()));
  const background = rgb(of("--bg"));
  const fills = colours(theme).flatMap((colour) => [
    ...strength.map((part) => hex(mix(colour, background, part))),
    ...strength.map((part) => hex(mix(colour, background, part * pale))),
  ]);
  return {
    background: of("--bg"),
    group: of("--group"),
    foreground: of("--fg"),
    muted: of("--muted"),
    line: of("--line"),
    accent: of("--accent"),
    warn: of("--warn"),
    error: of("--error"),
    fills,
    packed: Uint32Array.from(fills, (fill) => pixel(rgb(fill))),
    lines: colours(theme).map((colour) => hex(mix(colour, rgb(of("--fg")), 0.6))),
    text: theme === "light" ? "#17202e" : "#f2f5fa",
    paleText: of("--muted"),
  };
}

// Returns FNV-1a of the text without its digits.
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 48 && code <= 57) continue;
    value = Math.imul(value ^ code, 0x01000193);
  }
  return (value ^ (value >>> 15)) >>> 0;
}

export const ofName = (text: string): number => hash(text) % named;
export const ofLoss = meaning.loss;

// Returns the colour of a thread state, given as a kernel letter or in Perfetto's words.
export function ofState(text: string): number {
  if (/^running/i.test(text)) return meaning.running;
  if (/^(R\b|R\+|runnable)/i.test(text)) return meaning.runnable;
  if (/^(D|U|DK|.*uninterruptible)/i.test(text) && !/^dead/i.test(text)) return meaning.waiting;
  if (/^(S\b|sleep)/i.test(text)) return meaning.sleeping;
  if (/^(I\b|idle)/i.test(text)) return meaning.idle;
  return meaning.stopped;
}
