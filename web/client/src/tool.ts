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

export type Teller = "agent" | "gateway";

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
  /** Who has told of the call: a client's tool is told of by both. */
  toldBy: Teller | "both";
  /** Unix milliseconds. */
  startedAt?: number;
  endedAt?: number;
}

export function newToolCall(id: string, toldBy: Teller): ToolCall {
  return {
    id,
    title: "",
    kind: "other",
    status: "pending",
    diffs: [],
    locations: [],
    images: [],
    clientTool: false,
    toldBy,
  };
}

export function isFinal(status: ToolStatus): boolean {
  return status === "completed" || status === "failed";
}

/** Takes over every member that `update` names. */
export function mergeTool(tool: ToolCall, update: WireToolCall, at: number | undefined, teller: Teller = "agent"): void {
  // Of a call that both tell of, the gateway knows the tool's own name, and the agent may be the last to hear how it ended.
  const isRepeated = tool.toldBy === "both" && teller === "agent";
  if (update.title != null && !(isRepeated && tool.clientTool)) tool.title = update.title;
  if (update.name != null) tool.name = update.name;
  if (update.kind != null) tool.kind = update.kind;
  if (update.status != null && !(isRepeated && isFinal(tool.status))) tool.status = update.status;
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

/** Whether an update under another id tells of the same call of a client's tool as `tool` does. */
export function isTwin(tool: ToolCall, update: WireToolCall, teller: Teller): boolean {
  if (tool.toldBy === "both" || tool.toldBy === teller || isFinal(tool.status)) return false;
  const [own, spelt] = teller === "gateway" ? [update.title, [tool.name, tool.title]] : [tool.title, [update.name, update.title]];
  if (own == null || own === "" || !spelt.some((text) => text != null && names(text, own))) return false;
  const inputs = [tool.input, update.rawInput];
  return inputs.some(isNothing) || written(inputs[0]) === written(inputs[1]);
}

/** `get_weather (host-tools MCP Server)`, `mcp__host-tools__get_weather` and the like name `get_weather`. */
function names(text: string, tool: string): boolean {
  const at = text.indexOf(tool);
  if (at < 0) return false;
  const [before, after] = [text[at - 1], text[at + tool.length]];
  return (before === undefined || /[^A-Za-z0-9]/.test(before)) && (after === undefined || /[^A-Za-z0-9_-]/.test(after));
}

function isNothing(input: Json | undefined): boolean {
  return input == null || (typeof input === "object" && Object.keys(input).length === 0);
}

/** With its members in one order, whoever wrote it. */
function written(input: Json | undefined): string {
  return JSON.stringify(input, (_, value: unknown) =>
    value !== null && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
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
