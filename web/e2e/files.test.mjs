import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { stage } from "./stage.mjs";

const on = stage({
  agent: "demo",
  prepare({ workspace }) {
    mkdirSync(join(workspace, "src"), { recursive: true });
    for (const name of ["src/quokka.rs", "src/other.rs", "notes.md"]) writeFileSync(join(workspace, name), "");
  },
});

for (const when of ["before a session", "in a session"]) {
  test(`a file of the agent's folder is completed after an @, ${when}`, async () => {
    const tab = await on.visit();
    await tab.connected();
    if (when === "in a session") await tab.ask("hello");
    await tab.prompt.fill("");
    await tab.prompt.pressSequentially("say hello to @quok");
    const menu = tab.page.getByRole("listbox", { name: "Files" });
    await menu.getByRole("option", { name: "src/quokka.rs" }).waitFor();
    await tab.counts(menu.getByRole("option"), 1);
    await tab.prompt.press("Tab");
    assert.equal(await tab.prompt.inputValue(), "say hello to @src/quokka.rs ");
    await menu.waitFor({ state: "detached" });
    const before = await tab.turns.count();
    await tab.prompt.press("Enter");
    await tab.turns.nth(before).locator("footer.ended").waitFor();
    const prompt = tab.page.getByRole("article", { name: "Prompt" }).last();
    await prompt.getByText("say hello to @src/quokka.rs").waitFor();
    // The agent is given the file itself, not only its name.
    await prompt.locator(".attached .tag", { hasText: "src/quokka.rs" }).waitFor();
    await tab.close();
  });
}

test("a key that is not the operator's is offered nothing", async () => {
  const response = await on.gateway.fetch("/admin/keys", { method: "POST", body: { name: "guest" } });
  const { key } = await response.json();
  const answer = await on.gateway.fetch("/admin/workspace-files?agent=demo&q=quokka", { headers: { authorization: `Bearer ${key}` } });
  assert.equal(answer.status, 403);
  assert.ok(!(await answer.text()).includes("quokka"));
});
