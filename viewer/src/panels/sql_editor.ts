// SPDX-License-Identifier: MIT
// sql_editor.ts: the SQL editor: line numbers, the indent of the previous line, and completion of the current word. Tab
// takes the first completion; without one it leaves the editor, as in other fields.
import type { Tables } from "../protocol";
import { button, element } from "./dom";
import { completions, wordBefore } from "./sql_text";

export class SqlEditor {
  readonly node = element("div", { class: "sql-editor" });
  tables: Tables["tables"] = [];
  private readonly area = element("textarea", {
    id: "sql-text",
    "aria-label": "SQL",
    "aria-describedby": "sql-hint",
    spellcheck: "false",
    autocomplete: "off",
    wrap: "off",
    placeholder: "SELECT name, count(*), sum(dur) FROM slice GROUP BY name",
    input: () => this.changed(true),
    scroll: () => this.follow(),
    blur: () => this.suggest([]),
    click: () => this.suggest([]),
  });
  private readonly numbers = element("div", { class: "sql-numbers", "aria-hidden": "true" });
  private readonly words = element("div", { class: "sql-words", id: "sql-hint" });
  private offered: string[] = [];

  constructor(
    private readonly run: () => void,
    private readonly heard: (text: string) => void,
  ) {
    this.area.addEventListener("keydown", (event) => this.key(event));
    this.node.append(this.numbers, this.area, this.words);
    this.changed(false);
  }

  get text(): string {
    return this.area.value;
  }

  set text(text: string) {
    this.area.value = text;
    this.changed(false);
  }

  focus(): void {
    this.area.focus();
  }

  // Replaces the selection through the browser's editing command, so that undo works.
  insert(text: string): void {
    this.area.focus();
    if (!document.execCommand("insertText", false, text))
      this.area.setRangeText(text, this.area.selectionStart, this.area.selectionEnd, "end");
    this.changed(false);
  }

  // Selects the word at a position of the text.
  point(at: number): void {
    const length = /^\w*/.exec(this.text.slice(at))?.[0].length ?? 0;
    this.area.focus();
    this.area.setSelectionRange(at, at + Math.max(length, 1));
  }

  private changed(typed: boolean): void {
    const lines = this.text.split("\n").length;
    this.numbers.textContent = Array.from({ length: lines }, (_, i) => i + 1).join("\n");
    this.follow();
    this.suggest(typed ? completions(this.tables, this.text, this.area.selectionStart) : []);
    this.heard(this.text);
  }

  private follow(): void {
    this.numbers.scrollTop = this.area.scrollTop;
  }

  private suggest(words: string[]): void {
    this.offered = words;
    const hint = "Ctrl+Enter runs the SQL. Tab takes the first suggestion.";
    if (words.length === 0) return this.words.replaceChildren(hint);
    const offers = words.map((word) => {
      const offer = button(word, { class: "quiet", tabindex: -1 }, () => this.take(word));
      // Keep the focus: losing it would remove the words before the click.
      offer.addEventListener("mousedown", (event) => event.preventDefault());
      return offer;
    });
    this.words.replaceChildren(element("kbd", {}, "Tab"), ...offers);
  }

  private take(word: string): void {
    const end = this.area.selectionStart;
    this.area.setSelectionRange(end - wordBefore(this.text, end).length, end);
    this.insert(word);
  }

  private key(event: KeyboardEvent): void {
    event.stopPropagation(); // typing is not a command
    if (event.isComposing) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run();
    else if (event.key === "Tab" && !event.shiftKey && this.offered.length > 0) this.take(this.offered[0]);
    else if (event.key === "Escape" && this.offered.length > 0) this.suggest([]);
    else if (event.key === "Enter" && !event.shiftKey) this.newLine();
    else {
      if (/^(Arrow|Home|End|Page)/.test(event.key)) this.suggest([]);
      return;
    }
    event.preventDefault();
  }

  private newLine(): void {
    const line = this.text.slice(0, this.area.selectionStart).split("\n").pop() ?? "";
    this.insert(`\n${/^\s*/.exec(line)?.[0] ?? ""}`);
  }
}
