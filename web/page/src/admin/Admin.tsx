// How the gateway is doing: agents, queues, sessions, refused origins, keys.

import { useEffect, useState } from "preact/hooks";
import { messageOf } from "../gateway.js";
import { bytes, duration, plural } from "../words.js";
import { allowOrigin, origins, removeOrigin, status, type Origins, type Status } from "./api.js";
import { Keys } from "./Keys.js";

const EVERY_MS = 3_000;

export function Admin() {
  const [now, setNow] = useState<Status>();
  const [listed, setListed] = useState<Origins>();
  const [failure, setFailure] = useState<string>();
  const load = () =>
    Promise.all([status().then(setNow), origins().then(setListed)])
      .then(() => setFailure(undefined))
      .catch((error: unknown) => setFailure(messageOf(error)));
  useEffect(() => {
    void load();
    const timer = setInterval(() => document.visibilityState === "visible" && void load(), EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const change = (act: () => Promise<unknown>) => void act().then(load, (error: unknown) => setFailure(messageOf(error)));
  return (
    <div class="scroller" tabIndex={0} role="region" aria-label="Gateway">
      <div class="column admin">
        <h1>Gateway</h1>
        {failure !== undefined && (
          <p class="state failed" role="alert">
            {failure}
          </p>
        )}
        {now && <Overview status={now} />}
        {now && <Agents status={now} />}
        {listed && <OriginLists origins={listed} change={change} />}
        {now && <Keys />}
      </div>
    </div>
  );
}

function Overview({ status }: { status: Status }) {
  const running = status.queues.reduce((all, queue) => all + queue.running, 0);
  const queued = status.queues.reduce((all, queue) => all + queue.waiting, 0);
  return (
    <dl class="figures">
      <Figure name="Up" value={duration(status.uptimeMs)} />
      <Figure name="Version" value={status.version} />
      <Figure name="Live sessions" value={status.sessions.live} />
      <Figure name="Turns running" value={running} />
      <Figure name="Turns waiting" value={queued} />
      <Figure name="Need somebody" value={status.sessions.waiting} />
      <Figure name="Connections" value={status.connections} />
    </dl>
  );
}

function Figure({ name, value }: { name: string; value: string | number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Agents({ status }: { status: Status }) {
  return (
    <section aria-label="Agents">
      <h2>Agents</h2>
      {status.agents.map((agent) => {
        const queue = status.queues.find((queue) => queue.agent === agent.name);
        return (
          <article class="panel">
            <header>
              <h3>{agent.title}</h3>
              <span class={`tag ${agent.circuit.open ? "bad" : ""}`}>{agent.circuit.open ? stoppedFor(agent.circuit.retryAfterMs) : agent.state}</span>
              <span class="hint">
                {[plural(agent.spares, "spare"), plural(agent.restarts, "restart"), queue && `${queue.running} running`, queue && `${queue.waiting} waiting`]
                  .filter(Boolean)
                  .join(" · ")}
              </span>
            </header>
            {agent.processes.length > 0 ? (
              <div class="table" tabIndex={0} role="region" aria-label={`Processes of ${agent.name}`}>
                <table>
                  <thead>
                    <tr>
                      <th scope="col">Process</th>
                      <th scope="col">Up</th>
                      <th scope="col">Sessions</th>
                      <th scope="col">Memory</th>
                    </tr>
                  </thead>
                  <tbody>
                    {agent.processes.map((process) => (
                      <tr>
                        <td>{process.pid ?? "–"}</td>
                        <td>{process.uptimeMs === null ? "–" : duration(process.uptimeMs)}</td>
                        <td>{process.sessions}</td>
                        <td>{process.rssKb === null ? "–" : bytes(process.rssKb)}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            ) : (
              <p class="hint">No process runs.</p>
            )}
          </article>
        );
      })}
    </section>
  );
}

/** An agent that failed too often is left alone for a while. */
function stoppedFor(ms: number | null): string {
  return ms === null ? "failed too often" : `failed too often, tried again in ${duration(ms)}`;
}

function OriginLists({ origins, change }: { origins: Origins; change: (act: () => Promise<unknown>) => void }) {
  return (
    <section aria-label="Origins">
      <h2>Origins</h2>
      <div class="panel">
        <h3>Refused</h3>
        {origins.refused.length === 0 && <p class="hint">No web page was refused.</p>}
        <ul class="rows">
          {origins.refused.map(({ origin, count, lastAt }) => (
            <li>
              <code>{origin}</code>
              <span class="hint">
                {plural(count, "time")}, last {new Date(lastAt).toLocaleString()}
              </span>
              <button type="button" onClick={() => change(() => allowOrigin(origin))} aria-label={`Allow ${origin}`}>
                Allow
              </button>
            </li>
          ))}
        </ul>
        <h3>Allowed</h3>
        {origins.allowed.length === 0 && <p class="hint">Pages of this machine alone.</p>}
        <ul class="rows">
          {origins.allowed.map((origin) => (
            <li>
              <code>{origin}</code>
              <button type="button" class="quiet" onClick={() => change(() => removeOrigin(origin))} aria-label={`Remove ${origin}`}>
                Remove
              </button>
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}
