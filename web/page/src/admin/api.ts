// The gateway's own affairs over HTTP, with the key of the page.

import { gatewayUrl, key } from "../gateway.js";

export interface Process {
  pid: number;
  uptimeMs: number;
  sessions: number;
  rssKb: number;
}

export interface Status {
  version: string;
  uptimeMs: number;
  agents: { name: string; state: string; processes: Process[]; spares: number; restarts: number; circuit: string }[];
  queues: { agent: string; running: number; waiting: number }[];
  sessions: Record<string, number>;
  connections: number | Record<string, number>;
}

export interface Origins {
  allowed: string[];
  refused: { origin: string; count: number; lastAt: number | string }[];
}

export interface Key {
  name: string;
  createdAt?: string | number;
  admin?: boolean;
}

export class NotAllowed extends Error {}

async function call<Result>(method: "GET" | "POST" | "DELETE", path: string, body?: object): Promise<Result> {
  const answer = await fetch(gatewayUrl(path), {
    method,
    headers: { authorization: `Bearer ${key.value ?? ""}`, ...(body && { "content-type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  if (answer.status === 403) throw new NotAllowed("this key may not see the gateway's own affairs");
  const text = await answer.text();
  const parsed = text === "" ? {} : (JSON.parse(text) as { error?: { message?: string } });
  if (!answer.ok) throw new Error(parsed.error?.message ?? `the gateway answered ${answer.status}`);
  return parsed as Result;
}

export const status = () => call<Status>("GET", "admin/status");
export const origins = () => call<Origins>("GET", "admin/origins");
export const allowOrigin = (origin: string) => call("POST", "admin/origins", { origin });
export const removeOrigin = (origin: string) => call("DELETE", "admin/origins", { origin });
export const keys = async () => {
  const list = await call<Key[] | { keys: Key[] }>("GET", "admin/keys");
  return Array.isArray(list) ? list : list.keys;
};
export const createKey = (name: string) => call<{ name: string; key?: string; secret?: string }>("POST", "admin/keys", { name });
export const revokeKey = (name: string) => call("DELETE", `admin/keys/${encodeURIComponent(name)}`);
