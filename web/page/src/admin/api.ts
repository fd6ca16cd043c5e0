// The gateway's own affairs over HTTP, with the key of the page.

import { gatewayUrl, key } from "../gateway.js";

export interface Process {
  pid: number | null;
  uptimeMs: number | null;
  sessions: number;
  /** Of the whole tree. */
  rssKb: number | null;
}

export interface Agent {
  name: string;
  title: string;
  state: string;
  processes: Process[];
  spares: number;
  restarts: number;
  circuit: { open: boolean; retryAfterMs: number | null };
}

export interface Status {
  version: string;
  uptimeMs: number;
  agents: Agent[];
  queues: { agent: string; running: number; waiting: number }[];
  sessions: { live: number; running: number; waiting: number };
  connections: number;
}

export interface Origins {
  allowed: string[];
  refused: { origin: string; count: number; lastAt: number }[];
}

export interface Key {
  name: string;
  rank: "admin" | "user";
  createdAt: string;
}

export async function call<Result>(method: "GET" | "POST" | "DELETE", path: string, body?: object): Promise<Result> {
  const answer = await fetch(gatewayUrl(path), {
    method,
    headers: { authorization: `Bearer ${key.value ?? ""}`, ...(body && { "content-type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  const parsed = text === "" ? {} : (JSON.parse(text) as { error?: { message?: string } });
  if (answer.status === 403) throw new Error(`this key may not see the gateway's own affairs: ${parsed.error?.message ?? "an admin key may"}`);
  if (!answer.ok) throw new Error(parsed.error?.message ?? `the gateway answered ${answer.status}`);
  return parsed as Result;
}

export const status = () => call<Status>("GET", "admin/status");
export const origins = () => call<Origins>("GET", "admin/origins");
export const allowOrigin = (origin: string) => call("POST", "admin/origins", { origin });
export const removeOrigin = (origin: string) => call("DELETE", "admin/origins", { origin });
export const keys = async () => (await call<{ keys: Key[] }>("GET", "admin/keys")).keys;
export const createKey = (name: string, rank: Key["rank"]) => call<{ name: string; key: string }>("POST", "admin/keys", { name, rank });
export const revokeKey = (name: string) => call("DELETE", `admin/keys/${encodeURIComponent(name)}`);
