import assert from "node:assert/strict";
import { test } from "node:test";
import { stage } from "./stage.mjs";
import { eventually } from "./until.mjs";

const on = stage({ agent: "fake" });
/** What the last of the acts says: by then all of them are drawn. */
const LAST = "gnp.exe";

const ACTS = [
  '<img src=x onerror="harmed=1">',
  "<script>harmed=1</script>",
  '<svg onload="harmed=1"><use href="https://evil.example/x.svg#a"/></svg>',
  '<iframe src="javascript:parent.harmed=1"></iframe>',
  "<style>body{display:none}@import url(https://evil.example/x.css);</style>",
  '<link rel=stylesheet href="https://evil.example/x.css">',
  '<form action="https://evil.example"><button>go</button></form>',
  '<div style="position:fixed;inset:0" onclick="harmed=1">cover</div>',
  '<base href="https://evil.example/"><meta http-equiv=refresh content="0;url=https://evil.example">',
  "[click](javascript:harmed=1) [data](data:text/html,<script>harmed=1</script>) [own](/admin/keys) [vb](vbscript:x)",
  "![pixel](https://evil.example/pixel.png) ![own](/assets/x.svg) ![svg](data:image/svg+xml;base64,PHN2Zy8+)",
  "<math><mtext><table><mglyph><style><img src=x onerror=harmed=1></style></mglyph></table></mtext></math>",
  '[a](https://ok.example/"onmouseover="harmed=1)',
  "\u202Egnp.exe\u202C",
];

/** Nothing of what the agent sent may act: no script ran, nothing is styled, framed or fetched. */
async function assertInert(tab) {
  const found = await tab.page.evaluate(() => ({
    harmed: window.harmed,
    acting: [
      ...document.querySelectorAll(
        "main script, main style, main iframe, main object, main embed, main link, main base, main meta, main form:not(.composer, .why, .ask)",
      ),
    ].map((element) => element.outerHTML),
    handlers: [...document.querySelectorAll("main *")].flatMap((element) =>
      [...element.attributes].filter(({ name }) => name.startsWith("on")).map(({ name }) => `${element.tagName} ${name}`),
    ),
    links: [...document.querySelectorAll("main a[href]")].map((link) => link.getAttribute("href")).filter((href) => !/^(https?|mailto):|^#prompt$/.test(href)),
    images: [...document.querySelectorAll("main img")].map((image) => image.src).filter((src) => !/^data:image\/(png|jpeg|gif|webp);/.test(src)),
    shown: getComputedStyle(document.body).display,
    width: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  }));
  assert.deepEqual(found, { harmed: undefined, acting: [], handlers: [], links: [], images: [], shown: "block", width: 0 });
}

test("s27 hostile markdown is text", async () => {
  const tab = await on.visit();
  await tab.ask(ACTS.map((act) => `say ${act}\\n\\n`).join("\n"));
  await tab.saysInAnswer(LAST);
  await assertInert(tab);
  const text = await tab.answer.innerText();
  assert.ok(text.includes("<script>harmed=1</script>"), text);
  assert.ok(!text.includes("\u202E"), "what turns text around is named instead");
  await tab.page.reload();
  await tab.ended();
  await tab.saysInAnswer(LAST);
  await assertInert(tab);
  await tab.close();
});

test("s27 hostile titles, thoughts, plans, tools, diffs and permissions are text", async () => {
  const tab = await on.visit();
  for (const act of ACTS) {
    const one = act.replaceAll(" | ", " ").replaceAll(" => ", " ").replaceAll(";;", "");
    await tab.send(
      [
        `title ${one}`,
        `think ${one}`,
        `plan ${one} | ${one}`,
        `tool execute ${one} => ${one}`,
        `diff ${one} ${one} => ${one}`,
        `permission ${one}`,
        "say done",
      ].join("\n"),
    );
    await tab.card.waitFor();
    await tab.unfold();
    await assertInert(tab);
    await tab.card
      .getByRole("button", { name: /^reject/i })
      .first()
      .click();
    await tab.ended();
  }
  await assertInert(tab);
  await tab.close();
});

test("s27 a line of a megabyte is shown and harms nobody", async () => {
  const tab = await on.visit();
  await tab.ask("chunks 256 size 4096");
  await eventually(async () => assert.equal((await tab.answer.textContent()).trim().length, 1 << 20));
  await assertInert(tab);
  await tab.ask("say still here");
  await tab.close();
});

test("s27 the demo agent's own hostile answer is text", async () => {
  const tab = await on.visit();
  await tab.connected();
  await tab.choose("demo");
  await tab.ask("markdown hostile");
  await tab.saysInAnswer("terminal escapes");
  await assertInert(tab);
  await tab.close();
});
