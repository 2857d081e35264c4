// SPDX-License-Identifier: MIT
// corner.ts: the corner above the track names: the filter, and the number of hidden tracks.
import type { App } from "../app";
import { count } from "../format";
import { button, element, plural } from "../panels/dom";

export class Corner {
  readonly element: HTMLElement;
  private readonly filter = element("input", {
    id: "track-filter",
    type: "search",
    placeholder: "Filter tracks",
    "aria-label": "Filter tracks by name",
    autocomplete: "off",
    spellcheck: "false",
  });
  private readonly note = element("span");
  private readonly showAll: HTMLButtonElement;

  constructor(private readonly app: App) {
    this.showAll = button("show", { title: "Show all hidden tracks" }, () => app.set({ hidden: [] }));
    this.element = element(
      "div",
      { class: "corner" },
      element("div", { class: "filter-place" }, this.filter),
      element("div", { class: "hidden-place" }, this.note, this.showAll),
    );
    this.filter.addEventListener("input", () => app.set({ filter: this.filter.value }));
    this.filter.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.leave();
    });
  }

  private leave(): void {
    this.app.set({ filter: "" });
    this.filter.blur();
  }

  update(): void {
    const { state, trace } = this.app;
    if (this.filter.value !== state.filter) this.filter.value = state.filter;
    const tracks = trace.tracks.filter(({ kind }) => kind !== "group").length;
    const hidden = state.hidden.length;
    this.note.textContent = hidden ? `${count(hidden)} hidden:` : plural(tracks, count(tracks), "track");
    this.showAll.hidden = hidden === 0;
  }
}
