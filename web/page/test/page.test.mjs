// The page in a real browser, against a gateway that plays. The built page is in `web/dist`.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { atTheEnd, AWAY, launch, newTab, wheelUp } from "../../e2e/browser.mjs";
import { eventually, until } from "../../e2e/until.mjs";
import { KEY, startStage } from "./stage.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** A task of the page that takes longer is felt; on a slow machine, one that takes so large a part of all the time. */
const LONGEST_MS = 2_000;
const LARGEST_PART = 1 / 3;

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

/** What a test has made, newest first: pages go before the gateway that they show. */
const made = new WeakMap();

function undoAfter(t, undo) {
  if (!made.has(t)) {
    made.set(t, []);
    t.after(async () => {
      for (const undo of made.get(t)) await undo();
    });
  }
  made.get(t).unshift(undo);
}

async function stageFor(t) {
  const stage = await startStage();
  undoAfter(t, () => stage.stop());
  return stage;
}

/** A page that is connected; it fails the test when anything in it fails or breaks its policy. */
async function pageFor(t, stage, { hash = `key=${KEY}`, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options });
  const page = await newTab(context);
  const failures = [];
  page.on("pageerror", (error) => failures.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !AWAY.test(message.text()) && !message.text().includes("401")) failures.push(message.text());
  });
  undoAfter(t, async () => {
    await context.close();
    assert.deepEqual(failures, []);
  });
  await page.goto(`${stage.url}/#${hash}`);
  return page;
}

async function say(page, text) {
  await page.fill(".composer textarea", text);
  await page.press(".composer textarea", "Enter");
}

const ended = (page, turns = 1) => page.waitForFunction((turns) => document.querySelectorAll(".turn .ended").length >= turns, turns);
/** So many elements are there. */
const counts = (locator, count) => eventually(async () => assert.equal(await locator.count(), count));
/** The text of an element is, or matches, this. */
const reads = (locator, wanted) =>
  eventually(async () => {
    const text = (await locator.innerText()).trim();
    if (wanted instanceof RegExp) assert.match(text, wanted);
    else assert.equal(text, wanted);
  });
/** So reads the last answer. A turn can be over before the last of its text is drawn. */
const answers = (page, wanted) => reads(page.locator(".agent .prose").last(), wanted);
/** The answer of a turn has come so far. */
const says = (page, word, turn = 0) =>
  page.waitForFunction(([word, turn]) => document.querySelectorAll(".agent .prose")[turn]?.innerText.includes(`${word} `), [word, turn]);
/** Opens everything that is folded. What is inside a tool call is drawn only then. */
async function unfold(page) {
  for (const summary of await page.locator("details > summary").all()) await summary.click();
  await page.waitForFunction(() => document.querySelectorAll("details:not([open]), details.tool:not(:has(.inside))").length === 0);
}
const words = (count) => Array.from({ length: count }, (_, n) => `w${n + 1}`).join(" ");

test("the first load is below 150 KB compressed and asks nobody else", async (t) => {
  const dist = fileURLToPath(new URL("../../dist/", import.meta.url));
  const assets = readdirSync(`${dist}/assets`).filter((name) => !name.endsWith(".gz"));
  const files = ["index.html", ...assets.map((name) => `assets/${name}`)];
  const size = files.reduce((all, file) => all + gzipSync(readFileSync(dist + file), { level: 9 }).length, 0);
  assert.ok(size < 150 * 1024, `${size} bytes`);
  const stage = await stageFor(t);
  const page = await pageFor(t, stage, { hash: "" });
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.reload();
  await page.waitForSelector(".entry");
  await eventually(() => assert.ok(asked.length >= 3, asked.join("\n")));
  assert.deepEqual(
    asked.filter((url) => !url.startsWith(stage.url)),
    [],
  );
});

const storedKey = (page) => page.evaluate(() => Object.values({ ...sessionStorage }).join());

test("f20 a tab without a key signs in with a link's and says so", async (t) => {
  const page = await pageFor(t, await stageFor(t));
  await page.waitForSelector(".connection.open");
  const note = page.getByRole("status").filter({ hasText: "the key of the link" });
  await note.waitFor();
  await page.reload();
  await page.waitForSelector(".connection.open");
  await counts(note, 0);
  assert.equal(await storedKey(page), KEY);
});

test("f20 a tab with a key never takes another from a link without being told to", async (t) => {
  const stage = await stageFor(t);
  const page = await pageFor(t, stage);
  await page.waitForSelector(".connection.open");
  const question = page.getByRole("alertdialog", { name: "Change the key?" });
  const follows = [() => page.evaluate(() => (location.hash = "key=gb-of-somebody-else")), () => page.goto(`${stage.url}/?again#key=gb-of-somebody-else`)];
  for (const follow of follows) {
    await follow();
    await question.waitFor();
    assert.equal(await storedKey(page), KEY);
    assert.ok(!(await page.evaluate(() => location.href)).includes("somebody"));
    await question.getByRole("button", { name: "Stay signed in as before" }).click();
    await page.waitForSelector(".connection.open");
    assert.equal(await storedKey(page), KEY);
  }
  await follows[0]();
  await question.getByRole("button", { name: "Use the key of the link" }).click();
  // This gateway does not know it.
  await page.waitForSelector(".entry [role=alert]");
  assert.equal(await storedKey(page), "");
});

test("the key leaves the address at once and a wrong one is asked for again", async (t) => {
  const stage = await stageFor(t);
  const page = await pageFor(t, stage, { hash: "key=wrong&session=none" });
  await page.waitForSelector(".entry [role=alert]");
  // The page's own word: what Playwright knows of the address comes a little later.
  const address = await page.evaluate(() => location.href);
  assert.ok(!address.includes("wrong"), address);
  await reads(page.locator(".entry [role=alert]"), /not valid/);
  await page.fill("input[type=password]", KEY);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".connection.open");
  await page.reload();
  await page.waitForSelector(".connection.open");
  assert.equal(await page.evaluate((key) => Object.keys(localStorage).some((name) => localStorage.getItem(name).includes(key)), KEY), false);
});

test("a key that is revoked while the page is open is asked for anew", async (t) => {
  const stage = await stageFor(t);
  const page = await pageFor(t, stage);
  await page.waitForSelector(".connection.open");
  stage.closeAll(1008);
  await page.waitForSelector(".entry [role=alert]");
  await eventually(async () => assert.equal(await page.evaluate(() => sessionStorage.length), 0));
});

test("a prompt streams its answer, with thoughts, plan, tools and diff, and the page says that this is the demo", async (t) => {
  const page = await pageFor(t, await stageFor(t));
  await page.waitForSelector(".tag.demo");
  await say(page, "think about it");
  await ended(page, 1);
  await reads(page.locator(".thought summary"), /Thought for/);
  assert.equal(await page.locator(".thought .prose").isVisible(), false);
  await answers(page, "A bridge needs two ends.");
  await say(page, "plan");
  await ended(page, 2);
  await counts(page.locator(".plan li.completed"), 3);
  await say(page, "tool");
  await ended(page, 3);
  const card = page.locator(".tool").first();
  await reads(card.locator("summary"), /cargo test.*Run the tests/s);
  await card.locator("summary").click();
  await reads(card, /112 passed/);
  await card.getByRole("button", { name: /Show all \d+ lines/ }).click();
  await say(page, "edit");
  await ended(page, 4);
  await page.locator(".tool", { hasText: "src/parser.rs" }).locator("summary").click();
  await reads(page.locator(".diff figcaption"), /\+2\s*−2/);
  await page.getByRole("button", { name: "Side by side" }).click();
  await page.locator(".run.split").first().waitFor();
  await reads(page.locator(".usage"), /18 %/);
});

test("reloading in the middle of a stream loses no character and doubles none", async (t) => {
  const page = await pageFor(t, await stageFor(t));
  await say(page, "slow 60 25");
  for (const seen of ["w5", "w20", "w35"]) {
    await says(page, seen);
    await page.reload();
  }
  await ended(page);
  await answers(page, words(60));
  await counts(page.locator(".user .words"), 1);
});

test("a gateway that goes away and comes back in the middle of a stream leaves no gap", async (t) => {
  const stage = await stageFor(t);
  const page = await pageFor(t, stage);
  await say(page, "slow 60 25");
  for (const seen of ["w5", "w25"]) {
    await says(page, seen);
    stage.leave();
    await page.waitForSelector(".connection.waiting, .connection.connecting");
    stage.comeBack();
    await page.waitForSelector(".connection.open");
  }
  await ended(page);
  await answers(page, words(60));
});

test("what is written while a session is being made is kept for it", async (t) => {
  const stage = await stageFor(t);
  const page = await pageFor(t, stage);
  await page.waitForSelector(".connection.open");
  stage.leave();
  await say(page, "first");
  await page.fill(".composer textarea", "second");
  stage.comeBack();
  await ended(page, 1);
  await page.press(".composer textarea", "Enter");
  await ended(page, 2);
  await answers(page, "You said: second");
});

test("a permission shows the exact command, does not focus an allowing button, and closes in every tab", async (t) => {
  const stage = await stageFor(t);
  const page = await pageFor(t, stage);
  await say(page, "permission rm -rf build && echo done");
  await page.waitForSelector(".ask");
  await reads(page.locator(".ask .output pre"), "rm -rf build && echo done");
  await reads(page.locator(".ask .scope"), /without asking again/);
  assert.equal(await page.locator(".ask .countdown").count(), 0, "a person is not hurried while there is time");
  await page.waitForFunction(() => document.activeElement?.matches(".ask"));
  await eventually(async () => assert.match(await page.title(), /^\(1\)/));
  const other = await pageFor(t, stage);
  await other.locator(".sessions li a").first().click();
  await other.waitForSelector(".ask");
  await other.locator(".ask .reject").first().click();
  await page.waitForSelector(".ask", { state: "detached" });
  await other.waitForSelector(".ask", { state: "detached" });
  await ended(page);
  await answers(page, "You chose cancel.");
});

test("a permission that is about to expire shows how long it still waits", async (t) => {
  const stage = await stageFor(t);
  const page = await pageFor(t, stage);
  await say(page, "permission soon");
  await reads(page.locator(".ask .countdown"), /\d+ s/);
});

test("rejecting can say what to do instead", async (t) => {
  const page = await pageFor(t, await stageFor(t));
  await say(page, "permission rm x");
  await page.getByRole("button", { name: "Reject and say why" }).click();
  await page.keyboard.type("only list it");
  await page.keyboard.press("Enter");
  await ended(page, 2);
  await answers(page, "You said: only list it");
});

test("a form of the agent is filled in and sent", async (t) => {
  const page = await pageFor(t, await stageFor(t));
  await say(page, "elicit");
  await page.getByLabel("Name").fill("Ada");
  await page.locator("form.ask [type=submit]").click();
  await ended(page);
  await answers(page, /"name":"Ada"/);
});

test("Escape and the button stop a turn and keep what was said", async (t) => {
  const page = await pageFor(t, await stageFor(t));
  for (const [turn, stop] of [() => page.keyboard.press("Escape"), () => page.getByRole("button", { name: "Stop" }).click()].entries()) {
    await say(page, "slow 100000 20");
    await says(page, "w3", turn);
    await stop();
    await ended(page, turn + 1);
    await answers(page, /^w1 w2 w3/);
    await counts(page.getByText("Stopped", { exact: true }), turn + 1);
  }
});

test("an agent that fails says so under what it had said", async (t) => {
  const page = await pageFor(t, await stageFor(t));
  await say(page, "error");
  await page.getByText("Interrupted: the agent exited with code 3").waitFor();
});

test("hostile markdown is inert", async (t) => {
  const stage = await stageFor(t);
  const page = await pageFor(t, stage);
  const outside = [];
  page.on("request", (request) => {
    if (!request.url().startsWith(stage.url)) outside.push(request.url());
  });
  await say(page, "markdown hostile");
  await ended(page);
  // The last of it: by then all of it is drawn.
  await page.locator(".agent .prose pre", { hasText: "<script>window.harmed=1</script>" }).waitFor();
  assert.equal(await page.evaluate(() => window.harmed), undefined);
  const found = await page.locator(".agent .prose").evaluate((root) => ({
    active: root.querySelectorAll("script, style, iframe, form, svg, object, embed, [onerror], [onload], [style]").length,
    links: [...root.querySelectorAll("a[href]")].map((link) => [link.getAttribute("href"), link.rel, link.target]),
    images: root.querySelectorAll("img").length,
    text: root.innerText,
  }));
  assert.equal(found.active, 0);
  assert.equal(found.images, 0);
  assert.deepEqual(found.links, [
    ["https://example.com", "noopener noreferrer nofollow", "_blank"],
    ["https://evil.example/pixel.png", "noopener noreferrer nofollow", "_blank"],
  ]);
  assert.match(found.text, /<script>window\.harmed=1<\/script>/);
  assert.match(found.text, /⟨U\+202E⟩/);
  assert.deepEqual(outside, []);
});

test("an answer of 10 000 lines stays smooth while it comes and is all there", async (t) => {
  const page = await pageFor(t, await stageFor(t));
  await page.evaluate(() => {
    window.longTasks = [];
    new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask" });
    window.begun = performance.now();
  });
  await say(page, "long 10000");
  await ended(page);
  await page.waitForFunction(() => document.querySelector(".agent .prose").textContent.includes("Line 10000 "));
  const { tasks, took } = await page.evaluate(() => ({ tasks: window.longTasks, took: performance.now() - window.begun }));
  const worst = Math.max(0, ...tasks);
  t.diagnostic(
    `${tasks.length} long tasks, ${Math.round(tasks.reduce((all, one) => all + one, 0))} ms of ${Math.round(took)} ms, the worst ${Math.round(worst)} ms`,
  );
  assert.ok(worst < Math.max(LONGEST_MS, took * LARGEST_PART), `a task of ${worst} ms in ${took} ms`);
  await eventually(async () => {
    const text = await page.locator(".agent .prose").evaluate((root) => root.textContent);
    assert.equal((text.match(/Line \d+ of a long answer/g) ?? []).length, 10_000);
  });
});

test("reading further up is not disturbed, and one press leads back to the end", async (t) => {
  const page = await pageFor(t, await stageFor(t));
  await say(page, "long 400");
  await ended(page);
  await atTheEnd(page);
  await say(page, "slow 100000 10");
  await says(page, "w5", 1);
  await wheelUp(page, 2_000);
  await page.waitForSelector(".latest");
  const far = () =>
    page.waitForFunction(() => {
      const { scrollTop, scrollHeight, clientHeight } = document.querySelector(".scroller");
      return scrollHeight - scrollTop - clientHeight > 1_000;
    });
  await far();
  const length = () =>
    page
      .locator(".agent .prose")
      .nth(1)
      .evaluate((root) => root.textContent.length);
  const before = await length();
  await until("more of the answer", async () => (await length()) > before + 500);
  await far();
  await page.click(".latest");
  await atTheEnd(page);
});

test("a session begun elsewhere appears as it runs, can be watched and stopped", async (t) => {
  const stage = await stageFor(t);
  const page = await pageFor(t, stage);
  await page.waitForSelector(".connection.open");
  const session = stage.newSession();
  session.origin = "openai";
  stage.prompt(session, [{ type: "text", text: "slow 100000 20" }], { send: () => {} });
  await page.locator(".sessions li", { hasText: "OpenAI" }).locator("a").click();
  await says(page, "w10");
  await reads(page.locator(".user .words"), "slow 100000 20");
  await page.getByRole("button", { name: "Stop" }).click();
  await ended(page);
});

test("sessions are searched, renamed, exported and deleted by keyboard", async (t) => {
  const page = await pageFor(t, await stageFor(t));
  await say(page, "first talk");
  await ended(page);
  await page.getByRole("button", { name: "New chat" }).click();
  await say(page, "second talk");
  await ended(page);
  await page.fill("[type=search]", "first");
  await counts(page.locator(".sessions li"), 1);
  await page.getByRole("button", { name: "Actions for first talk" }).focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  await page.getByLabel("New title").fill("first, renamed");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "first, renamed" }).waitFor();
  for (const [name, wanted] of [
    ["Export as Markdown", "## Answer\n\nYou said: first talk"],
    ["Export as JSON", '"text": "You said: first talk"'],
  ]) {
    await page.getByRole("button", { name: "Actions for first, renamed" }).click();
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("menuitem", { name }).click()]);
    assert.ok(readFileSync(await download.path(), "utf8").includes(wanted), name);
  }
  await page.getByRole("button", { name: "Actions for first, renamed" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.getByRole("menuitem", { name: "Really delete?" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".sessions li").length === 0);
});

test("slash commands are chosen by keyboard, models and modes by their lists", async (t) => {
  const stage = await stageFor(t);
  const page = await pageFor(t, stage);
  await say(page, "hello");
  await ended(page);
  await page.locator(".composer textarea").pressSequentially("/pl");
  await page.getByRole("option", { name: "/plan" }).waitFor();
  await page.keyboard.press("Tab");
  await eventually(async () => assert.equal(await page.inputValue(".composer textarea"), "/plan "));
  await page.getByLabel("Model").selectOption("demo-small");
  await page.getByLabel("Mode", { exact: true }).selectOption("yolo");
  const [session] = stage.sessions.values();
  await eventually(async () => {
    assert.deepEqual([session.model, session.mode], ["demo-small", "yolo"]);
    assert.equal(await page.getByLabel("Model").inputValue(), "demo-small");
    assert.equal(await page.getByLabel("Mode", { exact: true }).inputValue(), "yolo");
  });
});

test("a pasted picture goes with the prompt", async (t) => {
  const stage = await stageFor(t);
  const page = await pageFor(t, stage);
  await page.waitForSelector(".connection.open");
  await page.locator(".composer textarea").evaluate((area) => {
    const data = new DataTransfer();
    const pixel = Uint8Array.from(atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="), (c) =>
      c.charCodeAt(0),
    );
    data.items.add(new File([pixel], "pixel.png", { type: "image/png" }));
    area.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  });
  await page.waitForSelector(".pictures img");
  await say(page, "what is this?");
  await ended(page);
  await counts(page.locator(".user img"), 1);
  const prompt = stage.received.find(({ method }) => method === "session/prompt").params.prompt;
  assert.deepEqual(
    prompt.map(({ type }) => type),
    ["image", "text"],
  );
});

test("the gateway's own affairs are shown, an origin allowed, a key made and shown once", async (t) => {
  const page = await pageFor(t, await stageFor(t));
  await page.getByRole("button", { name: "Gateway" }).click();
  await page.getByText("4711").waitFor();
  await page.getByRole("button", { name: "Allow https://chat.example.com" }).click();
  await page.getByRole("button", { name: "Remove https://chat.example.com" }).waitFor();
  await page.getByLabel("Name of the new key").fill("robot");
  await page.keyboard.press("Enter");
  await page.getByText("gbk_0123456789abcdef").waitFor();
});

for (const colorScheme of ["light", "dark"]) {
  test(`nothing serious stands in the way of assistive software, ${colorScheme}`, async (t) => {
    const page = await pageFor(t, await stageFor(t), { colorScheme, bypassCSP: true });
    const check = (where) =>
      eventually(async () => {
        if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
        const { violations } = await page.evaluate(() => window.axe.run());
        const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
        assert.deepEqual(
          serious.map(({ id, nodes }) => `${where}: ${id}: ${nodes.map(({ html }) => html).join(" | ")}`),
          [],
        );
      });
    await page.waitForSelector(".welcome li");
    await check("welcome");
    for (const [turn, text] of ["think", "plan", "tool", "edit", "markdown"].entries()) {
      await say(page, text);
      await ended(page, turn + 1);
    }
    await unfold(page);
    await check("conversation");
    await say(page, "permission");
    await page.waitForSelector(".ask");
    await check("permission");
    await page.locator(".sessions .menu button").first().click();
    await page.waitForSelector("[role=menu]");
    await check("menu");
    await page.getByRole("button", { name: "Gateway" }).click();
    await page.getByText("4711").waitFor();
    await check("gateway");
  });
}

test("at 320 pixels nothing is cut off and the list is a drawer", async (t) => {
  const page = await pageFor(t, await stageFor(t), { viewport: { width: 320, height: 640 } });
  await page.waitForSelector(".welcome li");
  for (const [turn, text] of ["tool", "edit", "markdown"].entries()) {
    await say(page, text);
    await ended(page, turn + 1);
  }
  await unfold(page);
  const fits = () => eventually(async () => assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320));
  await fits();
  await say(page, "permission rm -rf build");
  await page.waitForSelector(".ask");
  await page.waitForSelector(".stop");
  for (const button of await page.locator(".answers button, .stop").all()) {
    await eventually(async () => {
      const box = await button.boundingBox();
      assert.ok(box && box.x >= 0 && box.x + box.width <= 320, `${await button.innerText()}: ${JSON.stringify(box)}`);
    });
  }
  await page.getByRole("button", { name: "Show sessions" }).click();
  await page.locator(".sessions li a").first().waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".ask .reject").first().click();
  await ended(page, 4);
  await fits();
});
