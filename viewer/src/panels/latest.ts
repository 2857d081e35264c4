// SPDX-License-Identifier: MIT
// latest.ts: requests of which only the newest answer counts. The previous content stays until then, so that nothing
// flickers while the user moves on faster than answers arrive.

export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export class Latest {
  private newest = 0;
  private running = false;
  private waiting: (() => void) | null = null;

  // oneByOne: slow requests wait for the previous answer, however fast the questions change.
  constructor(
    private readonly busy: HTMLElement,
    private readonly oneByOne = false,
  ) {}

  // Drops the answer, or the failure, of an older question.
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

  // Drops the answers still to come.
  forget(): void {
    this.newest++;
    this.waiting = null;
    this.busy.removeAttribute("aria-busy");
  }
}

// Calls fn once there were no calls for `ms`.
export function debounce(fn: () => void, ms: number): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(fn, ms);
  };
}

// Calls fn at most once per `ms`, however often it is called: for what changes all the time.
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
