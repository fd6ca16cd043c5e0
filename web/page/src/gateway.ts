// The page's one connection and everything that it shows of it.

import { AgentChatClient, type AgentInfo, type Connection, type Session, type SessionSummary } from "@gembridge/client";
import { batch, computed, signal } from "@preact/signals";
import { decideLinkKey, forgetKey, keepKey, keptKey, readPlace, showPlace, takeLinkKey, type LinkKey, type Place } from "./key.js";

/** How many turns of a session are told at first. */
const FIRST_TURNS = 30;
const LISTED_MS = 100;
const CLOSED_BY_US = 1000;

export type Opened =
  { state: "none" } | { state: "opening"; id: string } | { state: "open"; session: Session } | { state: "failed"; id: string; message: string };

const brought = takeLinkKey();
export const linkKey = signal<LinkKey>(decideLinkKey(brought, keptKey()));
if (linkKey.value.state === "used" && brought !== undefined) keepKey(brought);
export const key = signal<string | undefined>(keptKey());
export const refusal = signal<string | undefined>(undefined);
export const connection = signal<Connection>({ state: "closed" });
export const sessions = signal<SessionSummary[]>([]);
export const agents = signal<AgentInfo[]>([]);
export const place = signal<Place>(readPlace());
export const opened = signal<Opened>({ state: "none" });
/** Grows once a frame while the open session changes. */
export const tick = signal(0);
export const demo = signal(false);
export const version = signal<string | undefined>(undefined);
/** What went wrong last and nothing else shows. */
export const trouble = signal<string | undefined>(undefined);
/** What is chosen for the next session. */
export const wishedAgent = signal<string | undefined>(undefined);
export const wishedModel = signal<string | undefined>(undefined);

export const current = computed(() => (opened.value.state === "open" ? opened.value.session : undefined));
export const summary = computed(() => sessions.value.find(({ sessionId }) => sessionId === current.value?.id));

/** The agent of the open session, or the one that the next session will have. */
export const agent = computed<AgentInfo | undefined>(() => {
  const name = summary.value?.agent ?? current.value?.agent ?? wishedAgent.value;
  return agents.value.find((agent) => agent.name === name) ?? agents.value.find((agent) => agent.isDefault) ?? agents.value[0];
});

let client: AgentChatClient | undefined;

/** The base of everything that the gateway serves. */
export function gatewayUrl(path: string): string {
  return new URL(path, document.baseURI.replace(/[?#].*$/, "")).href;
}

export function clientOf(given = key.value): AgentChatClient {
  return new AgentChatClient({
    url: gatewayUrl("acp"),
    ...(given !== undefined && { key: given }),
    clientInfo: { name: "gembridge-page", version: version.value ?? "0" },
  });
}

export function chat(): AgentChatClient {
  if (!client) throw new Error("there is no connection; enter a key first");
  return client;
}

export function useKey(given: string): void {
  keepKey(given);
  batch(() => {
    key.value = given;
    refusal.value = undefined;
  });
  connect();
}

export function signOut(): void {
  client?.close();
  client = undefined;
  forgetKey();
  batch(() => {
    key.value = undefined;
    linkKey.value = { state: "none" };
    opened.value = { state: "none" };
    sessions.value = [];
  });
}

/** The answer to the question whether the key of a link shall take the place of the tab's own. */
export function answerLinkKey(answer: "keep" | "use"): void {
  const asked = linkKey.value;
  linkKey.value = { state: "none" };
  if (asked.state !== "asked" || answer === "keep") return;
  // Nothing of the old key's sessions stays on the page.
  signOut();
  useKey(asked.key);
}

export function connect(): void {
  if (key.value === undefined) return;
  client?.close();
  const made = clientOf();
  client = made;
  made.on("connection", (event) => {
    if (client !== made) return;
    connection.value = event;
    if (event.state === "open") greeted(made);
    // Not by us and not to be tried again: the key is of no use any more.
    if (event.state === "closed" && event.code !== CLOSED_BY_US) {
      signOut();
      refusal.value = event.reason || "the gateway does not take this key any more";
    }
  });
  made.on("error", ({ message }) => (trouble.value = message));
  made.onChange((session) => changed(session));
  made.watchSessions(listed);
  // Why it ended, the connection's own state tells.
  made.connect().catch(() => {});
  void go(place.value, "replace");
}

function greeted(made: AgentChatClient): void {
  demo.value = made.gateway.demo === true;
  version.value = made.gateway.version;
  made
    .agents()
    .then((list) => (agents.value = list))
    .catch(report);
}

/** A busy gateway's list changes with every turn of every client; a person reads it a few times a second at most. */
let newest: SessionSummary[] | undefined;
function listed(list: SessionSummary[]): void {
  if (newest === undefined) setTimeout(() => ([sessions.value, newest] = [newest ?? [], undefined]), LISTED_MS);
  newest = list;
}

/** Browsers draw at most once a frame: so many changes are one. A hidden page draws when it is shown again. */
let scheduled = false;
function changed(session: Session): void {
  if (session.sync === "gone" && current.value === session) {
    opened.value = { state: "failed", id: session.id, message: "the gateway does not know this session any more" };
  }
  if (scheduled || (current.value !== session && opened.value.state !== "opening")) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    tick.value += 1;
  });
}

/** Goes to a place of the page. */
export async function go(to: Place, how: "push" | "replace" = "push"): Promise<void> {
  showPlace(to, how);
  place.value = to;
  if (to.view === "chat") await open(to.session, to.limit);
}

async function open(id: string | undefined, limit = FIRST_TURNS): Promise<void> {
  const before = opened.value;
  if (before.state === "open" && before.session.id === id && before.session.sync !== "gone") return;
  if (before.state === "open") chat().detach(before.session.id).catch(report);
  if (id === undefined) {
    opened.value = { state: "none" };
    return;
  }
  opened.value = { state: "opening", id };
  try {
    const session = await chat().attach(id, Number.isFinite(limit) ? { limit } : {});
    if (place.value.session === id) opened.value = { state: "open", session };
    // Somebody went on before it was open.
    else await chat().detach(id);
  } catch (error) {
    if (place.value.session === id) opened.value = { state: "failed", id, message: messageOf(error) };
  }
}

/** Reads the open session again from its beginning. */
export async function openWhole(): Promise<void> {
  const session = current.value;
  if (!session) return;
  opened.value = { state: "none" };
  await chat().detach(session.id);
  await open(session.id, Infinity);
}

let beginning: Promise<Session> | undefined;

/** Begins a session with what was chosen for it, and shows it. Prompts that come meanwhile go into the same one. */
export function begin(): Promise<Session> {
  beginning ??= makeSession().finally(() => (beginning = undefined));
  return beginning;
}

async function makeSession(): Promise<Session> {
  const session = await chat().newSession({
    ...(wishedAgent.value !== undefined && { agent: wishedAgent.value }),
    ...(wishedModel.value !== undefined && { model: wishedModel.value }),
  });
  batch(() => {
    opened.value = { state: "open", session };
    place.value = { view: "chat", session: session.id };
  });
  showPlace(place.value, "push");
  return session;
}

export function report(error: unknown): void {
  trouble.value = messageOf(error);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The address changed: by a link, by hand, or by going back. A link fires both events, `popstate` first. */
function followAddress(): void {
  const given = takeLinkKey();
  if (given !== undefined) linkKey.value = decideLinkKey(given, key.value);
  if (given !== undefined && linkKey.value.state === "used") {
    place.value = readPlace();
    useKey(given);
  } else void go(readPlace(), "replace");
}
addEventListener("hashchange", followAddress);
addEventListener("popstate", followAddress);
addEventListener("online", () => client?.wake());
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") client?.wake();
});
