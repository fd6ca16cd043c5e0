// The agent asks for permission: exactly what for, what each answer covers, and until when.

import type { PermissionAsk, PermissionOption } from "@gembridge/client";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { focused } from "../focus.js";
import { agent, chat, current, report } from "../gateway.js";
import { Icon, lookOf } from "../icons.js";
import { unmasked } from "../words.js";
import { Countdown } from "./Countdown.js";
import { DiffView } from "./DiffView.js";
import { handFocusBack } from "./focus.js";
import { Output } from "./Output.js";
import { commandIn, headline, written } from "./ToolCard.js";

/** Rejecting comes first, and allowing for good comes last. */
const ORDER: PermissionOption["kind"][] = ["reject_once", "allow_once", "reject_always", "allow_always"];

const DEEDS: Record<string, { once: string; always: string }> = {
  read: { once: "read a file", always: "read files" },
  edit: { once: "change a file", always: "change files" },
  delete: { once: "delete a file", always: "delete files" },
  move: { once: "move a file", always: "move files" },
  search: { once: "search", always: "search" },
  execute: { once: "run a command", always: "run commands" },
  fetch: { once: "fetch from the network", always: "fetch from the network" },
};
const ANY_DEED = { once: "use a tool", always: "use tools" };

export function PermissionCard({ ask }: { ask: PermissionAsk }) {
  const card = useRef<HTMLElement>(null);
  const [why, setWhy] = useState<string>();
  // At once: a little later, it would take the focus from what somebody has begun to write on the card itself.
  useLayoutEffect(() => {
    // The card takes the focus, none of its buttons; and not from somebody who is writing.
    const busy = document.activeElement;
    if (!busy || busy === document.body || busy.closest(".transcript") || (busy as HTMLTextAreaElement).value === "") card.current?.focus();
    const shown = card.current;
    return () => handFocusBack(shown);
  }, [ask.id]);
  const { tool } = ask;
  const deed = DEEDS[tool.kind] ?? ANY_DEED;
  const command = tool.diffs.length === 0 ? commandIn(tool) : undefined;
  const options = [...ask.options].sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind));
  const reject = options.find(({ kind }) => kind === "reject_once") ?? options.find(({ kind }) => kind === "reject_always");
  const choose = (option: PermissionOption) => chat().answer(ask.sessionId, ask.id, option.optionId);
  return (
    <section class="ask" role="alertdialog" aria-label="Permission needed" aria-describedby={`what-${ask.id}`} tabIndex={-1} ref={card}>
      <header>
        <Icon name={lookOf(tool.kind).icon} />
        <h2 id={`what-${ask.id}`}>
          {agent.value?.title ?? "The agent"} wants to {deed.once}
          {tool.description !== undefined && <span class="about">: {unmasked(tool.description)}</span>}
        </h2>
        {ask.expiresAt !== undefined && <Countdown until={ask.expiresAt} from={ask.at} />}
      </header>
      <div class="exactly">
        {command !== undefined ? <Output text={command} label="The exact command" /> : <p class="title">{unmasked(headline(tool))}</p>}
        {tool.diffs.map((diff) => (
          <DiffView diff={diff} />
        ))}
        {command === undefined && tool.diffs.length === 0 && tool.input !== undefined && <Output text={written(tool.input)} label="The exact input" />}
        <Where ask={ask} />
      </div>
      <div class="answers">
        {options.map((option) => (
          <button type="button" class={option.kind.startsWith("allow") ? "allow" : "reject"} disabled={ask.answered} onClick={() => choose(option)}>
            {option.name}
          </button>
        ))}
        {options.length === 0 && (
          <button type="button" class="reject" disabled={ask.answered} onClick={() => chat().answer(ask.sessionId, ask.id, { outcome: "cancelled" })}>
            Reject
          </button>
        )}
        {reject && why === undefined && (
          <button type="button" class="link" disabled={ask.answered} onClick={() => setWhy("")}>
            Reject and say why…
          </button>
        )}
      </div>
      {reject && why !== undefined && (
        <form
          class="why"
          onSubmit={(event) => {
            event.preventDefault();
            choose(reject);
            if (why.trim() !== "") chat().prompt(ask.sessionId, why.trim()).catch(report);
          }}
        >
          <input
            ref={focused}
            aria-label="What to do instead"
            placeholder="What should it do instead?"
            value={why}
            onInput={(event) => setWhy(event.currentTarget.value)}
          />
          <button type="submit" class="reject">
            Reject and send
          </button>
        </form>
      )}
      <Scope options={options} deed={deed.always} />
    </section>
  );
}

function Where({ ask: { tool } }: { ask: PermissionAsk }) {
  const folder = tool.workingDir ?? current.value?.workspace;
  const paths = tool.locations.map(({ path }) => path).filter((path) => !tool.diffs.some((diff) => diff.path === path));
  if (folder === undefined && paths.length === 0) return null;
  return (
    <p class="hint">
      {paths.length > 0 && (
        <>
          on <code>{unmasked(paths.join(", "))}</code>{" "}
        </>
      )}
      {folder !== undefined && (
        <>
          in <code>{unmasked(folder)}</code>
        </>
      )}
    </p>
  );
}

/** What an answer for good covers, said before it is given. */
function Scope({ options, deed }: { options: PermissionOption[]; deed: string }) {
  const always = options.filter(({ kind }) => kind.endsWith("_always"));
  if (always.length === 0) return null;
  return (
    <p class="hint scope">
      {always.map(({ name, kind }) =>
        kind === "allow_always"
          ? `“${name}” lets the agent ${deed} of this kind without asking again, in this session and until its agent is restarted. `
          : `“${name}” refuses this kind of action without asking again, in this session and until its agent is restarted. `,
      )}
      The other answers count for this one time.
    </p>
  );
}
