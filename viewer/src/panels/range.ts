// SPDX-License-Identifier: MIT
// range.ts: the panel with a table of all names in the selected time, as `kymo report --from --to` prints it. Without a
// selected range it covers the visible time, and says so.
import type { App, Panel } from "../app";
import { count, duration } from "../format";
import type { Range, RangeRow } from "../protocol";
import { button, element, plural } from "./dom";
import { atMostEach, debounce, Latest } from "./latest";
import { searchName, type ShownRange, shownRange, shownRangeText, tracksOf } from "./shown_range";
import { type Column, makeTable } from "./table";

type Figure = Exclude<keyof RangeRow, "name">;

function figure(key: Figure, label: string, title: string, shown: (n: number) => string): Column<RangeRow> {
  return {
    key,
    label,
    title,
    width: "6.5em",
    numeric: true,
    value: (row) => row[key],
    fill: (cell, row) => {
      cell.dataset.value = String(row[key]);
      // A name with only instants has no durations.
      cell.textContent = row.count > 0 || key === "instants" || key === "count" ? shown(row[key]) : "";
    },
  };
}

function totalColumn(largest: () => number): Column<RangeRow> {
  const plain = figure("total", "Total", "Time in slices of this name, including their children", duration);
  return {
    ...plain,
    width: "9em",
    fill: (cell, row) => {
      plain.fill(cell, row);
      cell.classList.add("bar");
      cell.style.setProperty("--share", String(largest() > 0 ? row.total / largest() : 0));
    },
  };
}

function columns(largest: () => number): Column<RangeRow>[] {
  const name: Column<RangeRow> = {
    key: "name",
    label: "Name",
    value: (row) => row.name,
    fill: (cell, row) => {
      cell.textContent = row.name;
      cell.title = `${row.name}\nEnter or click to search for it`;
    },
  };
  return [
    name,
    totalColumn(largest),
    figure("self", "Self", "Time without that of child slices", duration),
    figure("count", "Count", "Slices", count),
    figure("instants", "Instants", "Events without a duration", count),
    figure("min", "Min", "Shortest", duration),
    figure("mean", "Mean", "Total divided by count", duration),
    figure("p50", "p50", "Median: half are not longer", duration),
    figure("p95", "p95", "95 % are not longer", duration),
    figure("p99", "p99", "99 % are not longer", duration),
    figure("max", "Max", "Longest", duration),
  ];
}

function summary(range: Range): string {
  const sum = (key: "count" | "instants") => range.rows.reduce((all, row) => all + row[key], 0);
  const [slices, instants] = [sum("count"), sum("instants")];
  const parts = [plural(range.rows.length, count(range.rows.length), "name"), plural(slices, count(slices), "slice")];
  if (instants > 0) parts.push(plural(instants, count(instants), "instant"));
  return parts.join(", ");
}

class RangePanel {
  readonly node = element("section", { id: "range", class: "panel-body columns", "aria-label": "Range" });
  private readonly latest = new Latest(this.node, true);
  private readonly about = element("span", { class: "range-text" });
  private readonly counts = element("span", { class: "muted" });
  private readonly filter = element("input", {
    type: "search",
    placeholder: "Filter names",
    "aria-label": "Filter names in the range",
    input: () => this.showRows(),
  });
  private readonly clear = button("Clear range", { title: "Use the visible time" }, () =>
    this.app.set({ range: null }),
  );
  private readonly zoom = button("Zoom to range", {}, () => {
    const { range } = this.app.state;
    if (range) this.app.set({ from: range.from, to: range.to });
  });
  private readonly empty = element("p", { class: "empty", hidden: true });
  private range: Range = { rows: [] };
  private largest = 0; // total
  private asked = "";
  private readonly table = makeTable<RangeRow>({
    label: "Names in the range",
    columns: columns(() => this.largest),
    sort: { key: "total", descending: true },
    mark: (line, row) => (line.dataset.name = row.name),
    open: (row) => void searchName(this.app, row.name),
  });

  constructor(private readonly app: App) {
    const bar = element("div", { class: "bar-line" }, this.about, this.counts, this.filter, this.zoom, this.clear);
    this.node.append(bar, this.table.node, this.empty);
    // Wait until the view stops moving.
    const later = debounce(() => this.update(), 150);
    app.on("range", () => this.update());
    app.on("view", () => app.state.range || later());
    app.on("tracks", later);
    app.on(
      "trace",
      atMostEach(500, () => this.update()),
    );
    app.on("tab", () => this.update());
    app.on("page", () => this.update());
    this.update();
  }

  private update(): void {
    const { app } = this;
    if (app.state.tab !== "range" || app.state.page !== "timeline") return;
    const shown = shownRange(app);
    this.about.textContent = this.about.title = shownRangeText(app, shown);
    this.clear.disabled = this.zoom.disabled = !shown.selected;
    const asked = JSON.stringify([shown, tracksOf(app, "slices"), app.trace.generation]);
    if (asked === this.asked) return;
    this.asked = asked;
    const fail = (why: string) => {
      this.asked = "";
      this.say(why);
    };
    void this.latest.ask(
      () => this.rowsOf(shown),
      (range) => this.show(range),
      fail,
    );
  }

  private async rowsOf({ from, to }: ShownRange): Promise<Range> {
    const tracks = tracksOf(this.app, "slices");
    return tracks?.length === 0 ? { rows: [] } : this.app.source.range(from, to, tracks);
  }

  private show(range: Range): void {
    this.range = range;
    this.largest = range.rows.reduce((most, row) => Math.max(most, row.total), 0);
    this.counts.textContent = summary(range);
    this.showRows();
    if (this.app.state.range) this.app.announce(summary(range));
  }

  private showRows(): void {
    const text = this.filter.value.trim().toLowerCase();
    const rows = text ? this.range.rows.filter((row) => row.name.toLowerCase().includes(text)) : this.range.rows;
    this.table.show(rows);
    this.say(rows.length > 0 ? "" : text ? "No name contains this text." : this.nothing());
  }

  private nothing(): string {
    const { slices = 0, instants = 0, samples = 0, sched = 0 } = this.app.trace.counts;
    if (slices + instants > 0) return "No events in this range.";
    if (samples > 0) return "No slices in this trace; the Flame tab shows its samples.";
    return sched > 0 ? "No slices in this trace; the tracks show its scheduling." : "No events in this range.";
  }

  private say(text: string): void {
    this.empty.textContent = text;
    this.empty.hidden = text === "";
    this.table.node.hidden = text !== "";
  }
}

export const range: Panel = (app) => new RangePanel(app).node;
