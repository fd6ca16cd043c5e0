import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { commandOf, parseTitle } from "../src/title.js";

interface Vector {
  why: string;
  content: string | null;
  title: string | null;
  description: string | null;
  working_dir: string | null;
}

const vectors = JSON.parse(readFileSync(new URL("../../../../fixtures/titles.json", import.meta.url), "utf8")) as Vector[];

test("every vector is read as written", () => {
  assert.ok(vectors.length > 20);
  for (const { why, content, title, description, working_dir } of vectors) {
    const parsed = parseTitle(content ?? undefined, title ?? undefined);
    assert.deepEqual({ description: parsed.description ?? null, working_dir: parsed.workingDir ?? null }, { description, working_dir }, why);
  }
});

test("a command is what stands before the folder and the description", () => {
  assert.equal(commandOf("ls -F [current working directory /w] (List (all) files)"), "ls -F");
  assert.equal(commandOf("ls (List files)"), "ls");
  assert.equal(commandOf("echo $(date)"), "echo $(date)");
  assert.equal(commandOf("ls -la"), "ls -la");
  assert.equal(commandOf("(only)"), "(only)");
});
