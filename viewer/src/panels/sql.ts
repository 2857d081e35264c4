// SPDX-License-Identifier: MIT
// sql.ts: the SQL page: an editor, the tables beside it, the rows below. Rows that have a time or an event lead to the
// timeline, one by one or all together as a track of their own.
import type { App, Panel } from "../app";
import { count, duration } from "../format";
import type { SqlResult, Tables } from "../protocol";
import { copyButton, download } from "./copy";
import { button, element, plural } from "./dom";
import { debounce, reason } from "./latest";
import { SqlEditor } from "./sql_editor";
import { asCsv, asJson, resultTable } from "./sql_result";
import { type Meaning, meaningOf, overlayOf, type Row } from "./sql_rows";
import { errorPlace, EXAMPLES, readHistory, remember } from "./sql_text";
import { type Table } from "./table";

const LIMITS = [1000, 10_000, 100_000];

interface Shown {
  sql: string;
  result: SqlResult;
  meaning: Meaning;
  table: Table<Row>;
}

class SqlPage {
  readonly node = element("section", { id: "sql", class: "sql-page", "aria-label": "SQL" });
  private readonly editor = new SqlEditor(
    () => void this.run(),
    debounceText((text) => this.app.set({ sql: text })),
  );
  private readonly runButton = button(
    "Run",
    { id: "sql-run", class: "primary", title: "Ctrl+Enter" },
    () => void this.run(),
  );
  private readonly cancelButton = button("Cancel", { id: "sql-cancel", disabled: true }, () => void this.cancel());
  private readonly limit = element(
    "select",
    { "aria-label": "Maximum rows" },
    ...LIMITS.map((n) => element("option", { value: n }, `${count(n)} rows`)),
  );
  private readonly history = this.menu("History", historyLines());
  private readonly examples = this.menu("Examples", EXAMPLES);
  private readonly state = element("span", { class: "sql-state muted", role: "status" });
  private readonly more = button("More rows", { hidden: true }, () => this.runMore());
  private readonly showButton = button("Show on the timeline", { id: "sql-show", disabled: true }, () =>
    this.showAll(),
  );
  private readonly removeButton = button("Remove from the timeline", { hidden: true }, () => this.app.setOverlay(null));
  private readonly csvButton = button("CSV", { disabled: true, title: "Save the rows as a CSV file" }, () =>
    this.keep("csv"),
  );
  private readonly jsonButton = button("JSON", { disabled: true, title: "Save the rows as a JSON file" }, () =>
    this.keep("json"),
  );
  private readonly copy = copyButton("Copy the rows as CSV", () =>
    this.shown ? asCsv(this.shown.result.columns, this.shown.table.rows) : "",
  );
  private readonly error = element("p", { id: "sql-error", class: "error", role: "alert", hidden: true });
  private readonly rows = element("div", { id: "sql-result" });
  private readonly side = element("nav", { class: "sql-tables", "aria-label": "Tables" });
  private shown: Shown | null = null;
  private running = false;
  private known = false;

  constructor(private readonly app: App) {
    const first = element(
      "div",
      { class: "bar-line" },
      this.runButton,
      this.cancelButton,
      this.limit,
      this.examples,
      this.history,
      this.state,
    );
    const last = element(
      "div",
      { class: "bar-line" },
      this.showButton,
      this.removeButton,
      this.more,
      element("span", { class: "space" }),
      this.copy,
      this.csvButton,
      this.jsonButton,
    );
    const main = element("div", { class: "sql-main" }, this.editor.node, first, this.error, this.rows, last);
    this.node.append(this.side, main);
    this.copy.disabled = true;
    this.editor.text = app.state.sql;
    this.rows.append(
      element("p", { class: "empty" }, "Results appear here. Click a row with an id or a ts to go to the timeline."),
    );
    app.on("page", () => this.opened());
    app.on("overlay", () => (this.removeButton.hidden = app.overlay === null));
    this.opened();
  }

  // Makes a list that puts the text of the chosen line into the editor.
  private menu(label: string, lines: [string, string][]): HTMLSelectElement {
    const menu = element("select", { "aria-label": label });
    menu.addEventListener("change", () => {
      const text = menu.value;
      menu.selectedIndex = 0;
      this.editor.text = text;
      this.editor.focus();
    });
    this.fillMenu(menu, label, lines);
    return menu;
  }

  private fillMenu(menu: HTMLSelectElement, label: string, lines: [string, string][]): void {
    const options = lines.map(([name, text]) => element("option", { value: text }, name));
    menu.replaceChildren(element("option", { value: "" }, label), ...options);
  }

  // Loads the tables when the page is first shown; runs SQL text that came with the URL.
  private opened(): void {
    if (this.app.state.page !== "sql") return;
    if (this.app.state.sql !== this.editor.text && this.app.state.sql !== "") this.editor.text = this.app.state.sql;
    if (this.known) return;
    this.known = true;
    void this.fillTables();
    if (this.editor.text.trim() !== "") void this.run();
  }

  private async fillTables(): Promise<void> {
    try {
      const { tables } = await this.app.source.tables();
      this.editor.tables = tables;
      this.side.replaceChildren(element("h3", {}, "Tables"), ...tables.map((table) => this.tableLine(table)));
    } catch (error) {
      this.side.replaceChildren(element("p", { class: "error" }, `Cannot list the tables: ${reason(error)}`));
    }
  }

  private tableLine(table: Tables["tables"][number]): HTMLElement {
    const columns = table.columns.map((name) => button(name, { class: "link column" }, () => this.editor.insert(name)));
    const use = button(
      table.name,
      { class: "link", "aria-label": `Insert ${table.name}`, title: "Insert the name" },
      () => this.editor.insert(table.name),
    );
    return element("details", { "data-table": table.name }, element("summary", {}, use), ...columns);
  }

  private async run(limit = Number(this.limit.value)): Promise<void> {
    const sql = this.editor.text;
    if (this.running || sql.trim() === "") return;
    this.app.set({ sql });
    remember(sql);
    this.fillMenu(this.history, "History", historyLines());
    this.setRunning(true);
    const begin = performance.now();
    const clock = setInterval(
      () => (this.state.textContent = `Running for ${duration((performance.now() - begin) * 1e6)}`),
      200,
    );
    try {
      this.take(sql, await this.app.source.sql(sql, limit));
    } catch (error) {
      this.fail(sql, reason(error));
    }
    clearInterval(clock);
    this.setRunning(false);
    if (/\b(create|drop|alter)\b/i.test(sql)) void this.fillTables();
  }

  private setRunning(running: boolean): void {
    this.running = running;
    this.runButton.disabled = running;
    this.cancelButton.disabled = !running;
    this.rows.toggleAttribute("aria-busy", running);
    if (running) this.state.textContent = "Runs";
  }

  private async cancel(): Promise<void> {
    try {
      await this.app.source.cancel();
    } catch (error) {
      this.state.textContent = `Cannot cancel: ${reason(error)}`;
    }
  }

  private runMore(): void {
    const next = LIMITS.find((n) => n > (this.shown?.result.rows.length ?? 0));
    if (next === undefined) return;
    this.limit.value = String(next);
    void this.run(next);
  }

  private fail(sql: string, why: string): void {
    this.error.textContent = why;
    this.error.hidden = false;
    this.rows.hidden = true;
    this.state.textContent = "";
    const at = errorPlace(sql, why);
    if (at >= 0 && this.editor.text === sql) this.editor.point(at);
  }

  private take(sql: string, result: SqlResult): void {
    if (result.error !== undefined) return this.fail(sql, result.error);
    const meaning = meaningOf(result, sql, this.app.trace);
    const table = resultTable(result, meaning, (row) => void this.open(row));
    this.shown = { sql, result, meaning, table };
    this.error.hidden = true;
    this.rows.hidden = false;
    this.rows.replaceChildren(
      result.columns.length > 0 ? table.node : element("p", { class: "empty" }, "Done; it has no rows."),
    );
    this.state.textContent = this.sentence(result);
    this.more.hidden = !result.more || result.rows.length >= LIMITS[LIMITS.length - 1];
    this.showButton.disabled = !meaning.timed || result.rows.length === 0;
    this.showButton.title = meaning.timed ? "Show the rows as a track" : "Needs a column named ts (and dur)";
    this.copy.disabled = this.csvButton.disabled = this.jsonButton.disabled = result.rows.length === 0;
  }

  private sentence(result: SqlResult): string {
    const rows = plural(result.rows.length, count(result.rows.length), "row");
    return `${result.more ? `The first ${rows}` : rows} in ${duration(result.ms * 1e6)}`;
  }

  private async open(row: Row): Promise<void> {
    const place = this.shown?.meaning.place(row);
    if (!place || (place.ref === null && place.ts === null)) return;
    this.app.set({ page: "timeline" });
    if (place.ref) return this.app.select(place.ref, "focus");
    const from = place.ts ?? 0;
    const to = from + Math.max(place.dur, 1);
    const room = Math.max((to - from) * 0.2, 1000);
    this.app.set({ range: { from, to }, from: from - room, to: to + room });
  }

  private showAll(): void {
    if (!this.shown) return;
    const overlay = overlayOf(this.shown.table.rows, this.shown.meaning, this.shown.sql);
    if (overlay.rows.length === 0) return void (this.state.textContent = "No row has a time.");
    this.app.setOverlay(overlay);
    this.app.set({ page: "timeline", ...this.viewOf(overlay.rows) });
    this.app.announce(`${plural(overlay.rows.length, count(overlay.rows.length), "row")} on the timeline`);
  }

  // Keep the view unless it would show no row.
  private viewOf(rows: { ts: number; dur: number }[]): { from?: number; to?: number } {
    const { from, to } = this.app.state;
    if (rows.some((row) => row.ts <= to && row.ts + row.dur >= from)) return {};
    const first = rows.reduce((least, row) => Math.min(least, row.ts), Infinity);
    const last = rows.reduce((most, row) => Math.max(most, row.ts + row.dur), -Infinity);
    const room = Math.max((last - first) * 0.05, 1000);
    return { from: first - room, to: last + room };
  }

  private keep(form: "csv" | "json"): void {
    if (!this.shown) return;
    const { columns } = this.shown.result;
    const { rows } = this.shown.table;
    if (form === "csv") download("kymo.csv", "text/csv", asCsv(columns, rows));
    else download("kymo.json", "application/json", asJson(columns, rows));
  }
}

function historyLines(): [string, string][] {
  return readHistory().map((text) => [text.replace(/\s+/g, " ").slice(0, 90), text]);
}

// Saves the newest text once typing pauses.
function debounceText(fn: (text: string) => void): (text: string) => void {
  let newest: string | null = null;
  const later = debounce(() => newest !== null && fn(newest), 400);
  return (text) => {
    newest = text;
    later();
  };
}

function without(): HTMLElement {
  return element(
    "section",
    { id: "sql", class: "sql-page", "aria-label": "SQL" },
    element(
      "p",
      { class: "empty" },
      "SQL needs a server, and this page is an exported trace. Use ",
      element("code", {}, "kymo view FILE"),
      " on the original trace, or ",
      element("code", {}, "kymo query"),
      ".",
    ),
  );
}

export const sql: Panel = (app) => (app.source.can.sql ? new SqlPage(app).node : without());
