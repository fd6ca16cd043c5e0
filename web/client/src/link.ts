// The handshake and the heartbeat over a connection that comes back, and who waits for it to be open.

import { ConnectionLost, messageOf } from "./errors.js";
import type { Connection } from "./events.js";
import { Rpc } from "./rpc.js";
import { ReconnectingSocket, type SocketOptions } from "./socket.js";
import type { Meta, RpcMessage } from "./wire.js";

export interface LinkOptions extends SocketOptions {
  /** How this program calls itself to the gateway. */
  clientInfo?: { name: string; version: string; title?: string };
  /** How often to ask whether the gateway is there; 0 never. */
  pingMs?: number;
}

/** What the gateway says about itself on connecting. */
export interface Gateway {
  version?: string;
  connectionId?: string;
  agent?: string;
  mode?: "chat" | "agent";
  /** Answers come from the built-in demonstration agent. */
  demo?: boolean;
}

export interface Initialized {
  agentInfo?: { name: string; title?: string; version?: string } | null;
  agentCapabilities?: { promptCapabilities?: { image?: boolean } };
  _meta?: Meta & { gembridge?: Gateway };
}

export interface LinkOwner {
  /** Called on every connection, before anyone who waits for it. */
  initialized(rpc: Rpc, initialized: Initialized): void;
  received(rpc: Rpc, message: RpcMessage): void;
  lost(reason: Error, final: boolean): void;
  changed(connection: Connection): void;
}

const PING_MS = 25_000;
const PONG_MS = 10_000;
/** After a sleep the connection is often dead, and somebody looks at it. */
const AWAKE_MS = 4_000;
const HANDSHAKE_MS = 45_000;

export class Link {
  readonly #options: LinkOptions;
  readonly #owner: LinkOwner;
  readonly #socket: ReconnectingSocket;
  #current: Rpc | undefined;
  /** The connection whose handshake is done. */
  #open: Rpc | undefined;
  #pings: ReturnType<typeof setInterval> | undefined;
  #waiting: { resolve: (rpc: Rpc) => void; reject: (error: Error) => void }[] = [];
  #ended: Error | undefined = new Error("the client is not connected; call `connect`");

  constructor(options: LinkOptions, owner: LinkOwner) {
    this.#options = options;
    this.#owner = owner;
    this.#socket = new ReconnectingSocket(options, {
      opened: () => this.#opened(),
      received: (text) => this.#received(text),
      lost: (reason, final) => this.#lost(reason, final),
      changed: (connection) => owner.changed(connection),
    });
  }

  get rpc(): Rpc | undefined {
    return this.#open;
  }

  start(): void {
    this.#ended = undefined;
    this.#socket.start();
  }

  stop(): void {
    this.#socket.stop();
  }

  /** The connection, as soon as there is one. */
  ready(): Promise<Rpc> {
    if (this.#open) return Promise.resolve(this.#open);
    if (this.#ended) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  async request<Result>(method: string, params: object): Promise<Result> {
    return (await this.ready()).request<Result>(method, params);
  }

  /** Something suggests that the network changed: find out now instead of later. */
  wake(): void {
    this.#socket.hurry();
    if (this.#open) this.#ping(this.#open, AWAKE_MS);
  }

  async #opened(): Promise<void> {
    const rpc = new Rpc((text) => this.#socket.send(text));
    this.#current = rpc;
    const clientCapabilities = {
      fs: { readTextFile: false, writeTextFile: false },
      terminal: false,
      elicitation: { form: {} },
      session: { notices: {} },
    };
    const clientInfo = this.#options.clientInfo ?? { name: "gembridge-client", version: "0.1.0" };
    const _meta = { gembridge: { extensions: true } };
    const params = { protocolVersion: 1, clientCapabilities, clientInfo, _meta };
    const initialized = await rpc.request<Initialized>("initialize", params, { timeoutMs: HANDSHAKE_MS });
    if (this.#current !== rpc) return;
    this.#open = rpc;
    this.#socket.settled();
    const every = this.#options.pingMs ?? PING_MS;
    if (every > 0) this.#pings = setInterval(() => this.#ping(rpc, Math.min(every, PONG_MS)), every);
    this.#owner.initialized(rpc, initialized);
    const connectionId = initialized._meta?.gembridge?.connectionId;
    this.#owner.changed({ state: "open", ...(connectionId !== undefined && { connectionId }) });
    for (const { resolve } of this.#waiting.splice(0)) resolve(rpc);
  }

  #received(text: string): void {
    const rpc = this.#current;
    if (!rpc) return;
    let message: RpcMessage;
    try {
      message = JSON.parse(text) as RpcMessage;
    } catch (error) {
      console.error("a message of the gateway is not JSON:", messageOf(error));
      return;
    }
    if (message.method === undefined) rpc.settle(message);
    else this.#owner.received(rpc, message);
  }

  #lost(reason: Error, final: boolean): void {
    clearInterval(this.#pings);
    const rpc = this.#current;
    this.#current = undefined;
    this.#open = undefined;
    if (final) this.#ended = reason;
    rpc?.fail(final ? reason : new ConnectionLost(reason.message));
    if (final) for (const { reject } of this.#waiting.splice(0)) reject(reason);
    this.#owner.lost(reason, final);
  }

  #ping(rpc: Rpc, timeoutMs: number): void {
    rpc.request("$/ping", {}, { timeoutMs }).catch(() => {
      if (this.#open === rpc) this.#socket.drop("the gateway did not answer a ping");
    });
  }
}
