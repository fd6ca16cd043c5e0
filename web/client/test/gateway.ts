// A small gateway in memory: a log per session, attach with replay, prompts that a script plays. For tests and for looking at the page.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocketServer, type WebSocket } from "ws";

type Params = Record<string, unknown>;
export interface Entry {
  seq: number;
  at: number;
  turn?: number;
  method: string;
  params: Params;
  /** Who sent the prompt that this entry tells of: it is not told to them live. */
  by?: Peer;
  /** Whose prompt it was that began. */
  starter?: Peer;
  /** It tells of a tool that a client runs. */
  clientTool?: boolean;
}

export type Script = (turn: Playing, text: string) => Promise<void> | void;

/** What a script can make the agent do. */
export class Playing {
  cancelled = false;
  usage: Params | undefined;
  #stopped: (() => void)[] = [];
  constructor(
    readonly gateway: MockGateway,
    readonly session: MockSession,
    readonly id: number,
  ) {}

  update(update: Params): void {
    this.gateway.append(this.session, "session/update", { update }, { turn: this.id });
  }
  /** What the gateway tells of a tool that a client runs. */
  clientTool(update: Params): void {
    this.gateway.append(this.session, "session/update", { update }, { turn: this.id, clientTool: true });
  }
  text(text: string): void {
    this.update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  }
  thought(text: string): void {
    this.update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text } });
  }
  ask(request: Params, kind: "session/request_permission" | "elicitation/create" = "session/request_permission"): Promise<Params> {
    return this.gateway.ask(this.session, kind, request);
  }
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.cancelled) return resolve();
      const timer = setTimeout(resolve, ms);
      this.#stopped.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
  cancel(): void {
    this.cancelled = true;
    for (const stop of this.#stopped.splice(0)) stop();
  }
}

export class MockSession {
  readonly log: Entry[] = [];
  readonly asks = new Map<number, { method: string; params: Params; settle: (answer: Params) => void }>();
  readonly queue: { id: number; text: string; peer: Peer; rpcId: unknown }[] = [];
  readonly followers = new Set<Peer>();
  readonly createdAt = new Date().toISOString();
  running: Playing | undefined;
  turns = 0;
  title: string | null = null;
  model = "demo-large";
  mode = "default";
  origin?: string;
  constructor(
    readonly id: string,
    readonly agent: string,
  ) {}
}

interface Peer {
  socket: WebSocket;
  send(message: Params): void;
  asks: Map<number, { session: MockSession; ask: number }>;
  watching: boolean;
  initialized: boolean;
}

export interface GatewayOptions {
  key?: string;
  script?: Script;
  http?: (request: IncomingMessage, response: ServerResponse) => boolean;
  agents?: Params[];
}

export class MockGateway {
  readonly sessions = new Map<string, MockSession>();
  readonly peers = new Set<Peer>();
  readonly received: Params[] = [];
  connections = 0;
  refuse = false;
  #away = false;
  #expected: { count: number; come: () => void }[] = [];
  /** So many attachments fail before one works. */
  attachFailures = 0;
  #server: Server;
  #sockets: WebSocketServer;
  #nextId = 1;
  #port = 0;

  private constructor(readonly options: GatewayOptions) {
    this.#server = createServer((request, response) => (this.#away ? request.socket.destroy() : this.#http(request, response)));
    this.#sockets = new WebSocketServer({ noServer: true, handleProtocols: () => "acp.v1" });
    this.#server.on("upgrade", (request, socket, head) => {
      if (this.#away) return void socket.destroy();
      if (this.refuse || !this.#keyed(request)) {
        socket.end("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
      }
      this.#sockets.handleUpgrade(request, socket, head, (socket) => this.#connected(socket));
    });
  }

  static async start(options: GatewayOptions = {}, port = 0): Promise<MockGateway> {
    const gateway = new MockGateway(options);
    await gateway.#listen(port);
    return gateway;
  }

  async #listen(port: number): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Cuts every connection as a lost network would. */
  cut(): void {
    for (const peer of this.peers) peer.socket.terminate();
  }

  /** Is not there for anybody until it comes back. It keeps its address, which nobody else can take meanwhile. */
  leave(): void {
    this.#away = true;
    this.cut();
  }

  comeBack(): void {
    this.#away = false;
  }

  /** Resolves once so many connections were made in all. */
  connected(count: number): Promise<void> {
    if (this.connections >= count) return Promise.resolve();
    return new Promise((come) => this.#expected.push({ count, come }));
  }

  /** Closes every connection with a code. */
  closeAll(code: number): void {
    for (const peer of this.peers) peer.socket.close(code);
  }

  async stop(): Promise<void> {
    this.cut();
    for (const session of this.sessions.values()) session.running?.cancel();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    // Browsers open connections ahead of what they will ask.
    this.#server.closeAllConnections();
    await closed;
  }

  newSession(agent = "demo"): MockSession {
    const session = new MockSession(`s${this.sessions.size + 1}`, agent);
    this.sessions.set(session.id, session);
    return session;
  }

  append(
    session: MockSession,
    method: string,
    params: Params,
    { turn, by, starter, clientTool }: { turn?: number; by?: Peer; starter?: Peer; clientTool?: boolean } = {},
  ): Entry {
    const last = session.log.at(-1);
    // One prompt of several blocks is one entry.
    const together = by !== undefined && last?.by === by && last.turn === turn;
    const entry: Entry = { seq: together ? last.seq : (last?.seq ?? 0) + 1, at: Date.now(), method, params };
    if (turn !== undefined) entry.turn = turn;
    if (by !== undefined) entry.by = by;
    if (starter !== undefined) entry.starter = starter;
    if (clientTool) entry.clientTool = true;
    session.log.push(entry);
    for (const peer of session.followers) if (peer !== by) peer.send(frame(session, entry, peer));
    return entry;
  }

  async ask(session: MockSession, method: string, params: Params): Promise<Params> {
    const ask = (this.#nextId += 1);
    const answer = await new Promise<Params>((settle) => {
      session.asks.set(ask, { method, params, settle });
      for (const peer of session.followers) this.#request(peer, session, ask);
      this.#summary(session);
    });
    this.#summary(session);
    return answer;
  }

  settle(session: MockSession, ask: number, answer: Params, by: Peer | "timeout" | "cancel"): void {
    const open = session.asks.get(ask);
    if (!open) return;
    session.asks.delete(ask);
    for (const peer of session.followers) {
      const who = typeof by === "string" ? by : by === peer ? "you" : "client";
      peer.send({ method: "_gembridge/request_resolved", params: { sessionId: session.id, ask, outcome: answer["outcome"], by: who } });
    }
    open.settle(answer);
  }

  prompt(session: MockSession, blocks: Params[], peer: Peer, rpcId: unknown = undefined): void {
    const id = (session.turns += 1);
    for (const content of blocks) {
      this.append(session, "session/update", { update: { sessionUpdate: "user_message_chunk", content } }, { turn: id, by: peer });
    }
    const text = blocks.map((block) => block["text"] ?? "").join("");
    session.title ??= text.slice(0, 60);
    session.queue.push({ id, text, peer, rpcId });
    const ahead = session.queue.length - (session.running ? 0 : 1);
    if (ahead > 0) peer.send({ method: "_gembridge/queued", params: { sessionId: session.id, turn: id, ahead } });
    if (!session.running) void this.#play(session);
  }

  async #play(session: MockSession): Promise<void> {
    for (let next = session.queue.shift(); next; next = session.queue.shift()) {
      const playing = new Playing(this, session, next.id);
      session.running = playing;
      this.append(session, "_gembridge/turn_started", {}, { turn: next.id, starter: next.peer });
      this.#summary(session);
      let error: Params | undefined;
      try {
        await this.options.script?.(playing, next.text);
      } catch (failure) {
        error = { message: (failure as Error).message, code: "agent_error" };
      }
      session.running = undefined;
      const outcome = error ? "interrupted" : playing.cancelled ? "cancelled" : "finished";
      const stopReason = playing.cancelled ? "cancelled" : "end_turn";
      const usage = playing.usage ?? { inputTokens: 10, outputTokens: 20, totalTokens: 30 };
      this.append(session, "_gembridge/turn_ended", { outcome, stopReason, usage, ...(error && { error }) }, { turn: next.id });
      if (next.rpcId !== undefined) next.peer.send({ id: next.rpcId, result: { stopReason } });
      this.#summary(session);
    }
  }

  summary(session: MockSession): Params {
    return {
      sessionId: session.id,
      title: session.title,
      agent: session.agent,
      model: session.model,
      mode: session.mode,
      createdAt: session.createdAt,
      updatedAt: new Date(session.log.at(-1)?.at ?? Date.parse(session.createdAt)).toISOString(),
      state: session.asks.size > 0 ? "waiting" : session.running ? "running" : "idle",
      queued: session.queue.length,
      followers: session.followers.size,
      openRequests: session.asks.size,
      ...(session.origin !== undefined && { origin: session.origin }),
    };
  }

  #summary(session: MockSession): void {
    for (const peer of this.peers) {
      if (peer.watching) peer.send({ method: "_gembridge/session_changed", params: { session: this.summary(session) } });
    }
  }

  #request(peer: Peer, session: MockSession, ask: number): void {
    const open = session.asks.get(ask);
    if (!open) return;
    const id = (this.#nextId += 1);
    peer.asks.set(id, { session, ask });
    const left = JSON.stringify(open.params).includes("soon") ? 30_000 : 3_600_000;
    const meta = { gembridge: { seq: session.log.at(-1)?.seq, at: Date.now(), ask, expiresAt: Date.now() + left } };
    peer.send({ id, method: open.method, params: { sessionId: session.id, ...open.params, _meta: meta } });
  }

  #connected(socket: WebSocket): void {
    this.connections += 1;
    for (const { count, come } of this.#expected) if (this.connections >= count) come();
    const peer: Peer = {
      socket,
      asks: new Map(),
      watching: false,
      initialized: false,
      send: (message) => socket.send(JSON.stringify({ jsonrpc: "2.0", ...message })),
    };
    this.peers.add(peer);
    socket.on("message", (data) => this.#message(peer, JSON.parse(String(data)) as Params));
    socket.on("close", () => {
      this.peers.delete(peer);
      for (const session of this.sessions.values()) session.followers.delete(peer);
    });
  }

  #message(peer: Peer, message: Params): void {
    this.received.push(message);
    const { id, method } = message;
    const params = (message["params"] ?? {}) as Params;
    if (method === undefined) {
      const asked = peer.asks.get(id as number);
      if (asked) this.settle(asked.session, asked.ask, message["result"] as Params, peer);
      return;
    }
    const session = this.sessions.get(String(params["sessionId"]));
    const done = (result: unknown) => peer.send({ id, result });
    const unknown = () => peer.send({ id, error: { code: -32002, message: "no such session", data: { code: "unknown_session" } } });
    switch (method) {
      case "initialize":
        peer.initialized = true;
        return done({
          protocolVersion: 1,
          agentCapabilities: { loadSession: true, promptCapabilities: { image: true } },
          agentInfo: { name: "demo", title: "Demo agent", version: "1.0.0" },
          _meta: { gembridge: { version: "0.1.0", connectionId: `c${this.connections}`, agent: "demo", mode: "agent", demo: true } },
        });
      case "$/ping":
        return done({});
      case "session/new": {
        const made = this.newSession();
        made.followers.add(peer);
        done(setup(made));
        this.append(made, "session/update", { update: { sessionUpdate: "available_commands_update", availableCommands: COMMANDS } });
        return this.#summary(made);
      }
      case "session/prompt":
        return session ? this.prompt(session, params["prompt"] as Params[], peer, id) : unknown();
      case "session/cancel":
        if (!session) return;
        for (const ask of [...session.asks.keys()]) this.settle(session, ask, { outcome: { outcome: "cancelled" } }, "cancel");
        return session.running?.cancel();
      case "session/set_model":
        if (session) session.model = String(params["modelId"]);
        return done({});
      case "session/set_mode":
        if (!session) return unknown();
        session.mode = String(params["modeId"]);
        this.append(session, "session/update", { update: { sessionUpdate: "current_mode_update", currentModeId: session.mode } });
        return done({});
      case "session/delete":
        if (session) this.sessions.delete(session.id);
        for (const other of this.peers) other.send({ method: "_gembridge/session_removed", params: { sessionId: params["sessionId"] } });
        return done({});
      case "_gembridge/attach":
        if (this.attachFailures > 0) {
          this.attachFailures -= 1;
          return peer.send({ id, error: { code: -32000, message: "too busy", data: { code: "unavailable", retryAfterMs: 5 } } });
        }
        return session ? this.#attach(peer, session, params, done) : unknown();
      case "_gembridge/detach":
        session?.followers.delete(peer);
        return done({});
      case "_gembridge/rename":
        if (!session) return unknown();
        session.title = String(params["title"]);
        done({});
        return this.#summary(session);
      case "_gembridge/watch_sessions":
        peer.watching = true;
        return done({ sessions: [...this.sessions.values()].map((session) => this.summary(session)) });
      case "_gembridge/sessions":
        return done({ sessions: [...this.sessions.values()].map((session) => this.summary(session)) });
      case "_gembridge/agents":
        return done({ agents: this.options.agents ?? AGENTS });
      default:
        if (id !== undefined) peer.send({ id, error: { code: -32601, message: `no method \`${String(method)}\`` } });
    }
  }

  #attach(peer: Peer, session: MockSession, params: Params, done: (result: unknown) => void): void {
    const after = params["after"] as number | undefined;
    let entries = session.log.filter((entry) => entry.seq > (after ?? 0));
    let truncated = (after ?? 0) > 0;
    if (params["limit"] !== undefined) {
      const turns = [...new Set(entries.map((entry) => entry.turn).filter((turn) => turn !== undefined))];
      const kept = new Set(turns.slice(-(params["limit"] as number)));
      truncated = kept.size < turns.length;
      entries = entries.filter((entry) => entry.turn === undefined || kept.has(entry.turn));
    }
    const last = session.log.at(-1)?.seq ?? 0;
    done({ ...setup(session), state: session.running ? "running" : "idle", last });
    const send = (method: string, more: Params) => peer.send({ method, params: { sessionId: session.id, ...more } });
    send("_gembridge/replay_started", { from: entries[0]?.seq ?? last, to: last });
    for (const entry of entries) peer.send(frame(session, entry, peer));
    const turn = session.running ? { state: "running", id: session.running.id } : { state: "idle" };
    const openRequests = [...session.asks.keys()];
    send("_gembridge/replay_ended", { last, turn, queued: session.queue.length, openRequests, truncated });
    session.followers.add(peer);
    for (const ask of openRequests) this.#request(peer, session, ask);
  }

  #keyed(request: IncomingMessage): boolean {
    const { key } = this.options;
    if (key === undefined) return true;
    const offered = String(request.headers["sec-websocket-protocol"] ?? "").split(/,\s*/);
    return offered.includes(`bearer.${key}`) || request.headers.authorization === `Bearer ${key}`;
  }

  #http(request: IncomingMessage, response: ServerResponse): void {
    if (this.options.http?.(request, response)) return;
    const allowed = this.#keyed(request) && !this.refuse;
    response.writeHead(allowed ? 200 : 401, { "content-type": "application/json" });
    response.end(JSON.stringify(allowed ? { ticket: "x", expiresIn: 30 } : { error: { message: "the key is not valid" } }));
  }
}

function frame(session: MockSession, { seq, at, turn, method, params, starter, clientTool }: Entry, to: Peer): Params {
  const mark = { seq, at, ...(turn !== undefined && { turn }), ...(starter && { byYou: starter === to }), ...(clientTool && { clientTool }) };
  if (method !== "session/update") return { method, params: { sessionId: session.id, ...params, ...mark } };
  return { method, params: { sessionId: session.id, ...params, _meta: { gembridge: mark } } };
}

function setup(session: MockSession): Params {
  return {
    sessionId: session.id,
    modes: { currentModeId: session.mode, availableModes: MODES },
    models: { currentModelId: session.model, availableModels: MODELS.map(({ id, ...rest }) => ({ modelId: id, ...rest })) },
    _meta: { gembridge: { agent: session.agent, mode: "agent", workspace: "/home/me/project", seq: session.log.at(-1)?.seq ?? 0 } },
  };
}

const MODES = [
  { id: "default", name: "Ask", description: "Asks before it changes anything" },
  { id: "yolo", name: "Autonomous", description: "Never asks" },
];
const MODELS = [
  { id: "demo-large", name: "Demo large" },
  { id: "demo-small", name: "Demo small" },
];
const COMMANDS = [
  { name: "help", description: "What the agent can do" },
  { name: "plan", description: "A plan whose entries progress", input: { hint: "what to plan" } },
  { name: "memory", description: "What the agent remembers" },
];
const AGENTS = [{ name: "demo", title: "Demo agent", version: "1.0.0", isDefault: true, isDemo: true, mode: "agent", models: MODELS, modes: MODES }];
