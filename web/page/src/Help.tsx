// The keys that the page knows. `?` shows and hides them.

import { useEffect, useRef } from "preact/hooks";

const KEYS: [string, string][] = [
  ["Enter", "send the prompt"],
  ["Shift Enter", "begin a new line"],
  ["Esc", "stop the turn, or close what is open"],
  ["/", "go to the prompt; at its beginning, list the agent's commands"],
  ["@", "name a file of the agent's folder"],
  ["↑ ↓ Tab", "choose a command or a file"],
  ["Alt N", "begin a new chat"],
  ["?", "show or hide these keys"],
];

export function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      class="help"
      aria-labelledby="help-title"
      onClose={close}
      onClick={(event) => {
        // Beside it, not in it.
        if (event.target === dialog.current) dialog.current?.close();
      }}
    >
      <header>
        <h2 id="help-title">Keys</h2>
        <button type="button" class="link" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </header>
      <dl>
        {KEYS.map(([keys, what]) => (
          <>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
    </dialog>
  );
}

/** Whether a key is meant for what somebody writes in. */
export function isWriting(event: KeyboardEvent): boolean {
  const at = event.target as Element | null;
  return at?.closest("input, textarea, select, [contenteditable]") != null;
}
