// SPDX-License-Identifier: MIT
// theme.ts: light or dark: the user's choice, else the system's.
import { loadPreference, savePreference } from "./preferences";

const dark = matchMedia("(prefers-color-scheme: dark)");

export function showTheme(): void {
  const chosen = loadPreference("theme");
  const theme = chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light";
  document.documentElement.dataset.theme = theme;
}

export function toggleTheme(): void {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  savePreference("theme", theme);
  document.documentElement.dataset.theme = theme;
}

// Reports when the system's theme changes.
export function watchTheme(changed: () => void): void {
  dark.addEventListener("change", () => {
    showTheme();
    changed();
  });
}
