// The conversation, as long as it is.

import type { Session } from "@gembridge/client";
import { useEffect, useRef, useState } from "preact/hooks";
import { openWhole, report, tick } from "../gateway.js";
import { Icon } from "../icons.js";
import { serveCodeButtons } from "../markdown/code.js";
import { Following } from "./following.js";
import { TurnView } from "./TurnView.js";

export function Transcript({ session }: { session: Session }) {
  tick.value;
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const [following, setFollowing] = useState<Following>();
  useEffect(() => {
    if (!scroller.current || !content.current) return;
    const made = new Following(scroller.current, content.current);
    made.toEnd();
    setFollowing(made);
    const stop = serveCodeButtons(content.current);
    return () => {
      made.dispose();
      stop();
    };
  }, [session]);
  // A prompt of one's own is a wish to see its answer.
  const own = session.turns.filter((turn) => turn.own).length;
  useEffect(() => following?.toEnd(), [own]);
  const busy = session.running !== undefined;
  return (
    <div class="transcript">
      <div class="scroller" ref={scroller} tabIndex={0} role="log" aria-label="Conversation" aria-live="polite" aria-busy={busy}>
        <div class="column" ref={content}>
          {session.truncated && (
            <button type="button" class="earlier" onClick={() => void openWhole().catch(report)}>
              Show earlier turns
            </button>
          )}
          {session.turns.map((turn) => (
            <TurnView key={turn.key} turn={turn} version={turn.version} />
          ))}
        </div>
      </div>
      {following?.away.value && (
        <button type="button" class="latest" onClick={() => following.toEnd()}>
          <Icon name="down" size={16} /> {busy ? "Answering below" : "Latest"}
        </button>
      )}
    </div>
  );
}
