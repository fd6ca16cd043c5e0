// A home in which an agent has worked: a session as Claude Code writes it.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ID = "aaaaaaaa-0000-4000-8000-000000000001";
const AT = "2026-11-01T10:00:00Z";

const LINES = [
  { type: "user", uuid: "u1", timestamp: AT, cwd: "/work", message: { role: "user", content: "Why does the quokka test fail?" } },
  {
    type: "assistant",
    uuid: "a1",
    timestamp: AT,
    requestId: "r1",
    message: {
      id: "m1",
      role: "assistant",
      model: "opus",
      content: [{ type: "tool_use", id: "t1", name: "Bash", input: { command: "cargo test" } }],
      usage: { input_tokens: 10, output_tokens: 5 },
    },
  },
  {
    type: "user",
    uuid: "u2",
    timestamp: AT,
    message: { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "1 test failed <img src=x onerror=alert(1)>" }] },
  },
  {
    type: "assistant",
    uuid: "a2",
    timestamp: AT,
    requestId: "r2",
    message: {
      id: "m2",
      role: "assistant",
      model: "opus",
      content: [{ type: "text", text: "It waits for **a lock**. <img src=x onerror=alert(1)>" }],
      usage: { input_tokens: 10, output_tokens: 5 },
    },
  },
];

export function writeAgentSession(home) {
  const folder = join(home, ".claude/projects/-work");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${ID}.jsonl`), LINES.map((line) => `${JSON.stringify(line)}\n`).join(""));
}
