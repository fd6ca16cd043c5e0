// What can go wrong, by what a caller can do about it.

import type { RpcError } from "./wire.js";

/** The gateway or the agent answered with an error. */
export class RequestFailed extends Error {
  override readonly name = "RequestFailed";
  /** The JSON-RPC code. */
  readonly rpcCode: number;
  /** The gateway's own word for it, such as `unknown_session`. */
  readonly code: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly requestId: string | undefined;

  constructor(error: RpcError) {
    super(error.message);
    this.rpcCode = error.code;
    this.code = error.data?.code;
    this.retryAfterMs = error.data?.retryAfterMs;
    this.requestId = error.data?.requestId;
  }
}

/** The connection went away before an answer came. It is being built anew; ask again. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

/** The gateway will not have us: the key is wrong or was revoked, or the origin is not allowed. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** The agent failed in the middle of a turn. What it said until then is kept. */
export class TurnInterrupted extends Error {
  override readonly name = "TurnInterrupted";
  readonly code: string | undefined;

  constructor(message: string, code: string | undefined) {
    super(message);
    this.code = code;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
