// Looks again and again until there is something: for what sends no event.

import { setTimeout as pause } from "node:timers/promises";

/** A loaded machine is slow; a test that fails is rare. */
export const PATIENCE = 60_000;

export async function until(what, look, patience = PATIENCE) {
  const deadline = Date.now() + patience;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`${what} did not come`);
    await pause(25);
  }
}
