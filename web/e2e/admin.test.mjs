import assert from "node:assert/strict";
import { test } from "node:test";
import { stage } from "./stage.mjs";
import { eventually, until } from "./until.mjs";

const on = stage({ agent: "demo" });

async function administer() {
  const tab = await on.visit({ address: `${on.gateway.url}/#admin&key=${on.gateway.key}` });
  await tab.page.getByRole("heading", { name: "Agents" }).waitFor();
  return tab;
}

test("the gateway shows its agents, with their processes", async () => {
  const other = await on.visit();
  await other.ask("hello");
  const tab = await administer();
  const table = tab.page.getByRole("region", { name: "Processes of demo" });
  await table.waitFor();
  // A process that has only just been started is shown without its numbers.
  await eventually(async () => {
    const [pid, , sessions, memory] = await table.locator("tbody tr").first().getByRole("cell").allInnerTexts();
    assert.match(pid, /^\d+$/);
    assert.match(sessions, /^\d+$/);
    assert.match(memory, /^\d+ [kM]B$/);
  });
  await tab.close();
  await other.close();
});

test("an origin that was refused is allowed with one press", async () => {
  const origin = "https://chat.example.com";
  const ask = () => on.gateway.fetch("/v1/models", { headers: { origin } });
  assert.equal((await ask()).status, 403);
  const tab = await administer();
  await tab.page.getByRole("button", { name: `Allow ${origin}` }).click();
  await tab.page.getByRole("button", { name: `Remove ${origin}` }).waitFor();
  await until("the permission of the origin", async () => (await ask()).status === 200);
  await tab.page.getByRole("button", { name: `Remove ${origin}` }).click();
  await tab.page.getByRole("button", { name: `Remove ${origin}` }).waitFor({ state: "detached" });
  await until("the end of the permission", async () => (await ask()).status === 403);
  await tab.close();
});

test("a key is made, shown once, and revoked", async () => {
  const tab = await administer();
  await tab.page.getByRole("textbox", { name: "Name of the new key" }).fill("editor");
  await tab.page.getByRole("button", { name: "Create key" }).click();
  const secret = await tab.page.locator(".secret code").innerText();
  const ask = () => on.gateway.fetch("/v1/models", { headers: { authorization: `Bearer ${secret}` } });
  await until("an answer to the new key", async () => (await ask()).status === 200);
  const revoke = tab.page.getByRole("button", { name: "Revoke editor" });
  await revoke.click();
  await revoke.click();
  await revoke.waitFor({ state: "detached" });
  await until("the refusal of the revoked key", async () => (await ask()).status === 401);
  await tab.close();
});

test("a key that is not the operator's is told that it may not look", async () => {
  const response = await on.gateway.fetch("/admin/keys", { method: "POST", body: { name: "guest" } });
  const { key, secret } = await response.json();
  const tab = await on.visit({ address: `${on.gateway.url}/#admin&key=${key ?? secret}` });
  await tab.page.getByRole("alert").filter({ hasText: "may not see" }).waitFor();
  tab.wrongs.length = 0; // The browser notes every refusal as an error.
  await tab.close();
});
