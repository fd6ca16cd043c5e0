// What the agent asks and a person answers: permissions, and forms to fill in.

import type { ToolCall } from "./tool.js";
import type { AskId, Json, Outcome, PermissionOption } from "./wire.js";

interface Asked {
  /** The gateway's name for it, the same for every client. */
  readonly id: AskId;
  readonly sessionId: string;
  /** Unix milliseconds at which the gateway answers in nobody's name. */
  expiresAt?: number;
  at?: number;
  /** An answer of ours is on its way. */
  answered: boolean;
}

export interface PermissionAsk extends Asked {
  kind: "permission";
  tool: ToolCall;
  options: PermissionOption[];
}

export interface FormAsk extends Asked {
  kind: "form";
  message: string;
  /** A JSON schema of flat members. */
  schema: Json;
}

export type Ask = PermissionAsk | FormAsk;

/** An answer to a form. */
export type FormAnswer = { action: "accept"; content: { [member: string]: Json } } | { action: "decline" } | { action: "cancel" };

export type AskAnswer = Outcome | FormAnswer;

/** Who settled an ask. */
export type SettledBy = "you" | "client" | "policy" | "timeout" | "cancel";
