// Debian's Chromium, and what every page in it must hold to: nothing from elsewhere, no violation of its policy, no error.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";
import { PATIENCE } from "./until.mjs";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export async function launch() {
  const executablePath = PLACES.find(existsSync);
  if (!executablePath) throw new Error("there is no Chromium on this machine; run `scripts/setup tests`");
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

/** A tab of a browser of its own, with the page of this gateway in it. */
export async function visit(browser, gateway, { address = gateway.entry, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, reducedMotion: "reduce", ...options });
  return open(context, gateway, address);
}

/** Another tab of the same browser. */
export async function open(context, gateway, address = gateway.entry) {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const wrongs = [];
  page.on("pageerror", (error) => wrongs.push(`error: ${error.stack ?? error}`));
  page.on("console", (message) => {
    // A gateway that is away is a matter of the page, and it says so.
    if (message.type() === "error" && !/net::ERR_|WebSocket connection to/.test(message.text())) wrongs.push(`console: ${message.text()}`);
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

  /** Opens everything that is folded. */
  async unfold() {
    await this.page.evaluate(() => document.querySelectorAll("main details").forEach((details) => (details.open = true)));
  }

  /** The id of the session that is open. */
  session() {
    return new URLSearchParams(new URL(this.page.url()).hash.slice(1)).get("session");
  }

  async saysInAnswer(text) {
    await this.page.getByRole("article", { name: "Answer" }).filter({ hasText: text }).last().waitFor();
  }

  async close() {
    await this.page.context().close();
    assert.deepEqual(this.wrongs, []);
  }
}
