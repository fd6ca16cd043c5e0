// A session as a file: everything it holds, read anew from its beginning.

import type { Item, Session, SessionSummary } from "@gembridge/client";
import { clientOf } from "../gateway.js";

export type Format = "markdown" | "json";

export async function exportSession(summary: SessionSummary, format: Format): Promise<void> {
  const client = clientOf();
  try {
    await client.connect();
    const session = await client.attach(summary.sessionId);
    const name = (summary.title ?? summary.sessionId).replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 60) || "session";
    if (format === "json") save(`${name}.json`, "application/json", asJson(session, summary));
    else save(`${name}.md`, "text/markdown", asMarkdown(session, summary));
  } finally {
    client.close();
  }
}

function save(name: string, type: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function asJson(session: Session, summary: SessionSummary): string {
  const turns = session.turns.map(({ key: _, version: __, own: ___, items, ...turn }) => ({
    ...turn,
    items: items.map(({ key: _, version: __, ...item }) => item),
  }));
  return `${JSON.stringify({ ...summary, turns }, null, 2)}\n`;
}

function asMarkdown(session: Session, { title, agent, model, createdAt }: SessionSummary): string {
  const head = [`# ${title ?? "Session"}`, `${agent}${model ? ` · ${model}` : ""} · ${createdAt}`];
  const body = session.turns.flatMap((turn) => {
    const parts = turn.items.map(itemAsMarkdown);
    if (turn.status === "cancelled") parts.push("*Stopped.*");
    if (turn.status === "interrupted") parts.push(`*Interrupted: ${turn.error?.message ?? "the agent ended"}.*`);
    return parts;
  });
  return `${[...head, ...body].filter((part) => part !== "").join("\n\n")}\n`;
}

function itemAsMarkdown(item: Item): string {
  switch (item.kind) {
    case "message": {
      const attached = item.images.map((image) => `*[image, ${image.mimeType}]*`);
      return [item.role === "user" ? "## Prompt" : "## Answer", item.text, ...attached].filter(Boolean).join("\n\n");
    }
    case "thought":
      return `<details><summary>Thought</summary>\n\n${item.text}\n\n</details>`;
    case "plan":
      return item.entries.map((entry) => `- [${entry.status === "completed" ? "x" : " "}] ${entry.content}`).join("\n");
    case "notice":
      return `*${item.text}*`;
    case "tool": {
      const { tool } = item;
      const diffs = tool.diffs.map((diff) => `${diff.path}\n\n${fenced(diff.newText)}`);
      return [`**${tool.kind}** ${tool.title} (${tool.status})`, ...diffs, tool.output ? fenced(tool.output) : ""].filter(Boolean).join("\n\n");
    }
  }
}

/** A fence that is longer than any in the text. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([marks]) => marks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}
