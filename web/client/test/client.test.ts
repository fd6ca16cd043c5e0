import assert from "node:assert/strict";
import { test } from "node:test";
import { Refused, TurnInterrupted, type ClientEvents, type SessionSummary } from "../src/index.js";
import { clientFor, gate, gatewayFor, next } from "./within.js";

test("a prompt streams text, thoughts, tools, a plan and usage, and resolves when the turn is over", async (t) => {
  const gateway = await gatewayFor(t, {
    script(turn) {
      turn.thought("let me ");
      turn.thought("see");
      turn.update({ sessionUpdate: "plan", entries: [{ content: "look", priority: "high", status: "completed" }] });
      turn.update({
        sessionUpdate: "tool_call",
        toolCallId: "c1",
        title: "ls [current working directory /w] (List files)",
        kind: "execute",
        status: "in_progress",
        rawInput: { command: "ls" },
      });
      turn.update({
        sessionUpdate: "tool_call_update",
        toolCallId: "c1",
        status: "completed",
        content: [
          { type: "content", content: { type: "text", text: "a (b)" } },
          { type: "diff", path: "a.txt", oldText: "1", newText: "2" },
        ],
        locations: [{ path: "a.txt", line: 3 }],
      });
      turn.update({ sessionUpdate: "usage_update", used: 50, size: 100 });
      turn.update({ sessionUpdate: "a_kind_of_tomorrow", anything: 1 });
      turn.text("All ");
      turn.text("done.");
    },
  });
  const client = clientFor(t, gateway);
  const names: string[] = [];
  let text = "";
  client.on("text_delta", (event) => (text += event.text));
  for (const name of ["thought_delta", "tool_update", "plan_update", "usage", "turn_started", "turn_ended"] as const) {
    client.on(name, () => void names.push(name));
  }
  await client.connect();
  assert.equal(client.gateway.demo, true);
  const session = await client.newSession();
  const result = await client.prompt(session.id, "hello");

  assert.deepEqual(result, { turn: 1, outcome: "finished", stopReason: "end_turn", usage: { inputTokens: 10, outputTokens: 20, totalTokens: 30 } });
  assert.equal(text, "All done.");
  assert.deepEqual(names, ["turn_started", "thought_delta", "thought_delta", "plan_update", "tool_update", "tool_update", "usage", "turn_ended"]);
  assert.deepEqual(
    session.items.map((item) => item.kind),
    ["message", "thought", "plan", "tool", "message"],
  );
  assert.deepEqual(
    session.messages.map((message) => [message.role, message.text]),
    [
      ["user", "hello"],
      ["agent", "All done."],
    ],
  );
  const [tool] = session.tools;
  assert.ok(tool);
  assert.deepEqual(
    {
      description: tool.description,
      workingDir: tool.workingDir,
      kind: tool.kind,
      status: tool.status,
      input: tool.input,
      output: tool.output,
      diffs: tool.diffs,
      locations: tool.locations,
    },
    {
      description: "List files",
      workingDir: "/w",
      kind: "execute",
      status: "completed",
      input: { command: "ls" },
      output: "a (b)",
      diffs: [{ path: "a.txt", oldText: "1", newText: "2" }],
      locations: [{ path: "a.txt", line: 3 }],
    },
  );
  assert.equal(session.usage.contextUsed, 50);
  assert.deepEqual(
    session.plan.map((entry) => entry.content),
    ["look"],
  );
  assert.equal(session.modes.current, "default");
  assert.equal(session.models.available.length, 2);
  assert.equal(session.workspace, "/home/me/project");
  assert.ok(session.commands.length > 0);
});

test("a prompt is shown to other clients and not told twice to its sender", async (t) => {
  const gateway = await gatewayFor(t, { script: (turn) => turn.text("yes") });
  const sender = clientFor(t, gateway);
  const other = clientFor(t, gateway);
  await sender.connect();
  await other.connect();
  const session = await sender.newSession();
  const seen = await other.attach(session.id);
  const ended = next(other, "turn_ended");
  await sender.prompt(session.id, [
    { type: "text", text: "look: " },
    { type: "image", mimeType: "image/png", data: "AAAA" },
    { type: "text", text: "well?" },
  ]);
  await ended;
  for (const side of [session, seen]) {
    assert.deepEqual(
      side.messages.map((message) => [message.role, message.text, message.images.length]),
      [
        ["user", "look: well?", 1],
        ["agent", "yes", 0],
      ],
    );
    assert.equal(side.turns.length, 1);
  }
});

test("a permission goes to every client, the first answer wins and closes it everywhere", async (t) => {
  const options = [
    { optionId: "yes", name: "Allow", kind: "allow_once" },
    { optionId: "no", name: "Reject", kind: "reject_once" },
  ];
  const gateway = await gatewayFor(t, {
    async script(turn) {
      const answer = await turn.ask({ toolCall: { toolCallId: "c1", title: "rm x (Remove)", kind: "execute", status: "pending" }, options });
      turn.text(JSON.stringify(answer));
    },
  });
  const [one, two] = [clientFor(t, gateway), clientFor(t, gateway)];
  await one.connect();
  await two.connect();
  const session = await one.newSession();
  const other = await two.attach(session.id);
  const asked = Promise.all([next(one, "permission_request"), next(two, "permission_request")]);
  const done = one.prompt(session.id, "go");
  const [{ ask }, { ask: same }] = await asked;
  assert.equal(ask.id, same.id);
  assert.ok(ask.kind === "permission" && ask.tool.description === "Remove" && ask.expiresAt !== undefined);
  const resolved = Promise.all([next(one, "permission_resolved"), next(two, "permission_resolved")]);
  two.answer(session.id, ask.id, "no");
  two.answer(session.id, ask.id, "yes");
  const [toOne, toTwo] = await resolved;
  assert.deepEqual([toOne.by, toTwo.by, toOne.outcome, toOne.toolCallId], ["client", "you", { outcome: "selected", optionId: "no" }, "c1"]);
  await done;
  assert.equal(session.asks.size + other.asks.size, 0);
  assert.equal(session.messages.at(-1)?.text, '{"outcome":{"outcome":"selected","optionId":"no"}}');
});

test("a form is asked and answered with its content", async (t) => {
  const gateway = await gatewayFor(t, {
    async script(turn) {
      turn.text(JSON.stringify(await turn.ask({ message: "Who?", requestedSchema: { properties: { name: { type: "string" } } } }, "elicitation/create")));
    },
  });
  const client = clientFor(t, gateway);
  await client.connect();
  const session = await client.newSession();
  const asked = next(client, "permission_request");
  const done = client.prompt(session.id, "go");
  const { ask } = await asked;
  assert.ok(ask.kind === "form" && ask.message === "Who?");
  client.answer(session.id, ask.id, { action: "accept", content: { name: "Ada" } });
  await done;
  assert.equal(session.messages.at(-1)?.text, '{"action":"accept","content":{"name":"Ada"}}');
});

test("cancel ends the turn and keeps what was said", async (t) => {
  const gateway = await gatewayFor(t, {
    async script(turn) {
      turn.text("half");
      await turn.pause(60_000);
    },
  });
  const client = clientFor(t, gateway);
  await client.connect();
  const session = await client.newSession();
  const spoken = next(client, "text_delta");
  const done = client.prompt(session.id, "go");
  await spoken;
  client.cancel(session.id);
  assert.equal((await done).outcome, "cancelled");
  assert.equal(session.messages.at(-1)?.text, "half");
});

test("a prompt on a busy session waits its turn and its answer does not mix with the one before", async (t) => {
  const first = gate();
  const gateway = await gatewayFor(t, {
    async script(turn, text) {
      turn.text(`${text}: a`);
      if (text === "one") await first.opened;
      turn.text("b");
    },
  });
  const client = clientFor(t, gateway);
  await client.connect();
  const session = await client.newSession();
  const spoken = next(client, "text_delta");
  const one = client.prompt(session.id, "one");
  await spoken;
  const two = client.prompt(session.id, "two");
  await new Promise<void>((resolve) => client.onChange(() => session.turns[1]?.status === "queued" && resolve()));
  first.open();
  await Promise.all([one, two]);
  assert.deepEqual(
    session.messages.map((message) => message.text),
    ["one", "one: ab", "two", "two: ab"],
  );
});

test("an agent that fails rejects the prompt and the turn says why", async (t) => {
  const gateway = await gatewayFor(t, {
    script(turn) {
      turn.text("partly");
      throw new Error("the agent exited with code 3");
    },
  });
  const client = clientFor(t, gateway);
  await client.connect();
  const session = await client.newSession();
  await assert.rejects(client.prompt(session.id, "go"), (error) => error instanceof TurnInterrupted && error.code === "agent_error");
  assert.equal(session.turns[0]?.status, "interrupted");
  assert.equal(session.turns[0]?.error?.message, "the agent exited with code 3");
  assert.equal(session.messages.at(-1)?.text, "partly");
});

test("models and modes are set, sessions are listed, watched, renamed and deleted", async (t) => {
  const gateway = await gatewayFor(t);
  const client = clientFor(t, gateway);
  await client.connect();
  const lists: SessionSummary[][] = [];
  client.watchSessions((sessions) => lists.push(sessions));
  const session = await client.newSession();
  await client.setModel(session.id, "demo-small");
  await client.setMode(session.id, "yolo");
  assert.deepEqual([session.models.current, session.modes.current], ["demo-small", "yolo"]);
  await client.rename(session.id, "My talk");
  const [listed] = await client.listSessions();
  assert.deepEqual([listed?.title, listed?.model, listed?.mode], ["My talk", "demo-small", "yolo"]);
  assert.ok(lists.some((sessions) => sessions[0]?.title === "My talk"));
  assert.equal((await client.agents())[0]?.isDemo, true);
  await client.deleteSession(session.id);
  assert.deepEqual(lists.at(-1), []);
});

test("a wrong key is refused and not tried again", async (t) => {
  const gateway = await gatewayFor(t, { key: "right" });
  const client = clientFor(t, gateway, { key: "wrong" });
  await assert.rejects(client.connect(), (error) => error instanceof Refused && error.status === 401 && error.message === "the key is not valid");
  assert.equal(client.connection.state, "closed");
  const good = clientFor(t, gateway, { key: "right" });
  await good.connect();
  assert.equal(good.connection.state, "open");
});

test("a revoked key ends the connection for good", async (t) => {
  const gateway = await gatewayFor(t);
  const client = clientFor(t, gateway);
  await client.connect();
  const closed = next(client, "connection", (event: ClientEvents["connection"]) => event.state === "closed");
  gateway.closeAll(1008);
  await closed;
  await assert.rejects(client.agents(), Refused);
});

test("requests that the client does not serve are refused by name", async (t) => {
  const gateway = await gatewayFor(t);
  const client = clientFor(t, gateway);
  await client.connect();
  for (const peer of gateway.peers) peer.send({ id: 77, method: "fs/read_text_file", params: { sessionId: "s1", path: "/etc/passwd" } });
  // The first answer comes after the request above, and the second question goes after the answer to it.
  await client.agents();
  await client.agents();
  const answer = gateway.received.find((message) => message["id"] === 77);
  assert.equal((answer?.["error"] as { code: number }).code, -32601);
});

test("what belongs to no turn stands beside the turn before it", async (t) => {
  const gateway = await gatewayFor(t, { script: (turn) => turn.text("yes") });
  const client = clientFor(t, gateway);
  await client.connect();
  const session = await client.newSession();
  await client.prompt(session.id, "one");
  const made = gateway.sessions.get(session.id);
  assert.ok(made);
  gateway.append(made, "_gembridge/agent_replaced", { turn: null, reason: "it ended" });
  await client.prompt(session.id, "two");
  assert.deepEqual(
    session.turns.map((turn) => [turn.status, turn.items.map((item) => item.kind).join(" ")]),
    [
      ["finished", "message message notice"],
      ["finished", "message message"],
    ],
  );
});

test("a turn's tokens are told while it runs, beside how full the context is", async (t) => {
  const gateway = await gatewayFor(t, {
    script(turn) {
      turn.update({ sessionUpdate: "usage_update", used: 5, size: 10 });
      turn.gateway.append(turn.session, "_gembridge/usage", { usage: { inputTokens: 3, outputTokens: 4, totalTokens: 7 } }, { turn: turn.id });
    },
  });
  const client = clientFor(t, gateway);
  const told: unknown[] = [];
  client.on("usage", ({ usage }) => told.push(usage));
  await client.connect();
  const session = await client.newSession();
  await client.prompt(session.id, "go");
  assert.deepEqual(told, [
    { contextUsed: 5, contextSize: 10 },
    { inputTokens: 3, outputTokens: 4, totalTokens: 7 },
  ]);
  assert.equal(session.usage.contextUsed, 5);
});

test("a client's tool is one call, whoever tells of it first and however the agent spells it", async (t) => {
  const input = { city: "Oslo", days: 2 };
  const spellings = ["get_weather (host-tools MCP Server)", "mcp__host-tools__get_weather", "host-tools_get_weather"];
  const gateway = await gatewayFor(t, {
    script(turn, prompt) {
      const title = spellings[Number(prompt) % spellings.length];
      const byAgent = () =>
        turn.update({ sessionUpdate: "tool_call", toolCallId: `a${prompt}`, title, kind: "other", status: "pending", rawInput: { days: 2, city: "Oslo" } });
      const byGateway = () =>
        turn.clientTool({ sessionUpdate: "tool_call", toolCallId: `g${prompt}`, title: "get_weather", kind: "other", status: "in_progress", rawInput: input });
      const isFirst = Number(prompt) < spellings.length;
      for (const tell of isFirst ? [byAgent, byGateway] : [byGateway, byAgent]) tell();
      // Another tool, and another call of the same one.
      turn.update({ sessionUpdate: "tool_call", toolCallId: `o${prompt}`, title: "get_weather_map", kind: "other", status: "pending" });
      turn.update({ sessionUpdate: "tool_call", toolCallId: `b${prompt}`, title, kind: "other", status: "pending", rawInput: { city: "Rome" } });
      const content = [{ type: "content", content: { type: "text", text: "rain" } }];
      turn.clientTool({ sessionUpdate: "tool_call_update", toolCallId: `g${prompt}`, status: "completed", content });
      turn.update({ sessionUpdate: "tool_call_update", toolCallId: `a${prompt}`, status: "in_progress" });
    },
  });
  const client = clientFor(t, gateway);
  await client.connect();
  for (const prompt of ["0", "1", "2", "3", "4", "5"]) {
    const session = await client.newSession();
    await client.prompt(session.id, prompt);
    const shown = session.tools.map(({ title, clientTool, status, output }) => ({ title, clientTool, status, output }));
    const spelt = spellings[Number(prompt) % spellings.length];
    assert.deepEqual(shown, [
      { title: "get_weather", clientTool: true, status: "completed", output: "rain" },
      { title: "get_weather_map", clientTool: false, status: "pending", output: undefined },
      { title: spelt, clientTool: false, status: "pending", output: undefined },
    ]);
  }
});
