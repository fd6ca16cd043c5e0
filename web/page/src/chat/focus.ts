// Where the focus goes when what had it is gone.

export function focusPrompt(): void {
  document.querySelector<HTMLElement>(".composer textarea")?.focus();
}

/** Hands the focus of something that goes away to the prompt; on a phone that would open the keyboard, so not there. */
export function handFocusBack(leaving: HTMLElement | null): void {
  const at = document.activeElement;
  const orphaned = at === null || at === document.body || leaving?.contains(at);
  if (orphaned && matchMedia("(pointer: fine)").matches) focusPrompt();
}
