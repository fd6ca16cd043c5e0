// What a tool said: as in a terminal, the first lines at once and the rest when asked for.

import { useState } from "preact/hooks";
import { unmasked } from "../words.js";
import { ansiSpans } from "./ansi.js";

const SHOWN_LINES = 24;
const MAX_SHOWN = 200_000;

export function Output({ text, label }: { text: string; label: string }) {
  const [whole, setWhole] = useState(false);
  const lines = text.split("\n");
  const cut = !whole && lines.length > SHOWN_LINES + 4;
  const shown = (cut ? lines.slice(0, SHOWN_LINES).join("\n") : text).slice(0, MAX_SHOWN);
  return (
    <div class="output">
      <pre tabIndex={0} role="region" aria-label={label}>
        {ansiSpans(unmasked(shown)).map((span) => (span.classes === "" ? span.text : <span class={span.classes}>{span.text}</span>))}
      </pre>
      {cut && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          Show all {lines.length} lines
        </button>
      )}
      {!cut && text.length > MAX_SHOWN && <p class="hint">The rest is not shown; export the session to read all of it.</p>}
    </div>
  );
}
