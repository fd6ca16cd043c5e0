// The events of a client, and the list of those who listen.

import type { Ask, SettledBy } from "./ask.js";
import type { ToolCall } from "./tool.js";
import type { Usage } from "./usage.js";
import type { AskId, Outcome, PlanEntry, TurnId } from "./wire.js";

interface InSession {
  sessionId: string;
}

/** Where in the session's log the event stands, and whether it was told again on attaching. */
interface Logged extends InSession {
  seq?: number;
  /** Unix milliseconds. */
  at?: number;
  turn?: TurnId;
  replayed: boolean;
}

export interface TextDelta extends Logged {
  /** `user` for prompts: other clients' at all times, one's own only when told again. */
  role: "user" | "agent";
  text: string;
}

export interface TurnEnded extends Logged {
  outcome: "finished" | "cancelled" | "interrupted";
  stopReason?: string;
  usage?: Usage;
  error?: { message: string; code?: string };
}

/**
 * `connecting` → `open`; `waiting` when lost and to be tried again; `closed` when asked to, or when trying again is of no use.
 */
export type Connection =
  | { state: "connecting"; attempt: number }
  | { state: "open"; connectionId?: string }
  | { state: "waiting"; attempt: number; retryAt: number; code?: number; reason?: string }
  | { state: "closed"; code?: number; reason?: string };

export interface ClientEvents {
  text_delta: TextDelta;
  thought_delta: Logged & { text: string };
  tool_update: Logged & { tool: ToolCall };
  plan_update: Logged & { entries: PlanEntry[] };
  permission_request: InSession & { ask: Ask };
  permission_resolved: InSession & { ask: AskId; toolCallId?: string; outcome?: Outcome; by: SettledBy };
  usage: Logged & { usage: Usage };
  turn_started: Logged & { byYou: boolean };
  turn_ended: TurnEnded;
  replay_started: InSession & { from?: number; to?: number; resumed: boolean };
  replay_ended: InSession & { last?: number; openRequests: AskId[]; truncated: boolean };
  connection: Connection;
  error: { message: string; code?: string; sessionId?: string };
}

export type EventName = keyof ClientEvents;
export type Handler<Name extends EventName> = (event: ClientEvents[Name]) => void;

/** One event with its name, as a fold hands it out. */
export type NamedEvent = { [Name in EventName]: { name: Name; event: ClientEvents[Name] } }[EventName];

/** Who listens to what. A handler that throws is reported and does not keep the others from hearing. */
export class Listeners {
  readonly #handlers = new Map<EventName, Set<(event: never) => void>>();

  on<Name extends EventName>(name: Name, handler: Handler<Name>): () => void {
    const handlers = this.#handlers.get(name) ?? new Set();
    this.#handlers.set(name, handlers);
    handlers.add(handler);
    return () => void handlers.delete(handler);
  }

  emit({ name, event }: NamedEvent): void {
    for (const handler of this.#handlers.get(name) ?? []) {
      try {
        handler(event as never);
      } catch (error) {
        console.error(`a handler of \`${name}\` failed:`, error);
      }
    }
  }
}
