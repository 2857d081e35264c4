// SPDX-License-Identifier: MIT
// preferences.ts: the user's preferences in the browser's storage. A page from disk, or a strict browser, may have none:
// then every visit begins with the defaults.

export function loadPreference(key: string): string | null {
  try {
    return localStorage.getItem(`kymo.${key}`);
  } catch {
    return null;
  }
}

export function savePreference(key: string, value: string): void {
  try {
    localStorage.setItem(`kymo.${key}`, value);
  } catch {
    // There is no storage.
  }
}
