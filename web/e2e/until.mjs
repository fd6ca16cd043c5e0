// Looks again and again: for what sends no event, and for a page that is drawn when the machine has time for it.

import { setTimeout as pause } from "node:timers/promises";

/** A loaded machine is slow; a test that fails is rare. */
export const PATIENCE = 120_000;

const BETWEEN_MS = 40;

/** Waits until there is something, and gives it. */
export async function until(what, look, patience = PATIENCE) {
  const deadline = Date.now() + patience;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`${what} did not come; last seen: ${JSON.stringify(found)}`);
    await pause(BETWEEN_MS);
  }
}

/** Waits until the assertions of `check` hold; what they say last is what went wrong. */
export async function eventually(check, patience = PATIENCE) {
  const deadline = Date.now() + patience;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
    await pause(BETWEEN_MS);
  }
}
