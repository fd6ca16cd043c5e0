// What a session's updates fold into: turns, and the items of each in the order they began.

import type { ToolCall } from "./tool.js";
import type { Usage } from "./usage.js";
import type { ContentBlock, PlanEntry, TurnId } from "./wire.js";

interface Changing {
  /** Unique within the session and lasting: for lists that are drawn again. */
  readonly key: string;
  /** Grows with every change, so that a view can tell what to draw again. */
  version: number;
}

export interface Image {
  mimeType: string;
  data: string;
}

export interface Message extends Changing {
  kind: "message";
  role: "user" | "agent";
  text: string;
  images: Image[];
  /** Files and links that are part of the message. */
  links: { uri: string; name: string }[];
  messageId?: string;
  at?: number;
}

export interface Thought extends Changing {
  kind: "thought";
  text: string;
  startedAt?: number;
  /** When its last piece came, or what followed it began. */
  endedAt?: number;
}

export interface ToolItem extends Changing {
  kind: "tool";
  tool: ToolCall;
}

export interface PlanItem extends Changing {
  kind: "plan";
  entries: PlanEntry[];
}

/** Something that happened to the session and that nobody said. */
export interface Notice extends Changing {
  kind: "notice";
  text: string;
  at?: number;
}

export type Item = Message | Thought | ToolItem | PlanItem | Notice;

/**
 * `waiting`: to be sent once the connection is back. `sending`: on its way, not yet acknowledged. `undelivered`: the gateway
 * never had it, so it can be sent again. The rest is the gateway's own word.
 */
export type TurnStatus = "waiting" | "sending" | "queued" | "running" | "finished" | "cancelled" | "interrupted" | "undelivered";

export interface Turn extends Changing {
  /** The gateway's name for it, once known. */
  id?: TurnId;
  status: TurnStatus;
  /** This client sent the prompt. */
  own: boolean;
  items: Item[];
  /** How many turns run before this one. */
  ahead?: number;
  stopReason?: string;
  error?: { message: string; code?: string };
  usage?: Usage;
  startedAt?: number;
  endedAt?: number;
}

export function isOver(turn: Turn): boolean {
  return turn.status === "finished" || turn.status === "cancelled" || turn.status === "interrupted" || turn.status === "undelivered";
}

export function promptOf(turn: Turn): Message | undefined {
  const first = turn.items[0];
  return first?.kind === "message" && first.role === "user" ? first : undefined;
}

/** Adds a content block to a message; what cannot be shown is named. */
export function addBlock(message: Message, block: ContentBlock): void {
  switch (block.type) {
    case "text":
      message.text += block.text;
      break;
    case "image":
      message.images.push({ mimeType: block.mimeType, data: block.data });
      break;
    case "resource_link":
      message.links.push({ uri: block.uri, name: block.name });
      break;
    case "resource":
      message.links.push({ uri: block.resource.uri, name: block.resource.uri });
      break;
    case "audio":
      message.links.push({ uri: "", name: `audio (${block.mimeType})` });
      break;
  }
}
