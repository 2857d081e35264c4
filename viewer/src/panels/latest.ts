// SPDX-License-Identifier: MIT
// latest.ts: questions of which only the newest one's answer counts. What was shown stays until then, so that
// nothing flickers while the user moves on faster than answers come.

export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export class Latest {
  private newest = 0;
  private running = false;
  private waiting: (() => void) | null = null;

  // oneByOne: what takes long is not asked again before the last answer is there, however fast the questions change.
  constructor(
    private readonly busy: HTMLElement,
    private readonly oneByOne = false,
  ) {}

  // The answer of a question asked before is passed over, also when it fails.
  async ask<T>(question: () => Promise<T>, show: (answer: T) => void, fail: (why: string) => void): Promise<void> {
    const number = ++this.newest;
    this.busy.setAttribute("aria-busy", "true");
    if (this.oneByOne && this.running) {
      this.waiting = () => void this.ask(question, show, fail);
      return;
    }
    this.running = true;
    try {
      const answer = await question();
      if (number === this.newest) show(answer);
    } catch (error) {
      if (number === this.newest) fail(reason(error));
    } finally {
      this.running = false;
      if (number === this.newest) this.busy.removeAttribute("aria-busy");
      this.next();
    }
  }

  private next(): void {
    const { waiting } = this;
    this.waiting = null;
    waiting?.();
  }

  // What is under way is of no interest any more.
  forget(): void {
    this.newest++;
    this.waiting = null;
    this.busy.removeAttribute("aria-busy");
  }
}

// Calls fn once, when nobody has asked for it during `ms`.
export function debounce(fn: () => void, ms: number): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(fn, ms);
  };
}

// Calls fn at most once in `ms`, however often it is asked for: for what changes all the time.
export function atMostEach(ms: number, fn: () => void): () => void {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      fn();
    }, ms);
  };
}
