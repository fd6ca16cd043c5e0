// An empty conversation, and what one could begin it with.

import { useState } from "preact/hooks";
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
          <NextSteps about="Use a real agent: the next steps" steps={[INSTALL, LOG_IN, CONNECT]} />
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
        <>
          <p>
            {agent.value?.title ?? "The agent"}{" "}
            {agent.value?.mode === "agent" ? "works in its workspace and asks before it changes anything." : "answers here."} The session goes on when this page
            is closed.
          </p>
          <NextSteps about="The next steps" steps={[LOGIN_FAILS, CONNECT, OTHER_PROGRAMS]} />
        </>
      )}
    </div>
  );
}

interface Step {
  title: string;
  how: string;
  /** Ends with what is seen when it has worked. */
  then: string;
}

const INSTALL: Step = {
  title: "Install a coding agent",
  how: "npm install -g @google/gemini-cli",
  then: "or Claude Code, Codex, OpenCode, Qwen Code: gembridge takes the first that is installed and logged in.",
};
const LOG_IN: Step = {
  title: "Log in to it",
  how: "gemini",
  then: "once, in a terminal. Then start the gateway again; gembridge doctor says what is missing.",
};
const LOGIN_FAILS: Step = {
  title: "If it asks for a login",
  how: "gembridge doctor",
  then: "says which agents are installed and logged in, and how to log in to the others: once, in a terminal.",
};
const CONNECT: Step = {
  title: "Connect an editor",
  how: "gembridge connect",
  then: "is the command of an ACP agent for Zed and others; its sessions show up here.",
};
const OTHER_PROGRAMS: Step = {
  title: "Use it from other programs",
  how: "gembridge launch",
  then: "lists the programs that it starts with this gateway in the place of their model; /docs describes the APIs.",
};

function NextSteps({ about, steps }: { about: string; steps: Step[] }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="steps" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{about}</summary>
      {open && (
        <ol>
          {steps.map(({ title, how, then }) => (
            <li>
              <strong>{title}</strong>
              <code>{how}</code>
              <span>{then}</span>
            </li>
          ))}
        </ol>
      )}
    </details>
  );
}
