// The items of a turn, each as what it is.

import type { Item, Message, PlanItem, Thought } from "@gembridge/client";
import { Icon } from "../icons.js";
import { Markdown } from "../markdown/Markdown.js";
import { drawnWhenChanged } from "../unchanged.js";
import { duration, unmasked } from "../words.js";
import { ToolCard } from "./ToolCard.js";

interface Props {
  item: Item;
  version: number;
  /** Nothing will be added to it. */
  done: boolean;
  /** The turn is over. */
  over: boolean;
}

export const ItemView = drawnWhenChanged<Props>(
  ({ item, done, over }) => {
    switch (item.kind) {
      case "message":
        return item.role === "user" ? <UserMessage message={item} /> : <AgentMessage message={item} done={done} />;
      case "thought":
        return <ThoughtLine thought={item} done={done} />;
      case "tool":
        return <ToolCard tool={item.tool} over={over} />;
      case "plan":
        return <Plan plan={item} />;
      case "notice":
        return <p class="notice">{unmasked(item.text)}</p>;
    }
  },
  ({ item, version, done, over }) => [item, version, done, over],
);

function UserMessage({ message }: { message: Message }) {
  return (
    <article class="user" aria-label="Prompt">
      <Attached message={message} />
      {message.text !== "" && (
        <p class="words" dir="auto">
          {unmasked(message.text)}
        </p>
      )}
    </article>
  );
}

function AgentMessage({ message, done }: { message: Message; done: boolean }) {
  return (
    <article class="agent" aria-label="Answer">
      <Markdown text={message.text} finished={done} />
      <Attached message={message} />
    </article>
  );
}

function Attached({ message: { images, links } }: { message: Message }) {
  if (images.length + links.length === 0) return null;
  return (
    <div class="attached">
      {images.map((image) => (
        <img src={`data:${image.mimeType};base64,${image.data}`} alt="Attached image" />
      ))}
      {links.map(({ name }) => (
        <span class="tag">{unmasked(name)}</span>
      ))}
    </div>
  );
}

function ThoughtLine({ thought, done }: { thought: Thought; done: boolean }) {
  const took = thought.startedAt !== undefined && thought.endedAt !== undefined ? thought.endedAt - thought.startedAt : undefined;
  return (
    <details class={done ? "thought" : "thought running"}>
      <summary>
        <Icon name="think" size={16} />
        {done ? <span>Thought{took !== undefined && ` for ${duration(took)}`}</span> : <span class="shimmer">Thinking…</span>}
        <span class="turner">
          <Icon name="chevron" size={14} />
        </span>
      </summary>
      <Markdown text={thought.text} finished={done} />
    </details>
  );
}

const STATES = { pending: "to do", in_progress: "in progress", completed: "done" } as const;

function Plan({ plan }: { plan: PlanItem }) {
  const done = plan.entries.filter((entry) => entry.status === "completed").length;
  return (
    <section class="plan" aria-label="Plan">
      <h3>
        Plan <span class="hint">{`${done} of ${plan.entries.length}`}</span>
      </h3>
      <ol>
        {plan.entries.map((entry) => (
          <li class={entry.status}>
            <span class="box">{entry.status === "completed" && <Icon name="check" size={12} />}</span>
            <span dir="auto">{unmasked(entry.content)}</span>
            <span class="unseen">{STATES[entry.status] ?? entry.status}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
