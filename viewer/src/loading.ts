// SPDX-License-Identifier: MIT
// loading.ts: the screen before there is a trace: the current stage and its progress.
import { count } from "./format";
import { element } from "./panels/dom";

export class Loading {
  private readonly stage = element("div", { role: "status" }, "Opening the trace");
  private readonly bar = element("progress", { "aria-label": "Progress", max: 1 });
  private readonly figures = element("div", { class: "muted" }, "\u00a0");
  readonly element = element("div", { class: "loading" }, this.stage, this.bar, this.figures);

  update(stage: string, done: number, all: number): void {
    if (stage) this.stage.textContent = stage;
    if (all > 0) this.bar.value = done / all;
    else this.bar.removeAttribute("value");
    this.figures.textContent = all > 0 ? `${Math.floor((100 * done) / all)} %` : done > 0 ? count(done) : "\u00a0";
  }

  fail(text: string): void {
    this.stage.textContent = text;
    this.stage.classList.add("error");
    this.bar.hidden = true;
  }

  recover(): void {
    this.stage.classList.remove("error");
    this.bar.hidden = false;
  }
}
