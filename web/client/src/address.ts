// Where the gateway is, from whatever form of address was given.

export interface Address {
  /** `ws://…/acp` */
  socket: string;
  /** `http://…/acp/ticket`, which tells a wrong key from a gateway that is away: browsers do not say why an upgrade failed. */
  ticket: string;
}

/** Takes `http(s)://host`, `ws(s)://host` or `ws(s)://host/acp`. */
export function addressOf(given: string): Address {
  const url = new URL(given);
  if (url.search !== "" || url.hash !== "") throw new TypeError(`address \`${given}\` may not have a query or a fragment; give the key as \`key\``);
  if (url.pathname === "/" || url.pathname === "") url.pathname = "/acp";
  const socket = new URL(url);
  socket.protocol = secure(url) ? "wss:" : "ws:";
  const ticket = new URL(url);
  ticket.protocol = secure(url) ? "https:" : "http:";
  ticket.pathname = `${ticket.pathname.replace(/\/$/, "")}/ticket`;
  return { socket: socket.href, ticket: ticket.href };
}

function secure(url: URL): boolean {
  switch (url.protocol) {
    case "https:":
    case "wss:":
      return true;
    case "http:":
    case "ws:":
      return false;
    default:
      throw new TypeError(`address \`${url.href}\` must begin with http, https, ws or wss`);
  }
}
