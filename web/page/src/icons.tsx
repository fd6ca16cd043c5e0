// The page's icons: strokes on a grid of 24, in the colour of the text beside them.

import type { ToolKind } from "@gembridge/client";

const PATHS = {
  plus: "M12 5v14M5 12h14",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  down: "M12 5v14M6 13l6 6 6-6",
  chevron: "M9 6l6 6-6 6",
  more: "M5 11.500v1M12 11.500v1M19 11.500v1M4.500 12h1M11.500 12h1M18.500 12h1",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M7 7l10 10M17 7L7 17",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9h.01",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4",
  gauge: "M4 18a8 8 0 1 1 16 0M12 18l4-6",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5L19 19M5 19l1.5-1.5M17.5 6.5L19 5",
  moon: "M20 14.5A8 8 0 1 1 9.5 4a6.5 6.5 0 0 0 10.5 10.5z",
  half: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 3v18",
  shield: "M12 3l7 3v5c0 5-3 8.5-7 10-4-1.5-7-5-7-10V6z",
  bell: "M6 17V11a6 6 0 1 1 12 0v6l1.500 1.500h-15zM10 21h4",
  help: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM9.500 9.500a2.500 2.500 0 1 1 3.500 2.300c-.7.3-1 .9-1 1.700v.5M12 16.900v.2",
  leave: "M10 5H5v14h5M14 8l4 4-4 4M18 12H9",
  read: "M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6",
  edit: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
  delete: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13",
  move: "M4 12h15M14 7l5 5-5 5",
  execute: "M4 5h16v14H4zM7 10l3 2.5L7 15M12 15h4",
  think: "M9 18h6M10 21h4M8 14.5A6 6 0 1 1 16 14.5c-.7.7-1 1.300-1 2.500H9c0-1.200-.3-1.800-1-2.500z",
  fetch: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18",
  switch_mode: "M7 4v12M4 13l3 3 3-3M17 20V8M14 11l3-3 3 3",
  other: "M12 3l2.500 5.500L20 11l-5.500 2.500L12 19l-2.500-5.500L4 11l5.500-2.500z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" width={size} height={size} aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

const KINDS: Record<ToolKind, { icon: IconName; verb: string }> = {
  read: { icon: "read", verb: "Read" },
  edit: { icon: "edit", verb: "Edit" },
  delete: { icon: "delete", verb: "Delete" },
  move: { icon: "move", verb: "Move" },
  search: { icon: "search", verb: "Search" },
  execute: { icon: "execute", verb: "Command" },
  think: { icon: "think", verb: "Think" },
  fetch: { icon: "fetch", verb: "Fetch" },
  switch_mode: { icon: "switch_mode", verb: "Switch mode" },
  other: { icon: "other", verb: "Tool" },
};

/** Kinds of tomorrow look like any other tool. */
export function lookOf(kind: ToolKind): { icon: IconName; verb: string } {
  return KINDS[kind] ?? KINDS.other;
}
