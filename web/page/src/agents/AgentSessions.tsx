// The sessions that agents of the gateway's machine keep in files of their own: a list, a search, one to read and to go on with.

import { useEffect, useState } from "preact/hooks";
import { go, messageOf, place } from "../gateway.js";
import { Icon } from "../icons.js";
import { count, day, plural, unmasked } from "../words.js";
import { list, search, type AgentSession, type Found, type FoundSession, type Name } from "./api.js";
import { Reading } from "./Reading.js";

/** Somebody who types has finished a word by then. */
const TYPED_MS = 300;
/** While sessions are indexed a search is asked again after so long. */
const AGAIN_MS = 2_000;

export function AgentSessions() {
  const name = place.value.agentSession;
  return (
    <div class="scroller" tabIndex={0} role="region" aria-label="Sessions of agents">
      <div class="column earlier">{name ? <Reading key={`${name.agent} ${name.id}`} name={name} /> : <Listing />}</div>
    </div>
  );
}

function Listing() {
  const [words, setWords] = useState("");
  const [failure, setFailure] = useState<string>();
  return (
    <>
      <h1>Sessions of your agents</h1>
      <p class="hint">What Claude Code, Codex, Gemini CLI, OpenCode and Qwen Code keep on the gateway's machine, whoever started them. They are only read.</p>
      <label class="searching">
        <span class="unseen">Search what was said</span>
        <Icon name="search" size={16} />
        <input type="search" placeholder="Search what was said" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
      </label>
      {failure !== undefined && (
        <p class="state failed" role="alert">
          {failure}
        </p>
      )}
      {words.trim() === "" ? <Latest failed={setFailure} /> : <Hits words={words.trim()} failed={setFailure} />}
    </>
  );
}

function Latest({ failed }: { failed: (message: string | undefined) => void }) {
  const [sessions, setSessions] = useState<AgentSession[]>();
  const [next, setNext] = useState<number>();
  const load = async (from: number) => {
    try {
      const page = await list(from);
      setSessions((before) => [...(from === 0 ? [] : (before ?? [])), ...page.items]);
      setNext(page.next);
      failed(undefined);
    } catch (error) {
      failed(messageOf(error));
    }
  };
  useEffect(() => void load(0), []);
  if (sessions === undefined) return <p class="state shimmer">Reading…</p>;
  return (
    <>
      <ul class="rows" aria-label="Latest sessions">
        {sessions.map((session) => (
          <Row key={`${session.agent} ${session.id}`} session={session} />
        ))}
      </ul>
      {sessions.length === 0 && <p class="hint">No agent has written a session on the gateway's machine yet.</p>}
      {next !== undefined && (
        <button type="button" class="link" onClick={() => void load(next)}>
          Show more
        </button>
      )}
    </>
  );
}

function Hits({ words, failed }: { words: string; failed: (message: string | undefined) => void }) {
  const [found, setFound] = useState<Found>();
  useEffect(() => {
    let over = false;
    let timer = setTimeout(look, TYPED_MS);
    function look() {
      search(words).then(
        (found) => {
          if (over) return;
          setFound(found);
          failed(undefined);
          if (found.indexing) timer = setTimeout(look, AGAIN_MS);
        },
        (error: unknown) => over || failed(messageOf(error)),
      );
    }
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [words]);
  if (found === undefined) return <p class="state shimmer">Searching…</p>;
  const { sessions, indexing } = found;
  return (
    <>
      {indexing && (
        <p class="hint" role="status">
          {indexing.total === 0 ? "Indexing…" : `Indexing: ${indexing.done} of ${plural(indexing.total, "session")}.`}
        </p>
      )}
      <ul class="rows" aria-label="Found sessions">
        {sessions.map((session) => (
          <Row key={`${session.agent} ${session.id}`} session={session} />
        ))}
      </ul>
      {sessions.length === 0 && !indexing && <p class="hint">No session has all these words in one passage. Try fewer, or the beginning of one: inde*</p>}
    </>
  );
}

function Row({ session }: { session: AgentSession | FoundSession }) {
  const facts = [session.agent, "model" in session && session.model, session.project, day(new Date(session.updated).toISOString())];
  if ("turns" in session) facts.push(plural(session.turns, "turn"), session.tokens > 0 && `${count(session.tokens)} tokens`);
  return (
    <li>
      <a href={addressOf(session)} onClick={(event) => follow(event, session)}>
        <span class="name" dir="auto">
          {unmasked(session.title ?? "Untitled")}
        </span>
        <span class="facts">{unmasked(facts.filter(Boolean).join(" · "))}</span>
        {"snippet" in session && (
          <span class="snippet" dir="auto">
            {unmasked(session.snippet)}
          </span>
        )}
      </a>
    </li>
  );
}

/** A session of the gateway's own is opened as any other. */
const isOwn = ({ agent }: Name) => agent === "gembridge";

function addressOf({ agent, id }: Name): string {
  return isOwn({ agent, id }) ? `#session=${encodeURIComponent(id)}` : `#agents=${encodeURIComponent(`${agent}/${id}`)}`;
}

function follow(event: MouseEvent, { agent, id }: Name): void {
  if (event.metaKey || event.ctrlKey) return;
  event.preventDefault();
  void go(isOwn({ agent, id }) ? { view: "chat", session: id } : { view: "agents", agentSession: { agent, id } });
}
