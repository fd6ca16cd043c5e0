import assert from "node:assert/strict";
import { test } from "node:test";
import { delay } from "../src/backoff.js";
import { ConnectionLost } from "../src/index.js";
import { clientFor, gate, gatewayFor, next } from "./within.js";

const open = (event: { state: string }) => event.state === "open";

test("a connection cut at any moment loses no text and doubles none", async (t) => {
  const words = Array.from({ length: 400 }, (_, n) => `w${n} `);
  const gateway = await gatewayFor(t, {
    async script(turn) {
      for (const [n, word] of words.entries()) {
        turn.text(word);
        // Lets sockets be served between the words.
        if (n % 7 === 0) await new Promise(setImmediate);
        if (n % 60 === 30) {
          const { connections } = gateway;
          gateway.cut();
          await gateway.connected(connections + 1);
        }
      }
    },
  });
  const client = clientFor(t, gateway);
  let heard = "";
  client.on("text_delta", ({ role, text }) => {
    if (role === "agent") heard += text;
  });
  await client.connect();
  const session = await client.newSession();
  const result = await client.prompt(session.id, "tell me");
  assert.equal(result.outcome, "finished");
  assert.equal(heard, words.join(""));
  assert.deepEqual(
    session.messages.map((message) => message.text),
    ["tell me", words.join("")],
  );
  assert.ok(gateway.connections >= 8, `only ${gateway.connections} connections`);
});

test("a message cut between two of its parts is completed after the reconnect", async (t) => {
  const gateway = await gatewayFor(t);
  const client = clientFor(t, gateway);
  await client.connect();
  const made = gateway.newSession();
  const chunk = (text: string) => ({ update: { sessionUpdate: "user_message_chunk", content: { type: "text", text } } });
  const sender = {} as never;
  gateway.append(made, "session/update", chunk("part one, "), { turn: 1, by: sender });
  const session = await client.attach(made.id);
  const back = next(client, "replay_ended");
  gateway.cut();
  gateway.append(made, "session/update", chunk("part two"), { turn: 1, by: sender });
  await back;
  assert.equal(made.log.at(-1)?.seq, 1);
  assert.deepEqual(
    session.messages.map((message) => message.text),
    ["part one, part two"],
  );
});

test("a prompt that the gateway had before the cut is not shown twice", async (t) => {
  const held = gate();
  const gateway = await gatewayFor(t, {
    async script(turn) {
      gateway.cut();
      await held.opened;
      turn.text("answer");
    },
  });
  const client = clientFor(t, gateway);
  await client.connect();
  const session = await client.newSession();
  const back = next(client, "replay_ended");
  const done = client.prompt(session.id, "question");
  await back;
  assert.equal(session.turns[0]?.status, "running");
  held.open();
  assert.equal((await done).outcome, "finished");
  assert.deepEqual(
    session.messages.map((message) => message.text),
    ["question", "answer"],
  );
  assert.equal(session.turns.length, 1);
});

test("a prompt that the gateway never had is named as such and can be sent again", async (t) => {
  const gateway = await gatewayFor(t, { script: (turn) => turn.text("answer") });
  const client = clientFor(t, gateway);
  await client.connect();
  const session = await client.newSession();
  // The connection is dead, but this client has not noticed yet.
  gateway.prompt = () => gateway.cut();
  const failed = client.prompt(session.id, "question");
  await assert.rejects(failed, /before the gateway had this prompt/);
  const [turn] = session.turns;
  assert.equal(turn?.status, "undelivered");
  delete (gateway as { prompt?: unknown }).prompt;
  assert.equal((await client.retry(session.id, turn)).outcome, "finished");
  assert.deepEqual(
    session.messages.map((message) => message.text),
    ["question", "answer"],
  );
});

test("a prompt without a connection waits for the next one", async (t) => {
  const gateway = await gatewayFor(t, { script: (turn, text) => turn.text(`re: ${text}`) });
  const client = clientFor(t, gateway);
  await client.connect();
  const session = await client.newSession();
  const lost = next(client, "connection", ({ state }) => state === "waiting");
  gateway.leave();
  await lost;
  const done = client.prompt(session.id, "hello");
  assert.equal(session.turns[0]?.status, "waiting");
  gateway.comeBack();
  await done;
  assert.deepEqual(
    session.messages.map((message) => message.text),
    ["hello", "re: hello"],
  );
});

test("an open permission survives a reconnect, is announced once, and an answer given meanwhile counts", async (t) => {
  const gateway = await gatewayFor(t, {
    async script(turn) {
      const options = [{ optionId: "yes", name: "Allow", kind: "allow_once" }];
      turn.text(JSON.stringify(await turn.ask({ toolCall: { toolCallId: "c1", title: "x" }, options })));
    },
  });
  const client = clientFor(t, gateway);
  let announced = 0;
  client.on("permission_request", () => (announced += 1));
  await client.connect();
  const session = await client.newSession();
  const asked = next(client, "permission_request");
  const done = client.prompt(session.id, "go");
  const { ask } = await asked;
  const lost = next(client, "connection", ({ state }) => state === "waiting");
  gateway.cut();
  await lost;
  assert.equal(session.asks.size, 1);
  client.answer(session.id, ask.id, "yes");
  await done;
  assert.equal(announced, 1);
  assert.match(session.messages.at(-1)?.text ?? "", /"optionId":"yes"/);
});

test("a permission that was settled while away is closed", async (t) => {
  const gateway = await gatewayFor(t, {
    async script(turn) {
      await turn.ask({ toolCall: { toolCallId: "c1", title: "x" }, options: [] });
    },
  });
  const client = clientFor(t, gateway);
  await client.connect();
  const session = await client.newSession();
  const asked = next(client, "permission_request");
  const done = client.prompt(session.id, "go");
  const { ask } = await asked;
  const made = gateway.sessions.get(session.id);
  assert.ok(made);
  const resolved = next(client, "permission_resolved");
  gateway.cut();
  gateway.settle(made, ask.id, { outcome: { outcome: "cancelled" } }, "timeout");
  assert.equal((await resolved).ask, ask.id);
  await done;
});

test("a log that begins anew is read anew", async (t) => {
  const gateway = await gatewayFor(t, { script: (turn, text) => turn.text(text) });
  const client = clientFor(t, gateway);
  await client.connect();
  const session = await client.newSession();
  await client.prompt(session.id, "before");
  const made = gateway.sessions.get(session.id);
  assert.ok(made);
  made.log.splice(0);
  gateway.append(made, "session/update", { update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "after" } } });
  const told = next(client, "text_delta", ({ text }) => text === "after");
  gateway.cut();
  await told;
  assert.deepEqual(
    session.messages.map((message) => message.text),
    ["after"],
  );
});

test("a session that is gone after a reconnect is reported", async (t) => {
  const gateway = await gatewayFor(t);
  const client = clientFor(t, gateway);
  await client.connect();
  const session = await client.newSession();
  const reported = next(client, "error");
  gateway.sessions.clear();
  gateway.cut();
  assert.deepEqual(await reported, { message: "no such session", code: "unknown_session", sessionId: session.id });
  assert.equal(session.sync, "gone");
});

test("a late joiner can ask for the last turn alone", async (t) => {
  const gateway = await gatewayFor(t, { script: (turn, text) => turn.text(`re: ${text}`) });
  const client = clientFor(t, gateway);
  await client.connect();
  const { id } = await client.newSession();
  await client.prompt(id, "one");
  await client.prompt(id, "two");
  const late = clientFor(t, gateway);
  await late.connect();
  const events: string[] = [];
  for (const name of ["replay_started", "text_delta", "replay_ended"] as const) late.on(name, () => void events.push(name));
  const session = await late.attach(id, { limit: 1 });
  assert.deepEqual(
    session.messages.map((message) => message.text),
    ["two", "re: two"],
  );
  assert.deepEqual(events, ["replay_started", "text_delta", "text_delta", "replay_ended"]);
  assert.equal(session.truncated, true);
  const whole = await client.attach(id);
  const resumed = next(client, "replay_started");
  const back = next(client, "replay_ended");
  gateway.cut();
  assert.equal((await resumed).resumed, true);
  await back;
  assert.equal(whole.truncated, false);
});

test("a silent gateway is given up and connected to anew", async (t) => {
  const gateway = await gatewayFor(t);
  const client = clientFor(t, gateway, { pingMs: 100 });
  await client.connect();
  const lost = next(client, "connection", ({ state }) => state === "waiting");
  const again = next(client, "connection", open);
  for (const peer of gateway.peers) peer.send = () => {};
  const why = await lost;
  assert.ok(why.state === "waiting" && why.reason === "the gateway did not answer a ping");
  await again;
  assert.ok(gateway.connections >= 2);
});

test("closing rejects what still waits", async (t) => {
  const gateway = await gatewayFor(t, { script: (turn) => turn.pause(60_000) });
  const client = clientFor(t, gateway);
  await client.connect();
  const session = await client.newSession();
  const started = next(client, "turn_started");
  const done = client.prompt(session.id, "go");
  await started;
  client.close();
  await assert.rejects(done, /closed/);
  await assert.rejects(client.agents(), (error) => !(error instanceof ConnectionLost));
});

test("waits grow, stay below their ceiling and respect the gateway's codes", () => {
  const options = { firstMs: 100, maxMs: 1_000, random: () => 0.999 };
  const waits = [1, 2, 3, 4, 5, 50].map((attempt) => delay(attempt, undefined, options));
  assert.deepEqual(
    waits,
    [...waits].sort((a, b) => a - b),
  );
  assert.ok(waits.every((wait) => wait > 0 && wait <= 1_000));
  assert.ok(delay(1, 4009, options) >= 2_000);
  assert.ok(delay(1, 4009, { ...options, random: () => 0 }) >= 2_000);
});

test("frames of an attachment that was given up do not disturb the next one", async (t) => {
  const gateway = await gatewayFor(t);
  const client = clientFor(t, gateway);
  await client.connect();
  const made = gateway.newSession();
  const chunk = (text: string) => ({ update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } } });
  gateway.append(made, "session/update", chunk("a"));
  await client.attach(made.id);
  const detached = client.detach(made.id);
  const again = client.attach(made.id);
  // Sent while the gateway does not know yet that nobody listens.
  for (const text of ["b", "c", "d"]) gateway.append(made, "session/update", chunk(text));
  await detached;
  const session = await again;
  assert.deepEqual(
    session.messages.map((message) => message.text),
    ["abcd"],
  );
});

test("two who attach to the same session at once both wait for all of it", async (t) => {
  const gateway = await gatewayFor(t, { script: (turn) => turn.text("answer") });
  const client = clientFor(t, gateway);
  await client.connect();
  const made = gateway.newSession();
  gateway.append(made, "session/update", { update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "x" } } });
  const [one, two] = await Promise.all([client.attach(made.id), client.attach(made.id)]);
  assert.equal(one, two);
  assert.equal(one.sync, "live");
  assert.deepEqual(
    one.messages.map((message) => message.text),
    ["x"],
  );
});

test("an attachment that fails after a reconnect is tried again", async (t) => {
  const gateway = await gatewayFor(t, { script: (turn) => turn.text("answer") });
  const client = clientFor(t, gateway);
  await client.connect();
  const session = await client.newSession();
  gateway.attachFailures = 2;
  const back = next(client, "replay_ended");
  gateway.cut();
  await back;
  assert.equal(session.sync, "live");
  assert.equal((await client.prompt(session.id, "hello")).outcome, "finished");
});

test("attaching survives a connection that is lost meanwhile", async (t) => {
  const gateway = await gatewayFor(t);
  const client = clientFor(t, gateway);
  await client.connect();
  const made = gateway.newSession();
  const attached = client.attach(made.id);
  gateway.cut();
  assert.equal((await attached).sync, "live");
});
