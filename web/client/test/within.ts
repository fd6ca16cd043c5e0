// What the tests share: a gateway and clients that are closed when the test ends, and waiting for something to become true.

import { WebSocket } from "ws";
import { AgentChatClient, type ClientEvents, type ClientOptions, type EventName, type SocketConstructor } from "../src/index.js";
import { MockGateway, type GatewayOptions } from "./gateway.js";

interface Context {
  after(cleanUp: () => unknown): void;
}

export async function gatewayFor(context: Context, options: GatewayOptions = {}): Promise<MockGateway> {
  const gateway = await MockGateway.start(options);
  context.after(() => gateway.stop());
  return gateway;
}

export function clientFor(context: Context, gateway: MockGateway, options: Partial<ClientOptions> = {}): AgentChatClient {
  const client = new AgentChatClient({
    url: gateway.url,
    // Node's own where it has one.
    WebSocket: (globalThis.WebSocket ?? WebSocket) as unknown as SocketConstructor,
    backoff: { firstMs: 5, maxMs: 50 },
    ...options,
  });
  context.after(() => client.close());
  return client;
}

/** Resolves with the first such event. */
export function next<Name extends EventName>(
  client: AgentChatClient,
  name: Name,
  wanted: (event: ClientEvents[Name]) => boolean = () => true,
): Promise<ClientEvents[Name]> {
  return new Promise((resolve) => {
    const stop = client.on(name, (event) => {
      if (!wanted(event)) return;
      stop();
      resolve(event);
    });
  });
}

/** A promise and the way to settle it from outside. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}
