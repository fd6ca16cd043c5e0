// What the gateway says, brought to where it belongs.

import type { Directory } from "./directory.js";
import type { NamedEvent } from "./events.js";
import { applyAgentReplaced, applyTurnEnded, applyTurnStarted, applyUpdate, applyUsage, type TurnEndedParams } from "./fold.js";
import type { Prompts } from "./prompts.js";
import type { Requests, ResolvedParams } from "./requests.js";
import type { Session } from "./session.js";
import { isOver } from "./transcript.js";
import type { AskId, GatewayMeta, Meta, SessionSummary, SessionUpdate, TurnId } from "./wire.js";

/** What notifications reach into. */
export interface Receiver {
  readonly prompts: Prompts;
  readonly requests: Requests;
  readonly directory: Directory;
  session(id: string): Session | undefined;
  emit(event: NamedEvent | undefined): void;
  changed(session: Session): void;
  /** A replay is over and the session is live. */
  caughtUp(session: Session, end: ReplayEnded): void;
}

export interface ReplayEnded {
  sessionId: string;
  last?: number;
  turn?: { state: "idle" | "opening" | "running"; id?: TurnId };
  queued?: number;
  openRequests?: AskId[];
  truncated?: boolean;
}

type InSession = { sessionId: string };

export function notified(to: Receiver, method: string, params: unknown): void {
  if (method === "_gembridge/session_changed") return to.directory.changed((params as { session: SessionSummary }).session);
  if (method === "_gembridge/session_removed") return to.directory.removed((params as InSession).sessionId);
  const session = to.session((params as InSession | undefined)?.sessionId ?? "");
  if (!session) return;
  inSession(to, session, method, params);
  to.changed(session);
}

function inSession(to: Receiver, session: Session, method: string, params: unknown): void {
  // Until a replay begins, what comes is the rest of an attachment that ended; all of it will be told again.
  if (session.sync === "attaching" && method !== "_gembridge/replay_started") return;
  switch (method) {
    case "session/update":
      return update(to, session, params as { update: SessionUpdate; _meta?: Meta });
    case "_gembridge/turn_started":
      return to.emit(applyTurnStarted(session, params as GatewayMeta & { byYou?: boolean }));
    case "_gembridge/turn_ended":
      to.emit(applyTurnEnded(session, params as TurnEndedParams));
      return to.prompts.settle(session.turns);
    case "_gembridge/usage":
      return to.emit(applyUsage(session, params as GatewayMeta & { usage?: unknown }));
    case "_gembridge/queued":
      return queued(session, params as { turn: TurnId; ahead: number });
    case "_gembridge/agent_replaced":
      return applyAgentReplaced(session, params as GatewayMeta & { reason?: string });
    case "_gembridge/request_resolved":
      return to.emit(to.requests.resolved(session, params as ResolvedParams));
    case "_gembridge/answer_refused":
      return refused(to, session, params as { ask: AskId; reason: string });
    case "_gembridge/replay_started":
      return replayStarted(to, session, params as { from?: number; to?: number });
    case "_gembridge/replay_ended":
      return replayEnded(to, session, params as ReplayEnded);
  }
}

function update(to: Receiver, session: Session, { update, _meta }: { update: SessionUpdate; _meta?: Meta }): void {
  const meta = _meta?.gembridge ?? {};
  if (session.admit(meta)) to.emit(applyUpdate(session, update, meta));
}

function queued(session: Session, { turn: id, ahead }: { turn: TurnId; ahead: number }): void {
  const turn = session.known(id) ?? session.claimOwn(id) ?? session.turnOf(id);
  if (turn.status !== "queued") return;
  turn.ahead = ahead;
  session.touch(turn);
}

function refused(to: Receiver, session: Session, { ask, reason }: { ask: AskId; reason: string }): void {
  to.emit({ name: "error", event: { sessionId: session.id, code: "answer_refused", message: reason } });
  to.emit(to.requests.resolved(session, { sessionId: session.id, ask, by: "client" }));
}

function replayStarted(to: Receiver, session: Session, { from, to: last }: { from?: number; to?: number }): void {
  session.sync = "replaying";
  const range = { ...(from !== undefined && { from }), ...(last !== undefined && { to: last }) };
  to.emit({ name: "replay_started", event: { sessionId: session.id, resumed: session.resumed, ...range } });
}

function replayEnded(to: Receiver, session: Session, end: ReplayEnded): void {
  session.sync = "live";
  for (const event of to.requests.keepOnly(session, end.openRequests ?? [])) to.emit(event);
  session.giveUpUnacknowledged();
  endUntold(session, end);
  to.prompts.settle(session.turns);
  const event = {
    sessionId: session.id,
    openRequests: end.openRequests ?? [],
    truncated: end.truncated ?? false,
    ...(end.last !== undefined && { last: end.last }),
  };
  to.emit({ name: "replay_ended", event });
  to.caughtUp(session, end);
}

/** Turns that the gateway does not know as open any more are over, even if nothing told how they ended. */
function endUntold(session: Session, end: ReplayEnded): void {
  if (!end.turn || (end.turn.state !== "idle" && end.turn.id === undefined)) return;
  for (const turn of session.turns) {
    if (isOver(turn) || turn.id === undefined || turn.id === end.turn.id) continue;
    if (turn.status !== "running" && (end.queued ?? 0) > 0) continue;
    turn.status = "interrupted";
    session.touch(turn);
  }
  if (end.turn.id !== undefined && end.turn.state !== "idle") session.start(session.turnOf(end.turn.id), undefined);
}
