// The client: sessions of a gateway, held through whatever happens to the connection.

import type { AskAnswer } from "./ask.js";
import { attachOver, type Window } from "./attach.js";
import { Directory, type Watcher } from "./directory.js";
import { ConnectionLost, messageOf, RequestFailed } from "./errors.js";
import { Listeners, type Connection, type EventName, type Handler } from "./events.js";
import { notified, type Receiver, type ReplayEnded } from "./incoming.js";
import { Link, type Gateway, type Initialized, type LinkOptions } from "./link.js";
import { Prompts, type TurnResult } from "./prompts.js";
import { Requests } from "./requests.js";
import type { Rpc } from "./rpc.js";
import { Session } from "./session.js";
import type { Turn } from "./transcript.js";
import type { AgentInfo, AskId, ContentBlock, Json, RpcMessage, SessionSetup, SessionSummary } from "./wire.js";

export type ClientOptions = LinkOptions;

export interface NewSession {
  agent?: string;
  model?: string;
  /** A folder that the operator trusts; without it the agent works in its own. */
  cwd?: string;
  mcpServers?: Json[];
}

const UNKNOWN_SESSION = -32002;
const METHOD_NOT_FOUND = -32601;
const RETRY_MS = 2_000;

export class AgentChatClient {
  readonly #link: Link;
  readonly #listeners = new Listeners();
  readonly #sessions = new Map<string, Session>();
  readonly #windows = new Map<Session, Window>();
  readonly #prompts = new Prompts();
  readonly #requests = new Requests();
  readonly #directory = new Directory();
  readonly #receiver: Receiver;
  readonly #onChange = new Set<(session: Session) => void>();
  readonly #blocks = new WeakMap<Turn, ContentBlock[]>();
  readonly #caughtUp = new Map<Session, { resolve: () => void; reject: (error: Error) => void }[]>();
  /** Sessions that are being made can speak before their id is known here. */
  #making = 0;
  #connection: Connection = { state: "closed", reason: "never connected" };
  #gateway: Gateway = {};
  #agentInfo: Initialized["agentInfo"];

  constructor(options: ClientOptions) {
    this.#link = new Link(options, {
      initialized: (rpc, initialized) => this.#initialized(rpc, initialized),
      received: (rpc, message) => this.#received(rpc, message),
      lost: (reason, final) => this.#lost(reason, final),
      changed: (connection) => this.#connectionChanged(connection),
    });
    this.#receiver = {
      prompts: this.#prompts,
      requests: this.#requests,
      directory: this.#directory,
      session: (id) => this.#sessions.get(id) ?? (this.#making > 0 && id !== "" ? this.#adopt(id) : undefined),
      emit: (event) => event && this.#listeners.emit(event),
      changed: (session) => this.#changed(session),
      caughtUp: (session, end) => this.#caught(session, end),
    };
  }

  /** Resolves once connected; rejects when the gateway refuses. A gateway that is away is tried until `close`. */
  async connect(): Promise<void> {
    this.#link.start();
    await this.#link.ready();
  }

  close(): void {
    this.#link.stop();
  }

  /** Call when the network may have changed (`online`, a tab that is shown again): looks at once whether the connection lives. */
  wake(): void {
    this.#link.wake();
  }

  /** Listens; the result stops listening. */
  on<Name extends EventName>(name: Name, handler: Handler<Name>): () => void {
    return this.#listeners.on(name, handler);
  }

  /** Called after anything about a session changed: for views that draw its state. */
  onChange(handler: (session: Session) => void): () => void {
    this.#onChange.add(handler);
    return () => void this.#onChange.delete(handler);
  }

  get connection(): Connection {
    return this.#connection;
  }

  /** What the gateway said about itself. */
  get gateway(): Gateway {
    return this.#gateway;
  }

  get agentInfo(): Initialized["agentInfo"] {
    return this.#agentInfo;
  }

  get sessions(): ReadonlyMap<string, Session> {
    return this.#sessions;
  }

  async newSession({ agent, model, cwd, mcpServers = [] }: NewSession = {}): Promise<Session> {
    const wishes = { ...(agent !== undefined && { agent }), ...(model !== undefined && { model }) };
    const rpc = await this.#link.ready();
    this.#making += 1;
    try {
      const setup = await rpc.request<SessionSetup & { sessionId: string }>("session/new", {
        ...(cwd !== undefined && { cwd }),
        mcpServers,
        ...(Object.keys(wishes).length > 0 && { _meta: { gembridge: wishes } }),
      });
      const session = this.#adopt(setup.sessionId);
      session.setUp(setup);
      session.advance(setup._meta?.gembridge?.seq);
      this.#changed(session);
      return session;
    } finally {
      this.#making -= 1;
    }
  }

  /** Tells a session again and follows it from then on. Resolves when everything was told. */
  async attach(sessionId: string, window: Window = {}): Promise<Session> {
    const rpc = await this.#link.ready();
    const known = this.#sessions.get(sessionId);
    const session = known ?? new Session(sessionId);
    const waiting = this.#caughtUp.get(session) ?? [];
    if (known && waiting.length === 0) return known;
    const caughtUp = new Promise<void>((resolve, reject) => waiting.push({ resolve, reject }));
    this.#caughtUp.set(session, waiting);
    if (!known) {
      this.#sessions.set(sessionId, session);
      this.#windows.set(session, window);
      void attachOver(rpc, session, window).catch((error: Error) => {
        // A connection that is lost meanwhile is followed by another.
        if (!(error instanceof ConnectionLost)) this.#forget(session, error);
      });
    }
    await caughtUp;
    return session;
  }

  /** Stops following; the session goes on without us. */
  async detach(sessionId: string): Promise<void> {
    const session = this.#sessions.get(sessionId);
    if (!session) return;
    this.#forget(session, new Error("the session was detached"));
    await this.#link.rpc?.request("_gembridge/detach", { sessionId });
  }

  /**
   * Sends a prompt: text, or content blocks for images. Resolves when the turn is over, also when that is learnt over another
   * connection. Without a connection the prompt waits for the next one.
   */
  prompt(sessionId: string, prompt: string | ContentBlock[]): Promise<TurnResult> {
    const session = this.#known(sessionId);
    const blocks: ContentBlock[] = typeof prompt === "string" ? [{ type: "text", text: prompt }] : prompt;
    const rpc = session.sync === "live" ? this.#link.rpc : undefined;
    const turn = session.addOwnPrompt(blocks, rpc ? "sending" : "waiting");
    this.#blocks.set(turn, blocks);
    const result = this.#prompts.wait(turn);
    if (rpc) this.#send(rpc, session, turn);
    this.#changed(session);
    return result;
  }

  /** Sends a prompt that was not delivered once more. */
  retry(sessionId: string, turn: Turn): Promise<TurnResult> {
    const session = this.#known(sessionId);
    const blocks = this.#blocks.get(turn);
    if (!blocks || turn.status !== "undelivered") return Promise.reject(new Error("only a prompt that was not delivered can be sent again"));
    session.remove(turn);
    return this.prompt(sessionId, blocks);
  }

  /** Ends the running turn. Prompts that were not sent yet are taken back. */
  cancel(sessionId: string): void {
    const session = this.#known(sessionId);
    for (const turn of session.turns.filter((turn) => turn.status === "waiting")) {
      session.remove(turn);
      this.#prompts.reject(turn, new ConnectionLost("the prompt was taken back before it was sent"));
    }
    this.#link.rpc?.notify("session/cancel", { sessionId });
    this.#changed(session);
  }

  /** Answers a permission by the option chosen, or a form. First answer wins, of all clients; `permission_resolved` tells which. */
  answer(sessionId: string, ask: AskId, answer: string | AskAnswer): void {
    const session = this.#known(sessionId);
    const whole = typeof answer === "string" ? { outcome: "selected" as const, optionId: answer } : answer;
    this.#requests.answer(session, this.#link.rpc, ask, whole);
    this.#changed(session);
  }

  async setModel(sessionId: string, modelId: string): Promise<void> {
    await this.#link.request("session/set_model", { sessionId, modelId });
    const session = this.#known(sessionId);
    session.models = { ...session.models, current: modelId };
    this.#changed(session);
  }

  async setMode(sessionId: string, modeId: string): Promise<void> {
    await this.#link.request("session/set_mode", { sessionId, modeId });
    const session = this.#known(sessionId);
    session.modes = { ...session.modes, current: modeId };
    this.#changed(session);
  }

  async setConfigOption(sessionId: string, configId: string, value: string | boolean): Promise<void> {
    const params = { sessionId, configId, value, ...(typeof value === "boolean" && { type: "boolean" }) };
    const setup = await this.#link.request<SessionSetup>("session/set_config_option", params);
    const session = this.#known(sessionId);
    session.setUp(setup);
    this.#changed(session);
  }

  async listSessions(filter: { limit?: number; search?: string } = {}): Promise<SessionSummary[]> {
    return (await this.#link.request<{ sessions: SessionSummary[] }>("_gembridge/sessions", filter)).sessions;
  }

  /** Calls with all sessions now and after every change, those begun by other programs included. The result stops it. */
  watchSessions(watcher: Watcher): () => void {
    const first = !this.#directory.watched;
    const stop = this.#directory.watch(watcher);
    if (!first) watcher(this.#directory.list());
    else if (this.#link.rpc) this.#watch(this.#link.rpc);
    return stop;
  }

  async rename(sessionId: string, title: string): Promise<void> {
    await this.#link.request("_gembridge/rename", { sessionId, title });
  }

  async deleteSession(sessionId: string): Promise<void> {
    await this.#link.request("session/delete", { sessionId });
    const session = this.#sessions.get(sessionId);
    if (session) this.#forget(session, new Error("the session was deleted"));
    this.#directory.removed(sessionId);
  }

  async agents(): Promise<AgentInfo[]> {
    return (await this.#link.request<{ agents: AgentInfo[] }>("_gembridge/agents", {})).agents;
  }

  #initialized(rpc: Rpc, initialized: Initialized): void {
    this.#gateway = initialized._meta?.gembridge ?? {};
    this.#agentInfo = initialized.agentInfo;
    for (const session of this.#sessions.values()) void this.#attachAgain(rpc, session);
    if (this.#directory.watched) this.#watch(rpc);
  }

  #watch(rpc: Rpc): void {
    rpc
      .request<{ sessions: SessionSummary[] }>("_gembridge/watch_sessions", {})
      .then(({ sessions }) => this.#directory.replace(sessions))
      .catch((error: unknown) => this.#report(error));
  }

  /** After a reconnect: tried until it works, the session is gone, or so is the connection. */
  async #attachAgain(rpc: Rpc, session: Session): Promise<void> {
    try {
      await attachOver(rpc, session, this.#windows.get(session) ?? {});
    } catch (error) {
      this.#report(error, session.id);
      if (error instanceof ConnectionLost) return;
      if (error instanceof RequestFailed && error.rpcCode === UNKNOWN_SESSION) return this.#forget(session, error);
      const wait = (error instanceof RequestFailed && error.retryAfterMs) || RETRY_MS;
      setTimeout(() => {
        if (this.#link.rpc === rpc && this.#sessions.get(session.id) === session) void this.#attachAgain(rpc, session);
      }, wait);
    }
  }

  #caught(session: Session, end: ReplayEnded): void {
    const rpc = this.#link.rpc;
    if (session.resumed && end.last !== undefined && end.last < session.last) return;
    // A replay that goes on where we were leaves out only what we have.
    if (!session.resumed) session.truncated = end.truncated ?? false;
    for (const { resolve } of this.#caughtUp.get(session) ?? []) resolve();
    this.#caughtUp.delete(session);
    if (!rpc) return;
    for (const turn of session.turns.filter((turn) => turn.status === "waiting")) {
      turn.status = "sending";
      this.#send(rpc, session, turn);
    }
  }

  #send(rpc: Rpc, session: Session, turn: Turn): void {
    rpc
      .request<{ stopReason?: string }>("session/prompt", { sessionId: session.id, prompt: this.#blocks.get(turn) }, { timeoutMs: 0 })
      .catch((error: unknown) => {
        // The turn may go on at the gateway: what is told after resuming decides.
        if (error instanceof ConnectionLost || turn.endedAt !== undefined) return;
        turn.status = turn.id === undefined ? "undelivered" : "interrupted";
        turn.error = { message: messageOf(error), ...(error instanceof RequestFailed && error.code !== undefined && { code: error.code }) };
        session.touch(turn);
        this.#prompts.reject(turn, error as Error);
        this.#changed(session);
      });
  }

  #received(rpc: Rpc, message: RpcMessage): void {
    if (message.id == null) return notified(this.#receiver, message.method ?? "", message.params);
    const params = message.params as { sessionId: string };
    const session = this.#receiver.session(params?.sessionId ?? "");
    if (!session || (message.method !== "session/request_permission" && message.method !== "elicitation/create")) {
      return rpc.refuse(message.id, { code: METHOD_NOT_FOUND, message: `\`${message.method}\` is not served by this client` });
    }
    this.#receiver.emit(this.#requests.asked(session, rpc, message.id, params));
    this.#changed(session);
  }

  #lost(reason: Error, final: boolean): void {
    this.#requests.connectionLost();
    for (const session of this.#sessions.values()) {
      if (session.sync !== "gone") session.sync = "attaching";
      this.#changed(session);
    }
    if (!final) return;
    this.#prompts.rejectAll(reason);
    for (const waiting of this.#caughtUp.values()) for (const { reject } of waiting) reject(reason);
    this.#caughtUp.clear();
  }

  #connectionChanged(connection: Connection): void {
    this.#connection = connection;
    this.#listeners.emit({ name: "connection", event: connection });
  }

  #adopt(id: string): Session {
    const session = this.#sessions.get(id) ?? new Session(id);
    session.sync = "live";
    this.#sessions.set(id, session);
    return session;
  }

  #forget(session: Session, reason: Error): void {
    session.sync = reason instanceof RequestFailed ? "gone" : "detached";
    if (this.#sessions.get(session.id) === session) this.#sessions.delete(session.id);
    for (const { reject } of this.#caughtUp.get(session) ?? []) reject(reason);
    this.#caughtUp.delete(session);
    for (const turn of session.turns) this.#prompts.reject(turn, reason);
    this.#changed(session);
  }

  #known(id: string): Session {
    const session = this.#sessions.get(id);
    if (!session) throw new Error(`session \`${id}\` is not attached; call \`attach\` first`);
    return session;
  }

  #changed(session: Session): void {
    for (const handler of this.#onChange) handler(session);
  }

  #report(error: unknown, sessionId?: string): void {
    if (error instanceof ConnectionLost) return;
    const code = error instanceof RequestFailed ? error.code : undefined;
    const event = { message: messageOf(error), ...(code !== undefined && { code }), ...(sessionId !== undefined && { sessionId }) };
    this.#listeners.emit({ name: "error", event });
  }
}
