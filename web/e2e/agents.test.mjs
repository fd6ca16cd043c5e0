import assert from "node:assert/strict";
import { test } from "node:test";
import { writeAgentSession } from "./agent-files.mjs";
import { stage } from "./stage.mjs";

const on = stage({ agent: "demo", prepare: ({ home }) => writeAgentSession(home) });

test("a session that an agent wrote itself is listed, read, and gone on with", async () => {
  const tab = await on.visit();
  await tab.connected();
  await tab.page.getByRole("button", { name: "Sessions of your agents" }).click();
  await tab.page
    .getByRole("list", { name: "Latest sessions" })
    .getByRole("link", { name: /quokka/ })
    .click();
  await tab.page.getByRole("article", { name: "Prompt" }).filter({ hasText: "Why does the quokka test fail?" }).waitFor();
  await tab.saysInAnswer("It waits for a lock.");
  assert.equal(await tab.page.locator("main strong", { hasText: "a lock" }).count(), 1, "answers are Markdown");
  await tab.page.locator("details.tool summary", { hasText: "Result" }).click();
  await tab.page.getByRole("region", { name: "Result" }).filter({ hasText: "1 test failed <img" }).waitFor();
  await tab.page.getByRole("button", { name: "Go on with it" }).click();
  await tab.session();
  // What the agent is not now is told, once.
  await tab.page.getByRole("alert").filter({ hasText: "gembridge trust add /work" }).waitFor();
  await tab.saysInAnswer("It waits for a lock.");
  await tab.ask("hello");
  await tab.close();
});

test("a session is found by what was said in it, and the address leads to it", async () => {
  const tab = await on.visit({ address: `${on.gateway.url}/#agents&key=${on.gateway.key}` });
  await tab.page.getByRole("searchbox", { name: "Search what was said" }).fill("waits for lock");
  const found = tab.page.getByRole("list", { name: "Found sessions" }).getByRole("link", { name: /claude/ });
  await found.filter({ hasText: "It waits for" }).click();
  await tab.page.getByRole("heading", { name: "Why does the quokka test fail?" }).waitFor();
  await tab.page.reload();
  await tab.saysInAnswer("It waits for a lock.");
  await tab.page.goBack();
  await tab.page.getByRole("list", { name: "Latest sessions" }).waitFor();
  await tab.close();
});

test("a key that is not the operator's is told that it may not look", async () => {
  const response = await on.gateway.fetch("/admin/keys", { method: "POST", body: { name: "guest" } });
  const { key } = await response.json();
  const tab = await on.visit({ address: `${on.gateway.url}/#agents&key=${key}` });
  await tab.page.getByRole("alert").filter({ hasText: "may not see" }).waitFor();
  assert.equal(await tab.page.getByText("quokka").count(), 0);
  tab.wrongs.length = 0; // The browser notes every refusal as an error.
  await tab.close();
});
