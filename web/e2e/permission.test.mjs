import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "./browser.mjs";
import { stage } from "./stage.mjs";
import { eventually } from "./until.mjs";

const on = stage({ agent: "demo" });

/** Both tabs show the whole of the last answer. */
async function readTheSame(one, two) {
  await eventually(async () => {
    const read = await one.answer.innerText();
    assert.notEqual(read, "");
    assert.equal(read, await two.answer.innerText());
  });
}

test("what is asked in two tabs is answered in one and closes in both", async () => {
  const one = await on.visit();
  await one.send("permission rm -rf build");
  await one.card.waitFor();
  const two = await on.visit({ address: `${on.gateway.url}/#session=${await one.session()}&key=${on.gateway.key}` });
  await two.card.waitFor();
  for (const tab of [one, two]) {
    await eventually(async () => {
      assert.match(await tab.card.innerText(), /rm -rf build/, "the exact command");
      assert.match(await tab.card.innerText(), /without asking again/, "what an answer for good covers");
      assert.doesNotMatch(await tab.card.innerText(), /\d+ s$/m, "nobody is hurried with a quarter of an hour to go");
    });
  }
  await two.card.getByRole("button", { name: "Allow once" }).click();
  for (const tab of [one, two]) {
    await tab.card.waitFor({ state: "detached" });
    await tab.ended();
  }
  await readTheSame(one, two);
  for (const tab of [one, two]) await tab.close();
});

test("a permission that was answered is not asked again", async () => {
  const tab = await on.visit();
  await tab.send("permission make clean");
  await tab.card.getByRole("button", { name: "Reject", exact: true }).click();
  await tab.ended();
  await tab.page.reload();
  await tab.ended();
  // Open questions come with a session; what comes after a turn of its own came after them.
  await tab.ask("hello");
  assert.equal(await tab.card.count(), 0);
  await tab.close();
});

test("a permission that is open survives a reload", async () => {
  const tab = await on.visit();
  await tab.send("permission make install");
  await tab.card.waitFor();
  await tab.page.reload();
  await tab.card.getByRole("button", { name: "Allow once" }).click();
  await tab.ended();
  await tab.counts(tab.card, 0);
  await tab.close();
});

test("rejecting with a reason sends the reason as the next prompt", async () => {
  const tab = await on.visit();
  await tab.send("permission rm -rf /");
  await tab.card.getByRole("button", { name: "Reject and say why…" }).click();
  await tab.page.getByRole("textbox", { name: "What to do instead" }).fill("only the build folder");
  await tab.page.keyboard.press("Enter");
  await tab.saysInAnswer("only the build folder");
  await tab.close();
});

test("another tab's prompts and answers appear here as they come", async () => {
  const one = await on.visit();
  await one.ask("hello");
  const two = await open(one.page.context(), on.gateway, `${on.gateway.url}/#session=${await one.session()}&key=${on.gateway.key}`);
  await two.ended();
  await two.ask("is anybody there");
  await one.page.getByRole("article", { name: "Prompt" }).filter({ hasText: "is anybody there" }).waitFor();
  await one.turns.nth(1).locator("footer.ended").waitFor();
  for (const tab of [one, two]) await tab.counts(tab.page.getByRole("article", { name: "Prompt" }), 2);
  await readTheSame(one, two);
  await two.page.close();
  await one.close();
});

test("a form that the agent asks for is filled in", async () => {
  const tab = await on.visit();
  await tab.connected();
  await tab.choose("fake");
  await tab.send("elicit");
  const form = tab.page.getByRole("form", { name: "The agent asks" });
  await form.getByRole("textbox", { name: "Name" }).fill("Ada");
  await form.getByRole("button", { name: "Send" }).click();
  await tab.ended();
  await tab.saysInAnswer(/"action":\s*"accept".*Ada/);
  await tab.close();
});
