// What every file of tests stands on: one browser and one gateway.

import { after, before } from "node:test";
import { launch, visit } from "./browser.mjs";
import { Gateway } from "./gateway.mjs";

export class Stage {
  browser;
  gateway;

  /** A tab of a browser that knows nothing yet. */
  visit(options) {
    return visit(this.browser, this.gateway, options);
  }
}

/** `prepare` makes the gateway's home what the tests need. */
export function stage({ prepare, ...options }) {
  const made = new Stage();
  before(async () => {
    made.gateway = await Gateway.start(options);
    prepare?.(made.gateway);
    made.browser = await launch();
  });
  after(async () => {
    await made.browser?.close();
    await made.gateway?.stop();
  });
  return made;
}
