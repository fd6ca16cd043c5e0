// What a diff changes, line by line, with a few lines around each place.

import type { Diff } from "@gembridge/client";
import { structuredPatch } from "diff";

export interface Line {
  kind: "same" | "added" | "removed";
  text: string;
  old?: number;
  new?: number;
}

export interface Changes {
  added: number;
  removed: number;
  /** Runs of lines; what lies between two runs did not change. */
  runs: Line[][];
  /** The files are too different or too large to be compared in time. */
  whole: boolean;
}

const COMPARING_MS = 250;

export function changesOf({ path, oldText, newText }: Diff): Changes {
  // A line break that only the end lacks is no change that a reader looks for.
  const patch = structuredPatch(path, path, ended(oldText ?? ""), ended(newText), "", "", { context: 3, timeout: COMPARING_MS });
  if (!patch) return replaced(oldText ?? "", newText);
  const changes: Changes = { added: 0, removed: 0, runs: [], whole: false };
  for (const hunk of patch.hunks) {
    let [old, now] = [hunk.oldStart, hunk.newStart];
    const run: Line[] = [];
    for (const line of hunk.lines) {
      const text = line.slice(1);
      if (line.startsWith("+")) {
        run.push({ kind: "added", text, new: now++ });
        changes.added += 1;
      } else if (line.startsWith("-")) {
        run.push({ kind: "removed", text, old: old++ });
        changes.removed += 1;
      } else if (!line.startsWith("\\")) {
        run.push({ kind: "same", text, old: old++, new: now++ });
      }
    }
    changes.runs.push(run);
  }
  return changes;
}

function ended(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}

function replaced(oldText: string, newText: string): Changes {
  const removed = oldText.split("\n").map((text, at): Line => ({ kind: "removed", text, old: at + 1 }));
  const added = newText.split("\n").map((text, at): Line => ({ kind: "added", text, new: at + 1 }));
  return { added: added.length, removed: removed.length, runs: [[...removed, ...added]], whole: true };
}

/** Removed and added lines beside each other. */
export function sideBySide(run: Line[]): [Line | undefined, Line | undefined][] {
  const rows: [Line | undefined, Line | undefined][] = [];
  for (let at = 0; at < run.length;) {
    if (run[at]?.kind === "same") {
      rows.push([run[at], run[at]]);
      at += 1;
      continue;
    }
    const removed: Line[] = [];
    const added: Line[] = [];
    for (; at < run.length && run[at]?.kind !== "same"; at += 1) {
      const line = run[at] as Line;
      (line.kind === "removed" ? removed : added).push(line);
    }
    for (let row = 0; row < Math.max(removed.length, added.length); row += 1) rows.push([removed[row], added[row]]);
  }
  return rows;
}
