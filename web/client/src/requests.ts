// The agent's questions: kept across connections, answered once, closed when anybody has answered.

import type { Ask, AskAnswer, SettledBy } from "./ask.js";
import type { NamedEvent } from "./events.js";
import type { Rpc } from "./rpc.js";
import type { Session } from "./session.js";
import { mergeTool } from "./tool.js";
import type { AskId, Json, Meta, Outcome, PermissionOption, WireToolCall } from "./wire.js";

interface RequestParams {
  sessionId: string;
  toolCall?: WireToolCall;
  options?: PermissionOption[];
  message?: string;
  requestedSchema?: Json;
  _meta?: Meta;
}

export interface ResolvedParams {
  sessionId: string;
  ask: AskId;
  toolCallId?: string;
  outcome?: Outcome;
  by: SettledBy;
}

export class Requests {
  /** Under which id this connection asked, by ask. */
  readonly #ids = new Map<AskId, number | string>();
  /** Answers given while there was no connection. */
  readonly #kept = new Map<AskId, AskAnswer>();

  /** Ids belong to their connection. Open asks come again on the next one. */
  connectionLost(): void {
    this.#ids.clear();
  }

  /** A request of the gateway; the event when it was not asked before. */
  asked(session: Session, rpc: Rpc, id: number | string, params: RequestParams): NamedEvent | undefined {
    const meta = params._meta?.gembridge ?? {};
    const ask = meta.ask ?? Number(id);
    this.#ids.set(ask, id);
    const kept = this.#kept.get(ask);
    if (kept) {
      this.#respond(rpc, ask, kept);
      return undefined;
    }
    const again = session.asks.get(ask);
    const made = again ?? askOf(session, ask, params);
    made.answered = false;
    if (meta.expiresAt !== undefined) made.expiresAt = meta.expiresAt;
    if (meta.at !== undefined) made.at = meta.at;
    session.asks.set(ask, made);
    session.changed();
    return again ? undefined : { name: "permission_request", event: { sessionId: session.id, ask: made } };
  }

  answer(session: Session, rpc: Rpc | undefined, ask: AskId, answer: AskAnswer): void {
    const open = session.asks.get(ask);
    if (!open || open.answered) return;
    open.answered = true;
    session.changed();
    if (rpc && this.#ids.has(ask)) this.#respond(rpc, ask, answer);
    else this.#kept.set(ask, answer);
  }

  resolved(session: Session, params: ResolvedParams): NamedEvent | undefined {
    this.#forget(params.ask);
    const was = session.asks.get(params.ask);
    if (!session.asks.delete(params.ask)) return undefined;
    session.changed();
    const toolCallId = params.toolCallId ?? (was?.kind === "permission" ? was.tool.id : undefined);
    const event = {
      sessionId: session.id,
      ask: params.ask,
      by: params.by,
      ...(params.outcome && { outcome: params.outcome }),
      ...(toolCallId !== undefined && { toolCallId }),
    };
    return { name: "permission_resolved", event };
  }

  /** After a replay: what is not open any more was settled while we were away. */
  keepOnly(session: Session, open: AskId[]): NamedEvent[] {
    const gone = [...session.asks.keys()].filter((ask) => !open.includes(ask));
    return gone.flatMap((ask) => this.resolved(session, { sessionId: session.id, ask, by: "client" }) ?? []);
  }

  #respond(rpc: Rpc, ask: AskId, answer: AskAnswer): void {
    const id = this.#ids.get(ask);
    if (id === undefined) return;
    this.#forget(ask);
    rpc.respond(id, "outcome" in answer ? { outcome: answer } : answer);
  }

  #forget(ask: AskId): void {
    this.#ids.delete(ask);
    this.#kept.delete(ask);
  }
}

function askOf(session: Session, id: AskId, params: RequestParams): Ask {
  const base = { id, sessionId: session.id, answered: false };
  if (!params.toolCall) {
    return { ...base, kind: "form", message: params.message ?? "", schema: params.requestedSchema ?? {} };
  }
  const meta = params._meta?.gembridge ?? {};
  const { turn, item } = session.tool(params.toolCall.toolCallId, () => session.turnOf(meta.turn));
  mergeTool(item.tool, params.toolCall, meta.at);
  session.touch(turn, item);
  return { ...base, kind: "permission", tool: item.tool, options: params.options ?? [] };
}
