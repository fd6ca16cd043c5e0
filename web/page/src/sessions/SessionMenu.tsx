// What can be done with a session of the list.

import type { SessionSummary } from "@gembridge/client";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { chat, go, place, report } from "../gateway.js";
import { Icon } from "../icons.js";
import { exportSession } from "./export.js";

export function SessionMenu({ session, rename }: { session: SessionSummary; rename: () => void }) {
  const [open, setOpen] = useState(false);
  const [sure, setSure] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!open) return setSure(false);
    const left = (event: Event) => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", left);
    document.addEventListener("focusin", left);
    root.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    return () => {
      document.removeEventListener("pointerdown", left);
      document.removeEventListener("focusin", left);
    };
  }, [open]);
  const done = (act: () => unknown) => () => {
    setOpen(false);
    Promise.resolve(act()).catch(report);
  };
  const title = session.title ?? "this session";
  return (
    <div class="menu" ref={root} onKeyDown={(event) => steer(event, () => setOpen(false))}>
      <button type="button" class="round small" aria-label={`Actions for ${title}`} aria-haspopup="menu" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="more" size={16} />
      </button>
      {open && (
        <div class="popup" role="menu" aria-label={`Actions for ${title}`}>
          <button type="button" role="menuitem" onClick={done(rename)}>
            Rename
          </button>
          <button type="button" role="menuitem" onClick={done(() => exportSession(session, "markdown"))}>
            Export as Markdown
          </button>
          <button type="button" role="menuitem" onClick={done(() => exportSession(session, "json"))}>
            Export as JSON
          </button>
          <button type="button" role="menuitem" class="danger" onClick={sure ? done(() => remove(session)) : () => setSure(true)}>
            {sure ? "Really delete?" : "Delete"}
          </button>
        </div>
      )}
    </div>
  );
}

async function remove({ sessionId }: SessionSummary): Promise<void> {
  if (place.value.session === sessionId) await go({ view: "chat" });
  await chat().deleteSession(sessionId);
}

/** Arrows move within the menu; Escape leaves it and stops nothing else. */
function steer(event: KeyboardEvent, close: () => void): void {
  const items = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=menuitem]")];
  if (items.length === 0) return;
  const at = items.indexOf(document.activeElement as HTMLElement);
  if (event.key === "ArrowDown") items[(at + 1) % items.length]?.focus();
  else if (event.key === "ArrowUp") items[(at - 1 + items.length) % items.length]?.focus();
  else if (event.key === "Escape") {
    close();
    (event.currentTarget as HTMLElement).querySelector("button")?.focus();
  } else return;
  event.preventDefault();
  event.stopPropagation();
}
