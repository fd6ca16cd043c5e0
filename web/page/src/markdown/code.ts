// A block of code: its language, a button to copy it, one to wrap its lines. Long ones are drawn in pieces, so that only what is seen is laid out.

import { unmasked } from "../words.js";
import { spansOf } from "./sanitize.js";

const PIECE_LINES = 100;
/** Beyond this, colours cost more than they give. */
const COLOURED = 40_000;

export class CodeBlock {
  readonly element: HTMLElement;
  readonly #code: HTMLElement;
  readonly #language: string;
  #text = "";
  #last: { element: HTMLElement; text: string } | undefined;

  constructor(language: string) {
    this.#language = language;
    this.element = document.createElement("figure");
    this.element.className = "code";
    const bar = document.createElement("figcaption");
    const name = document.createElement("span");
    name.textContent = language || "text";
    bar.append(name, button("Wrap", "wrap", "Wrap long lines"), button("Copy", "copy", "Copy this code"));
    const pre = document.createElement("pre");
    pre.tabIndex = 0;
    pre.setAttribute("role", "region");
    pre.setAttribute("aria-label", language ? `Code, ${language}` : "Code");
    this.#code = document.createElement("code");
    pre.append(this.#code);
    this.element.append(bar, pre);
  }

  /** Takes the whole text so far, which begins with what was given before. */
  update(text: string): void {
    let rest = text.slice(this.#text.length);
    this.#text = text;
    while (rest !== "") {
      const piece = (this.#last ??= this.#addPiece());
      const room = PIECE_LINES - lines(piece.text);
      const cut = nthLine(rest, room);
      piece.text += rest.slice(0, cut);
      piece.element.textContent = unmasked(piece.text);
      rest = rest.slice(cut);
      if (lines(piece.text) >= PIECE_LINES) this.#last = undefined;
    }
  }

  /** The block is whole: now colours are worth their price. */
  async finish(): Promise<void> {
    if (this.#text.length > COLOURED || this.#language === "") return;
    const { default: highlighter } = await import("highlight.js/lib/common");
    if (!highlighter.getLanguage(this.#language)) return;
    const { value } = highlighter.highlight(unmasked(this.#text), { language: this.#language, ignoreIllegals: true });
    const piece = document.createElement("span");
    piece.className = "piece";
    piece.append(spansOf(value));
    this.#code.replaceChildren(piece);
  }

  #addPiece(): { element: HTMLElement; text: string } {
    const element = document.createElement("span");
    element.className = "piece";
    this.#code.append(element);
    return { element, text: "" };
  }
}

function button(text: string, action: string, label: string): HTMLButtonElement {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.dataset["do"] = action;
  made.setAttribute("aria-label", label);
  return made;
}

function lines(text: string): number {
  let found = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) found += 1;
  return found;
}

/** Where the n-th line ends. */
function nthLine(text: string, n: number): number {
  let at = 0;
  for (let line = 0; line < n; line += 1) {
    const end = text.indexOf("\n", at);
    if (end < 0) return text.length;
    at = end + 1;
  }
  return at;
}

/** Serves the buttons of all code blocks below `root`. */
export function serveCodeButtons(root: HTMLElement): () => void {
  const clicked = (event: Event) => {
    const pressed = (event.target as Element).closest<HTMLButtonElement>("button[data-do]");
    const block = pressed?.closest(".code");
    if (!pressed || !block) return;
    if (pressed.dataset["do"] === "wrap") {
      pressed.setAttribute("aria-pressed", String(block.classList.toggle("wrapped")));
      return;
    }
    void copy(block.querySelector("code")?.textContent ?? "", pressed);
  };
  root.addEventListener("click", clicked);
  return () => root.removeEventListener("click", clicked);
}

/** Copies, and says so on the button that was pressed. */
export async function copy(text: string, pressed: HTMLElement): Promise<void> {
  const before = pressed.textContent;
  try {
    await navigator.clipboard.writeText(text);
    pressed.textContent = "Copied";
  } catch {
    pressed.textContent = "Not allowed";
  }
  setTimeout(() => (pressed.textContent = before), 1500);
}
