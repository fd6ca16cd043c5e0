import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { visit } from "./browser.mjs";
import { stage } from "./stage.mjs";
import { eventually } from "./until.mjs";
import { Wire } from "./wire.mjs";

const on = stage({ agent: "fake" });

/** What the fake agent says to `chunks COUNT`. */
const said = (count) => Array.from({ length: count }, (_, at) => `chunk-${at}`).join(" ");
const read = async (tab) => (await tab.answer.innerText()).trim();
const prompts = (tab) => tab.page.getByRole("article", { name: "Prompt" });
const sees = (tab, chunk) => tab.saysInAnswer(new RegExp(`chunk-${chunk}\\b`));

test("reloads in the middle of a stream lose and double no character", async () => {
  const tab = await on.visit();
  const go = join(on.gateway.home, "go-reload");
  await tab.send(`chunks 600 delay 5 ;; until ${go} ;; say !`);
  for (const chunk of [40, 200, 400]) {
    await sees(tab, chunk);
    await tab.page.reload();
  }
  await sees(tab, 599);
  await tab.counts(tab.stop, 1, "the turn still runs");
  await tab.answers(said(600));
  writeFileSync(go, "");
  await tab.ended();
  await tab.answers(`${said(600)} !`);
  await tab.counts(prompts(tab), 1);
  await tab.close();
});

test("a connection that is cut again and again loses and doubles no character", async () => {
  const wire = await Wire.to(on.gateway);
  const tab = await visit(on.browser, wire);
  const go = join(on.gateway.home, "go-cut");
  await tab.send(`chunks 800 delay 5 ;; until ${go} ;; say !`);
  for (const chunk of [30, 150, 300, 450, 600]) {
    await sees(tab, chunk);
    wire.cut();
  }
  await sees(tab, 799);
  writeFileSync(go, "");
  await tab.ended();
  await tab.answers(`${said(800)} !`);
  await tab.counts(prompts(tab), 1);
  await tab.close();
  await wire.close();
});

test("a prompt that is written while the connection is away is sent when it is back", async () => {
  const wire = await Wire.to(on.gateway);
  const tab = await visit(on.browser, wire);
  await tab.ask("say one");
  await on.gateway.kill();
  await tab.page.getByRole("status").filter({ hasText: "Reconnecting" }).first().waitFor();
  await tab.send("say two");
  await tab.turns.last().getByText("Will be sent when the connection is back").waitFor();
  await on.gateway.serve();
  await tab.turns.nth(1).locator("footer.ended").waitFor();
  await tab.answersInAll(["one", "two"]);
  await tab.close();
  await wire.close();
});

test("a gateway that is killed and comes back in the middle of an answer costs nothing that was shown", async () => {
  const wire = await Wire.to(on.gateway);
  const tab = await visit(on.browser, wire);
  await tab.ask("say before");
  await tab.send("chunks 100000 delay 5");
  await sees(tab, 100);
  await on.gateway.kill();
  const seen = await read(tab);
  await tab.page.getByRole("status").filter({ hasText: "Reconnecting" }).first().waitFor();
  await on.gateway.serve();
  await tab.connected();
  await tab.turns
    .nth(1)
    .getByText(/^Interrupted/)
    .waitFor();
  const other = await on.visit({ address: `${on.gateway.url}/#session=${await tab.session()}&key=${on.gateway.key}` });
  await other.turns
    .nth(1)
    .getByText(/^Interrupted/)
    .waitFor();
  const kept = await eventually(async () => {
    const text = await read(tab);
    assert.ok(text.startsWith(seen), "what was shown is still shown");
    assert.equal(await read(other), text, "a new tab reads the same from the log");
    return text;
  });
  assert.ok(said(100_000).startsWith(kept), "without a gap or a double");
  await tab.ask("say after");
  await other.turns.nth(2).locator("footer.ended").waitFor();
  await other.answersInAll(["before", kept, "after"]);
  await other.close();
  await tab.close();
  await wire.close();
});

test("who comes late with limit=1 sees the last turn whole, and the rest when asked for", async () => {
  const tab = await on.visit();
  const go = join(on.gateway.home, "go-late");
  await tab.ask("say first");
  await tab.ask("say second");
  await tab.send(`chunks 50 ;; until ${go} ;; say !`);
  await sees(tab, 49);
  const late = await on.visit({ address: `${on.gateway.url}/#session=${await tab.session()}&limit=1&key=${on.gateway.key}` });
  await sees(late, 49);
  await late.counts(late.turns, 1);
  await late.answers(said(50));
  await late.stop.waitFor();
  writeFileSync(go, "");
  await late.ended();
  await late.answers(`${said(50)} !`);
  await late.page.getByRole("button", { name: "Show earlier turns" }).click();
  await late.turns.nth(2).locator("footer.ended").waitFor();
  await late.answersInAll(["first", "second", `${said(50)} !`]);
  await late.close();
  await tab.close();
});
