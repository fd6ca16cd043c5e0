// Keeps the end of a growing text in sight, until the reader scrolls up, and again once they are back at the end.

import { signal, type Signal } from "@preact/signals";

/** So near to the end counts as being there. */
const NEAR = 48;

export class Following {
  /** The reader is not at the end. */
  readonly away: Signal<boolean> = signal(false);
  readonly #scroller: HTMLElement;
  readonly #resized: ResizeObserver;
  #top = 0;

  constructor(scroller: HTMLElement, content: HTMLElement) {
    this.#scroller = scroller;
    this.#resized = new ResizeObserver(() => this.#follow());
    this.#resized.observe(content);
    this.#resized.observe(scroller);
    scroller.addEventListener("scroll", this.#scrolled, { passive: true });
    scroller.addEventListener("wheel", this.#wheeled, { passive: true });
  }

  toEnd(): void {
    this.away.value = false;
    this.#follow();
  }

  dispose(): void {
    this.#resized.disconnect();
    this.#scroller.removeEventListener("scroll", this.#scrolled);
    this.#scroller.removeEventListener("wheel", this.#wheeled);
  }

  readonly #scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    const down = scrollTop - this.#top;
    this.#top = scrollTop;
    const near = scrollHeight - scrollTop - clientHeight < NEAR;
    // Text that grows below moves the end away as well; only a move upwards is the reader's. And who has just begun to move
    // upwards is still near: only a move downwards brings them back.
    if (near && down > 0) this.away.value = false;
    else if (!near && down < -1) this.away.value = true;
  };

  readonly #wheeled = ({ deltaY }: WheelEvent) => {
    if (deltaY < 0 && this.#scroller.scrollHeight > this.#scroller.clientHeight) this.away.value = true;
  };

  #follow(): void {
    if (this.away.peek()) return;
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#top = this.#scroller.scrollTop;
  }
}
