// SPDX-License-Identifier: MIT
// live.ts: asks the server what there is: while the trace is being loaded for how far that is, then for the next
// generation of it. A server that does not answer is asked again, and that is told.
import { Gone } from "./remote";
import type { Source, Status } from "./protocol";

const AGAIN_MS = 1500;

// A tab that nobody sees asks for nothing: a browser has few connections for one server, and each who waits for the
// next generation holds one.
const seen = (): Promise<void> =>
  new Promise((done) => {
    if (document.hidden) document.addEventListener("visibilitychange", () => done(), { once: true });
    else done();
  });

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

// Waits for the first generation, and tells how far loading is.
export async function firstGeneration(
  source: Source,
  told: (status: Status | null, error: string) => void,
): Promise<void> {
  let last = { generation: 0, stage: "", done: -1 };
  for (;;) {
    try {
      const status = await source.status(0);
      told(status, "");
      if (status.generation > 0) return;
      const isSame = status.stage === last.stage && status.done === last.done;
      last = status;
      await pause(isSame ? 200 : 60); // also where the server answers at once
    } catch (error) {
      told(null, messageOf(error));
      await pause(AGAIN_MS);
    }
  }
}

// Tells of each other generation from now on.
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
  if (error instanceof Gone) return `${error.message} Trying again; is kymo view still running?`;
  return error instanceof Error ? error.message : String(error);
}
