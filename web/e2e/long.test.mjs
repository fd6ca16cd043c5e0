import assert from "node:assert/strict";
import { test } from "node:test";
import { stage } from "./stage.mjs";

const on = stage({ agent: "demo" });

/** A task that keeps a person waiting for longer than this would be felt, on a slow and loaded machine too. */
const LONGEST_MS = 2_000;

test("u1 an answer of 10 000 lines stays smooth", async (t) => {
  const tab = await on.visit();
  await tab.connected();
  await tab.page.evaluate(() => {
    window.tasks = [];
    new PerformanceObserver((list) => {
      for (const { startTime, duration } of list.getEntries()) window.tasks.push({ at: startTime, ms: duration });
    }).observe({ type: "longtask" });
    window.begun = performance.now();
  });
  await tab.send("long 10000");
  await tab.saysInAnswer(/./);
  await tab.ended();
  const { tasks, took } = await tab.page.evaluate(() => ({ tasks: window.tasks, took: performance.now() - window.begun }));
  const longest = Math.max(0, ...tasks.map(({ ms }) => ms));
  const blocked = tasks.reduce((all, { ms }) => all + ms, 0);
  t.diagnostic(`10 000 lines in ${Math.round(took)} ms: ${tasks.length} long tasks, the longest ${Math.round(longest)} ms, ${Math.round(blocked)} ms in all`);
  assert.ok(longest < LONGEST_MS, `the longest task took ${longest} ms`);
  // The answer is a numbered list, drawn in pieces that go on counting.
  const numbers = await tab.answer.evaluate((answer) =>
    [...answer.querySelectorAll("ol")].flatMap((list) => [...list.children].map((_, at) => list.start + at)),
  );
  assert.deepEqual(
    numbers,
    Array.from({ length: 10_000 }, (_, at) => at + 1),
  );
  await tab.close();
});

test("u2 who scrolls up is left there, and comes back to the end with one press", async () => {
  const tab = await on.visit();
  await tab.ask("long 300");
  const scroller = tab.page.getByRole("log", { name: "Conversation" });
  const gap = () => scroller.evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight);
  await tab.page.waitForFunction(() => {
    const element = document.querySelector('[role="log"]');
    return element.scrollHeight - element.scrollTop - element.clientHeight < 48;
  });
  await tab.send("slow 400 10");
  await tab.stop.waitFor();
  await scroller.hover();
  await tab.page.mouse.wheel(0, -1500);
  const jump = tab.page.getByRole("button", { name: "Answering below" });
  await jump.waitFor();
  const away = await gap();
  await tab.stop.click();
  await tab.ended();
  assert.ok((await gap()) >= away, "the text that came did not move the reader");
  await tab.page.locator("button.latest").click();
  await tab.page.waitForFunction(() => {
    const element = document.querySelector('[role="log"]');
    return element.scrollHeight - element.scrollTop - element.clientHeight < 48;
  });
  await tab.close();
});
