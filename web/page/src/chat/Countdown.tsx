// How long an answer is still awaited; shown only when that is not long any more.

import { useEffect, useState } from "preact/hooks";

/** Seconds before the end from which on a person is reminded of it. */
const NEAR_THE_END = 60;

export function Countdown({ until, from }: { until: number; from: number | undefined }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  const left = Math.max(0, Math.ceil((until - now) / 1000));
  if (left > NEAR_THE_END) return null;
  return (
    <span class="countdown" title="Without an answer the agent is told no">
      {from !== undefined && <meter aria-hidden="true" min={0} max={1} value={Math.max(0, (until - now) / Math.max(1, until - from))} />}
      <span aria-label={`${left} seconds until it is rejected`}>{left > 0 ? `${left} s` : "rejecting…"}</span>
    </span>
  );
}
