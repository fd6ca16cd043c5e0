// The list of all sessions of the gateway, followed live by those who watch it.

import type { SessionSummary } from "./wire.js";

export type Watcher = (sessions: SessionSummary[]) => void;

export class Directory {
  readonly #sessions = new Map<string, SessionSummary>();
  readonly #watchers = new Set<Watcher>();

  get watched(): boolean {
    return this.#watchers.size > 0;
  }

  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  replace(sessions: SessionSummary[]): void {
    this.#sessions.clear();
    for (const session of sessions) this.#sessions.set(session.sessionId, session);
    this.#tell();
  }

  changed(session: SessionSummary): void {
    this.#sessions.set(session.sessionId, session);
    this.#tell();
  }

  removed(id: string): void {
    if (this.#sessions.delete(id)) this.#tell();
  }

  /** Newest first. */
  list(): SessionSummary[] {
    const timed = [...this.#sessions.values()].map((session) => ({ session, at: Date.parse(session.updatedAt) }));
    return timed.sort((a, b) => b.at - a.at).map(({ session }) => session);
  }

  #tell(): void {
    const sessions = this.list();
    for (const watcher of this.#watchers) watcher(sessions);
  }
}
