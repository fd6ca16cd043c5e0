// A wire between page and gateway that can be cut. It stays where it is, wherever the gateway comes back.

import { once } from "node:events";
import { connect, createServer } from "node:net";

export class Wire {
  #server;
  #sockets = new Set();

  /** Listens in place of the gateway. */
  static async to(gateway) {
    const wire = new Wire();
    wire.#server = createServer((here) => {
      const there = connect(Number(new URL(gateway.url).port), "127.0.0.1");
      for (const [from, to] of [
        [here, there],
        [there, here],
      ]) {
        wire.#sockets.add(from);
        from.pipe(to);
        from.on("error", () => to.destroy());
        from.on("close", () => {
          wire.#sockets.delete(from);
          to.destroy();
        });
      }
    });
    wire.#server.listen(0, "127.0.0.1");
    await once(wire.#server, "listening");
    wire.url = `http://127.0.0.1:${wire.#server.address().port}`;
    wire.key = gateway.key;
    wire.entry = `${wire.url}/#key=${gateway.key}`;
    return wire;
  }

  /** Whatever is on its way is lost. */
  cut() {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async close() {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }
}
