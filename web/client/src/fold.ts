// How one update changes a session, and the event that it is to those who listen.

import type { NamedEvent } from "./events.js";
import { samePrompt, type Session } from "./session.js";
import { mergeTool } from "./tool.js";
import { addBlock, promptOf, type Message, type Turn } from "./transcript.js";
import { readUsage, type Usage } from "./usage.js";
import type { CommandInfo, ConfigOption, ContentBlock, GatewayMeta, PlanEntry, SessionUpdate, TurnId, WireToolCall } from "./wire.js";

/** What every event of an entry says about it. */
interface Base {
  sessionId: string;
  replayed: boolean;
  seq?: number;
  at?: number;
  turn?: TurnId;
}

/** Takes one `session/update` in; undefined when there is nothing to tell. */
export function applyUpdate(session: Session, update: SessionUpdate, meta: GatewayMeta): NamedEvent | undefined {
  const base = baseOf(session, meta);
  switch (update.sessionUpdate) {
    case "user_message_chunk":
      return userChunk(session, update.content as ContentBlock, meta, base);
    case "agent_message_chunk":
      return agentChunk(session, update, meta, base);
    case "agent_thought_chunk":
      return thoughtChunk(session, update.content as ContentBlock, meta, base);
    case "tool_call":
    case "tool_call_update":
      return toolUpdate(session, update as unknown as WireToolCall, meta, base);
    case "plan":
      return plan(session, update["entries"] as PlanEntry[], meta, base);
    case "usage_update":
      return takeUsage(session, readUsage(update), base);
    default:
      settings(session, update);
      return undefined;
  }
}

function baseOf(session: Session, meta: GatewayMeta): Base {
  const base: Base = { sessionId: session.id, replayed: session.sync === "replaying" };
  if (meta.seq !== undefined) base.seq = meta.seq;
  if (meta.at !== undefined) base.at = meta.at;
  if (meta.turn != null) base.turn = meta.turn;
  return base;
}

function userChunk(session: Session, block: ContentBlock, meta: GatewayMeta, base: Base): NamedEvent | undefined {
  if (meta.turn != null && !session.known(meta.turn)) session.claimOwn(meta.turn, (turn) => samePrompt(turn, block));
  const turn = session.turnOf(meta.turn);
  // One's own prompt is shown since it was sent.
  if (turn.own) return undefined;
  const message = promptOf(turn) ?? session.addMessage(turn, "user", { at: meta.at });
  addBlock(message, block);
  session.touch(turn, message);
  return block.type === "text" ? { name: "text_delta", event: { ...base, role: "user", text: block.text } } : undefined;
}

function agentChunk(session: Session, update: SessionUpdate, meta: GatewayMeta, base: Base): NamedEvent | undefined {
  const turn = session.turnOf(meta.turn);
  const block = update.content as ContentBlock;
  const usage = readUsage((update["_meta"] as { usage?: unknown } | undefined)?.usage);
  if (usage && block.type === "text" && block.text === "") return takeUsage(session, usage, base);
  const messageId = typeof update["messageId"] === "string" ? update["messageId"] : undefined;
  const message = openMessage(turn, messageId) ?? beginMessage(session, turn, meta.at, messageId);
  addBlock(message, block);
  session.touch(turn, message);
  return block.type === "text" ? { name: "text_delta", event: { ...base, role: "agent", text: block.text } } : undefined;
}

/** The message that a chunk goes on with: the last item, unless the agent says that it is another one. */
function openMessage(turn: Turn, messageId: string | undefined): Message | undefined {
  const last = turn.items.at(-1);
  if (last?.kind !== "message" || last.role !== "agent") return undefined;
  return messageId === undefined || last.messageId === undefined || last.messageId === messageId ? last : undefined;
}

function beginMessage(session: Session, turn: Turn, at: number | undefined, messageId: string | undefined): Message {
  endThought(session, turn, at);
  return session.addMessage(turn, "agent", { at, messageId });
}

function thoughtChunk(session: Session, block: ContentBlock, meta: GatewayMeta, base: Base): NamedEvent | undefined {
  if (block.type !== "text") return undefined;
  const turn = session.turnOf(meta.turn);
  const last = turn.items.at(-1);
  const thought = last?.kind === "thought" ? last : session.addItem<"thought">(turn, { kind: "thought", text: "" });
  thought.text += block.text;
  if (meta.at !== undefined) {
    thought.startedAt ??= meta.at;
    thought.endedAt = meta.at;
  }
  session.touch(turn, thought);
  return { name: "thought_delta", event: { ...base, text: block.text } };
}

/** A thought lasts until something else begins. */
function endThought(session: Session, turn: Turn, at: number | undefined): void {
  const last = turn.items.at(-1);
  if (last?.kind !== "thought" || at === undefined) return;
  last.endedAt = at;
  session.touch(turn, last);
}

function toolUpdate(session: Session, update: WireToolCall, meta: GatewayMeta, base: Base): NamedEvent {
  const teller = meta.clientTool ? "gateway" : "agent";
  session.joinTool(update, meta.turn, teller);
  const { turn, item } = session.tool(
    update.toolCallId,
    () => {
      const home = session.turnOf(meta.turn);
      endThought(session, home, meta.at);
      return home;
    },
    teller,
  );
  // The mark of a client's tool stands beside the update, where the gateway writes what is its own.
  if (meta.clientTool) item.tool.clientTool = true;
  mergeTool(item.tool, update, meta.at, teller);
  session.touch(turn, item);
  return { name: "tool_update", event: { ...base, tool: item.tool } };
}

function plan(session: Session, entries: PlanEntry[], meta: GatewayMeta, base: Base): NamedEvent {
  const turn = session.turnOf(meta.turn);
  const shown = turn.items.findLast((item) => item.kind === "plan");
  if (!shown) endThought(session, turn, meta.at);
  const item = shown ?? session.addItem<"plan">(turn, { kind: "plan", entries });
  item.entries = entries;
  session.plan = entries;
  session.touch(turn, item);
  return { name: "plan_update", event: { ...base, entries } };
}

function takeUsage(session: Session, usage: Usage | undefined, base: Base): NamedEvent | undefined {
  if (!usage) return undefined;
  session.usage = { ...session.usage, ...usage };
  session.changed();
  return { name: "usage", event: { ...base, usage } };
}

/** Updates that change what can be chosen, or how the session is called. Unknown kinds change nothing. */
function settings(session: Session, update: SessionUpdate): void {
  switch (update.sessionUpdate) {
    case "available_commands_update":
      session.commands = update["availableCommands"] as CommandInfo[];
      break;
    case "current_mode_update":
      session.modes = { ...session.modes, current: update["currentModeId"] as string };
      break;
    case "current_model_update":
      session.models = { ...session.models, current: (update["currentModelId"] ?? update["modelId"]) as string };
      break;
    case "config_option_update":
      session.configOptions = update["configOptions"] as ConfigOption[];
      break;
    case "session_info_update":
      if (update["title"] !== undefined) session.title = update["title"] as string | null;
      break;
    case "notice":
      session.addItem<"notice">(session.turnOf(undefined), { kind: "notice", text: String(update["message"] ?? update["text"] ?? "") });
      break;
    default:
      return;
  }
  session.changed();
}

/** The tokens of a turn so far. */
export function applyUsage(session: Session, params: GatewayMeta & { usage?: unknown }): NamedEvent | undefined {
  if (!session.advance(params.seq)) return undefined;
  return takeUsage(session, readUsage(params.usage), baseOf(session, params));
}

export interface TurnEndedParams extends GatewayMeta {
  outcome: "finished" | "cancelled" | "interrupted";
  stopReason?: string | null;
  usage?: unknown;
  error?: { message: string; code?: string } | null;
}

export function applyTurnStarted(session: Session, params: GatewayMeta & { byYou?: boolean }): NamedEvent | undefined {
  if (!session.advance(params.seq) || params.turn == null) return undefined;
  const byYou = params.byYou === true;
  if (byYou && !session.known(params.turn)) session.claimOwn(params.turn);
  const turn = session.turnOf(params.turn);
  if (turn.status === "running") return undefined;
  session.start(turn, params.at);
  return { name: "turn_started", event: { ...baseOf(session, params), byYou: byYou || turn.own } };
}

export function applyTurnEnded(session: Session, params: TurnEndedParams): NamedEvent | undefined {
  if (!session.advance(params.seq) || params.turn == null) return undefined;
  const turn = session.turnOf(params.turn);
  if (turn.endedAt !== undefined) return undefined;
  endThought(session, turn, turn.items.at(-1)?.kind === "thought" ? params.at : undefined);
  turn.status = params.outcome;
  turn.endedAt = params.at ?? Date.now();
  const usage = readUsage(params.usage);
  if (usage) {
    turn.usage = usage;
    session.usage = { ...session.usage, ...usage };
  }
  if (params.stopReason != null) turn.stopReason = params.stopReason;
  if (params.error != null) turn.error = params.error;
  session.touch(turn);
  const event = {
    ...baseOf(session, params),
    outcome: params.outcome,
    ...(params.stopReason != null && { stopReason: params.stopReason }),
    ...(usage && { usage }),
    ...(params.error != null && { error: params.error }),
  };
  return { name: "turn_ended", event };
}

export function applyAgentReplaced(session: Session, params: GatewayMeta & { reason?: string }): void {
  if (params.seq !== undefined && params.seq <= session.last) return;
  session.advance(params.seq);
  const text = `the agent was replaced, and hears what came before with the next prompt${params.reason ? `: ${params.reason}` : ""}`;
  const notice = session.addItem<"notice">(session.turnOf(params.turn), { kind: "notice", text });
  if (params.at !== undefined) notice.at = params.at;
}
