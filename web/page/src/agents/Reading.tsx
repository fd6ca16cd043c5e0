// One session of an agent's own, message by message, and the way to go on with it.

import { useEffect, useState } from "preact/hooks";
import { Output } from "../chat/Output.js";
import { go, messageOf, report } from "../gateway.js";
import { Icon, type IconName } from "../icons.js";
import { Markdown } from "../markdown/Markdown.js";
import { unmasked } from "../words.js";
import { goOn, messages, type Block, type Conversation, type Message, type Name } from "./api.js";

export function Reading({ name }: { name: Name }) {
  const [read, setRead] = useState<Conversation>();
  const [failure, setFailure] = useState<string>();
  const [going, setGoing] = useState(false);
  const load = (from: number) =>
    messages(name, from).then(
      (page) => setRead((before) => ({ ...page, items: [...(from === 0 ? [] : (before?.items ?? [])), ...page.items] })),
      (error: unknown) => setFailure(messageOf(error)),
    );
  useEffect(() => void load(0), []);
  const proceed = async () => {
    setGoing(true);
    try {
      const { sessionId, note } = await goOn(name);
      await go({ view: "chat", session: sessionId });
      if (note !== null) report(note);
    } catch (error) {
      setFailure(messageOf(error));
      setGoing(false);
    }
  };
  return (
    <>
      <header class="reading">
        <a
          href="#agents"
          onClick={(event) => {
            event.preventDefault();
            void go({ view: "agents" });
          }}
        >
          All sessions
        </a>
        <h1 dir="auto">{unmasked(read?.title ?? firstPrompt(read) ?? `Session of ${name.agent}`)}</h1>
        <p class="facts">{unmasked([name.agent, read?.project, name.id].filter(Boolean).join(" · "))}</p>
        <button type="button" class="primary" disabled={going || read === undefined} onClick={() => void proceed()}>
          {going ? "Opening…" : "Go on with it"}
        </button>
      </header>
      {failure !== undefined && (
        <p class="state failed" role="alert">
          {failure}
        </p>
      )}
      {read === undefined && failure === undefined && <p class="state shimmer">Reading…</p>}
      {read?.items.map((message, at) => (
        <MessageView key={at} message={message} />
      ))}
      {read !== undefined && read.damaged > 0 && <p class="notice">{read.damaged} places of its files could not be read.</p>}
      {read?.next !== undefined && (
        <button type="button" class="link" onClick={() => void load(read.next ?? 0)}>
          Show more
        </button>
      )}
    </>
  );
}

/** A session without a title is known by how it began. */
function firstPrompt(read: Conversation | undefined): string | undefined {
  const first = read?.items.find(({ role }) => role === "user")?.content;
  const text = typeof first === "string" ? first : first?.map(textOf).join(" ");
  return text?.trim().split("\n")[0]?.slice(0, 80) || undefined;
}

function MessageView({ message: { role, content } }: { message: Message }) {
  const blocks: Block[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  if (role === "system") return <Folded icon="other" title="Added by the program" text={blocks.map(textOf).join("\n")} />;
  return (
    <>
      {blocks.map((block, at) => (
        <BlockView key={at} block={block} isPrompt={role === "user"} />
      ))}
    </>
  );
}

function BlockView({ block, isPrompt }: { block: Block; isPrompt: boolean }) {
  switch (block.type) {
    case "text":
      if (block.text.trim() === "") return null;
      return isPrompt ? (
        <article class="user" aria-label="Prompt">
          <p class="words" dir="auto">
            {unmasked(block.text)}
          </p>
        </article>
      ) : (
        <article class="agent" aria-label="Answer">
          <Markdown text={block.text} finished={true} />
        </article>
      );
    case "thinking":
      return block.thinking === "" ? null : <Folded icon="think" title="Thought" text={block.thinking} />;
    case "tool_use":
      return <Folded icon="execute" title={block.name} about={aboutOf(block.input)} text={written(block.input)} />;
    case "tool_result":
      return <Folded icon={block.is_error ? "cross" : "check"} title={block.is_error ? "Failed" : "Result"} text={textOf(block)} />;
    case "image":
      return block.source.type === "base64" ? (
        <img class="shown" src={`data:${block.source.media_type};base64,${block.source.data}`} alt="An image of the session" />
      ) : null;
    default:
      return <Folded icon="other" title={block.type} text={written(block)} />;
  }
}

function Folded({ icon, title, about, text }: { icon: IconName; title: string; about?: string; text: string }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="tool" onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>
        <Icon name={icon} />
        <span class="what">
          <span class="title">{unmasked(title)}</span>
          {about !== undefined && <span class="about">{unmasked(about)}</span>}
        </span>
        <span class="turner">
          <Icon name="chevron" size={14} />
        </span>
      </summary>
      {open && (
        <div class="inside">
          <Output text={text} label={title} />
        </div>
      )}
    </details>
  );
}

function textOf(block: Block): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "thinking":
      return block.thinking;
    case "tool_result":
      return typeof block.content === "string" ? block.content : block.content.map(textOf).join("\n");
    default:
      return written(block);
  }
}

/** What a call is about: the first text of its input. */
function aboutOf(input: unknown): string | undefined {
  const texts = typeof input === "object" && input !== null ? Object.values(input).filter((value) => typeof value === "string") : [];
  return texts[0]?.split("\n")[0]?.slice(0, 120);
}

function written(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
