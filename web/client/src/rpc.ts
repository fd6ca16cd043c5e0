// JSON-RPC over one connection: our requests and their answers, by id.

import { ConnectionLost, RequestFailed } from "./errors.js";
import type { RpcError, RpcMessage } from "./wire.js";

interface Waiting {
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
  timer: ReturnType<typeof setTimeout> | undefined;
}

export interface RequestOptions {
  /** 0 waits as long as the connection lasts. */
  timeoutMs?: number;
}

const REQUEST_TIMEOUT_MS = 120_000;

export class Rpc {
  readonly #send: (text: string) => void;
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 1;

  constructor(send: (text: string) => void) {
    this.#send = send;
  }

  request<Result>(method: string, params: object, { timeoutMs = REQUEST_TIMEOUT_MS }: RequestOptions = {}): Promise<Result> {
    const id = this.#nextId;
    this.#nextId += 1;
    return new Promise<Result>((resolve, reject) => {
      const late = () => {
        this.#waiting.delete(id);
        reject(new ConnectionLost(`\`${method}\` was not answered within ${timeoutMs / 1000} s`));
      };
      const timer = timeoutMs > 0 ? setTimeout(late, timeoutMs) : undefined;
      this.#waiting.set(id, { resolve: resolve as (result: unknown) => void, reject, timer });
      this.#write({ jsonrpc: "2.0", id, method, params });
    });
  }

  notify(method: string, params: object): void {
    this.#write({ jsonrpc: "2.0", method, params });
  }

  respond(id: number | string, result: unknown): void {
    this.#write({ jsonrpc: "2.0", id, result });
  }

  refuse(id: number | string, error: RpcError): void {
    this.#write({ jsonrpc: "2.0", id, error });
  }

  /** An answer to a request of ours. One that nobody waits for any more is dropped. */
  settle(message: RpcMessage): void {
    const waiting = this.#waiting.get(message.id as number);
    if (!waiting) return;
    this.#waiting.delete(message.id as number);
    clearTimeout(waiting.timer);
    if (message.error) waiting.reject(new RequestFailed(message.error));
    else waiting.resolve(message.result);
  }

  /** The connection is gone: nothing will be answered any more. */
  fail(error: Error): void {
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      reject(error);
    }
    this.#waiting.clear();
  }

  #write(message: RpcMessage): void {
    this.#send(JSON.stringify(message));
  }
}
