// Tool calls, folded from the updates that name only what changed.

import { parseTitle } from "./title.js";
import type { Json, Location, ToolContent, ToolKind, ToolStatus, WireToolCall } from "./wire.js";

/** One file as a tool call changed it, or wants to. */
export interface Diff {
  path: string;
  /** Absent for a file that did not exist before. */
  oldText?: string;
  newText: string;
}

export interface ToolCall {
  id: string;
  title: string;
  /** The tool's programmatic name, where the agent tells it. */
  name?: string;
  /** What the call is for, parsed out of the title or the content. */
  description?: string;
  /** The folder the call works in, parsed likewise. */
  workingDir?: string;
  kind: ToolKind;
  status: ToolStatus;
  input?: Json;
  /** What the tool said, as text; the agent's structured output where there is no text. */
  output?: string;
  diffs: Diff[];
  locations: Location[];
  images: { mimeType: string; data: string }[];
  /** The tool belongs to the program that began the session, not to the agent. */
  clientTool: boolean;
  /** Unix milliseconds. */
  startedAt?: number;
  endedAt?: number;
}

export function newToolCall(id: string): ToolCall {
  return {
    id,
    title: "",
    kind: "other",
    status: "pending",
    diffs: [],
    locations: [],
    images: [],
    clientTool: false,
  };
}

export function isFinal(status: ToolStatus): boolean {
  return status === "completed" || status === "failed";
}

/** Takes over every member that `update` names. */
export function mergeTool(tool: ToolCall, update: WireToolCall, at: number | undefined): void {
  if (update.title != null) tool.title = update.title;
  if (update.name != null) tool.name = update.name;
  if (update.kind != null) tool.kind = update.kind;
  if (update.status != null) tool.status = update.status;
  if (update.locations != null) tool.locations = update.locations;
  if (update.rawInput !== undefined) tool.input = update.rawInput;
  if (update._meta?.gembridge?.clientTool) tool.clientTool = true;
  describe(tool, update);
  if (update.content != null) takeContent(tool, update.content);
  if (update.rawOutput != null && !tool.output) tool.output = asText(update.rawOutput);
  if (at !== undefined) {
    tool.startedAt ??= at;
    if (isFinal(tool.status)) tool.endedAt ??= at;
  }
}

function describe(tool: ToolCall, update: WireToolCall): void {
  // The text of a finished call is its output, whose parentheses are its own.
  const text = isFinal(tool.status) ? undefined : firstText(update.content ?? []);
  const parsed = parseTitle(text, update.title ?? undefined);
  if (parsed.description !== undefined) tool.description = parsed.description;
  if (parsed.workingDir !== undefined) tool.workingDir = parsed.workingDir;
}

function takeContent(tool: ToolCall, content: ToolContent[]): void {
  const texts: string[] = [];
  tool.diffs = [];
  tool.images = [];
  for (const part of content) {
    if (part.type === "diff") {
      const diff: Diff = { path: part.path, newText: part.newText };
      if (part.oldText != null) diff.oldText = part.oldText;
      tool.diffs.push(diff);
    } else if (part.type === "content" && part.content.type === "text") {
      texts.push(part.content.text);
    } else if (part.type === "content" && part.content.type === "image") {
      tool.images.push({ mimeType: part.content.mimeType, data: part.content.data });
    }
  }
  if (texts.length > 0) tool.output = texts.join("\n");
  else delete tool.output;
}

function firstText(content: ToolContent[]): string | undefined {
  for (const part of content) {
    if (part.type === "content" && part.content.type === "text") return part.content.text;
  }
  return undefined;
}

function asText(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
