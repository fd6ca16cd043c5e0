import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { tidy } from "./browser.mjs";
import { stage } from "./stage.mjs";
import { eventually } from "./until.mjs";

const on = stage({ agent: "fake" });

test("the key leaves the address at once and stays in the tab", async () => {
  const tab = await on.visit();
  await tab.connected();
  // The page's own word: what Playwright knows of the address comes a little later.
  const address = await tab.page.evaluate(() => location.href);
  assert.ok(!address.includes(on.gateway.key), address);
  await tab.page.reload();
  await tab.connected();
  const kept = await tab.page.evaluate(() => [JSON.stringify({ ...localStorage }), document.cookie]);
  assert.ok(!kept.join().includes(on.gateway.key), "beyond the tab nothing is kept");
  await tab.close();
});

test("f20 a link with another key changes nothing before a person has agreed", async () => {
  const made = await on.gateway.fetch("/admin/keys", { method: "POST", body: { name: "sender", rank: "user" } });
  const { key } = await made.json();
  const tab = await on.visit();
  await tab.connected();
  await tab.page.getByText("Signed in with the key of the link").waitFor();
  await tab.ask("say mine");
  const session = await tab.session();
  const follow = () => tab.page.evaluate((key) => (location.hash = `key=${key}`), key);
  const question = tab.page.getByRole("alertdialog", { name: "Change the key?" });
  await follow();
  await question.getByRole("button", { name: "Stay signed in as before" }).click();
  await tab.page.locator(".sessions").getByText("mine").first().waitFor();
  assert.ok((await tab.page.evaluate(() => ({ ...sessionStorage })))["gembridge.key"] === on.gateway.key);
  await follow();
  await question.getByRole("button", { name: "Use the key of the link" }).click();
  await tab.connected();
  await tab.page.evaluate((session) => (location.hash = `session=${session}`), session);
  await tab.page.getByText("This session cannot be shown").waitFor();
  await tab.close();
});

test("without a key the page asks for one, and says when it is wrong", async () => {
  const tab = await on.visit({ address: on.gateway.url });
  const field = tab.page.getByLabel("Key");
  await field.fill("gb-wrong");
  await field.press("Enter");
  await tab.page.getByRole("alert").waitFor();
  await field.fill(on.gateway.key);
  await field.press("Enter");
  await tab.connected();
  tab.wrongs.length = 0; // A refused key is an error of the network to the browser.
  await tab.close();
});

test("a prompt is sent and its answer streams in", async () => {
  const tab = await on.visit();
  const go = join(on.gateway.home, "go-stream");
  await tab.send(`say one ;; until ${go} ;; say , two`);
  await tab.saysInAnswer("one");
  await tab.stop.waitFor();
  await tab.answers("one", "the first piece is shown before the second one is there");
  writeFileSync(go, "");
  await tab.ended();
  await tab.answers("one, two");
  await tab.counts(tab.stop, 0);
  await tab.close();
});

test("thoughts are folded away from the answer, plans are a list", async () => {
  const tab = await on.visit();
  await tab.ask("think it over ;; plan Read | Change | Test ;; say done");
  await tab.answers("done");
  const thought = tab.page.locator("details.thought");
  assert.equal(await thought.getByText("it over").isVisible(), false);
  await thought.locator("summary").click();
  await thought.getByText("it over").waitFor();
  const steps = tab.page.getByRole("region", { name: "Plan" }).getByRole("listitem");
  await eventually(async () => assert.deepEqual((await steps.allInnerTexts()).map(tidy), ["Read done", "Change in progress", "Test to do"]));
  await tab.close();
});

test("a tool call is a line that opens to what went in and came out", async () => {
  const tab = await on.visit();
  await tab.ask(
    "tool execute cargo test [current working directory /home/me] (Run the tests) => \u001b[32mok\u001b[0m 12 passed ;; tool-fail read Cargo.toml ;; say done",
  );
  const run = tab.page.locator("details.tool").nth(0);
  const read = tab.page.locator("details.tool").nth(1);
  await eventually(async () => {
    const line = tidy(await run.innerText());
    for (const part of ["cargo test", "Run the tests", "done"]) assert.ok(line.includes(part), line);
    assert.ok(!line.includes("current working directory"), line);
    assert.match(await read.innerText(), /failed/);
  });
  await run.locator("summary").click();
  const inside = run.locator(".inside");
  await inside.getByText("12 passed").waitFor();
  await inside.getByText("/home/me").waitFor();
  assert.ok(!(await inside.innerText()).includes("["), "no control sequence is left");
  await tab.close();
});

test("a change to a file is shown as a diff, in one column or two", async () => {
  const tab = await on.visit();
  await tab.ask("diff src/greeting.txt hello => goodbye ;; say done");
  const card = tab.page.locator("details.tool");
  await card.locator("summary").click();
  const diff = card.locator("figure.diff");
  await diff.getByText("src/greeting.txt").waitFor();
  const reads = (what, texts) => eventually(async () => assert.deepEqual((await diff.locator(what).allInnerTexts()).map(tidy), texts));
  await reads("tr.removed .text", ["hello"]);
  await reads("tr.added .text", ["goodbye"]);
  await reads(".counts", ["+1 −1"]);
  await diff.getByRole("button", { name: "Side by side" }).click();
  await reads("table.split td.text", ["hello", "goodbye"]);
  await tab.close();
});

for (const [name, press] of [
  ["the stop button", (tab) => tab.stop.click()],
  ["Escape", (tab) => tab.page.keyboard.press("Escape")],
]) {
  test(`${name} ends the turn and keeps what was said`, async () => {
    const tab = await on.visit();
    await tab.send("say so far ;; wait-cancel");
    await tab.saysInAnswer("so far");
    await press(tab);
    await tab.ended();
    await tab.turns.last().getByText("Stopped").waitFor();
    await tab.answers("so far");
    await tab.ask("say again");
    await tab.answers("again");
    await tab.close();
  });
}

test("a prompt on a busy session waits, and says so", async () => {
  const tab = await on.visit();
  const go = join(on.gateway.home, "go-queue");
  await tab.send(`until ${go} ;; say first`);
  await tab.stop.waitFor();
  await tab.send("say second");
  await tab.turns.last().getByText("Queued").waitFor();
  writeFileSync(go, "");
  await tab.ended();
  await tab.answersInAll(["first", "second"]);
  await tab.close();
});

test("sessions are listed, found, renamed, exported and deleted", async () => {
  const tab = await on.visit();
  const list = tab.page.getByRole("navigation", { name: "Sessions" });
  await tab.ask("say a needle ;; title Needle of the haystack");
  await list.getByText("Needle of the haystack").waitFor();
  await list.getByRole("searchbox").fill("nothing like it");
  await list.getByText("No session matches.").waitFor();
  await list.getByRole("searchbox").fill("needle");
  const act = async (name) => {
    await list.getByRole("button", { name: /^Actions for/ }).click();
    await list.getByRole("menuitem", { name }).click();
  };
  await act("Rename");
  await list.getByRole("textbox", { name: "New title" }).fill("My needle");
  await tab.page.keyboard.press("Enter");
  await list.getByText("My needle").waitFor();
  const download = tab.page.waitForEvent("download");
  await act("Export as Markdown");
  const text = await readAll(await (await download).createReadStream());
  assert.ok(text.startsWith("# My needle\n"), text);
  assert.ok(text.includes("## Answer\n\na needle"), text);
  await act("Delete");
  await list.getByRole("menuitem", { name: "Really delete?" }).click();
  await list.getByText("My needle").waitFor({ state: "detached" });
  await tab.close();
});

async function readAll(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

test("the agent's commands complete, its modes and models can be chosen", async () => {
  const tab = await on.visit();
  await tab.ask("commands ;; say done");
  await tab.prompt.fill("/");
  const menu = tab.page.getByRole("listbox", { name: "Commands" });
  await menu.waitFor();
  const first = await menu.getByRole("option").first().locator("code").innerText();
  await tab.prompt.press("Enter");
  await eventually(async () => assert.equal((await tab.prompt.inputValue()).trim(), first));
  await tab.prompt.fill("");
  const mode = tab.page.getByRole("combobox", { name: "Mode", exact: true });
  await mode.waitFor();
  const others = await mode.locator("option").evaluateAll((options) => options.filter((option) => !option.selected).map((option) => option.value));
  await mode.selectOption(others[0]);
  await tab.ask("say after");
  await eventually(async () => assert.equal(await mode.inputValue(), others[0]));
  await tab.close();
});

test("a picture is pasted and goes along with the prompt", async () => {
  const tab = await on.visit();
  await tab.prompt.fill("echo");
  await tab.page.evaluate(() => {
    const png = Uint8Array.from(atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="), (char) =>
      char.charCodeAt(0),
    );
    const data = new DataTransfer();
    data.items.add(new File([png], "dot.png", { type: "image/png" }));
    document.querySelector("textarea").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  });
  await tab.page.getByRole("img", { name: "Picture 1" }).waitFor();
  await tab.prompt.press("Enter");
  await tab.ended();
  await tab.page.getByRole("article", { name: "Prompt" }).getByRole("img").waitFor();
  await tab.saysInAnswer("image/png");
  await tab.close();
});

test("a person works by keyboard alone", async () => {
  const tab = await on.visit();
  const { keyboard } = tab.page;
  await tab.connected();
  await tab.page.locator(".skip").focus();
  await keyboard.press("Enter");
  await keyboard.type("permission ls");
  await keyboard.press("Enter");
  await tab.card.waitFor();
  // The card has the focus, and none of its buttons: nothing is allowed by a key that was meant for something else.
  await tab.page.waitForFunction(() => document.activeElement?.getAttribute("role") === "alertdialog");
  const focused = () => tab.page.evaluate(() => document.activeElement.textContent.trim());
  const passed = [];
  do {
    await keyboard.press("Tab");
    passed.push(await focused());
  } while (!/^reject/i.test(passed.at(-1)) && passed.length < 12);
  assert.match(passed.at(-1), /^reject/i, passed.join(" | "));
  await keyboard.press("Enter");
  await tab.ended();
  await tab.saysInAnswer("permission: reject_once");
  await keyboard.type("say typed on");
  await keyboard.press("Enter");
  await tab.saysInAnswer("typed on");
  await tab.close();
});
