// SPDX-License-Identifier: MIT
// same_name.ts: finds the next or previous event with exactly the same name. A search finds names that contain the
// text, so its matches are walked until a name is equal.
import type { EventRef, Source } from "../protocol";

const TRIES = 200;

export async function sameName(source: Source, of: EventRef, forward: boolean): Promise<EventRef | null> {
  const q = `name:${of.name}`;
  let found = await source.search(q, { near: of.ts, forward });
  for (let tries = 0; tries < TRIES && found.event; tries++) {
    if (found.event.name === of.name && found.event.id !== of.id) return found.event;
    const at = found.at + (forward ? 1 : -1);
    if (at < 0 || at >= found.count) return null;
    found = await source.search(q, { at });
  }
  return null;
}
