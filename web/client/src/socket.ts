// A connection that comes back: opens, watches over its life with pings, and when it is lost tries again, later each time.

import { addressOf, type Address } from "./address.js";
import { BACKOFF, delay, type BackoffOptions } from "./backoff.js";
import { Refused } from "./errors.js";
import type { Connection } from "./events.js";

/** What is used of a WebSocket: the browser's, Node's own (from 22 on) and that of `ws` all have it. */
export interface SocketLike {
  readonly readyState: number;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
  onerror: ((event: never) => void) | null;
  send(text: string): void;
  close(code?: number, reason?: string): void;
}

export type SocketConstructor = new (url: string, protocols: string[]) => SocketLike;

export interface SocketOptions {
  url: string;
  key?: string;
  /** Needed where there is no global `WebSocket`, as in Node 20. */
  WebSocket?: SocketConstructor;
  fetch?: typeof fetch;
  backoff?: Partial<BackoffOptions>;
}

export interface SocketOwner {
  /** A fresh connection: the handshake comes next. A rejection counts as a lost connection. */
  opened(): Promise<void>;
  received(text: string): void;
  /** The connection is gone. `final` when no other will follow. */
  lost(reason: Error, final: boolean): void;
  changed(connection: Connection): void;
}

const OPEN = 1;
/** The key was revoked: trying again would only fail again. */
const POLICY = 1008;

export class ReconnectingSocket {
  readonly #address: Address;
  readonly #options: SocketOptions;
  readonly #backoff: BackoffOptions;
  readonly #owner: SocketOwner;
  #socket: SocketLike | undefined;
  #attempt = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #wanted = false;

  constructor(options: SocketOptions, owner: SocketOwner) {
    this.#address = addressOf(options.url);
    this.#options = options;
    this.#backoff = { ...BACKOFF, ...options.backoff };
    this.#owner = owner;
  }

  start(): void {
    if (this.#wanted) return;
    this.#wanted = true;
    this.#attempt = 0;
    this.#open();
  }

  stop(): void {
    this.#end({ code: 1000, reason: "closed by this client" }, new Error("the client was closed"));
  }

  /** Tries at once instead of when the wait is over. */
  hurry(): void {
    if (this.#retry === undefined) return;
    clearTimeout(this.#retry);
    this.#retry = undefined;
    this.#open();
  }

  send(text: string): void {
    // What is written to a dying socket is lost; whoever waits for an answer learns it from `lost`.
    if (this.#socket?.readyState === OPEN) this.#socket.send(text);
  }

  /** Gives this connection up as dead and goes on with the next. */
  drop(reason: string): void {
    const socket = this.#socket;
    if (socket) this.#closed(socket, { reason, opened: true });
  }

  /** The handshake is done: the next loss begins the waits anew. */
  settled(): void {
    this.#attempt = 0;
  }

  #open(): void {
    this.#attempt += 1;
    this.#owner.changed({ state: "connecting", attempt: this.#attempt });
    const Constructor = this.#options.WebSocket ?? (globalThis.WebSocket as unknown as SocketConstructor | undefined);
    if (!Constructor) {
      const error = new Error("there is no global `WebSocket`; give one as the option `WebSocket`");
      return this.#end({ reason: error.message }, error);
    }
    const { key } = this.#options;
    const socket = new Constructor(this.#address.socket, key === undefined ? ["acp.v1"] : ["acp.v1", `bearer.${key}`]);
    this.#socket = socket;
    let opened = false;
    socket.onopen = () => {
      opened = true;
      this.#owner.opened().catch((error: unknown) => {
        if (error instanceof Refused) this.#end({ reason: error.message }, error);
        else this.#closed(socket, { reason: error instanceof Error ? error.message : String(error), opened });
      });
    };
    socket.onmessage = ({ data }) => {
      if (this.#socket === socket && typeof data === "string") this.#owner.received(data);
    };
    socket.onclose = ({ code, reason }) => this.#closed(socket, { code, reason, opened });
    socket.onerror = () => {};
  }

  #closed(socket: SocketLike, { code, reason, opened }: { code?: number; reason: string; opened: boolean }): void {
    if (this.#socket !== socket) return;
    this.#letGo();
    const error = new Error(`the connection was lost${code === undefined ? "" : ` (${code})`}${reason ? `: ${reason}` : ""}`);
    if (code === POLICY) return this.#end({ code, reason }, new Refused(reason || "the key was revoked", 401));
    this.#owner.lost(error, false);
    if (!this.#wanted) return;
    const wait = delay(this.#attempt || 1, code, this.#backoff);
    const why = { ...(code !== undefined && { code }), ...(reason !== "" && { reason }) };
    this.#owner.changed({ state: "waiting", attempt: this.#attempt, retryAt: Date.now() + wait, ...why });
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#open();
    }, wait);
    if (!opened) void this.#askWhy();
  }

  /** An upgrade that failed does not say why: a plain request with the same key does. */
  async #askWhy(): Promise<void> {
    const ask = this.#options.fetch ?? globalThis.fetch;
    const { key } = this.#options;
    try {
      const answer = await ask(this.#address.ticket, {
        method: "POST",
        headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
      });
      if (answer.status !== 401 && answer.status !== 403) return;
      const body = (await answer.json().catch(() => ({}))) as { error?: { message?: string } };
      const message = body.error?.message ?? "the gateway refused the key";
      if (this.#wanted) this.#end({ reason: message }, new Refused(message, answer.status));
    } catch {
      // The gateway is away: the next try will tell.
    }
  }

  #end(why: { code?: number; reason: string }, error: Error): void {
    if (!this.#wanted) return;
    this.#wanted = false;
    clearTimeout(this.#retry);
    this.#retry = undefined;
    this.#letGo();
    this.#owner.lost(error, true);
    this.#owner.changed({ state: "closed", ...why });
  }

  #letGo(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.onerror = () => {};
    socket.close(1000);
  }
}
