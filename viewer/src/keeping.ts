// SPDX-License-Identifier: MIT
// keeping.ts: what the browser remembers of a person's wishes. A page from disk, or a strict browser, may have nowhere
// to keep it: then all is as usual each time.

export function kept(key: string): string | null {
  try {
    return localStorage.getItem(`kymo.${key}`);
  } catch {
    return null;
  }
}

export function keep(key: string, value: string): void {
  try {
    localStorage.setItem(`kymo.${key}`, value);
  } catch {
    // Nowhere to keep it.
  }
}
