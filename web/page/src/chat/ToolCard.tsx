// A tool call: one line that says what it is and how it goes; opened, what went in and what came out.

import { commandOf, isFinal, type Json, type ToolCall } from "@gembridge/client";
import { useState } from "preact/hooks";
import { current } from "../gateway.js";
import { Icon, lookOf } from "../icons.js";
import { duration, unmasked, within } from "../words.js";
import { DiffView } from "./DiffView.js";
import { Output } from "./Output.js";

type Shown = "pending" | "running" | "done" | "failed" | "stopped";

const STATUS: Record<Shown, string> = {
  pending: "waiting",
  running: "running",
  done: "done",
  failed: "failed",
  stopped: "stopped",
};

export function ToolCard({ tool, over }: { tool: ToolCall; over: boolean }) {
  const [open, setOpen] = useState(false);
  const look = lookOf(tool.kind);
  const shown = shownOf(tool, over);
  const title = headline(tool);
  const verb = tool.clientTool ? "Client tool" : look.verb;
  const place = tool.locations[0];
  const path = place && within(tool.workingDir ?? current.value?.workspace, place.path);
  const took = tool.startedAt !== undefined && tool.endedAt !== undefined ? tool.endedAt - tool.startedAt : undefined;
  return (
    <details class={`tool ${shown}`} onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>
        <Icon name={look.icon} />
        <span class="what">
          {!begins(title, verb) && <span class="verb">{verb} </span>}
          <span class={tool.kind === "execute" ? "title command" : "title"}>{unmasked(title)}</span>
          {tool.description !== undefined && <span class="about">{unmasked(tool.description)}</span>}
          {place && path !== undefined && (!title.includes(path) || place.line != null) && (
            <span class="about">
              {title.includes(path) ? "line " : `${unmasked(shortPath(path))}${place.line != null ? ":" : ""}`}
              {place.line}
            </span>
          )}
        </span>
        <Counts tool={tool} />
        {took !== undefined && <span class="took">{duration(took)}</span>}
        <span class={`status ${shown}`}>{STATUS[shown]}</span>
        <span class="turner">
          <Icon name="chevron" size={14} />
        </span>
      </summary>
      {open && <Inside tool={tool} />}
    </details>
  );
}

function Inside({ tool }: { tool: ToolCall }) {
  const command = commandIn(tool);
  return (
    <div class="inside">
      {tool.workingDir !== undefined && (
        <p class="hint">
          in <code>{unmasked(tool.workingDir)}</code>
        </p>
      )}
      {command !== undefined ? (
        <Output text={command} label="Command" />
      ) : (
        tool.input !== undefined && tool.diffs.length === 0 && <Output text={written(tool.input)} label="Input" />
      )}
      {tool.diffs.map((diff) => (
        <DiffView diff={diff} />
      ))}
      {tool.images.map((image) => (
        <img src={`data:${image.mimeType};base64,${image.data}`} alt="An image that the tool returned" />
      ))}
      {tool.output !== undefined && tool.output !== "" && (
        <>
          <p class="hint">Output</p>
          <Output text={tool.output} label="Output" />
        </>
      )}
      {tool.locations.length > 1 && (
        <ul class="places">
          {tool.locations.map(({ path, line }) => (
            <li>
              <code>
                {unmasked(path)}
                {line != null && `:${line}`}
              </code>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Counts({ tool }: { tool: ToolCall }) {
  if (tool.diffs.length === 0) return null;
  const files = tool.diffs.length;
  return <span class="took">{files === 1 ? "1 file" : `${files} files`}</span>;
}

/** Whether the agent's own title says the verb already. */
function begins(title: string, verb: string): boolean {
  return title.toLowerCase().startsWith(`${verb.toLowerCase()} `);
}

/** A call that never ended when its turn did will not end any more. */
function shownOf(tool: ToolCall, over: boolean): Shown {
  if (tool.status === "completed") return "done";
  if (tool.status === "failed") return "failed";
  if (over && !isFinal(tool.status)) return "stopped";
  return tool.status === "in_progress" ? "running" : "pending";
}

export function headline(tool: ToolCall): string {
  return commandOf(tool.title || tool.name || tool.id);
}

/** The exact command, where the call is one. */
export function commandIn(tool: ToolCall): string | undefined {
  const { input } = tool;
  if (typeof input === "object" && input !== null && !Array.isArray(input)) {
    const given = input["command"] ?? input["cmd"];
    if (typeof given === "string") return given;
    if (Array.isArray(given)) return given.map(String).join(" ");
  }
  return tool.kind === "execute" ? headline(tool) : undefined;
}

export function written(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

function shortPath(path: string): string {
  const parts = path.split("/");
  return parts.length <= 3 ? path : `…/${parts.slice(-2).join("/")}`;
}
