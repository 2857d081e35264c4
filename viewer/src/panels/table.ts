// SPDX-License-Identifier: MIT
// table.ts: a table of any number of rows, sorted by its column heads and walked with the keys. All rows have the same
// height, and only those near the visible part are in the document; an empty row replaces those above, another below.
//
// The body is one Tab stop: arrows, Page, Home and End move the current row, Enter opens it.
import { element } from "./dom";

export type Cell = string | number | null;

export interface Column<Row> {
  key: string;
  label: string;
  title?: string;
  width?: string; // CSS; columns without one share the rest
  numeric?: boolean; // right-aligned, and sorted largest first
  value(row: Row): Cell; // sort key
  fill(cell: HTMLTableCellElement, row: Row): void;
}

export interface TableOptions<Row> {
  label: string;
  columns: Column<Row>[];
  sort?: { key: string; descending: boolean };
  mark?(line: HTMLTableRowElement, row: Row): void; // sets attributes of a row
  open?(row: Row): void; // on Enter or a click
}

export interface Table<Row> {
  node: HTMLElement;
  show(rows: Row[]): void;
  readonly rows: Row[]; // in sorted order
}

const ROW_PX = 24;
const BEYOND = 30; // rows beyond the visible part

// Empty is smallest; digit strings too long for a number are compared by value.
export function compareCells(a: Cell, b: Cell): number {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? -1 : 1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  const wholes = /^-?\d+$/;
  if (wholes.test(String(a)) && wholes.test(String(b))) return BigInt(a) < BigInt(b) ? -1 : 1;
  return String(a) < String(b) ? -1 : 1;
}

class VirtualTable<Row> implements Table<Row> {
  readonly node: HTMLElement;
  rows: Row[] = [];
  private given: Row[] = [];
  private sort: { key: string; descending: boolean } | null;
  private current = 0;
  private first = -1;
  private last = -1;
  private readonly body = element("tbody", { tabindex: 0 });
  private readonly heads = new Map<string, HTMLTableCellElement>();
  private readonly table: HTMLTableElement;

  constructor(private readonly options: TableOptions<Row>) {
    this.sort = options.sort ?? null;
    const head = element("tr", {}, ...options.columns.map((column) => this.head(column)));
    const widths = options.columns.map((column) =>
      element("col", { style: column.width ? `width:${column.width}` : undefined }),
    );
    this.table = element(
      "table",
      { class: "grid", role: "grid", "aria-label": options.label },
      element("colgroup", {}, ...widths),
      element("thead", {}, head),
      this.body,
    );
    this.node = element("div", { class: "grid-scroller", scroll: () => this.draw(false) }, this.table);
    this.listen();
    new ResizeObserver(() => this.draw(false)).observe(this.node);
  }

  show(rows: Row[]): void {
    this.given = rows;
    this.current = Math.min(this.current, Math.max(0, rows.length - 1));
    this.order();
  }

  private head(column: Column<Row>): HTMLTableCellElement {
    const press = element(
      "button",
      { type: "button", title: column.title ?? `Sort by ${column.label}`, click: () => this.sortBy(column) },
      column.label,
    );
    const cell = element(
      "th",
      { scope: "col", class: column.numeric ? "numeric" : "", "data-column": column.key },
      press,
    );
    this.heads.set(column.key, cell);
    return cell;
  }

  private sortBy(column: Column<Row>): void {
    const again = this.sort?.key === column.key;
    this.sort = { key: column.key, descending: again ? !this.sort!.descending : column.numeric === true };
    this.current = 0;
    this.node.scrollTop = 0;
    this.order();
  }

  private order(): void {
    const column = this.options.columns.find((each) => each.key === this.sort?.key);
    for (const [key, cell] of this.heads)
      cell.setAttribute("aria-sort", key !== column?.key ? "none" : this.sort!.descending ? "descending" : "ascending");
    this.rows = column ? this.sorted(column, this.sort!.descending) : this.given;
    this.draw(true);
  }

  private sorted(column: Column<Row>, descending: boolean): Row[] {
    const sign = descending ? -1 : 1;
    const keyed = this.given.map((row) => ({ row, key: column.value(row) }));
    keyed.sort((a, b) => sign * compareCells(a.key, b.key));
    return keyed.map((each) => each.row);
  }

  // Puts the rows near the visible part into the document if they are missing.
  private draw(redraw: boolean): void {
    const seen = Math.floor(this.node.scrollTop / ROW_PX);
    const count = Math.ceil(this.node.clientHeight / ROW_PX);
    const first = Math.max(0, seen - BEYOND);
    const last = Math.min(this.rows.length, seen + count + BEYOND);
    const enough = this.first <= Math.max(0, seen - 2) && this.last >= Math.min(this.rows.length, seen + count + 2);
    if (!redraw && enough && this.first >= 0) return;
    this.first = first;
    this.last = last;
    const lines = this.rows.slice(first, last).map((row, i) => this.line(row, first + i));
    this.body.replaceChildren(...this.space(first), ...lines, ...this.space(this.rows.length - last));
    this.table.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.markCurrent();
  }

  private space(rows: number): HTMLTableRowElement[] {
    if (rows === 0) return [];
    const line = element("tr", { class: "space", "aria-hidden": "true" });
    line.style.height = `${rows * ROW_PX}px`;
    return [line];
  }

  private line(row: Row, index: number): HTMLTableRowElement {
    const line = element("tr", { "aria-rowindex": index + 2, "data-index": index });
    line.id = `${this.options.label.replace(/\W+/g, "-")}-${index}`;
    this.options.mark?.(line, row);
    for (const column of this.options.columns) {
      const cell = element("td", { "data-column": column.key, class: column.numeric ? "numeric" : "" });
      column.fill(cell, row);
      line.append(cell);
    }
    return line;
  }

  private markCurrent(): void {
    this.body.querySelector("tr.current")?.classList.remove("current");
    const line = this.body.querySelector(`tr[data-index="${this.current}"]`);
    line?.classList.add("current");
    if (line) this.body.setAttribute("aria-activedescendant", line.id);
  }

  private listen(): void {
    this.body.addEventListener("click", (event) => {
      const line = (event.target as Element).closest<HTMLTableRowElement>("tr[data-index]");
      if (!line || String(getSelection()) !== "") return;
      this.current = Number(line.dataset.index);
      this.markCurrent();
      this.openCurrent();
    });
    this.body.addEventListener("keydown", (event) => this.key(event));
  }

  private openCurrent(): void {
    const row = this.rows[this.current];
    if (row !== undefined) this.options.open?.(row);
  }

  private key(event: KeyboardEvent): void {
    if (event.target !== this.body || event.ctrlKey || event.altKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.node.clientHeight / ROW_PX) - 2);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    const step = steps[event.key];
    if (event.key === "Enter") this.openCurrent();
    else if (event.key === "Home") this.moveTo(0);
    else if (event.key === "End") this.moveTo(this.rows.length - 1);
    else if (step !== undefined) this.moveTo(this.current + step);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private moveTo(index: number): void {
    this.current = Math.max(0, Math.min(this.rows.length - 1, index));
    const top = this.current * ROW_PX;
    const seen = this.node.clientHeight - 2 * ROW_PX; // below the head, which stays
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    else if (top > this.node.scrollTop + seen) this.node.scrollTop = top - seen;
    this.draw(false);
    this.markCurrent();
  }
}

export function makeTable<Row>(options: TableOptions<Row>): Table<Row> {
  return new VirtualTable(options);
}
