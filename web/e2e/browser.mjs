// Debian's Chromium, and what every page in it must hold to: nothing from elsewhere, no violation of its policy, no error.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";
import { eventually, PATIENCE, until } from "./until.mjs";

const PLACES = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
/** How many times slower than this machine the page shall run: `SLOWED=6 npm test` finds what only waits long enough here. */
const SLOWED = Number(process.env.SLOWED ?? 1);

export async function launch() {
  const executablePath = PLACES.find((path) => path && existsSync(path));
  if (!executablePath) throw new Error("there is no Chromium on this machine; run `scripts/setup tests` or set `CHROMIUM`");
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"], timeout: 2 * PATIENCE });
}

/** An empty tab with the patience of all tests. */
export async function newTab(context) {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  if (SLOWED > 1) await (await context.newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate: SLOWED });
  return page;
}

/** A gateway that is away is a matter of the page, and it says so; the browser notes it as an error as well. */
export const AWAY = /net::ERR_|WebSocket connection to/;

/** A tab of a browser of its own, with the page of this gateway in it. */
export async function visit(browser, gateway, { address = gateway.entry, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, reducedMotion: "reduce", ...options });
  return open(context, gateway, address);
}

/** Another tab of the same browser. */
export async function open(context, gateway, address = gateway.entry) {
  const page = await newTab(context);
  const wrongs = [];
  page.on("pageerror", (error) => wrongs.push(`error: ${error.stack ?? error}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !AWAY.test(message.text())) wrongs.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(gateway.url) && !/^(data|blob|about):/.test(url)) wrongs.push(`request to ${url}`);
  });
  await page.exposeFunction("violated", (what) => wrongs.push(`policy: ${what}`));
  await page.addInitScript(() =>
    document.addEventListener("securitypolicyviolation", (event) => window.violated(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`)),
  );
  await page.goto(address);
  return new Tab(page, wrongs);
}

/** What a person does on the page, and what they see. */
export class Tab {
  constructor(page, wrongs) {
    this.page = page;
    this.wrongs = wrongs;
  }

  get prompt() {
    return this.page.getByRole("textbox", { name: "Prompt" });
  }

  get answer() {
    return this.page.getByRole("article", { name: "Answer" }).last();
  }

  get stop() {
    return this.page.getByRole("button", { name: "Stop (Esc)" });
  }

  get card() {
    return this.page.getByRole("alertdialog", { name: "Permission needed" });
  }

  get turns() {
    return this.page.getByRole("region", { name: "Turn" });
  }

  /** Chooses the agent of the next session. */
  async choose(agent) {
    await this.page.getByRole("combobox", { name: "Agent" }).selectOption(agent);
  }

  async send(text) {
    await this.prompt.fill(text);
    // On a phone, Enter begins a line.
    if (await this.page.evaluate(() => matchMedia("(pointer: fine)").matches)) await this.prompt.press("Enter");
    else await this.page.getByRole("button", { name: /^(Send|Queue this prompt)$/ }).click();
  }

  /** The last turn is over. */
  async ended() {
    await this.turns.last().locator("footer.ended").waitFor();
  }

  async ask(text) {
    const before = await this.turns.count();
    await this.send(text);
    await this.turns.nth(before).locator("footer.ended").waitFor();
  }

  async connected() {
    await this.page.locator(".connection.open:visible").first().waitFor();
  }

  /** Opens everything that is folded. What is inside a tool call is drawn only then. */
  async unfold() {
    await this.page.evaluate(() => document.querySelectorAll("main details").forEach((details) => (details.open = true)));
    await this.page.waitForFunction(() => document.querySelectorAll("main details.tool:not(:has(.inside))").length === 0);
  }

  /** The id of the session that is open, once there is one. */
  session() {
    const look = () => this.page.evaluate(() => new URLSearchParams(location.hash.slice(1)).get("session"));
    return until("the session in the address", look);
  }

  /** Something like this is in an answer. */
  async saysInAnswer(text) {
    await this.page.getByRole("article", { name: "Answer" }).filter({ hasText: text }).last().waitFor();
  }

  /** The last answer is exactly this. A turn can be over before the last of its text is drawn. */
  async answers(text, why) {
    await eventually(async () => assert.equal((await this.answer.innerText()).trim(), text, why));
  }

  /** All answers, in their order. */
  async answersInAll(texts) {
    const read = () => this.page.getByRole("article", { name: "Answer" }).allInnerTexts();
    await eventually(async () => assert.deepEqual((await read()).map(tidy), texts.map(tidy)));
  }

  /** So many of these are on the page. */
  async counts(locator, count, why) {
    await eventually(async () => assert.equal(await locator.count(), count, why));
  }

  async close() {
    await this.page.context().close();
    assert.deepEqual(this.wrongs, []);
  }
}

/** Text as it is read: the page breaks and indents it as it likes. */
export const tidy = (text) => text.replace(/\s+/g, " ").trim();

/** The conversation's end is in sight. */
export async function atTheEnd(page) {
  await page.waitForFunction(() => {
    const { scrollTop, scrollHeight, clientHeight } = document.querySelector(".scroller");
    return scrollHeight - scrollTop - clientHeight < 48;
  });
}

/** Turns the wheel over the conversation, up by so much. */
export async function wheelUp(page, pixels) {
  await page.locator(".scroller").hover();
  await page.mouse.wheel(0, -pixels);
}

/**
 * Scrolls up by so much and, once nothing moves any more, gives how far the line in the middle has moved since whenever it is asked.
 * That line must be one of a turn that is over: those of a running one are drawn again and again.
 */
export async function scrollUp(page, pixels) {
  await wheelUp(page, pixels);
  const watch = async (scroller, { pixels, patience }) => {
    const deadline = performance.now() + patience;
    const gap = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    for (let still = 0, top = scroller.scrollTop; still < 10 || gap() < pixels / 2;) {
      if (performance.now() > deadline) throw new Error(`the conversation did not come to rest; ${gap()} pixels are below`);
      await new Promise(requestAnimationFrame);
      still = scroller.scrollTop === top ? still + 1 : 0;
      top = scroller.scrollTop;
    }
    const { left, top, width, height } = scroller.getBoundingClientRect();
    for (let down = height / 2; down < height; down += 4) {
      const element = document.elementFromPoint(left + width / 2, top + down)?.closest("p, li, pre");
      if (element) return { element, at: element.getBoundingClientRect().top };
    }
    throw new Error("there is no text in the middle of the conversation");
  };
  const line = await page.locator(".scroller").evaluateHandle(watch, { pixels, patience: PATIENCE });
  return () => line.evaluate(({ element, at }) => Math.abs(element.getBoundingClientRect().top - at));
}
