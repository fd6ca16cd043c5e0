// Where prompts are written: text, pictures, files, slash commands; and where a turn is stopped.

import type { CommandInfo, ContentBlock, Image, Session } from "@gembridge/client";
import { useEffect, useRef, useState } from "preact/hooks";
import { begin, chat, current, report, tick, trouble } from "../gateway.js";
import { Icon } from "../icons.js";
import { Choosers } from "./Choosers.js";
import { CommandMenu, matching } from "./CommandMenu.js";
import { FileMenu, linksIn, mentionAt, mentioned, useFiles } from "./FileMenu.js";
import { ACCEPT, MAX_IMAGES, readImages } from "./images.js";

/** What was written and not sent outlives a change of session. */
const drafts = new Map<string, string>();
/** Paths that were completed: only these are files for sure. */
const completed = new Set<string>();

export function Composer() {
  tick.value;
  const session = current.value;
  const draftOf = session?.id ?? "";
  const [text, setText] = useState(drafts.get(draftOf) ?? "");
  const [images, setImages] = useState<Image[]>([]);
  const [chosen, setChosen] = useState(0);
  const [menuShut, setMenuShut] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const running = session?.running !== undefined;
  const commands = menuShut ? [] : matching(session?.commands ?? [], text);
  const [caret, setCaret] = useState(0);
  const found = useFiles(menuShut ? undefined : mentionAt(text.slice(0, caret)));
  const files = menuShut ? [] : found;

  useEffect(() => {
    setText(drafts.get(draftOf) ?? "");
    if (matchMedia("(pointer: fine)").matches) area.current?.focus();
  }, [draftOf]);
  useEffect(() => fit(area.current), [text]);

  const write = (value: string, at = value.length) => {
    drafts.set(draftOf, value);
    setText(value);
    setCaret(at);
    setChosen(0);
    setMenuShut(false);
  };
  const take = (files: Iterable<File>) =>
    readImages(files)
      .then((more) => {
        if (images.length + more.length > MAX_IMAGES) throw new Error(`a prompt takes up to ${MAX_IMAGES} pictures`);
        setImages([...images, ...more]);
      })
      .catch(report);
  const complete = (command: CommandInfo) => {
    write(`/${command.name} `);
    area.current?.focus();
  };
  const mention = (path: string) => {
    completed.add(path);
    const before = mentioned(text.slice(0, caret), path);
    write(before + text.slice(caret), before.length);
    area.current?.focus();
  };
  const send = () => {
    if (text.trim() === "" && images.length === 0) return;
    submit(text, images).catch((error: unknown) => {
      // What could not be sent is there to be sent again.
      write(text);
      setImages(images);
      report(error);
    });
    write("");
    setImages([]);
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    const menu = { chosen, setChosen, shut: () => setMenuShut(true) };
    if (steered(event, { ...menu, items: commands, complete }) || steered(event, { ...menu, items: files, complete: mention })) return;
    // On a phone's keyboard Enter begins a new line; there is a button for sending.
    if (event.key !== "Enter" || event.shiftKey || matchMedia("(pointer: coarse)").matches) return;
    event.preventDefault();
    send();
  };
  return (
    <form
      class="composer"
      aria-label="Write a prompt"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void take(event.dataTransfer?.files ?? []);
      }}
    >
      {commands.length > 0 && <CommandMenu commands={commands} chosen={chosen} choose={complete} />}
      {files.length > 0 && <FileMenu files={files} chosen={chosen} choose={mention} />}
      {images.length > 0 && <Pictures images={images} remove={(at) => setImages(images.filter((_, other) => other !== at))} />}
      <textarea
        ref={area}
        rows={1}
        value={text}
        aria-label="Prompt"
        placeholder={running ? "Write the next prompt…" : "Ask, or type / for commands"}
        aria-controls={commands.length + files.length > 0 ? "commands" : undefined}
        aria-activedescendant={commands.length + files.length > 0 ? `command-${chosen}` : undefined}
        onInput={(event) => write(event.currentTarget.value, event.currentTarget.selectionStart)}
        onKeyDown={pressed}
        onPaste={(event) => {
          const files = [...(event.clipboardData?.files ?? [])];
          if (files.length === 0) return;
          event.preventDefault();
          void take(files);
        }}
      />
      <div class="tools">
        <input ref={picker} type="file" accept={ACCEPT} multiple hidden onChange={(event) => void take(event.currentTarget.files ?? [])} />
        <button type="button" class="round" aria-label="Add pictures" title="Add pictures" onClick={() => picker.current?.click()}>
          <Icon name="image" />
        </button>
        <Choosers />
        {running && (
          <button type="button" class="stop" aria-label="Stop (Esc)" title="Stop (Esc)" onClick={stop}>
            <Icon name="stop" size={16} /> Stop
          </button>
        )}
        {(!running || text.trim() !== "") && (
          <button
            type="submit"
            class="send"
            aria-label={running ? "Queue this prompt" : "Send"}
            title={running ? "Queue" : "Send"}
            disabled={text.trim() === "" && images.length === 0}
          >
            <Icon name="send" />
          </button>
        )}
      </div>
    </form>
  );
}

export function stop(): void {
  const session = current.value;
  if (session) chat().cancel(session.id);
}

/** Sends a prompt into the open session, or into a new one. */
export async function submit(text: string, images: Image[] = []): Promise<void> {
  trouble.value = undefined;
  const blocks: ContentBlock[] = images.map((image) => ({ type: "image", ...image }));
  if (text.trim() !== "") blocks.push({ type: "text", text: text.trim() });
  const session = current.value ?? (await beginWithDraft());
  blocks.push(...linksIn(text, completed, session));
  // How the turn ended stands in the turn.
  chat()
    .prompt(session.id, blocks)
    .catch(() => {});
}

/** What is written while a session is being made is the next prompt of that session. */
async function beginWithDraft(): Promise<Session> {
  const session = await begin();
  const written = drafts.get("");
  if (written) drafts.set(session.id, written);
  drafts.delete("");
  return session;
}

function Pictures({ images, remove }: { images: Image[]; remove: (at: number) => void }) {
  return (
    <div class="pictures">
      {images.map((image, at) => (
        <span>
          <img src={`data:${image.mimeType};base64,${image.data}`} alt={`Picture ${at + 1}`} />
          <button type="button" aria-label={`Remove picture ${at + 1}`} onClick={() => remove(at)}>
            <Icon name="close" size={12} />
          </button>
        </span>
      ))}
    </div>
  );
}

interface Menu<Item> {
  items: Item[];
  chosen: number;
  setChosen: (at: number) => void;
  complete: (item: Item) => void;
  shut: () => void;
}

/** Keys that move in the menu of commands or files; true when the key was one. */
function steered<Item>(event: KeyboardEvent, { items, chosen, setChosen, complete, shut }: Menu<Item>): boolean {
  if (items.length === 0) return false;
  const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const item = items[chosen];
  if (move !== undefined) setChosen((chosen + move + items.length) % items.length);
  else if (item !== undefined && (event.key === "Tab" || event.key === "Enter") && !event.shiftKey) complete(item);
  else if (event.key === "Escape") shut();
  else return false;
  event.preventDefault();
  event.stopPropagation();
  return true;
}

/** As high as its text, up to what the style sheet allows. */
function fit(area: HTMLTextAreaElement | null): void {
  if (!area) return;
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight}px`;
}
