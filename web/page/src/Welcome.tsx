// An empty conversation, and what one could begin it with.

import { submit } from "./chat/Composer.js";
import { agent, demo, report } from "./gateway.js";

const DEMO = [
  { say: "help", about: "everything that the demo agent can show" },
  { say: "think about bridges", about: "thoughts, then an answer" },
  { say: "plan", about: "a plan whose entries progress" },
  { say: "edit", about: "a change to a file, as a diff" },
  { say: "permission rm -rf build", about: "a question that needs your answer" },
  { say: "markdown", about: "tables, lists and code" },
];

export function Welcome() {
  const isDemo = agent.value?.isDemo ?? demo.value;
  return (
    <div class="welcome">
      <h1>{isDemo ? "Try the demo" : "What shall we do?"}</h1>
      {isDemo ? (
        <>
          <p>
            The built-in demo agent answers here. It has no model behind it: it plays what you name. When a coding agent is installed, the gateway takes that
            one.
          </p>
          <ul>
            {DEMO.map(({ say, about }) => (
              <li>
                <button type="button" onClick={() => void submit(say).catch(report)}>
                  <code>{say}</code>
                  <span>{about}</span>
                </button>
              </li>
            ))}
          </ul>
        </>
      ) : (
        <p>
          {agent.value?.title ?? "The agent"} {agent.value?.mode === "agent" ? "works in its workspace and asks before it changes anything." : "answers here."}{" "}
          The session goes on when this page is closed.
        </p>
      )}
    </div>
  );
}
