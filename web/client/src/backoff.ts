// How long to wait before the next try: twice as long each time, at random below that, so that many clients spread out.

export interface BackoffOptions {
  firstMs: number;
  maxMs: number;
  /** A number in [0, 1). */
  random: () => number;
}

export const BACKOFF: BackoffOptions = { firstMs: 250, maxMs: 15_000, random: Math.random };

/** The closed connection's code can ask for patience. */
const AT_LEAST_MS: ReadonlyMap<number, number> = new Map([
  [1001, 500],
  [4009, 2_000],
]);

/** `attempt` counts from 1. */
export function delay(attempt: number, code: number | undefined, { firstMs, maxMs, random }: BackoffOptions): number {
  const ceiling = Math.min(maxMs, firstMs * 2 ** Math.min(attempt - 1, 16));
  const atLeast = AT_LEAST_MS.get(code ?? 0) ?? 0;
  // Never at once: a gateway that is gone would be asked in a tight loop.
  return Math.round(Math.max(atLeast, ceiling / 4 + random() * ceiling * 0.75));
}
