// The messages as they travel: ACP v1, and what the gateway adds in `_meta.gembridge` and `_gembridge/…`.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface TextBlock {
  type: "text";
  text: string;
}

export interface ImageBlock {
  type: "image";
  mimeType: string;
  data: string;
  uri?: string;
}

/** A piece of a prompt or an answer. Kinds that this package does not know keep their members. */
export type ContentBlock =
  | TextBlock
  | ImageBlock
  | { type: "audio"; mimeType: string; data: string }
  | { type: "resource_link"; uri: string; name: string; mimeType?: string }
  | { type: "resource"; resource: { uri: string; text?: string; blob?: string; mimeType?: string } };

export type ToolContent =
  | { type: "content"; content: ContentBlock }
  | { type: "diff"; path: string; oldText?: string | null; newText: string }
  | { type: "terminal"; terminalId: string };

export type ToolKind = "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "switch_mode" | "other";

export type ToolStatus = "pending" | "in_progress" | "completed" | "failed";

export interface Location {
  path: string;
  line?: number;
}

/** A tool call as announced, or what changed in it: an absent member says nothing. */
export interface WireToolCall {
  toolCallId: string;
  title?: string | null;
  name?: string | null;
  kind?: ToolKind | null;
  status?: ToolStatus | null;
  content?: ToolContent[] | null;
  locations?: Location[] | null;
  rawInput?: Json;
  rawOutput?: Json;
  _meta?: Meta | null;
}

export interface PlanEntry {
  content: string;
  priority: "high" | "medium" | "low";
  status: "pending" | "in_progress" | "completed";
}

export interface CommandInfo {
  name: string;
  description: string;
  input?: { hint?: string } | null;
}

export interface Choice {
  id: string;
  name: string;
  description?: string;
}

export interface PermissionOption {
  optionId: string;
  name: string;
  kind: "allow_once" | "allow_always" | "reject_once" | "reject_always";
}

export type Outcome = { outcome: "selected"; optionId: string } | { outcome: "cancelled" };

/** The gateway's names for a turn and for an ask, unique within their session. */
export type TurnId = number;
export type AskId = number;

/** What the gateway says about a message, beside it. */
export interface GatewayMeta {
  seq?: number;
  at?: number;
  /** Null and absent alike for what belongs to no turn. */
  turn?: TurnId | null;
  ask?: AskId;
  expiresAt?: number;
  clientTool?: boolean;
  agent?: string;
  mode?: "chat" | "agent";
  workspace?: string | null;
  ignored?: string[];
}

export interface Meta {
  gembridge?: GatewayMeta;
  [key: string]: unknown;
}

export interface SessionUpdate {
  sessionUpdate: string;
  content?: ContentBlock | ToolContent[];
  [key: string]: unknown;
}

/** A session as the gateway lists it. */
export interface SessionSummary {
  sessionId: string;
  title: string | null;
  agent: string;
  model: string | null;
  mode: string | null;
  createdAt: string;
  updatedAt: string;
  state: "idle" | "opening" | "running" | "waiting" | "stored";
  queued: number;
  followers: number;
  openRequests: number;
  origin?: string;
}

export interface AgentInfo {
  name: string;
  title: string;
  version: string | null;
  isDefault: boolean;
  isDemo: boolean;
  mode: "chat" | "agent";
  models: Choice[];
  modes: Choice[];
}

export interface ConfigOption {
  id: string;
  name: string;
  description?: string | null;
  category?: string | null;
  type: "select" | "boolean";
  currentValue: string | boolean;
  options?: { value: string; name: string; description?: string | null }[];
}

/** What `session/new`, `session/load` and an attach may tell about a session. */
export interface SessionSetup {
  sessionId?: string;
  modes?: { currentModeId: string; availableModes: Choice[] } | null;
  models?: { currentModelId: string; availableModels: { modelId: string; name: string; description?: string }[] } | null;
  configOptions?: ConfigOption[] | null;
  _meta?: Meta | null;
}

export interface RpcError {
  code: number;
  message: string;
  data?: { code?: string; retryAfterMs?: number; requestId?: string } | null;
}

/** Any JSON-RPC message. */
export interface RpcMessage {
  jsonrpc: "2.0";
  id?: number | string | null;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: RpcError;
}
