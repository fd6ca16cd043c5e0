// All sessions that the key may see, newest first, those of other programs included, as they run.

import type { SessionSummary } from "@gembridge/client";
import { useState } from "preact/hooks";
import { focused } from "../focus.js";
import { agents, chat, connection, go, place, report, sessions } from "../gateway.js";
import { Icon } from "../icons.js";
import { day } from "../words.js";
import { SessionMenu } from "./SessionMenu.js";

/** So many are shown at first. */
const MOST = 100;

export function SessionList({ chosen }: { chosen: () => void }) {
  const [search, setSearch] = useState("");
  const wanted = search.trim().toLowerCase();
  const [most, setMost] = useState(MOST);
  const found = sessions.value.filter((session) => wanted === "" || textOf(session).includes(wanted));
  const shown = found.slice(0, most);
  return (
    <div class="sessions">
      <label class="searching">
        <span class="unseen">Search sessions</span>
        <Icon name="search" size={16} />
        <input type="search" placeholder="Search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
      </label>
      <div class="list">
        {byDay(shown).map(([heading, group]) => (
          <section aria-label={heading}>
            <h2>{heading}</h2>
            <ul>
              {group.map((session) => (
                <Row key={session.sessionId} session={session} chosen={chosen} />
              ))}
            </ul>
          </section>
        ))}
        {found.length > most && (
          <button type="button" class="link" onClick={() => setMost(most * 4)}>
            Show more of {found.length}
          </button>
        )}
        {shown.length === 0 && <p class="hint">{wanted !== "" ? "No session matches." : connection.value.state === "open" ? "No sessions yet." : "…"}</p>}
      </div>
    </div>
  );
}

function Row({ session, chosen }: { session: SessionSummary; chosen: () => void }) {
  const [naming, setNaming] = useState(false);
  const here = place.value.view === "chat" && place.value.session === session.sessionId;
  const title = session.title || "Untitled";
  if (naming) return <Naming session={session} done={() => setNaming(false)} />;
  return (
    <li class={here ? "here" : ""}>
      <a
        href={`#session=${encodeURIComponent(session.sessionId)}`}
        aria-current={here ? "page" : undefined}
        onClick={(event) => {
          if (event.metaKey || event.ctrlKey) return;
          event.preventDefault();
          void go({ view: "chat", session: session.sessionId });
          chosen();
        }}
      >
        <span class="name" dir="auto">
          {title}
        </span>
        <State session={session} />
      </a>
      <SessionMenu session={session} rename={() => setNaming(true)} />
    </li>
  );
}

const STATES: Partial<Record<SessionSummary["state"], string>> = { running: "running", opening: "starting", waiting: "needs you" };

function State({ session }: { session: SessionSummary }) {
  const state = session.openRequests > 0 ? "waiting" : session.state;
  const agent = agents.value.find(({ name }) => name === session.agent)?.title ?? session.agent;
  return (
    <span class="facts">
      {STATES[state] !== undefined && <span class={`dot ${state}`} />}
      <span>{[STATES[state], origin(session.origin), agent].filter(Boolean).join(" · ")}</span>
    </span>
  );
}

const ORIGINS: Record<string, string> = { openai: "OpenAI", a2a: "A2A", acp: "" };

/** Who began it, when it was not a chat. */
function origin(name: string | undefined): string {
  return name === undefined ? "" : (ORIGINS[name] ?? name);
}

function Naming({ session, done }: { session: SessionSummary; done: () => void }) {
  const [title, setTitle] = useState(session.title ?? "");
  return (
    <li>
      <form
        class="naming"
        onSubmit={(event) => {
          event.preventDefault();
          if (title.trim() !== "") chat().rename(session.sessionId, title.trim()).catch(report);
          done();
        }}
      >
        <input
          ref={focused}
          aria-label="New title"
          value={title}
          maxLength={200}
          onInput={(event) => setTitle(event.currentTarget.value)}
          onBlur={done}
          onKeyDown={(event) => {
            if (event.key !== "Escape") return;
            event.stopPropagation();
            done();
          }}
        />
      </form>
    </li>
  );
}

function byDay(list: SessionSummary[]): [string, SessionSummary[]][] {
  const groups = new Map<string, SessionSummary[]>();
  // What waits for a person stands above everything.
  for (const session of list) {
    const heading = session.openRequests > 0 ? "Needs you" : day(session.updatedAt);
    groups.set(heading, [...(groups.get(heading) ?? []), session]);
  }
  return [...groups].sort(([a], [b]) => Number(b === "Needs you") - Number(a === "Needs you"));
}

function textOf({ title, agent, model, origin }: SessionSummary): string {
  return [title, agent, model, origin].join(" ").toLowerCase();
}
