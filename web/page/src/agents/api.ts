// The sessions that agents of the gateway's machine keep themselves. For admin keys.

import { call } from "../admin/api.js";

export interface Name {
  agent: string;
  id: string;
}

export interface AgentSession extends Name {
  title: string | null;
  model: string | null;
  project: string | null;
  updated: number;
  turns: number;
  tokens: number;
}

export interface FoundSession extends Name {
  title: string | null;
  project: string | null;
  updated: number;
  snippet: string;
}

export type Block =
  | { type: "text"; text: string }
  | { type: "thinking"; thinking: string }
  | { type: "tool_use"; id: string; name: string; input: unknown }
  | { type: "tool_result"; tool_use_id: string; content: string | Block[]; is_error: boolean; exit_code?: number }
  | { type: "image"; source: { type: string; media_type?: string; data?: string } }
  /** Blocks of every other kind. */
  | { type: "audio" | "document" | "resource_link" | "diff" | "terminal" | "other"; [field: string]: unknown };

export interface Message {
  id: string;
  role: "user" | "assistant" | "system";
  content: string | Block[];
  timestamp: number;
}

export interface Page<Item> {
  items: Item[];
  next: number | undefined;
}

export interface Conversation extends Page<Message> {
  title: string | null;
  project: string | null;
  damaged: number;
}

export interface Found {
  sessions: FoundSession[];
  indexing?: { done: number; total: number };
}

const pathOf = ({ agent, id }: Name) => `admin/agent-sessions/${encodeURIComponent(agent)}/${encodeURIComponent(id)}`;

export async function list(from: number): Promise<Page<AgentSession>> {
  const { sessions, next } = await call<{ sessions: AgentSession[]; next?: number }>("GET", `admin/agent-sessions?from=${from}`);
  return { items: sessions, next };
}

export const search = (words: string) => call<Found>("GET", `admin/agent-sessions/search?q=${encodeURIComponent(words)}`);

export async function messages(name: Name, from: number): Promise<Conversation> {
  const { messages, next, title, project, damaged } = await call<Omit<Conversation, "items" | "next"> & { messages: Message[]; next?: number }>(
    "GET",
    `${pathOf(name)}?from=${from}`,
  );
  return { items: messages, next, title, project, damaged };
}

export const goOn = (name: Name) => call<{ sessionId: string; note: string | null }>("POST", `${pathOf(name)}/continue`);
