// Files of the folder that the agent works in, as far as they match what is written after an `@`.

import type { ContentBlock, Session } from "@gembridge/client";
import { useEffect, useState } from "preact/hooks";
import { call } from "../admin/api.js";
import { agent, current, key, messageOf } from "../gateway.js";
import { unmasked } from "../words.js";

const MOST = 8;
/** Somebody who types has written the next letter by then. */
const TYPED_MS = 120;

/** What is written after the `@` before the caret. */
export function mentionAt(text: string): string | undefined {
  return /(?:^|\s)@([^\s@]*)$/.exec(text)?.[1];
}

/** The text with the mention before the caret completed. */
export function mentioned(text: string, path: string): string {
  return text.replace(/@[^\s@]*$/, () => `@${path} `);
}

/** The key that may not look: it is not let in by asking again. */
let refused: string | undefined;

/** The files that fit what is being mentioned; none for an agent that works in no folder. */
export function useFiles(mention: string | undefined): string[] {
  const [files, setFiles] = useState<string[]>([]);
  const works = current.value ? current.value.workspace !== undefined : agent.value?.mode === "agent";
  const place = current.value ? `session=${encodeURIComponent(current.value.id)}` : `agent=${encodeURIComponent(agent.value?.name ?? "")}`;
  useEffect(() => {
    setFiles([]);
    if (mention === undefined || !works || refused === key.value) return;
    let over = false;
    const timer = setTimeout(() => {
      call<{ files: string[] }>("GET", `admin/workspace-files?${place}&q=${encodeURIComponent(mention)}`).then(
        ({ files }) => over || setFiles(files.slice(0, MOST)),
        // Only admin keys may look; for others an `@` is a letter.
        (error: unknown) => messageOf(error).includes("may not see") && (refused = key.value),
      );
    }, TYPED_MS);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [mention, works, place]);
  return files;
}

/** Links to the files that a prompt mentions, for the agent to read. */
export function linksIn(text: string, known: ReadonlySet<string>, session: Session): ContentBlock[] {
  const folder = session.workspace?.replace(/\/$/, "");
  if (folder === undefined) return [];
  const paths = [...text.matchAll(/(?:^|\s)@([^\s@]+)/g)].map((match) => match[1] ?? "").filter((path) => known.has(path));
  const uri = (path: string) => `file://${`${folder}/${path}`.split("/").map(encodeURIComponent).join("/")}`;
  return [...new Set(paths)].map((path) => ({ type: "resource_link", uri: uri(path), name: path }));
}

export function FileMenu({ files, chosen, choose }: { files: string[]; chosen: number; choose: (path: string) => void }) {
  return (
    <ul class="commands" id="commands" role="listbox" aria-label="Files">
      {files.map((path, at) => (
        <li
          id={`command-${at}`}
          role="option"
          aria-selected={at === chosen}
          onMouseDown={(event) => {
            event.preventDefault();
            choose(path);
          }}
        >
          <code>{unmasked(path)}</code>
        </li>
      ))}
    </ul>
  );
}
