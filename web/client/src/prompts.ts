// The prompts that somebody waits for. A turn's end settles its prompt, whichever connection it is told over.

import { TurnInterrupted } from "./errors.js";
import { isOver, type Turn } from "./transcript.js";
import type { Usage } from "./usage.js";
import type { TurnId } from "./wire.js";

/** How a prompt of ours ended. */
export interface TurnResult {
  turn?: TurnId;
  outcome: "finished" | "cancelled";
  stopReason?: string;
  usage?: Usage;
}

interface Waiting {
  resolve: (result: TurnResult) => void;
  reject: (error: Error) => void;
}

export class Prompts {
  readonly #waiting = new Map<Turn, Waiting>();

  wait(turn: Turn): Promise<TurnResult> {
    return new Promise((resolve, reject) => this.#waiting.set(turn, { resolve, reject }));
  }

  /** Tells whoever waits how those turns ended that are over. */
  settle(turns: Iterable<Turn> = this.#waiting.keys()): void {
    for (const turn of [...turns]) {
      const waiting = this.#waiting.get(turn);
      if (!waiting || !isOver(turn)) continue;
      this.#waiting.delete(turn);
      if (turn.status === "finished" || turn.status === "cancelled") waiting.resolve(resultOf(turn, turn.status));
      else waiting.reject(new TurnInterrupted(turn.error?.message ?? "the turn was interrupted", turn.error?.code));
    }
  }

  reject(turn: Turn, error: Error): void {
    this.#waiting.get(turn)?.reject(error);
    this.#waiting.delete(turn);
  }

  rejectAll(error: Error): void {
    for (const turn of [...this.#waiting.keys()]) this.reject(turn, error);
  }
}

function resultOf(turn: Turn, outcome: "finished" | "cancelled"): TurnResult {
  return {
    ...(turn.id !== undefined && { turn: turn.id }),
    outcome,
    ...(turn.stopReason !== undefined && { stopReason: turn.stopReason }),
    ...(turn.usage && { usage: turn.usage }),
  };
}
