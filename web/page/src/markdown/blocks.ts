// Text that grows, cut into blocks that are done and one that is not: only the latter is read again when more text comes.

import { Lexer, type Token } from "marked";

/** `joined`: goes on with the block before, which was cut for its length alone. `plain`: shown as it stands. */
export type Block = { kind: "prose"; raw: string; joined: boolean; plain: boolean } | { kind: "code"; language: string; text: string };

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\n`]*)\n/;
/** A paragraph or list that grows beyond this is cut at a line, so that a long answer costs no more than a short one. */
const LONG = 4_000;
/** No person wrote a line this long, and reading it as markdown may take its length squared. */
const ENDLESS = /[^\n]{20000}/;

export class BlockSplitter {
  /** Those that no further text can change. */
  readonly done: Block[] = [];
  #text = "";
  #at = 0;
  /** The search for a fence's end goes on from here. */
  #searched = 0;
  #joined = false;
  /** The head of the table whose rows go on. */
  #head = "";

  /** Takes the whole text so far, which begins with what was given before; answers with the block that may still change. */
  update(given: string): Block | undefined {
    this.#text = given.includes("\r") ? given.replace(/\r\n?/g, "\n") : given;
    for (;;) {
      const rest = this.#text.slice(this.#at);
      if (rest.trim() === "") return undefined;
      const fence = FENCE.exec(rest);
      const step = fence ? this.#code(rest, fence) : this.#prose(rest);
      if (step !== "again") return step;
    }
  }

  /** No more text will come: everything is done. */
  finish(): void {
    const open = this.update(this.#text);
    if (open) this.done.push(open);
    this.#at = this.#text.length;
  }

  /** A code block that ended is done; one that has not is the answer. */
  #code(rest: string, [opening, marks = "", info = ""]: RegExpExecArray): Block | "again" {
    const language = info.trim().split(/\s/)[0] ?? "";
    const end = new RegExp(`^ {0,3}\\${marks[0]}{${marks.length},}[ \\t]*\\n`, "gm");
    end.lastIndex = Math.max(opening.length, this.#searched - this.#at);
    const found = end.exec(rest);
    if (!found) {
      this.#searched = this.#at + rest.lastIndexOf("\n") + 1;
      // The last line may become the end: it is held back until it is something else.
      const text = rest.slice(opening.length).replace(marks.startsWith("~") ? /(^|\n) {0,3}~+[ \t]*$/ : /(^|\n) {0,3}`+[ \t]*$/, "");
      return { kind: "code", language, text };
    }
    this.done.push({ kind: "code", language, text: rest.slice(opening.length, found.index).replace(/\n$/, "") });
    this.#take(found.index + found[0].length);
    this.#joined = false;
    return "again";
  }

  #prose(rest: string): Block | "again" | undefined {
    const endless = ENDLESS.exec(rest);
    if (endless) return this.#endless(rest, rest.lastIndexOf("\n", endless.index) + 1);
    // Rows whose head is done are read with it, for alone they are no table.
    const tokens = blocksOf(this.#head + rest);
    const last = tokens.findLastIndex((token) => token.type !== "space");
    for (const token of tokens.slice(0, last)) this.#finish(token);
    const open = tokens[last];
    if (!open) return undefined;
    if (isFence(open) && last > 0) return "again";
    const pieces = piecesOf(open);
    for (const piece of pieces.slice(0, -1)) this.#push(piece);
    if (pieces.length > 1 && open.type === "table") this.#head = headOf(open);
    return { kind: "prose", raw: pieces.at(-1)?.raw ?? "", joined: this.#joined, plain: false };
  }

  /** What stands before an endless line is done, and so is the line when it has an end after all. */
  #endless(rest: string, start: number): Block | "again" {
    this.#head = "";
    if (start > 0) {
      const tokens = blocksOf(rest.slice(0, start));
      const open = tokens.at(-1);
      for (const token of open && isFence(open) ? tokens.slice(0, -1) : tokens) this.#finish(token);
      return "again";
    }
    const end = rest.indexOf("\n") + 1;
    const block: Block = { kind: "prose", raw: end > 0 ? rest.slice(0, end) : rest, joined: false, plain: true };
    if (end === 0) return block;
    this.done.push(block);
    this.#take(end);
    return "again";
  }

  #finish(token: Token): void {
    if (token.type === "code") {
      this.done.push({ kind: "code", language: String(token["lang"] ?? "").split(/\s/)[0] ?? "", text: String(token["text"]) });
      this.#take(token.raw.length);
      this.#joined = false;
    } else if (token.type === "space") {
      this.#take(token.raw.length);
      this.#joined = false;
    } else {
      for (const piece of piecesOf(token)) this.#push(piece);
      this.#joined = false;
    }
  }

  #push({ raw, length }: Piece): void {
    const taken = length - this.#head.length;
    this.#head = "";
    if (taken === 0) return;
    this.done.push({ kind: "prose", raw, joined: this.#joined, plain: false });
    this.#take(taken);
    this.#joined = true;
  }

  #take(length: number): void {
    this.#at += length;
    this.#searched = this.#at;
  }
}

/** The blocks alone: what is inside of them is read when they are drawn. */
function blocksOf(text: string): Token[] {
  return new Lexer().blockTokens(text, []);
}

function isFence(token: Token): boolean {
  return token.type === "code" && FENCE.test(`${token.raw}\n`);
}

/** `length`: how much of the text it stands for. A piece of a table has the table's head, wherever it was cut. */
interface Piece {
  raw: string;
  length: number;
}

/** A long block in pieces. */
function piecesOf(token: Token): Piece[] {
  const parts = token.raw.length > LONG ? partsOf(token) : [token.raw];
  const pieces: Piece[] = [];
  let [from, to] = [0, 0];
  const head = token.type === "table" ? headOf(token) : "";
  const cut = (end: number) => {
    pieces.push({ raw: (from > 0 ? head : "") + token.raw.slice(from, end), length: end - from });
    from = end;
  };
  for (const part of parts) {
    if (to > from && to - from + part.length > LONG) cut(to);
    to += part.length;
  }
  // The parts may leave out what follows the last one.
  cut(token.raw.length);
  return pieces;
}

/** Where a block can be cut: between the lines of a paragraph, the rows of a table, the items of a list. */
function partsOf(token: Token): string[] {
  if (token.type === "list") return (token["items"] as Token[]).map((item) => item.raw);
  if (token.type !== "paragraph" && token.type !== "table") return [token.raw];
  return token.raw.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function headOf(table: Token): string {
  return /^[^\n]*\n[^\n]*\n/.exec(table.raw)?.[0] ?? "";
}
