// A gateway that plays: serves the built page under its policy, and answers prompts by their first word as the demo agent does.

import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { MockGateway } from "../../client/build/test/gateway.js";

const DIST = fileURLToPath(new URL("../../dist", import.meta.url));
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
/** The page as it was built when this began. */
const FILES = new Map(
  readdirSync(DIST, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.startsWith("."))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => [file.slice(DIST.length), readFileSync(file)]),
);
export const KEY = "gbk_stage";

export const HOSTILE = `Hello <img src=x onerror="window.harmed=1"> <script>window.harmed=1</script>

<style>body{display:none}</style>
<svg onload="window.harmed=1"><a href="javascript:window.harmed=1">svg</a></svg>
<iframe src="javascript:parent.harmed=1"></iframe>
<form action="https://evil.example"><input name=a></form>

[click](javascript:window.harmed=1) [data](data:text/html,<script>1</script>) [own](/admin/keys) [good](https://example.com)

![track](https://evil.example/pixel.png) ![own](/favicon.svg)

\u202Ereversed\u202C

<div style="position:fixed;inset:0">cover</div>

\`\`\`html
<script>window.harmed=1</script>
\`\`\`
`;

const MARKDOWN = `## What changed

The parser now keeps **one** state instead of three, see [the guide](https://example.com/guide).

| Case | Before | After |
|---|---:|---:|
| empty line | 4 ms | 1 ms |
| long line | 120 ms | 9 ms |

1. Read the file once
2. Split it
   - at blank lines
   - at fences
3. Draw what changed

- [x] tests
- [ ] benchmarks

> A quotation of two
> lines.

\`\`\`rust
/// Splits text into blocks.
pub fn blocks(text: &str) -> impl Iterator<Item = &str> {
    text.split("\\n\\n").filter(|block| !block.is_empty()) // cheap
}
\`\`\`

Inline \`code\`, *emphasis* and ~~nothing~~.
`;

const OPTIONS = [
  { optionId: "proceed_always", name: "Allow always", kind: "allow_always" },
  { optionId: "proceed_once", name: "Allow", kind: "allow_once" },
  { optionId: "cancel", name: "Reject", kind: "reject_once" },
];

/** Words one after another, each a little later. */
async function say(turn, text, ms = 12) {
  for (const word of text.match(/\S+\s*|\s+/g) ?? []) {
    if (turn.cancelled) return;
    turn.text(word);
    if (ms > 0) await turn.pause(ms);
  }
}

const PLAYS = {
  async think(turn) {
    for (const word of "The bridge must hold both ends. ".repeat(6).split(" ")) {
      turn.thought(`${word} `);
      await turn.pause(20);
    }
    await say(turn, "A bridge needs two ends.");
  },
  async plan(turn) {
    const contents = ["Read the code", "Change the parser", "Run the tests"];
    for (let done = 0; done <= contents.length; done += 1) {
      const status = (at) => (at < done ? "completed" : at === done ? "in_progress" : "pending");
      turn.update({ sessionUpdate: "plan", entries: contents.map((content, at) => ({ content, priority: "medium", status: status(at) })) });
      await turn.pause(60);
    }
    await say(turn, "All of it is done.");
  },
  async edit(turn) {
    const oldText = Array.from({ length: 30 }, (_, n) => `line ${n + 1}`).join("\n");
    const newText = oldText.replace("line 7", "line seven").replace("line 20\n", "").concat("\nline 31");
    turn.update({
      sessionUpdate: "tool_call",
      toolCallId: `e${turn.id}`,
      title: "Writing to src/parser.rs",
      kind: "edit",
      status: "in_progress",
      locations: [{ path: "/home/me/project/src/parser.rs", line: 7 }],
    });
    await turn.pause(80);
    turn.update({
      sessionUpdate: "tool_call_update",
      toolCallId: `e${turn.id}`,
      status: "completed",
      content: [{ type: "diff", path: "src/parser.rs", oldText, newText }],
    });
    await say(turn, "Changed one file.");
  },
  async tool(turn) {
    const id = `x${turn.id}`;
    turn.update({
      sessionUpdate: "tool_call",
      toolCallId: id,
      title: "cargo test [current working directory /home/me/project] (Run the tests)",
      kind: "execute",
      status: "in_progress",
      rawInput: { command: "cargo test --workspace" },
    });
    await turn.pause(60);
    const output = `\u001b[32mok\u001b[0m 112 passed\n${"line of output\n".repeat(60)}`;
    turn.update({
      sessionUpdate: "tool_call_update",
      toolCallId: id,
      status: "completed",
      content: [{ type: "content", content: { type: "text", text: output } }],
    });
    turn.update({
      sessionUpdate: "tool_call",
      toolCallId: `${id}r`,
      title: "Cargo.toml",
      kind: "read",
      status: "failed",
      locations: [{ path: "/home/me/project/Cargo.toml", line: 12 }],
      content: [{ type: "content", content: { type: "text", text: "File not found" } }],
    });
    await say(turn, "The tests pass.");
  },
  async permission(turn, text) {
    const command = text.replace(/^\S+\s*/, "") || "rm -rf build";
    const answer = await turn.ask({
      toolCall: {
        toolCallId: `p${turn.id}`,
        title: `${command} [current working directory /home/me/project] (Remove what was built)`,
        kind: "execute",
        status: "pending",
        rawInput: { command },
      },
      options: OPTIONS,
    });
    const chosen = answer.outcome?.optionId ?? "nothing";
    turn.update({ sessionUpdate: "tool_call_update", toolCallId: `p${turn.id}`, status: chosen.startsWith("proceed") ? "completed" : "failed" });
    await say(turn, `You chose ${chosen}.`);
  },
  async elicit(turn) {
    const schema = {
      properties: { name: { type: "string", title: "Name" }, size: { type: "string", enum: ["small", "large"] }, sure: { type: "boolean", title: "Sure?" } },
      required: ["name"],
    };
    await say(turn, JSON.stringify(await turn.ask({ message: "What shall it be called?", requestedSchema: schema }, "elicitation/create")));
  },
  markdown: (turn, text) => say(turn, text.includes("hostile") ? HOSTILE : MARKDOWN, 4),
  async long(turn, text) {
    const lines = Number(/\d+/.exec(text)?.[0] ?? 10_000);
    for (let line = 1; line <= lines && !turn.cancelled; line += 1) {
      turn.text(`Line ${line} of a long answer with **some** \`markdown\` in it.\n${line % 20 === 0 ? "\n" : ""}`);
      if (line % 25 === 0) await turn.pause(1);
    }
  },
  async slow(turn, text) {
    const [words = 40, ms = 50] = (text.match(/\d+/g) ?? []).map(Number);
    for (let word = 1; word <= words && !turn.cancelled; word += 1) {
      turn.text(`w${word} `);
      await turn.pause(ms);
    }
  },
  error() {
    throw new Error("the agent exited with code 3");
  },
};

async function play(turn, text) {
  turn.usage = { inputTokens: 1200, outputTokens: 340, totalTokens: 1540 };
  turn.update({ sessionUpdate: "usage_update", used: 23_000, size: 128_000 });
  await (PLAYS[text.split(/\s/)[0]] ?? ((turn, text) => say(turn, `You said: ${text}`)))(turn, text);
}

const refused = [{ origin: "https://chat.example.com", count: 3, lastAt: Date.now() }];
const allowed = ["https://notes.example.com"];
const keys = [
  { name: "default", createdAt: "2026-11-01T10:00:00Z", rank: "admin" },
  { name: "editor", createdAt: "2026-11-10T10:00:00Z", rank: "user" },
];

function admin(path, method, body) {
  if (path === "/admin/origins") {
    if (method === "POST") {
      allowed.push(body.origin);
      refused.splice(0, refused.length, ...refused.filter(({ origin }) => origin !== body.origin));
    }
    return { allowed, refused };
  }
  if (path === "/admin/keys") {
    if (method !== "POST") return { keys };
    keys.push({ name: body.name, createdAt: new Date().toISOString(), rank: body.rank });
    return { name: body.name, key: "gbk_0123456789abcdef" };
  }
  if (path === "/admin/status") {
    return {
      version: "0.1.0",
      uptimeMs: 7_260_000,
      agents: [
        {
          name: "demo",
          title: "Demo agent",
          state: "ready",
          processes: [
            { pid: 4711, uptimeMs: 7_200_000, sessions: 2, rssKb: 9_400 },
            { pid: null, uptimeMs: null, sessions: 1, rssKb: null },
          ],
          spares: 1,
          restarts: 0,
          circuit: { open: false, retryAfterMs: null },
        },
      ],
      queues: [{ agent: "demo", running: 1, waiting: 2 }],
      sessions: { live: 3, running: 1, waiting: 0 },
      connections: 2,
    };
  }
  return undefined;
}

function serve(request, response) {
  const path = new URL(request.url, "http://x").pathname;
  if (path.startsWith("/admin/")) {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const answer = admin(path, request.method, chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : {});
      response.writeHead(answer ? 200 : 404, { "content-type": "application/json" });
      response.end(JSON.stringify(answer ?? {}));
    });
    return true;
  }
  if (request.method !== "GET") return false;
  const file = path === "/" ? "/index.html" : path;
  const body = FILES.get(file);
  response.writeHead(body ? 200 : 404, {
    "content-type": TYPES[extname(file)] ?? "application/octet-stream",
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
  });
  response.end(body);
  return true;
}

export function startStage(port = 0) {
  return MockGateway.start({ key: KEY, script: play, http: serve }, port);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const stage = await startStage(Number(process.argv[2] ?? 0));
  console.log(`${stage.url}/#key=${KEY}`);
}
