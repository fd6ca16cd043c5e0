// Attaching to a session over one connection: where we were, or from the beginning when the gateway cannot go on there.

import { RequestFailed } from "./errors.js";
import type { Rpc } from "./rpc.js";
import type { Session } from "./session.js";
import type { SessionSetup } from "./wire.js";

/** How much of a session to tell again: all of it, unless limited. */
export interface Window {
  /** The last so many turns. */
  limit?: number;
  /** Unix milliseconds, exclusive. */
  since?: number;
  before?: number;
}

const INVALID_PARAMS = -32602;

export async function attachOver(rpc: Rpc, session: Session, window: Window): Promise<void> {
  const after = session.resumeAfter;
  const { last } = session;
  session.sync = "attaching";
  session.resume();
  const from = after === undefined ? window : { after };
  try {
    const attached = await rpc.request<SessionSetup & { last?: number }>("_gembridge/attach", { sessionId: session.id, ...from });
    session.setUp(attached);
    if (attached.last !== undefined && attached.last < last) await startOver(rpc, session, window);
  } catch (error) {
    const lostTheThread = error instanceof RequestFailed && error.rpcCode === INVALID_PARAMS && after !== undefined;
    if (!lostTheThread) throw error;
    await startOver(rpc, session, window);
  }
}

/** The gateway's log is another one than before. */
async function startOver(rpc: Rpc, session: Session, window: Window): Promise<void> {
  await rpc.request("_gembridge/detach", { sessionId: session.id });
  session.reset();
  await attachOver(rpc, session, window);
}
