// The page in a real browser, against a gateway that plays. The built page is in `web/dist`.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { chromium } from "playwright-core";
import { KEY, startStage } from "./stage.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const BROWSERS = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
/** A word of text that Playwright waits for may take this long on a busy machine. */
const PATIENCE = 60_000;

let browser;
before(async () => {
  const executablePath = BROWSERS.find((path) => path && existsSync(path));
  assert.ok(executablePath, "no Chromium found; run `apt-get install chromium` or set `CHROMIUM`");
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
});
after(() => browser?.close());

async function stageFor(t) {
  const stage = await startStage();
  t.after(() => stage.stop());
  return stage;
}

/** A page that is connected; it fails the test when anything in it fails or breaks its policy. */
async function pageFor(t, stage, { hash = `key=${KEY}`, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const failures = [];
  page.on("pageerror", (error) => failures.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/WebSocket connection|ERR_CONNECTION|401/.test(message.text())) failures.push(message.text());
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(failures, []);
  });
  await page.goto(`${stage.url}/#${hash}`);
  return page;
}

async function say(page, text) {
  await page.fill(".composer textarea", text);
  await page.keyboard.press("Enter");
}

const ended = (page, turns = 1) => page.waitForFunction((turns) => document.querySelectorAll(".turn .ended").length >= turns, turns);
const answer = (page) => page.locator(".agent .prose").last().innerText();
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
  assert.ok(asked.length >= 3 && asked.every((url) => url.startsWith(stage.url)), asked.join("\n"));
});

test("the key leaves the address at once and a wrong one is asked for again", async (t) => {
  const stage = await stageFor(t);
  const page = await pageFor(t, stage, { hash: "key=wrong&session=none" });
  await page.waitForSelector(".entry [role=alert]");
  assert.ok(!page.url().includes("wrong"), page.url());
  assert.match(await page.locator(".entry [role=alert]").innerText(), /not valid/);
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
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
});

test("a prompt streams its answer, with thoughts, plan, tools and diff, and the page says that this is the demo", async (t) => {
  const page = await pageFor(t, await stageFor(t));
  await page.waitForSelector(".tag.demo");
  await say(page, "think about it");
  await ended(page, 1);
  assert.match(await page.locator(".thought summary").innerText(), /Thought for/);
  assert.equal(await page.locator(".thought .prose").isVisible(), false);
  assert.equal(await answer(page), "A bridge needs two ends.");
  await say(page, "plan");
  await ended(page, 2);
  assert.equal(await page.locator(".plan li.completed").count(), 3);
  await say(page, "tool");
  await ended(page, 3);
  const card = page.locator(".tool").first();
  assert.match(await card.locator("summary").innerText(), /cargo test.*Run the tests/s);
  await card.locator("summary").click();
  assert.match(await card.innerText(), /112 passed/);
  await card.getByRole("button", { name: /Show all \d+ lines/ }).click();
  await say(page, "edit");
  await ended(page, 4);
  await page.locator(".tool", { hasText: "src/parser.rs" }).locator("summary").click();
  assert.match(await page.locator(".diff figcaption").innerText(), /\+2\s*−2/);
  await page.getByRole("button", { name: "Side by side" }).click();
  assert.ok(await page.locator(".run.split").first().isVisible());
  assert.match(await page.locator(".usage").innerText(), /18 %/);
});

test("reloading in the middle of a stream loses no character and doubles none", async (t) => {
  const page = await pageFor(t, await stageFor(t));
  await say(page, "slow 60 25");
  for (const seen of ["w5", "w20", "w35"]) {
    await page.waitForFunction((word) => document.querySelector(".agent .prose")?.innerText.includes(`${word} `), seen);
    await page.reload();
  }
  await ended(page);
  assert.equal((await answer(page)).trim(), words(60));
  assert.equal(await page.locator(".user .words").count(), 1);
});

test("a gateway that goes away and comes back in the middle of a stream leaves no gap", async (t) => {
  const stage = await stageFor(t);
  const page = await pageFor(t, stage);
  await say(page, "slow 60 25");
  for (const seen of ["w5", "w25"]) {
    await page.waitForFunction((word) => document.querySelector(".agent .prose")?.innerText.includes(`${word} `), seen);
    stage.cut();
    await page.waitForSelector(".connection.waiting, .connection.connecting", { state: "attached" });
    await page.waitForSelector(".connection.open");
  }
  await ended(page);
  assert.equal((await answer(page)).trim(), words(60));
});

test("a permission shows the exact command, does not focus an allowing button, and closes in every tab", async (t) => {
  const stage = await stageFor(t);
  const page = await pageFor(t, stage);
  await say(page, "permission rm -rf build && echo done");
  await page.waitForSelector(".ask");
  assert.equal(await page.locator(".ask .output pre").innerText(), "rm -rf build && echo done");
  assert.match(await page.locator(".ask .scope").innerText(), /without asking again/);
  assert.match(await page.locator(".ask .countdown").innerText(), /\d+ s/);
  assert.equal(await page.evaluate(() => document.activeElement?.closest(".allow") === null), true);
  assert.match(await page.title(), /^\(1\)/);
  const other = await pageFor(t, stage);
  await other.locator(".sessions li a").first().click();
  await other.waitForSelector(".ask");
  await other.locator(".ask .reject").first().click();
  await page.waitForSelector(".ask", { state: "detached" });
  await other.waitForSelector(".ask", { state: "detached" });
  await ended(page);
  assert.equal(await answer(page), "You chose cancel.");
});

test("rejecting can say what to do instead", async (t) => {
  const page = await pageFor(t, await stageFor(t));
  await say(page, "permission rm x");
  await page.getByRole("button", { name: "Reject and say why" }).click();
  await page.keyboard.type("only list it");
  await page.keyboard.press("Enter");
  await ended(page, 2);
  assert.equal(await answer(page), "You said: only list it");
});

test("a form of the agent is filled in and sent", async (t) => {
  const page = await pageFor(t, await stageFor(t));
  await say(page, "elicit");
  await page.getByLabel("Name").fill("Ada");
  await page.locator("form.ask [type=submit]").click();
  await ended(page);
  assert.equal(JSON.parse(await answer(page)).content.name, "Ada");
});

test("Escape and the button stop a turn and keep what was said", async (t) => {
  const page = await pageFor(t, await stageFor(t));
  for (const [turn, stop] of [() => page.keyboard.press("Escape"), () => page.getByRole("button", { name: "Stop" }).click()].entries()) {
    await say(page, "slow 2000 20");
    await page.waitForFunction((turn) => document.querySelectorAll(".agent .prose")[turn]?.innerText.includes("w3"), turn);
    await stop();
    await ended(page, turn + 1);
    assert.match(await answer(page), /^w1 w2 w3/);
    assert.equal(await page.getByText("Stopped", { exact: true }).count(), turn + 1);
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
  });
  await say(page, "long 10000");
  await ended(page);
  await page.waitForFunction(() => document.querySelector(".agent .prose").textContent.includes("Line 10000 "));
  const tasks = await page.evaluate(() => window.longTasks);
  const worst = Math.max(0, ...tasks);
  t.diagnostic(`${tasks.length} long tasks, ${Math.round(tasks.reduce((all, one) => all + one, 0))} ms in all, the worst ${Math.round(worst)} ms`);
  assert.ok(worst < 1_000, `a task of ${worst} ms`);
  const text = await page.locator(".agent .prose").evaluate((root) => root.textContent);
  assert.equal((text.match(/Line \d+ of a long answer/g) ?? []).length, 10_000);
});

test("reading further up is not disturbed, and one press leads back to the end", async (t) => {
  const page = await pageFor(t, await stageFor(t));
  await say(page, "long 400");
  await ended(page);
  await say(page, "slow 400 10");
  await page.waitForFunction(() => document.querySelectorAll(".agent .prose")[1]?.innerText.includes("w5"));
  await page.locator(".scroller").hover();
  await page.mouse.wheel(0, -2_000);
  await page.waitForSelector(".latest");
  const top = await page.locator(".scroller").evaluate((scroller) => scroller.scrollTop);
  await page.waitForFunction(() => document.querySelectorAll(".agent .prose")[1]?.innerText.includes("w60"));
  assert.ok(Math.abs((await page.locator(".scroller").evaluate((scroller) => scroller.scrollTop)) - top) < 300);
  await page.click(".latest");
  await page.waitForFunction(() => {
    const { scrollTop, scrollHeight, clientHeight } = document.querySelector(".scroller");
    return scrollHeight - scrollTop - clientHeight < 60;
  });
});

test("a session begun elsewhere appears as it runs, can be watched and stopped", async (t) => {
  const stage = await stageFor(t);
  const page = await pageFor(t, stage);
  await page.waitForSelector(".connection.open");
  const session = stage.newSession();
  session.origin = "openai";
  stage.prompt(session, [{ type: "text", text: "slow 3000 20" }], { send: () => {} });
  await page.locator(".sessions li", { hasText: "OpenAI" }).locator("a").click();
  await page.waitForFunction(() => document.querySelector(".agent .prose")?.innerText.includes("w10"));
  assert.equal(await page.locator(".user .words").innerText(), "slow 3000 20");
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
  assert.equal(await page.locator(".sessions li").count(), 1);
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
  assert.equal(await page.inputValue(".composer textarea"), "/plan ");
  await page.getByLabel("Model").selectOption("demo-small");
  await page.getByLabel("Mode", { exact: true }).selectOption("yolo");
  await page.waitForFunction(() => document.querySelector("select[aria-label=Mode]").value === "yolo");
  const [session] = stage.sessions.values();
  assert.deepEqual([session.model, session.mode], ["demo-small", "yolo"]);
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
  assert.equal(await page.locator(".user img").count(), 1);
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
    const check = async (where) => {
      if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
      const { violations } = await page.evaluate(() => window.axe.run());
      const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
      assert.deepEqual(
        serious.map(({ id, nodes }) => `${where}: ${id}: ${nodes.map(({ html }) => html).join(" | ")}`),
        [],
      );
    };
    await page.waitForSelector(".welcome li");
    await check("welcome");
    for (const [turn, text] of ["think", "plan", "tool", "edit", "markdown"].entries()) {
      await say(page, text);
      await ended(page, turn + 1);
    }
    for (const summary of await page.locator("details > summary").all()) await summary.click();
    await check("conversation");
    await say(page, "permission");
    await page.waitForSelector(".ask");
    await check("permission");
    await page.locator(".sessions .menu button").first().click();
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
  for (const summary of await page.locator("details > summary").all()) await summary.click();
  const wide = () => page.evaluate(() => document.documentElement.scrollWidth);
  assert.equal(await wide(), 320);
  await say(page, "permission rm -rf build");
  await page.waitForSelector(".ask");
  for (const button of await page.locator(".answers button, .stop").all()) {
    const box = await button.boundingBox();
    assert.ok(box && box.x >= 0 && box.x + box.width <= 320, await button.innerText());
  }
  await page.getByRole("button", { name: "Show sessions" }).click();
  await page.locator(".sessions li a").first().waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".ask .reject").first().click();
  await ended(page, 4);
  assert.equal(await wide(), 320);
});
