// Dark, light, or as the system has it.

import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const STORED = "gembridge.theme";

export const theme = signal<Theme>(stored());

function stored(): Theme {
  const kept = localStorage.getItem(STORED);
  return kept === "light" || kept === "dark" ? kept : "system";
}

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
  if (theme.value === "system") localStorage.removeItem(STORED);
  else localStorage.setItem(STORED, theme.value);
});

const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

export function nextTheme(): void {
  theme.value = NEXT[theme.value];
}
