// SPDX-License-Identifier: MIT
// copy.ts: copies text to the clipboard, and saves files.
import { button, element } from "./dom";

// For pages that may not use the clipboard API, such as files opened from disk in some browsers.
function copyBySelection(text: string): boolean {
  const area = element("textarea", { class: "unseen" });
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  return copied;
}

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

// Makes a button that briefly shows whether copying succeeded; its width stays the same (panels.css).
export function copyButton(label: string, text: () => string): HTMLButtonElement {
  const node = button("Copy", { class: "copy quiet", "aria-label": label, title: label }, async () => {
    const focused = document.activeElement;
    node.textContent = (await copyText(text())) ? "Copied" : "Failed";
    if (focused instanceof HTMLElement) focused.focus();
    setTimeout(() => (node.textContent = "Copy"), 1200);
  });
  return node;
}

export function download(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = element("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
