// The page: sessions beside the conversation, or the gateway's own affairs.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Admin } from "./admin/Admin.js";
import { AgentSessions } from "./agents/AgentSessions.js";
import { allowNotices, notices, showWaiting } from "./attention.js";
import { Composer, stop } from "./chat/Composer.js";
import { focusPrompt } from "./chat/focus.js";
import { FormCard } from "./chat/FormCard.js";
import { PermissionCard } from "./chat/PermissionCard.js";
import { Transcript } from "./chat/Transcript.js";
import { ConnectionState } from "./ConnectionState.js";
import mark from "./favicon.svg";
import { agent, current, demo, go, key, linkKey, opened, place, report, sessions, signOut, summary, tick, trouble } from "./gateway.js";
import { Help, isWriting } from "./Help.js";
import { Icon } from "./icons.js";
import { KeyForm } from "./KeyForm.js";
import { LinkKeyNotice, LinkKeyQuestion } from "./LinkKey.js";
import { SessionList } from "./sessions/SessionList.js";
import { nextTheme, theme } from "./theme.js";
import { Welcome } from "./Welcome.js";
import { count, money } from "./words.js";

export function App() {
  if (key.value === undefined) return <KeyForm />;
  return linkKey.value.state === "asked" ? <LinkKeyQuestion /> : <Page />;
}

function Page() {
  const [drawer, setDrawer] = useState(false);
  const [help, setHelp] = useState(false);
  useTitle();
  // Before anything else can happen: an Escape that was meant for the drawer must not stop a turn.
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing) return;
      if (event.key === "Escape") {
        // A dialog closes itself.
        if (help) return;
        if (drawer) setDrawer(false);
        else if (current.value?.running) stop();
      } else if (event.altKey && event.code === "KeyN") {
        event.preventDefault();
        void go({ view: "chat" });
      } else if (!isWriting(event) && !event.ctrlKey && !event.metaKey && !event.altKey) {
        if (event.key === "?") setHelp(!help);
        else if (event.key === "/" && place.value.view === "chat" && !help) toPrompt(event);
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [drawer, help]);
  return (
    <div class={drawer ? "page drawn" : "page"}>
      <a class="skip" href="#prompt" onClick={toPrompt}>
        Skip to the prompt
      </a>
      <Sidebar close={() => setDrawer(false)} showHelp={() => setHelp(true)} />
      {help && <Help close={() => setHelp(false)} />}
      {drawer && <div class="shade" onClick={() => setDrawer(false)} />}
      <main>
        <Header openDrawer={() => setDrawer(true)} />
        {linkKey.value.state === "used" && <LinkKeyNotice />}
        {VIEWS[place.value.view]()}
      </main>
    </div>
  );
}

const VIEWS = { chat: () => <Chat />, admin: () => <Admin />, agents: () => <AgentSessions /> };

function toPrompt(event: Event): void {
  event.preventDefault();
  focusPrompt();
}

/** The tab says what is open, and that an agent waits for an answer. */
function useTitle(): void {
  const waiting = sessions.value.reduce((all, session) => all + session.openRequests, 0);
  const { view } = place.value;
  const title = view === "admin" ? "Gateway" : view === "agents" ? "Sessions of your agents" : summary.value?.title;
  const before = useRef(waiting);
  useEffect(() => {
    showWaiting(waiting, before.current, `${title ? `${title} – ` : ""}gembridge`);
    before.current = waiting;
  }, [waiting, title]);
}

const THEMES = { system: "half", light: "sun", dark: "moon" } as const;

function Sidebar({ close, showHelp }: { close: () => void; showHelp: () => void }) {
  return (
    <nav class="sidebar" aria-label="Sessions">
      <header>
        <img src={mark} alt="" width={26} height={26} />
        <span class="brand">gembridge</span>
        <button type="button" class="round small narrow" aria-label="Close the list" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      <button
        type="button"
        class="new"
        onClick={() => {
          void go({ view: "chat" });
          close();
        }}
      >
        <Icon name="plus" /> New chat
      </button>
      <SessionList chosen={close} />
      <footer>
        <ConnectionState />
        <span class="buttons">
          {notices.value === "default" && (
            <button
              type="button"
              class="round small"
              aria-label="Notify me when an agent asks"
              title="Notify me when an agent asks"
              onClick={() => void allowNotices().catch(report)}
            >
              <Icon name="bell" size={16} />
            </button>
          )}
          <button type="button" class="round small keys" aria-label="Keys (?)" title="Keys (?)" onClick={showHelp}>
            <Icon name="help" size={16} />
          </button>
          <button type="button" class="round small" aria-label={`Theme: ${theme.value}`} title={`Theme: ${theme.value}`} onClick={nextTheme}>
            <Icon name={THEMES[theme.value]} size={16} />
          </button>
          <button
            type="button"
            class="round small"
            aria-label="Sessions of your agents"
            title="Sessions of your agents"
            aria-current={place.value.view === "agents" ? "page" : undefined}
            onClick={() => {
              void go({ view: "agents" });
              close();
            }}
          >
            <Icon name="read" size={16} />
          </button>
          <button
            type="button"
            class="round small"
            aria-label="Gateway"
            title="Gateway"
            aria-current={place.value.view === "admin" ? "page" : undefined}
            onClick={() => {
              void go({ view: "admin" });
              close();
            }}
          >
            <Icon name="gauge" size={16} />
          </button>
          <button type="button" class="round small" aria-label="Forget the key" title="Forget the key" onClick={signOut}>
            <Icon name="leave" size={16} />
          </button>
        </span>
      </footer>
    </nav>
  );
}

function Header({ openDrawer }: { openDrawer: () => void }) {
  const admin = place.value.view !== "chat";
  const title = admin ? "" : (summary.value?.title ?? (opened.value.state === "none" ? "New chat" : ""));
  return (
    <header class="top">
      <button type="button" class="round narrow" aria-label="Show sessions" onClick={openDrawer}>
        <Icon name="menu" />
      </button>
      <span class="name" dir="auto">
        {title}
      </span>
      {!admin && (agent.value?.isDemo ?? demo.value) && <span class="tag demo">Demo agent</span>}
      {!admin && <UsageLine />}
      <span class="narrow">
        <ConnectionState />
      </span>
    </header>
  );
}

function UsageLine() {
  tick.value;
  const usage = current.value?.usage;
  if (!usage) return null;
  const { contextUsed, contextSize, totalTokens } = usage;
  const cost = usage.cost && <span title="What the agent says that this session has cost">{money(usage.cost)}</span>;
  if (contextUsed !== undefined && contextSize) {
    const share = (contextUsed / contextSize) * 100;
    return (
      <span class="usage" title={`${contextUsed} of ${contextSize} tokens of the agent's context are taken`}>
        <meter aria-label="Context used" min={0} max={100} value={share} /> {share < 1 ? "< 1" : Math.round(share)} %{cost && <> · {cost}</>}
      </span>
    );
  }
  if (totalTokens === undefined) return cost ? <span class="usage">{cost}</span> : null;
  return (
    <span class="usage">
      {count(totalTokens)} tokens{cost && <> · {cost}</>}
    </span>
  );
}

function Chat() {
  tick.value;
  const now = opened.value;
  const session = current.value;
  const asks = session ? [...session.asks.values()] : [];
  return (
    <>
      {now.state === "open" && now.session.turns.length > 0 ? <Transcript key={now.session.id} session={now.session} /> : <Empty />}
      <div class="dock">
        {trouble.value !== undefined && (
          <p class="trouble" role="alert">
            {trouble.value}
            <button type="button" class="round small" aria-label="Dismiss" onClick={() => (trouble.value = undefined)}>
              <Icon name="close" size={14} />
            </button>
          </p>
        )}
        {asks.map((ask) => (ask.kind === "permission" ? <PermissionCard key={ask.id} ask={ask} /> : <FormCard key={ask.id} ask={ask} />))}
        {now.state !== "failed" && <Composer />}
      </div>
    </>
  );
}

function Empty() {
  const now = opened.value;
  return (
    <div class="transcript">
      <div class="scroller" tabIndex={0} role="region" aria-label="Conversation">
        {now.state === "opening" && <p class="state shimmer middle">Opening…</p>}
        {now.state === "failed" && (
          <p class="state failed middle" role="alert">
            This session cannot be shown: {now.message}
          </p>
        )}
        {(now.state === "none" || now.state === "open") && <Welcome />}
      </div>
    </div>
  );
}
