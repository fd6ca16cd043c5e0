import assert from "node:assert/strict";
import { test } from "node:test";
import { stage } from "./stage.mjs";
import { eventually } from "./until.mjs";

const on = stage({ agent: "demo" });

const title = (tab) => tab.page.title();
const icon = (tab) => tab.page.locator("link[rel=icon]").getAttribute("href");

test("a question that waits shows on the tab until it is answered", async () => {
  const tab = await on.visit();
  await tab.connected();
  const plain = await icon(tab);
  await tab.send("permission rm -rf build");
  await tab.card.waitFor();
  await eventually(async () => assert.match(await title(tab), /^\(1\) /));
  assert.match(await icon(tab), /^data:image\/svg\+xml,/);
  await tab.card.getByRole("button", { name: "Reject", exact: true }).click();
  await tab.ended();
  await eventually(async () => assert.doesNotMatch(await title(tab), /^\(/));
  assert.equal(new URL(await icon(tab), tab.page.url()).href, new URL(plain, tab.page.url()).href);
  await tab.close();
});

test("the system tells whoever allowed it and looks elsewhere, and never what is asked", async () => {
  const tab = await on.visit();
  await tab.page.addInitScript(() => {
    window.told = [];
    window.Notification = class {
      static permission = "default";
      static requestPermission = async () => (window.Notification.permission = "granted");
      constructor(name, { body }) {
        window.told.push(`${name}: ${body}`);
      }
      close() {}
    };
  });
  await tab.page.reload();
  await tab.connected();
  const bell = tab.page.getByRole("button", { name: "Notify me when an agent asks" });
  await bell.click();
  await bell.waitFor({ state: "detached" });
  const hide = (hidden) => tab.page.evaluate((hidden) => Object.defineProperty(document, "hidden", { value: hidden, configurable: true }), hidden);
  await tab.send("permission rm -rf secret");
  await tab.card.waitFor();
  await eventually(async () => assert.match(await title(tab), /^\(1\) /));
  await tab.card.getByRole("button", { name: "Reject", exact: true }).click();
  await tab.ended();
  await eventually(async () => assert.doesNotMatch(await title(tab), /^\(/));
  assert.deepEqual(await tab.page.evaluate(() => window.told), [], "whoever looks at the page needs no notice");
  await hide(true);
  await tab.send("permission rm -rf secret");
  await eventually(async () => assert.deepEqual(await tab.page.evaluate(() => window.told), ["gembridge: The agent waits for your answer."]));
  await hide(false);
  await tab.card.getByRole("button", { name: "Reject", exact: true }).click();
  await tab.ended();
  await tab.close();
});

test("? shows the keys, and Escape closes them and stops nothing", async () => {
  const tab = await on.visit();
  await tab.send("permission make");
  await tab.card.waitFor();
  const help = tab.page.getByRole("dialog", { name: "Keys" });
  await tab.prompt.fill("why?");
  assert.equal(await help.count(), 0, "whoever writes means the letter");
  await tab.prompt.fill("");
  await tab.page.evaluate(() => document.activeElement?.blur());
  await tab.page.keyboard.press("?");
  await help.waitFor();
  await tab.page.keyboard.press("Escape");
  await help.waitFor({ state: "detached" });
  assert.equal(await tab.card.count(), 1, "the turn goes on");
  await tab.page.keyboard.press("/");
  await eventually(async () => assert.equal(await tab.page.evaluate(() => document.activeElement?.tagName), "TEXTAREA"));
  assert.equal(await tab.prompt.inputValue(), "", "the key itself is not written");
  await tab.card.getByRole("button", { name: "Allow once" }).click();
  await tab.ended();
  await tab.close();
});

test("whoever has only the demo is told the next steps, and a session tells what it takes", async () => {
  const tab = await on.visit();
  await tab.connected();
  await tab.page.getByText("Use a real agent: the next steps").click();
  await tab.page.getByText("gembridge connect").waitFor();
  await tab.ask("usage");
  await eventually(async () => assert.match(await tab.page.locator(".top .usage").innerText(), /%.*\d/s));
  await tab.close();
});

test("the lines of a diff have the colours of their language", async () => {
  const tab = await on.visit();
  await tab.ask("write main.rs fn main() { let text = 1; }");
  await tab.unfold();
  const diff = tab.page.locator("figure.diff").last();
  await diff.locator(".hljs-keyword").first().waitFor();
  assert.equal((await diff.locator("td.text").first().innerText()).trim(), "fn main() { let text = 1; }");
  await diff.getByRole("button", { name: "Side by side" }).click();
  await diff.locator(".split .hljs-keyword").first().waitFor();
  await tab.close();
});
