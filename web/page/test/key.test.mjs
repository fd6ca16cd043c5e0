import assert from "node:assert/strict";
import { test } from "node:test";
import { built } from "./built.mjs";

test("f20 the key of a link is used only where there is none, and asked about where there is another", async () => {
  const { decideLinkKey } = await built("../src/key.ts");
  const table = [
    [undefined, undefined, { state: "none" }],
    [undefined, "gb-own", { state: "none" }],
    ["gb-own", "gb-own", { state: "none" }],
    ["gb-link", undefined, { state: "used" }],
    ["gb-link", "gb-own", { state: "asked", key: "gb-link" }],
  ];
  for (const [given, kept, decided] of table) assert.deepEqual(decideLinkKey(given, kept), decided, `${given} over ${kept}`);
});
