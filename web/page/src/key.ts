// The key and the place in the page, both from the address's fragment. The key is taken out of it at once and lives as long as the tab.

const STORED = "gembridge.key";

export interface Place {
  view: "chat" | "admin" | "agents";
  session?: string;
  /** Of the view `agents`, which session is read. */
  agentSession?: { agent: string; id: string };
  /** How many turns of the session are told at first. */
  limit?: number;
}

/** Takes a key out of the fragment, before anything else can read or keep the address. */
export function takeLinkKey(): string | undefined {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const given = fragment.get("key");
  if (given === null) return undefined;
  fragment.delete("key");
  const rest = fragment.toString();
  history.replaceState(null, "", rest === "" ? location.pathname + location.search : `#${rest}`);
  return given.trim() === "" ? undefined : given.trim();
}

/** The key that this tab is signed in with. */
export function keptKey(): string | undefined {
  return sessionStorage.getItem(STORED) ?? undefined;
}

/** What becomes of a key that a link brought. */
export type LinkKey =
  | { state: "none" }
  /** The tab has another key: a person decides. */
  | { state: "asked"; key: string }
  /** The tab had none and is signed in with it: the page says so until that is dismissed. */
  | { state: "used" };

/** A link never takes the place of another key by itself: its sender would read what is said in the tab from then on. */
export function decideLinkKey(given: string | undefined, kept: string | undefined): LinkKey {
  if (given === undefined || given === kept) return { state: "none" };
  return kept === undefined ? { state: "used" } : { state: "asked", key: given };
}

export function keepKey(key: string): void {
  sessionStorage.setItem(STORED, key);
}

export function forgetKey(): void {
  sessionStorage.removeItem(STORED);
}

export function readPlace(): Place {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const agents = fragment.get("agents");
  if (agents !== null) return agentsPlace(agents);
  const session = fragment.get("session") ?? undefined;
  const view = fragment.has("admin") ? "admin" : "chat";
  if (session === undefined) return { view };
  const limit = Number(fragment.get("limit") ?? NaN);
  return Number.isInteger(limit) && limit > 0 ? { view, session, limit } : { view, session };
}

/** `agent/id`, or nothing for the list. */
function agentsPlace(text: string): Place {
  const [agent, ...id] = text.split("/");
  return agent && id.length > 0 ? { view: "agents", agentSession: { agent, id: id.join("/") } } : { view: "agents" };
}

export function showPlace(place: Place, how: "push" | "replace"): void {
  const fragment = fragmentOf(place);
  const address = fragment === "" ? location.pathname + location.search : fragment;
  if (location.hash === fragment) return;
  if (how === "push") history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}

function fragmentOf({ view, session, limit, agentSession }: Place): string {
  if (view === "admin") return "#admin";
  if (view === "agents") return agentSession ? `#agents=${encodeURIComponent(`${agentSession.agent}/${agentSession.id}`)}` : "#agents";
  if (session === undefined) return "";
  return `#session=${encodeURIComponent(session)}${limit === undefined ? "" : `&limit=${limit}`}`;
}
