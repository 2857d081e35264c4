// SPDX-License-Identifier: MIT
// search.ts: the search box of the header. Counts the matches while the user types; Enter and the arrows walk through
// them in time order, wrapping around, and a list shows how many each track has.
//
// The text is part of the state (others may set it); the result is app.search. A match is current while it is selected,
// so after another selection the search continues from what is shown.
import type { App, Panel } from "../app";
import { count } from "../format";
import type { Search } from "../protocol";
import { button, type Child, element } from "./dom";
import { atMostEach, debounce, Latest } from "./latest";

const TRACKS_SHOWN = 200;
const TYPING_MS = 150;

type Then = "select" | "announce" | "show"; // what to do with the result
type Where = { at: number } | { near: number; forward: boolean };

export const PREFIXES: [string, string][] = [
  ["name:", "names only"],
  ["name=", "exactly this name"],
  ["category:", "categories only"],
  ["arg:", "argument values only"],
  ["arg.KEY:", "values of the argument KEY only"],
];

class SearchBox {
  readonly node = element("div", { class: "search", role: "search" });
  private readonly latest = new Latest(this.node);
  private readonly input = element("input", {
    id: "search-input",
    type: "text",
    placeholder: "Search (/)",
    "aria-label": "Search all events",
    "aria-controls": "search-list",
    autocomplete: "off",
    spellcheck: "false",
    input: () => this.typed(),
    focus: () => this.input.value === "" && this.open(),
  });
  private readonly counted = element("output", { id: "search-count", for: "search-input" });
  private readonly list = element("div", { id: "search-list", class: "popup", hidden: true });
  private readonly previous = button(
    "‹",
    { id: "search-prev", "aria-label": "Previous match", title: "Previous (Shift+Enter)" },
    () => this.step(false),
  );
  private readonly next = button("›", { id: "search-next", "aria-label": "Next match", title: "Next (Enter)" }, () =>
    this.step(true),
  );
  private readonly toggle = button(
    "▾",
    { id: "search-tracks", "aria-label": "Matches by track", "aria-expanded": "false" },
    () => (this.list.hidden ? this.open() : this.close()),
  );
  private asked = "";
  private failed = "";
  private readonly runLater = debounce(() => this.run(this.input.value), TYPING_MS);

  constructor(private readonly app: App) {
    this.node.append(this.input, this.counted, this.previous, this.next, this.toggle, this.list);
    this.input.addEventListener("keydown", (event) => this.inputKey(event));
    this.list.addEventListener("keydown", (event) => this.listKey(event));
    this.node.addEventListener("focusout", (event) => {
      if (!this.node.contains(event.relatedTarget as Node | null)) this.close();
    });
    app.on("search", () => this.follow());
    app.on("selection", () => this.show());
    app.on(
      "trace",
      atMostEach(1000, () => this.repeat()),
    );
    this.follow();
  }

  // Takes over a search made by another part of the page.
  private follow(): void {
    const { search } = this.app.state;
    if (search !== this.asked) {
      this.input.value = search;
      this.run(search);
    }
    this.show();
  }

  private typed(): void {
    this.failed = "";
    this.open();
    if (this.input.value === "") this.run("");
    else this.runLater();
  }

  private run(text: string): void {
    if (text === this.asked) return;
    this.asked = text;
    this.failed = "";
    this.app.set({ search: text });
    if (text !== "") return this.ask(this.fromView(true), "announce");
    this.latest.forget();
    this.app.setSearch(null);
    this.show();
  }

  // The live trace has grown. Matches are numbered by time, so the current one mostly keeps its number.
  private repeat(): void {
    if (this.asked === "") return;
    const at = this.position();
    this.ask(at >= 0 ? { at } : this.fromView(true), "show");
  }

  private ask(where: Where, then: Then): void {
    const text = this.asked;
    const fail = (why: string) => {
      this.failed = why;
      this.app.setSearch(null);
      this.show();
    };
    void this.latest.ask(
      () => this.app.source.search(text, where),
      (found) => this.found(found, then),
      fail,
    );
  }

  private found(found: Search, then: Then): void {
    this.app.setSearch(found);
    if (then === "select") void this.select(found);
    if (then === "announce") this.app.announce(found.count === 1 ? "1 match" : `${count(found.count)} matches`);
    this.show();
  }

  private async select(found: Search): Promise<void> {
    if (!found.event) return;
    if (this.app.state.page !== "timeline") this.app.set({ page: "timeline" });
    await this.app.select(found.event, "reveal");
    this.show();
  }

  // Returns the number of the selected match, or -1.
  private position(): number {
    const { search } = this.app;
    const { selected } = this.app.state;
    const current = search?.event && selected?.kind === search.event.kind && selected.id === search.event.id;
    return current ? search.at : -1;
  }

  private step(forward: boolean): void {
    if (this.input.value !== this.asked) this.run(this.input.value);
    if (this.asked === "") return;
    this.close();
    const at = this.position();
    if (at >= 0) return this.ask({ at: this.around(at + (forward ? 1 : -1)) }, "select");
    void this.stepFromView(forward);
  }

  private around(at: number): number {
    const all = this.app.search?.count ?? 1;
    return (at + all) % all;
  }

  // Begins at the edge of the range, or of the view.
  private fromView(forward: boolean): Where {
    const { range, from, to } = this.app.state;
    return { near: forward ? (range?.from ?? from) - 1 : (range?.to ?? to) + 1, forward };
  }

  // Wraps around when there are no more matches in that direction.
  private async stepFromView(forward: boolean): Promise<void> {
    const text = this.asked;
    const question = async () => {
      const found = await this.app.source.search(text, this.fromView(forward));
      if (found.event || found.count === 0) return found;
      return this.app.source.search(text, { at: forward ? 0 : found.count - 1 });
    };
    await this.latest.ask(
      question,
      (found) => this.found(found, "select"),
      (why) => {
        this.failed = why;
        this.show();
      },
    );
  }

  private show(): void {
    const { search } = this.app;
    const at = this.position();
    const none = this.asked === "" || !search;
    this.counted.textContent = none
      ? this.failed
        ? "failed"
        : ""
      : `${at >= 0 ? count(at + 1) : "–"} of ${count(search.count)}`;
    this.counted.title = this.failed;
    this.counted.dataset.count = none ? "" : String(search.count);
    this.counted.classList.toggle("error", this.failed !== "" || (!none && search.count === 0));
    this.previous.disabled = this.next.disabled = this.asked === "" || search?.count === 0;
    if (!this.list.hidden) this.fillList();
  }

  private open(): void {
    this.list.hidden = false;
    this.toggle.setAttribute("aria-expanded", "true");
    this.fillList();
  }

  private close(): void {
    this.list.hidden = true;
    this.toggle.setAttribute("aria-expanded", "false");
  }

  private fillList(): void {
    const { search } = this.app;
    const tracks = this.asked !== "" && search ? this.trackLines(search) : [];
    const problem = this.failed && element("p", { class: "error" }, this.failed);
    const hints = PREFIXES.map(([prefix, what]) => this.line("prefix", prefix, what, () => this.insert(prefix)));
    const title = element("h3", {}, "Look in one place only");
    this.list.replaceChildren(
      ...[problem, ...tracks, title, ...hints].filter((each): each is HTMLElement => Boolean(each)),
    );
  }

  private trackLines(search: Search): Child[] {
    const order = [...search.tracks].sort((a, b) => b.count - a.count).slice(0, TRACKS_SHOWN);
    const lines = order.map(({ track, count: n, first }) =>
      this.line("track-matches", this.trackName(track), count(n), () => this.ask({ at: first }, "select")),
    );
    const rest = search.tracks.length - order.length;
    const title = search.count === 0 ? "No matches" : `Matches in ${count(search.tracks.length)} tracks`;
    return [
      element("h3", {}, title),
      ...lines,
      rest > 0 && element("p", { class: "muted" }, `and ${count(rest)} tracks with fewer`),
    ];
  }

  // Adds the parent group, which distinguishes threads of the same name.
  private trackName(id: number): string {
    const { tracks } = this.app.trace;
    const track = tracks[id];
    if (!track) return "not on the timeline";
    const group = tracks[track.parent];
    return group ? `${track.name} · ${group.name}` : track.name;
  }

  private line(kind: string, name: string, about: string, press: () => void): HTMLButtonElement {
    const line = button("", { class: `popup-line ${kind}` }, press);
    line.append(element("span", {}, name), element("span", { class: "muted" }, about));
    return line;
  }

  private insert(prefix: string): void {
    const text = this.input.value.replace(/^(name|category|arg(\.\S*)?):/, "");
    this.input.value = prefix + text;
    this.input.focus();
    const key = prefix.indexOf("KEY");
    if (key >= 0) this.input.setSelectionRange(key, key + 3);
    else this.runLater();
  }

  private inputKey(event: KeyboardEvent): void {
    event.stopPropagation(); // typing is not a command
    if (event.isComposing) return;
    if (event.key === "Enter") this.step(!event.shiftKey);
    else if (event.key === "Escape") this.escape();
    else if (event.key === "ArrowDown") this.intoList();
    else return;
    event.preventDefault();
  }

  private escape(): void {
    const empty = this.input.value === "";
    this.input.value = "";
    this.run("");
    this.close();
    if (empty) document.getElementById("timeline")?.focus();
  }

  private intoList(): void {
    this.open();
    this.list.querySelector("button")?.focus();
  }

  private listKey(event: KeyboardEvent): void {
    const lines = [...this.list.querySelectorAll("button")];
    const at = lines.indexOf(document.activeElement as HTMLButtonElement);
    if (event.key === "ArrowDown") lines[Math.min(at + 1, lines.length - 1)]?.focus();
    else if (event.key === "ArrowUp" && at > 0) lines[at - 1]?.focus();
    else if (event.key === "ArrowUp" || event.key === "Escape") {
      this.input.focus();
      this.close();
    } else return void (event.key !== "Tab" && event.stopPropagation());
    event.preventDefault();
    event.stopPropagation();
  }
}

export const search: Panel = (app) => new SearchBox(app).node;
