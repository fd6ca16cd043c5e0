// Takes the pictures of the page that the documents show: `npm run pictures -w e2e`, after `cargo build`.

import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { launch, visit } from "./browser.mjs";
import { Gateway } from "./gateway.mjs";

const FOLDER = fileURLToPath(new URL("../../docs/images/", import.meta.url));
const DESK = { width: 1200, height: 760 };
const PHONE = { width: 390, height: 760 };

mkdirSync(FOLDER, { recursive: true });
const gateway = await Gateway.start({ agent: "demo" });
const browser = await launch();

async function picture(name, options, act) {
  const tab = await visit(browser, gateway, { viewport: DESK, ...options });
  await tab.connected();
  await act(tab);
  // Focus rings and pointers say nothing in a picture.
  await tab.page.evaluate(() => document.activeElement?.blur());
  await tab.page.mouse.move(0, 0);
  await tab.page.screenshot({ path: `${FOLDER}${name}.png`, animations: "disabled" });
  await tab.close();
}

const link = (session) => `${gateway.url}/#session=${session}&key=${gateway.key}`;

let session;
await picture("chat-light", { colorScheme: "light" }, async (tab) => {
  await tab.ask("plan");
  await tab.ask("markdown");
  session = await tab.session();
});
await picture("chat-dark", { colorScheme: "dark", address: link(session) }, (tab) => tab.ended());
await picture("phone", { viewport: PHONE, hasTouch: true, isMobile: true, deviceScaleFactor: 1, address: link(session) }, (tab) => tab.ended());
await picture("diff", { colorScheme: "light" }, async (tab) => {
  await tab.ask("think about a greeting");
  await tab.ask("edit");
  await tab.page.locator("details.tool summary").click();
  await tab.page.locator("figure.diff").waitFor();
});
await picture("permission", { colorScheme: "dark" }, async (tab) => {
  await tab.ask("tool");
  await tab.send("permission rm -rf build");
  await tab.card.waitFor();
});
await gateway.fetch("/v1/models", { headers: { origin: "https://chat.example.com" } });
await picture("gateway", { colorScheme: "light", address: `${gateway.url}/#admin&key=${gateway.key}` }, async (tab) => {
  await tab.page.getByRole("heading", { name: "Keys" }).waitFor();
});

await browser.close();
await gateway.stop();
