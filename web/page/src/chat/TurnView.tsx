// A turn: the prompt, what the agent did and said, and how it ended.

import type { Turn } from "@gembridge/client";
import { chat, current, report } from "../gateway.js";
import { copy } from "../markdown/code.js";
import { drawnWhenChanged } from "../unchanged.js";
import { count, duration, unmasked } from "../words.js";
import { ItemView } from "./Items.js";

interface Props {
  turn: Turn;
  version: number;
}

export const TurnView = drawnWhenChanged<Props>(
  ({ turn }) => {
    const over = turn.status !== "running" && turn.status !== "queued";
    const last = turn.items.length - 1;
    return (
      <section class={`turn ${turn.status}`} aria-label="Turn">
        {turn.items.map((item, at) => (
          <ItemView key={item.key} item={item} version={item.version} done={over || at < last} over={over} />
        ))}
        <State turn={turn} />
      </section>
    );
  },
  ({ turn, version }) => [turn, version],
);

function State({ turn }: { turn: Turn }) {
  switch (turn.status) {
    case "waiting":
      return <p class="state">Will be sent when the connection is back</p>;
    case "sending":
      return <p class="state shimmer">Sending…</p>;
    case "queued":
      return <p class="state">{turn.ahead ? `Queued, ${turn.ahead} ahead` : "Queued"}</p>;
    case "running":
      return turn.items.length <= 1 ? <p class="state shimmer">Working…</p> : null;
    case "undelivered":
      return (
        <p class="state failed">
          <span>Not sent: {unmasked(turn.error?.message ?? "")}</span>
          <button type="button" class="link" onClick={() => again(turn)}>
            Send again
          </button>
        </p>
      );
    default:
      return <Ended turn={turn} />;
  }
}

function again(turn: Turn): void {
  const session = current.value;
  if (session) chat().retry(session.id, turn).catch(report);
}

const STOPPED: Record<string, string> = {
  max_tokens: "The answer reached the model's limit and is cut off here.",
  max_turn_requests: "The agent reached its limit of steps.",
  refusal: "The agent refused to go on.",
};

function Ended({ turn }: { turn: Turn }) {
  const answer = turn.items.flatMap((item) => (item.kind === "message" && item.role === "agent" ? [item.text] : [])).join("\n\n");
  const took = turn.startedAt !== undefined && turn.endedAt !== undefined ? turn.endedAt - turn.startedAt : undefined;
  const tokens = turn.usage?.totalTokens ?? sum(turn.usage?.inputTokens, turn.usage?.outputTokens);
  const stopped = STOPPED[turn.stopReason ?? ""];
  return (
    <footer class="ended">
      {turn.status === "cancelled" && <span class="tag">Stopped</span>}
      {turn.status === "interrupted" && (
        <p class="state failed">Interrupted: {unmasked(turn.error?.message ?? "the agent ended in the middle of its answer")}</p>
      )}
      {stopped && <p class="state failed">{stopped}</p>}
      <span class="facts">
        {answer !== "" && (
          <button type="button" class="quiet" aria-label="Copy the answer" onClick={(event) => void copy(answer, event.currentTarget as HTMLElement)}>
            Copy
          </button>
        )}
        {took !== undefined && <span>{duration(took)}</span>}
        {tokens !== undefined && <span>{count(tokens)} tokens</span>}
      </span>
    </footer>
  );
}

function sum(...counts: (number | undefined)[]): number | undefined {
  const known = counts.filter((count) => count !== undefined);
  return known.length === 0 ? undefined : known.reduce((all, one) => all + one, 0);
}
