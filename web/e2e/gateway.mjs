// The built gateway as a process, with a home of its own.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { eventually, until } from "./until.mjs";

const TARGET = process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL("../../target", import.meta.url));
const PROGRAM = built("gembridge");
const FAKE_AGENT = built("fake-agent");

function built(name) {
  const path = join(TARGET, "debug", name);
  if (!existsSync(path)) throw new Error(`\`${path}\` is missing; run \`cargo build --workspace --bins\``);
  return path;
}

/** Those that run; none outlives its test. */
const running = new Set();
process.once("SIGTERM", () => process.exit(143));
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

export class Gateway {
  #child;
  #starts = 0;
  #port = 0;
  home = mkdtempSync(join(tmpdir(), "gembridge-e2e-"));
  key = "";

  /** With the agents `demo` and `fake`, both in a workspace of their own; `agent` is the default one. */
  static async start({ agent = "demo", settings = "", fakeArgs = [] } = {}) {
    const gateway = new Gateway();
    for (const folder of [".config/gembridge", "workspace"]) mkdirSync(join(gateway.home, folder), { recursive: true });
    const lines = [
      "limits.requests = 10000000",
      "limits.refused = 10000000",
      settings,
      "[agents.demo]",
      'mode = "agent"',
      `workspace = ${JSON.stringify(gateway.workspace)}`,
      "[agents.fake]",
      `command = ${JSON.stringify(FAKE_AGENT)}`,
      `args = ${JSON.stringify(fakeArgs)}`,
      'mode = "agent"',
      `workspace = ${JSON.stringify(gateway.workspace)}`,
    ];
    writeFileSync(join(gateway.home, ".config/gembridge/gembridge.toml"), `${lines.join("\n")}\n`);
    await gateway.#run(["trust", "add", gateway.workspace]);
    gateway.agent = agent;
    await gateway.serve();
    return gateway;
  }

  get workspace() {
    return join(this.home, "workspace");
  }

  get url() {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Where the page begins, with the key. */
  get entry() {
    return `${this.url}/#key=${this.key}`;
  }

  /** Starts it, at an address that is free: its last one may be somebody else's by now. */
  async serve() {
    this.#starts += 1;
    const said = join(this.home, `stdout-${this.#starts}`);
    const child = this.#spawn(["serve", "--port", "0", "--agent", this.agent], [openSync(said, "w"), openSync(join(this.home, `stderr-${this.#starts}`), "w")]);
    this.#child = child;
    running.add(child);
    child.once("exit", () => running.delete(child));
    const banner = await until(`the banner of the gateway in \`${this.home}\``, () => {
      const text = readFileSync(said, "utf8");
      const end = child.exitCode ?? child.signalCode;
      if (end !== null) throw new Error(`the gateway ended with ${end}: ${this.complaints()}`);
      return text.includes("/docs\n") && text;
    });
    this.#port = Number(/http:\/\/[\d.]+:(\d+)/.exec(banner)[1]);
    this.key = readFileSync(join(this.home, ".local/state/gembridge/key"), "utf8").trim();
  }

  complaints() {
    return readFileSync(join(this.home, `stderr-${this.#starts}`), "utf8");
  }

  /** No time to say goodbye. */
  async kill() {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  async stop() {
    await this.kill();
    // Agents that are being ended may still write there.
    await eventually(() => rmSync(this.home, { recursive: true, force: true }));
  }

  fetch(path, { method = "GET", headers = {}, body } = {}) {
    return fetch(this.url + path, {
      method,
      headers: { authorization: `Bearer ${this.key}`, ...(body && { "content-type": "application/json" }), ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
  }

  /** A streamed completion, as an OpenAI client asks for one. */
  complete(prompt, model = this.agent) {
    const body = { model, stream: true, messages: [{ role: "user", content: prompt }] };
    return this.fetch("/v1/chat/completions", { method: "POST", body });
  }

  #spawn(args, [stdout, stderr]) {
    const env = { HOME: this.home, PATH: join(this.home, "nothing") };
    return spawn(PROGRAM, args, { cwd: this.home, env, stdio: ["ignore", stdout, stderr] });
  }

  async #run(args) {
    const child = this.#spawn(args, ["ignore", "inherit"]);
    const [code] = await once(child, "exit");
    if (code !== 0) throw new Error(`\`gembridge ${args.join(" ")}\` ended with ${code}`);
  }
}
