import assert from "node:assert/strict";
import { before, test } from "node:test";
import { built } from "./built.mjs";

let BlockSplitter;
let ansiSpans;
let changes;
before(async () => {
  ({ BlockSplitter } = await built("../src/markdown/blocks.ts"));
  ({ ansiSpans } = await built("../src/chat/ansi.ts"));
  changes = await built("../src/chat/changes.ts");
});

/** The blocks of `text` when it comes in those pieces. */
function blocks(pieces) {
  const splitter = new BlockSplitter();
  let text = "";
  for (const piece of pieces) {
    text += piece;
    const before = splitter.done.length;
    const kept = JSON.stringify(splitter.done);
    splitter.update(text);
    assert.equal(JSON.stringify(splitter.done.slice(0, before)), kept, "what is done never changes");
  }
  splitter.finish();
  return splitter.done;
}

/** A repeatable source of numbers in [0, 1). */
function numbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const SAMPLE = `# Title

A paragraph of
two lines.

- one
- two

  still two
- three

1. a
2. b

| a | b |
|---|---|
| 1 | 2 |

\`\`\`rust
fn main() {

}
\`\`\`
After the code.

~~~
tildes with \`\`\` inside
~~~

> quoted
> text

    indented code

Setext
======

<div>html</div>

last`;

test("text that comes in pieces gives the blocks of the whole text", () => {
  const whole = blocks([SAMPLE]);
  assert.deepEqual(
    whole.filter((block) => block.kind === "code").map((block) => [block.language, block.text]),
    [
      ["rust", "fn main() {\n\n}"],
      ["", "tildes with ``` inside"],
      ["", "indented code"],
    ],
  );
  assert.deepEqual(blocks([...SAMPLE]), whole, "character by character");
  const random = numbers(7);
  for (let round = 0; round < 200; round += 1) {
    const pieces = [];
    for (let at = 0; at < SAMPLE.length;) {
      const next = at + 1 + Math.floor(random() * 40);
      pieces.push(SAMPLE.slice(at, next));
      at = next;
    }
    assert.deepEqual(blocks(pieces), whole);
  }
});

test("no character of a text is lost between its blocks", () => {
  const random = numbers(11);
  const parts = ["word ", "\n", "\n\n", "- ", "```\n", "# ", "| a |\n|---|\n", "> ", "    ", "\r\n", "1. ", "~~~\n", "é🎉 "];
  for (let round = 0; round < 300; round += 1) {
    const text = Array.from({ length: 60 }, () => parts[Math.floor(random() * parts.length)]).join("");
    const words = (some) => (some.match(/word/g) ?? []).length;
    const shown = blocks([text]).map((block) => (block.kind === "code" ? `${block.text}\n` : block.raw));
    assert.equal(words(shown.join("")), words(text), JSON.stringify(text));
  }
});

test("a paragraph without end is cut, so that the open block stays small", () => {
  const splitter = new BlockSplitter();
  let text = "";
  let largest = 0;
  for (let line = 0; line < 5_000; line += 1) {
    text += `line ${line} of a long paragraph\n`;
    largest = Math.max(largest, splitter.update(text)?.raw.length ?? 0);
  }
  assert.ok(largest < 8_100, `the open block grew to ${largest}`);
  splitter.finish();
  assert.equal(splitter.done.map((block) => block.raw).join(""), text);
  assert.ok(splitter.done.slice(1).every((block) => block.joined));
});

test("a list without end is cut between its items", () => {
  const text = Array.from({ length: 2_000 }, (_, n) => `${n + 1}. item ${n + 1}\n`).join("");
  const done = blocks([text]);
  assert.ok(done.length > 5);
  assert.ok(done.every((block) => /^\d+\. /.test(block.raw)));
  assert.equal(done.map((block) => block.raw).join(""), text);
});

test("a table without end is cut between its rows, each piece with the head", () => {
  const rows = Array.from({ length: 3_000 }, (_, n) => `| ${n} | value |\n`);
  const head = "| a | b |\n|---|---|\n";
  const text = `before\n\n${head}${rows.join("")}\nafter\n`;
  const whole = blocks([text]);
  const tables = whole.filter((block) => block.raw.startsWith(head));
  assert.ok(tables.length > 5);
  assert.equal(
    tables
      .map((block) => block.raw.slice(head.length))
      .join("")
      .trim(),
    rows.join("").trim(),
  );
  assert.deepEqual(
    tables.map((block) => block.joined),
    tables.map((_, at) => at > 0),
  );
  assert.deepEqual(whole.at(-1), { kind: "prose", raw: "after\n", joined: false, plain: false });
  const splitter = new BlockSplitter();
  let largest = 0;
  for (let end = 0; end <= text.length; end += 97) largest = Math.max(largest, splitter.update(text.slice(0, end))?.raw.length ?? 0);
  assert.ok(largest < 8_500, `the open block grew to ${largest}`);
  splitter.update(text);
  splitter.finish();
  const values = (some) => some.flatMap((block) => block.raw.match(/^\| \d+/gm) ?? []).map((row) => Number(row.slice(2)));
  assert.deepEqual(
    values(splitter.done),
    Array.from({ length: 3_000 }, (_, n) => n),
  );
});

test("an endless line is shown as it stands and what surrounds it as ever", () => {
  const endless = "x".repeat(1_000_000);
  const began = performance.now();
  const done = blocks([`before\n\n${endless}\n\n**after**\n\n\`\`\`\n${endless}\n\`\`\`\n`]);
  assert.deepEqual(
    done.map((block) => (block.kind === "code" ? "code" : block.plain ? "plain" : "prose")),
    ["prose", "plain", "prose", "code"],
  );
  assert.ok(performance.now() - began < 60_000);
});

test("terminal colours become classes and no control sequence survives", () => {
  const spans = ansiSpans("\x1b[1;31mred\x1b[0m plain \x1b[38;5;200mnumbered\x1b[39m\x1b]0;title\x07\x1b[2J\x07end");
  assert.deepEqual(
    spans.filter((span) => span.classes).map((span) => [span.text, span.classes]),
    [["red", "ansi-bold ansi-c1"]],
  );
  assert.equal(spans.map((span) => span.text).join(""), "red plain numberedend");
});

test("a diff counts what it shows and puts both sides beside each other", () => {
  const { added, removed, runs } = changes.changesOf({ path: "a", oldText: "1\n2\n3", newText: "1\ntwo\n3\n4" });
  assert.deepEqual([added, removed, runs.length], [2, 1, 1]);
  assert.deepEqual(
    changes.sideBySide(runs[0]).map((row) => row.map((line) => line?.text)),
    [
      ["1", "1"],
      ["2", "two"],
      ["3", "3"],
      [undefined, "4"],
    ],
  );
});

test("files of 5 000 lines that share nothing are still compared in time", () => {
  const side = (name) => Array.from({ length: 5_000 }, (_, n) => `${name} ${n * 7919}`).join("\n");
  const began = performance.now();
  const { added, removed } = changes.changesOf({ path: "a", oldText: side("left"), newText: side("right") });
  assert.deepEqual([added, removed], [5_000, 5_000]);
  assert.ok(performance.now() - began < 60_000);
});
