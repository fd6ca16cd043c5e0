import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { atTheEnd, scrollUp } from "./browser.mjs";
import { stage } from "./stage.mjs";
import { eventually } from "./until.mjs";

const on = stage({ agent: "demo" });

/** A task that keeps a person waiting for longer than this would be felt; on a slow machine, one that takes so large a part of all the time. */
const LONGEST_MS = 2_000;
const LARGEST_PART = 1 / 3;

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
  assert.ok(longest < Math.max(LONGEST_MS, took * LARGEST_PART), `the longest task took ${longest} ms of ${took} ms`);
  // The answer is a numbered list, drawn in pieces that go on counting.
  await eventually(async () => {
    const numbers = await tab.answer.evaluate((answer) =>
      [...answer.querySelectorAll("ol")].flatMap((list) => [...list.children].map((_, at) => list.start + at)),
    );
    assert.deepEqual(
      numbers,
      Array.from({ length: 10_000 }, (_, at) => at + 1),
    );
  });
  await tab.close();
});

test("u2 who scrolls up is left there, and comes back to the end with one press", async () => {
  const tab = await on.visit();
  await tab.connected();
  await tab.choose("fake");
  await tab.ask("chunks 4000");
  await tab.saysInAnswer("chunk-3999");
  await atTheEnd(tab.page);
  const go = join(on.gateway.home, "go-on");
  await tab.send(`say below ;; until ${go} ;; chunks 1000 ;; wait-cancel`);
  await tab.saysInAnswer("below");
  const moved = await scrollUp(tab.page, 1_500);
  await tab.page.getByRole("button", { name: "Answering below" }).waitFor();
  writeFileSync(go, "");
  await tab.saysInAnswer(/below.*chunk-999/);
  await tab.stop.click();
  await tab.ended();
  const far = await moved();
  assert.ok(far < 100, `the text that came moved the reader by ${far} pixels`);
  await tab.page.locator("button.latest").click();
  await atTheEnd(tab.page);
  await tab.close();
});
