// One session as this client knows it: a fold over everything that the gateway said about it.

import type { Ask } from "./ask.js";
import { isTwin, newToolCall, type Teller, type ToolCall } from "./tool.js";
import { addBlock, isOver, promptOf, type Item, type Message, type ToolItem, type Turn } from "./transcript.js";
import type { Usage } from "./usage.js";
import type { AskId, Choice, CommandInfo, ConfigOption, ContentBlock, GatewayMeta, PlanEntry, SessionSetup, TurnId, WireToolCall } from "./wire.js";

/** Something to choose from, and what is chosen. */
export interface Choices {
  current?: string;
  available: Choice[];
}

/** How far this client is with the session. */
export type Sync = "attaching" | "replaying" | "live" | "detached" | "gone";

/**
 * The last number that was seen, and how many updates came under it. One entry of the log can be several updates, and a
 * connection can break between two of them.
 */
interface Cursor {
  seq: number;
  frames: number;
}

export class Session {
  readonly id: string;
  title: string | null = null;
  agent?: string;
  execution?: "chat" | "agent";
  workspace?: string;
  /** What of our wishes the gateway did not follow. */
  ignored: string[] = [];
  sync: Sync = "attaching";
  /** What is being told goes on where we were, instead of beginning anew. */
  resumed = false;
  /** Earlier turns exist that were not asked for. */
  truncated = false;
  readonly turns: Turn[] = [];
  readonly asks = new Map<AskId, Ask>();
  plan: PlanEntry[] = [];
  usage: Usage = {};
  modes: Choices = { available: [] };
  models: Choices = { available: [] };
  configOptions: ConfigOption[] = [];
  commands: CommandInfo[] = [];
  /** Grows with every change. */
  version = 0;

  #cursor: Cursor = { seq: 0, frames: 0 };
  /** How many updates of a repeated number were already seen. */
  #skip = 0;
  #keys = 0;
  readonly #byId = new Map<TurnId, Turn>();
  readonly #tools = new Map<string, { turn: Turn; item: ToolItem }>();

  constructor(id: string) {
    this.id = id;
  }

  /** Everything in the order it is to be read. */
  get items(): Item[] {
    return this.turns.flatMap((turn) => turn.items);
  }

  get messages(): Message[] {
    return this.items.filter((item) => item.kind === "message");
  }

  get tools(): ToolCall[] {
    return [...new Set([...this.#tools.values()].map(({ item }) => item.tool))];
  }

  /** The turn that the agent works on now. */
  get running(): Turn | undefined {
    return this.turns.find((turn) => turn.status === "running");
  }

  /** The number of the last entry that was seen. */
  get last(): number {
    return this.#cursor.seq;
  }

  /** After which entry to go on. The last one comes again, for it may have been cut in two. */
  get resumeAfter(): number | undefined {
    return this.#cursor.seq > 0 ? this.#cursor.seq - 1 : undefined;
  }

  /** Called before a stream begins. When it goes on where we were, what comes under the last number was partly seen. */
  resume(): void {
    this.resumed = this.#cursor.seq > 0;
    this.#skip = this.#cursor.frames;
  }

  /** Forgets everything that the log will tell again; prompts that were never sent stay. */
  reset(): void {
    const unsent = this.turns.filter((turn) => turn.status === "waiting");
    this.turns.splice(0, this.turns.length, ...unsent);
    this.asks.clear();
    this.#byId.clear();
    this.#tools.clear();
    this.#cursor = { seq: 0, frames: 0 };
    this.#skip = 0;
    this.plan = [];
    this.changed();
  }

  /** Whether an update is new. Every update passes here once, in order. */
  admit(meta: GatewayMeta): boolean {
    const { seq } = meta;
    if (seq === undefined) return true;
    if (seq < this.#cursor.seq) return false;
    if (seq > this.#cursor.seq) {
      this.#cursor = { seq, frames: 1 };
      this.#skip = 0;
      return true;
    }
    if (this.#skip > 0) {
      this.#skip -= 1;
      return false;
    }
    this.#cursor.frames += 1;
    return true;
  }

  /** Notes the number of an entry that is no update, such as the end of a turn; true when it is new. */
  advance(seq: number | undefined): boolean {
    if (seq === undefined) return true;
    if (seq < this.#cursor.seq) return false;
    if (seq > this.#cursor.seq) this.#cursor = { seq, frames: 0 };
    return true;
  }

  setUp(setup: SessionSetup): void {
    if (setup.modes) this.modes = { current: setup.modes.currentModeId, available: setup.modes.availableModes };
    if (setup.models) {
      const available = setup.models.availableModels.map(({ modelId, ...rest }) => ({ id: modelId, ...rest }));
      this.models = { current: setup.models.currentModelId, available };
    }
    if (setup.configOptions) this.configOptions = setup.configOptions;
    const meta = setup._meta?.gembridge;
    if (meta?.agent !== undefined) this.agent = meta.agent;
    if (meta?.mode !== undefined) this.execution = meta.mode;
    if (meta?.workspace != null) this.workspace = meta.workspace;
    if (meta?.ignored !== undefined) this.ignored = meta.ignored;
    this.changed();
  }

  /** A prompt of ours, shown before the gateway has it. */
  addOwnPrompt(blocks: ContentBlock[], status: "waiting" | "sending"): Turn {
    const turn = this.#addTurn(status, { own: true });
    const message = this.addMessage(turn, "user", { at: Date.now() });
    for (const block of blocks) addBlock(message, block);
    return turn;
  }

  /** The turn that an update belongs to. Updates outside of any turn join the one they stand next to. */
  turnOf(id: TurnId | null | undefined): Turn {
    if (id == null) return this.running ?? this.turns.findLast((turn) => !isUnsent(turn)) ?? this.#addTurn("finished", {});
    return this.#byId.get(id) ?? this.#addTurn("queued", { id });
  }

  known(id: TurnId): Turn | undefined {
    return this.#byId.get(id);
  }

  /** Gives the oldest prompt of ours that has no name yet its name. */
  claimOwn(id: TurnId, matches: (turn: Turn) => boolean = () => true): Turn | undefined {
    const turn = this.turns.find((turn) => turn.own && turn.status === "sending" && turn.id === undefined && matches(turn));
    if (turn) {
      turn.id = id;
      turn.status = "queued";
      this.#byId.set(id, turn);
      this.touch(turn);
    }
    return turn;
  }

  /** Puts a turn that begins before those that wait. */
  start(turn: Turn, at: number | undefined): void {
    if (turn.status === "running" || isOver(turn)) return;
    this.turns.splice(this.turns.indexOf(turn), 1);
    const before = this.turns.findIndex((other) => other.status === "queued" || isUnsent(other));
    this.turns.splice(before < 0 ? this.turns.length : before, 0, turn);
    turn.status = "running";
    delete turn.ahead;
    if (at !== undefined) turn.startedAt = at;
    this.touch(turn);
  }

  /** Prompts that were sent over a lost connection and that the log does not hold: the gateway never had them. */
  giveUpUnacknowledged(): Turn[] {
    const lost = this.turns.filter((turn) => turn.own && turn.status === "sending" && turn.id === undefined);
    for (const turn of lost) {
      turn.status = "undelivered";
      turn.error = { message: "the connection was lost before the gateway had this prompt", code: "undelivered" };
      this.touch(turn);
    }
    return lost;
  }

  remove(turn: Turn): void {
    const at = this.turns.indexOf(turn);
    if (at >= 0) this.turns.splice(at, 1);
    this.changed();
  }

  addMessage(turn: Turn, role: "user" | "agent", { at, messageId }: { at?: number | undefined; messageId?: string | undefined }): Message {
    const message: Message = { kind: "message", key: this.#key(), version: 0, role, text: "", images: [], links: [] };
    if (at !== undefined) message.at = at;
    if (messageId !== undefined) message.messageId = messageId;
    turn.items.push(message);
    this.touch(turn);
    return message;
  }

  addItem<Kind extends Item["kind"]>(turn: Turn, item: Omit<Extract<Item, { kind: Kind }>, "key" | "version"> & { kind: Kind }): Extract<Item, { kind: Kind }> {
    const whole = { ...item, key: this.#key(), version: 0 } as unknown as Extract<Item, { kind: Kind }>;
    turn.items.push(whole);
    this.touch(turn);
    return whole;
  }

  /** The tool call of that id; a new one in `turn` when it was never announced. */
  tool(id: string, turn: () => Turn, teller: Teller = "agent"): { turn: Turn; item: ToolItem } {
    const known = this.#tools.get(id);
    if (known) return known;
    const home = turn();
    const made = { turn: home, item: this.addItem<"tool">(home, { kind: "tool", tool: newToolCall(id, teller) }) };
    this.#tools.set(id, made);
    return made;
  }

  /**
   * A call of a client's tool is told twice: by the agent, which sees a tool of some server, and by the gateway, which parks it. What
   * comes second under an id of its own goes to the call that is shown already.
   */
  joinTool(update: WireToolCall, turnId: TurnId | null | undefined, teller: Teller): void {
    if (this.#tools.has(update.toolCallId)) return;
    const turn = this.turns.findLast(({ id }) => id !== undefined && id === turnId);
    const twin = turn?.items.find((item): item is ToolItem => item.kind === "tool" && isTwin(item.tool, update, teller));
    if (!turn || !twin) return;
    twin.tool.toldBy = "both";
    this.#tools.set(update.toolCallId, { turn, item: twin });
  }

  touch(turn: Turn, item?: Item): void {
    if (item) item.version += 1;
    turn.version += 1;
    this.changed();
  }

  changed(): void {
    this.version += 1;
  }

  #addTurn(status: Turn["status"], { id, own = false }: { id?: TurnId; own?: boolean }): Turn {
    const turn: Turn = { key: this.#key(), version: 0, status, own, items: [] };
    if (id !== undefined) {
      turn.id = id;
      this.#byId.set(id, turn);
    }
    // What the gateway tells of stands before what it has not got yet.
    const before = own ? -1 : this.turns.findIndex((other) => isUnsent(other));
    this.turns.splice(before < 0 ? this.turns.length : before, 0, turn);
    this.changed();
    return turn;
  }

  #key(): string {
    this.#keys += 1;
    return `k${this.#keys}`;
  }
}

/** Whether the text of a prompt is that of `turn`. */
export function samePrompt(turn: Turn, block: ContentBlock): boolean {
  const prompt = promptOf(turn);
  if (!prompt) return false;
  if (block.type === "text") return prompt.text.startsWith(block.text);
  return block.type === "image" && prompt.images[0]?.data === block.data;
}

function isUnsent(turn: Turn): boolean {
  return turn.status === "waiting" || turn.status === "sending";
}
