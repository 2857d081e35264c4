// SPDX-License-Identifier: MIT
// live.ts: polls the server: for the progress of loading, then for the next generation of the trace. Retries when the
// server does not answer, and reports that.
import { Gone } from "./remote";
import type { Source, Status } from "./protocol";

const AGAIN_MS = 1500;

// A hidden tab asks for nothing: a browser allows few connections to one server, and each page that waits for the next
// generation holds one.
const seen = (): Promise<void> =>
  new Promise((done) => {
    if (document.hidden) document.addEventListener("visibilitychange", () => done(), { once: true });
    else done();
  });

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

// Waits for the first generation and reports the progress of loading.
export async function firstGeneration(
  source: Source,
  report: (status: Status | null, error: string) => void,
): Promise<void> {
  let last = { generation: 0, stage: "", done: -1 };
  for (;;) {
    try {
      const status = await source.status(0);
      report(status, "");
      if (status.generation > 0) return;
      const isSame = status.stage === last.stage && status.done === last.done;
      last = status;
      await pause(isSame ? 200 : 60); // even if the server answers at once
    } catch (error) {
      report(null, messageOf(error));
      await pause(AGAIN_MS);
    }
  }
}

// Reports each new generation from now on.
export async function watch(
  source: Source,
  generation: () => number,
  changed: () => Promise<void>,
  trouble: (text: string) => void,
): Promise<void> {
  for (;;) {
    try {
      await seen();
      const asked = generation();
      const started = performance.now();
      const status = await source.status(asked);
      trouble("");
      if (status.generation !== asked) await changed();
      else if (performance.now() - started < 1000) await pause(status.live ? 500 : 5000);
    } catch (error) {
      trouble(messageOf(error));
      await pause(AGAIN_MS);
    }
  }
}

export function messageOf(error: unknown): string {
  if (error instanceof Gone) return `${error.message} Retrying; is kymo view still running?`;
  return error instanceof Error ? error.message : String(error);
}
