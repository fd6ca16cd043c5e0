// One changed file: how much, and each line, as one column or two.

import type { Diff } from "@gembridge/client";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { current } from "../gateway.js";
import { unmasked, within } from "../words.js";
import { changesOf, sideBySide, type Line } from "./changes.js";
import { coloured, languageOf } from "./colours.js";

const SHOWN_LINES = 300;
const COLOURED_LINES = 2000;
const MARKS = { same: " ", added: "+", removed: "−" } as const;

export function DiffView({ diff }: { diff: Diff }) {
  const changes = useMemo(() => changesOf(diff), [diff.path, diff.oldText, diff.newText]);
  const [split, setSplit] = useState(false);
  const [whole, setWhole] = useState(false);
  const total = changes.runs.reduce((lines, run) => lines + run.length, 0);
  // Colours for very many lines would hold up the page.
  const language = total <= COLOURED_LINES ? languageOf(diff.path) : undefined;
  const runs = whole ? changes.runs : firstLines(changes.runs, SHOWN_LINES);
  return (
    <figure class="diff">
      <figcaption>
        <code title={unmasked(diff.path)}>{unmasked(within(current.value?.workspace, diff.path))}</code>
        {diff.oldText === undefined && <span class="tag">new</span>}
        <span class="counts">
          <span class="added">+{changes.added}</span> <span class="removed">−{changes.removed}</span>
        </span>
        <button type="button" aria-pressed={split} onClick={() => setSplit(!split)}>
          Side by side
        </button>
      </figcaption>
      {changes.runs.length === 0 && <p class="hint">No line differs.</p>}
      <div class="lines" tabIndex={0} role="region" aria-label={`Changes in ${diff.path}`}>
        {runs.map((run) => (split ? <SplitRun run={run} language={language} /> : <Run run={run} language={language} />))}
      </div>
      {total > SHOWN_LINES && !whole && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          Show all {total} lines
        </button>
      )}
    </figure>
  );
}

function firstLines(runs: Line[][], most: number): Line[][] {
  const shown: Line[][] = [];
  let left = most;
  for (const run of runs) {
    if (left <= 0) break;
    shown.push(run.slice(0, left));
    left -= run.length;
  }
  return shown;
}

function Run({ run, language }: { run: Line[]; language: string | undefined }) {
  return (
    <table class="run">
      <tbody>
        {run.map((line) => (
          <tr class={line.kind}>
            <td class="number">{line.old}</td>
            <td class="number">{line.new}</td>
            <td class="mark">{MARKS[line.kind]}</td>
            <Code class="text" text={line.text} language={language} />
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function SplitRun({ run, language }: { run: Line[]; language: string | undefined }) {
  return (
    <table class="run split">
      <tbody>
        {sideBySide(run).map(([left, right]) => (
          <tr>
            <td class="number">{left?.old}</td>
            <Code class={`text ${left?.kind ?? "none"}`} text={left?.text ?? ""} language={language} />
            <td class="number">{right?.new}</td>
            <Code class={`text ${right?.kind ?? "none"}`} text={right?.text ?? ""} language={language} />
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** One line of a file, in colours where its language is known. */
function Code({ text, language, class: look }: { text: string; language: string | undefined; class: string }) {
  const cell = useRef<HTMLTableCellElement>(null);
  useLayoutEffect(() => {
    const shown = unmasked(text);
    cell.current?.replaceChildren(coloured(shown, language) ?? shown);
  }, [text, language]);
  return <td class={look} ref={cell} />;
}
