import assert from "node:assert/strict";
import { test } from "node:test";
import axe from "axe-core";
import { writeAgentSession } from "./agent-files.mjs";
import { newTab } from "./browser.mjs";
import { stage } from "./stage.mjs";
import { eventually } from "./until.mjs";

const on = stage({ agent: "demo", prepare: ({ home }) => writeAgentSession(home) });
const FIRST_LOAD = 150_000;

/** Leads a tab through everything that the page can show, and looks at each until it is drawn as it shall be. */
async function tour(tab, check) {
  const look = (what) => eventually(() => check(what));
  await tab.connected();
  await look("an empty chat");
  for (const prompt of ["markdown", "think about bridges", "plan", "tool", "edit", "image", "unicode", "error -32603 no more"]) {
    await tab.ask(prompt);
    await tab.unfold();
    await look(prompt);
  }
  const split = tab.page.getByRole("button", { name: "Side by side" });
  await split.click();
  await tab.page.locator("table.split").first().waitFor();
  await look("a diff side by side");
  await tab.send("permission rm -rf build");
  await tab.card.waitFor();
  await look("a permission");
  await tab.card.getByRole("button", { name: "Reject", exact: true }).click();
  await tab.ended();
  await tab.prompt.fill("/");
  await tab.page.getByRole("listbox", { name: "Commands" }).waitFor();
  await look("commands");
  await tab.prompt.fill("");
  const drawer = tab.page.getByRole("button", { name: "Show sessions" });
  if (await drawer.isVisible()) {
    await drawer.click();
    await look("the drawer");
  }
  await tab.page
    .getByRole("button", { name: /^Actions for/ })
    .first()
    .click();
  await look("a menu");
  await tab.page.keyboard.press("Escape");
  await tab.page.getByRole("button", { name: "Gateway" }).click();
  await tab.page.getByRole("heading", { name: "Agents" }).waitFor();
  await look("the gateway");
  if (await drawer.isVisible()) await drawer.click();
  await tab.page.getByRole("button", { name: "Sessions of your agents" }).click();
  const found = tab.page.getByRole("link", { name: /quokka/ });
  await found.waitFor();
  await look("the sessions of agents");
  await found.click();
  await tab.saysInAnswer("It waits for a lock.");
  await tab.unfold();
  await look("a session of an agent");
}

for (const colorScheme of ["light", "dark"]) {
  test(`u11 axe finds nothing serious in ${colorScheme}`, async () => {
    const tab = await on.visit({ colorScheme });
    await tour(tab, async (what) => {
      await tab.page.evaluate(axe.source);
      const { violations } = await tab.page.evaluate(() => window.axe.run());
      const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
      const told = serious.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`));
      assert.deepEqual(told, [], what);
    });
    await tab.close();
  });
}

test("u11 nothing is wider than a phone of 320 pixels", async () => {
  const tab = await on.visit({ viewport: { width: 320, height: 640 }, hasTouch: true });
  await tour(tab, async (what) => {
    const wide = await tab.page.evaluate(() => {
      const root = document.documentElement;
      return root.scrollWidth > root.clientWidth
        ? [...document.querySelectorAll("body *")]
            .filter((element) => element.getBoundingClientRect().right > root.clientWidth + 1)
            .map((element) => `${element.tagName}.${element.className}`)
        : [];
    });
    assert.deepEqual(wide, [], what);
  });
  await tab.close();
});

test("u12 the first load is below 150 kB, compressed, and from the gateway alone", async (t) => {
  const context = await on.browser.newContext();
  const page = await newTab(context);
  const network = await context.newCDPSession(page);
  await network.send("Network.enable");
  const names = new Map();
  const sizes = new Map();
  network.on("Network.requestWillBeSent", ({ requestId, request }) => names.set(requestId, request.url));
  network.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => sizes.set(names.get(requestId), encodedDataLength));
  await page.goto(on.gateway.entry);
  await page.locator(".connection.open:visible").waitFor();
  await eventually(() => {
    assert.ok(sizes.size >= 3, [...sizes.keys()].join(" "));
    assert.deepEqual([...sizes.keys()].sort(), [...new Set(names.values())].sort(), "everything that was asked for has come");
  });
  const all = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  t.diagnostic(`first load: ${all} bytes in ${sizes.size} parts`);
  assert.ok(all < FIRST_LOAD, `${all} bytes: ${JSON.stringify([...sizes])}`);
  for (const url of names.values()) assert.ok(url.startsWith(on.gateway.url) || url.startsWith("data:"), url);
  await context.close();
});
