import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { stage } from "./stage.mjs";

const on = stage({ agent: "demo" });

/** What an OpenAI client has read so far, and the end of it. */
function reading(response) {
  const read = { text: "", ended: undefined };
  read.ended = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body) read.text += decoder.decode(chunk, { stream: true });
    return read.text;
  })();
  return read;
}

const row = (tab, title) => tab.page.getByRole("navigation", { name: "Sessions" }).getByRole("listitem").filter({ hasText: title });

test("a session begun over OpenAI appears as it runs, and is watched", async () => {
  const tab = await on.visit();
  await tab.connected();
  const go = join(on.gateway.home, "go-elsewhere");
  const answer = reading(await on.gateway.complete(`say while it ;; until ${go} ;; say  runs`, "fake"));
  await row(tab, "say while it").getByRole("link").click();
  await tab.saysInAnswer("while it");
  await tab.stop.waitFor();
  writeFileSync(go, "");
  await tab.ended();
  const streamed = await answer.ended;
  assert.ok(streamed.includes("[DONE]"), streamed.slice(-300));
  const said = streamed
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice(6)).choices[0]?.delta?.content ?? "")
    .join("");
  assert.notEqual(said.trim(), "");
  await tab.answers(said.trim());
  await tab.close();
});

test("a session begun over OpenAI is approved in the page", async () => {
  const tab = await on.visit();
  await tab.connected();
  const answering = on.gateway.complete("permission make release");
  await row(tab, "make release").getByText("needs you").waitFor();
  await row(tab, "make release").getByRole("link").click();
  await tab.card.getByRole("button", { name: "Allow once" }).click();
  await tab.ended();
  const streamed = await reading(await answering).ended;
  assert.ok(streamed.includes("[DONE]"), streamed);
  assert.ok(!/reject|refus/i.test(streamed), streamed);
  await tab.close();
});

test("a session begun over OpenAI is cancelled in the page", async () => {
  const tab = await on.visit();
  await tab.connected();
  const answer = reading(await on.gateway.complete("slow 100000 20"));
  await row(tab, "slow 100000").getByRole("link").click();
  await tab.stop.click();
  await tab.turns.last().getByText("Stopped").waitFor();
  await answer.ended;
  await tab.close();
});
