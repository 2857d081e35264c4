// SPDX-License-Identifier: MIT
// theme.ts: light or dark: what was chosen, else what the system says.
import { keep, kept } from "./keeping";

const dark = matchMedia("(prefers-color-scheme: dark)");

export function showTheme(): void {
  const chosen = kept("theme");
  const theme = chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light";
  document.documentElement.dataset.theme = theme;
}

export function toggleTheme(): void {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  keep("theme", theme);
  document.documentElement.dataset.theme = theme;
}

// Tells when the system changes its mind.
export function watchTheme(changed: () => void): void {
  dark.addEventListener("change", () => {
    showTheme();
    changed();
  });
}
