// Puts the focus where the page has just put something to write into.

/** As a `ref`: the element is focused when it appears. */
export function focused(element: HTMLElement | null): void {
  element?.focus();
}
