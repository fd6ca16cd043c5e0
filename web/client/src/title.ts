// What an agent wrote about a tool call, taken apart: the description in parentheses and the working folder in brackets.
// The gateway reads titles the same way; `fixtures/titles.json` holds both to it.

const WORKING_DIR = "[current working directory ";

/** What a tool call's text says besides the command itself. */
export interface ParsedTitle {
  description?: string;
  workingDir?: string;
}

/** The positions of an opening mark and its closing one. */
interface Group {
  open: number;
  close: number;
}

/**
 * Reads a tool call's content text first and its title second: versions differ in where they put the two.
 * A content text that says anything has said it all: the title is then the bare command, whose parentheses are its own.
 */
export function parseTitle(contentText: string | undefined, title: string | undefined): ParsedTitle {
  const fromContent = contentText === undefined ? {} : parseText(contentText);
  if (fromContent.description !== undefined || fromContent.workingDir !== undefined) return fromContent;
  return title === undefined ? {} : parseText(title);
}

/** The command of a title alone, without the folder and the description behind it. */
export function commandOf(title: string): string {
  const groups = balancedGroups(title);
  const folder = workingDir(title, groups);
  const described = description(title, groups, folder);
  let end = title.length;
  for (const group of [described, folder]) {
    if (group && title.slice(group.close + 1, end).trim() === "") end = group.open;
  }
  if (folder && folder.open < end) end = folder.open;
  return title.slice(0, end).trim() || title.trim();
}

function parseText(text: string): ParsedTitle {
  const groups = balancedGroups(text);
  const folder = workingDir(text, groups);
  const described = description(text, groups, folder);
  const parsed: ParsedTitle = {};
  const about = described && text.slice(described.open + 1, described.close).trim();
  if (about) parsed.description = about;
  const path = folder && text.slice(folder.open + WORKING_DIR.length, folder.close).trim();
  if (path) parsed.workingDir = path;
  return parsed;
}

/** The last folder. One that is named inside a description is the model's text, not the agent's word. */
function workingDir(text: string, groups: Group[]): Group | undefined {
  return workingDirs(text).findLast((folder) => !groups.some((group) => within(folder, group)));
}

/** The last group that is neither a part of the folder's name nor, as `$(…)`, a command within the command. */
function description(text: string, groups: Group[], folder: Group | undefined): Group | undefined {
  return groups.findLast((group) => !(folder && within(group, folder)) && text[group.open - 1] !== "$");
}

function within(inner: Group, outer: Group): boolean {
  return outer.open < inner.open && inner.close < outer.close;
}

/** The outermost balanced groups of parentheses, in order; a parenthesis without a partner is ordinary text. */
function balancedGroups(text: string): Group[] {
  const open: number[] = [];
  const groups: Group[] = [];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "(") {
      open.push(at);
    } else if (text[at] === ")") {
      const start = open.pop();
      if (start === undefined) continue;
      while ((groups.at(-1)?.open ?? -1) > start) groups.pop();
      groups.push({ open: start, close: at });
    }
  }
  return groups;
}

/** Every `[current working directory …]`, in order; brackets within the path are part of it when they are balanced. */
function workingDirs(text: string): Group[] {
  const found: Group[] = [];
  for (let open = text.indexOf(WORKING_DIR); open >= 0; open = text.indexOf(WORKING_DIR, open + 1)) {
    const close = matchingBracket(text, open) ?? text.indexOf("]", open);
    if (close >= 0) found.push({ open, close });
  }
  return found;
}

function matchingBracket(text: string, open: number): number | undefined {
  let depth = 0;
  for (let at = open; at < text.length; at += 1) {
    if (text[at] === "[") depth += 1;
    if (text[at] === "]") {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return undefined;
}
