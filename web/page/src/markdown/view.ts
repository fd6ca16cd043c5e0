// Markdown on the page as it comes in. Blocks that are done are drawn once and never touched again.

import { unmasked } from "../words.js";
import { BlockSplitter, type Block } from "./blocks.js";
import { CodeBlock } from "./code.js";
import { elementsOf } from "./sanitize.js";

/** So many blocks are laid out together, or not at all while out of sight. */
const SECTION = 40;
/** Drawing takes so long at a time, then the browser has a turn. */
const SLICE_MS = 12;
/** Drawing the open block again may take one part in so many of the time. */
const SHARE = 4;

export class MarkdownView {
  readonly #root: HTMLElement;
  readonly #splitter = new BlockSplitter();
  #drawn = 0;
  #section: HTMLElement | undefined;
  #open: { element: HTMLElement; raw: string } | { element: HTMLElement; code: CodeBlock } | undefined;
  #text = "";
  #finished = false;
  #notBefore = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(root: HTMLElement) {
    this.#root = root;
  }

  /** Takes the whole text so far, which begins with what was given before. */
  update(text: string, finished: boolean): void {
    if (this.#finished || (text === this.#text && !finished)) return;
    this.#text = text;
    this.#finished = finished;
    if (finished) return this.#draw();
    const wait = this.#notBefore - performance.now();
    if (wait <= 0) this.#draw();
    else this.#later(wait);
  }

  dispose(): void {
    clearTimeout(this.#timer);
  }

  #later(ms: number): void {
    this.#timer ??= setTimeout(() => this.#draw(), ms);
  }

  #draw(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const began = performance.now();
    let open = this.#splitter.update(this.#text);
    if (this.#finished) {
      this.#splitter.finish();
      open = undefined;
    }
    const { done } = this.#splitter;
    while (this.#drawn < done.length) {
      if (performance.now() - began > SLICE_MS) return this.#later(0);
      this.#drawDone(done[this.#drawn] as Block);
      this.#drawn += 1;
    }
    const opened = performance.now();
    this.#drawOpen(open);
    this.#notBefore = performance.now() + (performance.now() - opened) * (SHARE - 1);
  }

  #drawDone(block: Block): void {
    const open = this.#open;
    this.#open = undefined;
    if (open && block.kind === "code" && "code" in open) {
      open.code.update(block.text);
      void open.code.finish();
      return;
    }
    if (open && block.kind === "prose" && "raw" in open && open.raw === block.raw) return;
    open?.element.remove();
    this.#place(elementFor(block));
  }

  #drawOpen(block: Block | undefined): void {
    const open = this.#open;
    if (!block) {
      open?.element.remove();
      this.#open = undefined;
      return;
    }
    if (block.kind === "code") {
      if (open && "code" in open) return open.code.update(block.text);
      open?.element.remove();
      const code = new CodeBlock(block.language);
      code.update(block.text);
      this.#open = { element: this.#place(code.element), code };
      return;
    }
    if (open && "raw" in open && open.raw === block.raw) return;
    const element = elementFor(block);
    if (open) open.element.replaceWith(element);
    else this.#place(element);
    this.#open = { element, raw: block.raw };
  }

  #place(element: HTMLElement): HTMLElement {
    if (!this.#section || this.#section.childElementCount >= SECTION) {
      this.#section = document.createElement("div");
      this.#section.className = "section";
      this.#root.append(this.#section);
    }
    this.#section.append(element);
    return element;
  }
}

function elementFor(block: Block): HTMLElement {
  if (block.kind === "code") {
    const code = new CodeBlock(block.language);
    code.update(block.text);
    void code.finish();
    return code.element;
  }
  const element = document.createElement("div");
  element.className = block.joined ? "block joined" : "block";
  element.dir = "auto";
  if (block.plain) {
    element.append(document.createElement("p"));
    element.firstElementChild?.append(unmasked(block.raw));
    return element;
  }
  element.append(elementsOf(block.raw));
  for (const table of element.querySelectorAll("table")) scrollable(table);
  for (const pre of element.querySelectorAll("pre")) framed(pre);
  return element;
}

/** Code inside of a list or a quotation gets the frame that all code has. */
function framed(pre: HTMLElement): void {
  const language = /^language-(.+)$/.exec(pre.firstElementChild?.className ?? "")?.[1] ?? "";
  const code = new CodeBlock(language);
  code.update((pre.textContent ?? "").replace(/\n$/, ""));
  pre.replaceWith(code.element);
}

function scrollable(table: HTMLElement): void {
  const frame = document.createElement("div");
  frame.className = "table";
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", "Table");
  table.replaceWith(frame);
  frame.append(table);
}
