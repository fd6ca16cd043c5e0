import { test } from "node:test";
import { stage } from "./stage.mjs";

const on = stage({ agent: "fake", fakeArgs: ["--mode", "late-reply:600000"] });

test("u3 an agent that does not listen is stopped all the same, and the session goes on", async () => {
  const tab = await on.visit();
  await tab.send("say so far");
  await tab.saysInAnswer("so far");
  await tab.stop.click();
  await tab.ended();
  await tab.answers("so far");
  await tab.counts(tab.stop, 0);
  await tab.send("say again");
  await tab.saysInAnswer("again");
  await tab.close();
});
