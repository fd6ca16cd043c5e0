// Whether the gateway is there, and if not, when it is tried again.

import { useEffect, useState } from "preact/hooks";
import { chat, connection } from "./gateway.js";

export function ConnectionState() {
  const now = connection.value;
  const [, again] = useState(0);
  useEffect(() => {
    if (now.state !== "waiting") return;
    const timer = setInterval(() => again((times) => times + 1), 500);
    return () => clearInterval(timer);
  }, [now]);
  const left = now.state === "waiting" ? Math.max(0, Math.ceil((now.retryAt - Date.now()) / 1000)) : 0;
  const words = { open: "Connected", connecting: "Connecting…", waiting: left > 0 ? `Reconnecting in ${left} s` : "Reconnecting…", closed: "Not connected" };
  return (
    <span class={`connection ${now.state}`}>
      <span class="dot" />
      <span role="status">{words[now.state]}</span>
      {now.state === "waiting" && (
        <button type="button" class="link" onClick={() => chat().wake()}>
          Now
        </button>
      )}
    </span>
  );
}
