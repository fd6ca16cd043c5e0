export { AgentChatClient, type ClientOptions, type NewSession } from "./client.js";
export type { Window } from "./attach.js";
export type { Ask, AskAnswer, FormAnswer, FormAsk, PermissionAsk, SettledBy } from "./ask.js";
export { ConnectionLost, Refused, RequestFailed, TurnInterrupted } from "./errors.js";
export type { ClientEvents, Connection, EventName, Handler, TextDelta, TurnEnded } from "./events.js";
export type { Gateway } from "./link.js";
export type { TurnResult } from "./prompts.js";
export { Session, type Choices, type Sync } from "./session.js";
export type { SocketConstructor, SocketLike } from "./socket.js";
export { commandOf, parseTitle, type ParsedTitle } from "./title.js";
export { isFinal, type Diff, type ToolCall } from "./tool.js";
export { isOver, promptOf } from "./transcript.js";
export type { Image, Item, Message, Notice, PlanItem, Thought, ToolItem, Turn, TurnStatus } from "./transcript.js";
export type { Usage } from "./usage.js";
export type {
  AgentInfo,
  AskId,
  Choice,
  CommandInfo,
  ConfigOption,
  ContentBlock,
  Json,
  Location,
  Outcome,
  PermissionOption,
  PlanEntry,
  SessionSummary,
  ToolKind,
  ToolStatus,
  TurnId,
} from "./wire.js";
