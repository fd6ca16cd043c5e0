// Colours for lines of code in a diff, by the name of the file.

import type { HLJSApi } from "highlight.js";
import { signal } from "@preact/signals";
import { spansOf } from "../markdown/sanitize.js";

/** Longer lines and more of them cost more than colours give. */
const LONGEST = 500;

const LANGUAGES: Record<string, string> = {
  bash: "bash",
  c: "c",
  cc: "cpp",
  cjs: "javascript",
  cpp: "cpp",
  cs: "csharp",
  css: "css",
  go: "go",
  h: "c",
  hpp: "cpp",
  html: "xml",
  ini: "ini",
  java: "java",
  js: "javascript",
  json: "json",
  jsx: "javascript",
  kt: "kotlin",
  lua: "lua",
  md: "markdown",
  mjs: "javascript",
  php: "php",
  pl: "perl",
  py: "python",
  r: "r",
  rb: "ruby",
  rs: "rust",
  scss: "scss",
  sh: "bash",
  sql: "sql",
  svg: "xml",
  swift: "swift",
  toml: "ini",
  ts: "typescript",
  tsx: "typescript",
  xml: "xml",
  yaml: "yaml",
  yml: "yaml",
};

/** The highlighter, once it is there. */
const highlighter = signal<HLJSApi | undefined>(undefined);
let loading: Promise<void> | undefined;

/** The language of a file; nothing while it cannot be coloured. */
export function languageOf(path: string): string | undefined {
  const name = path.split("/").pop() ?? "";
  const language = name === "Makefile" ? "makefile" : LANGUAGES[(name.split(".").pop() ?? "").toLowerCase()];
  if (language === undefined) return undefined;
  loading ??= import("highlight.js/lib/common").then((module) => void (highlighter.value = module.default));
  return highlighter.value?.getLanguage(language) ? language : undefined;
}

/** A line as coloured spans; undefined where it stays as it is. */
export function coloured(text: string, language: string | undefined): DocumentFragment | undefined {
  if (language === undefined || text.length > LONGEST || !highlighter.value) return undefined;
  return spansOf(highlighter.value.highlight(text, { language, ignoreIllegals: true }).value);
}
