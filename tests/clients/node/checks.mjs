// The checks of a script, run one after the other against the gateway that the environment names; a line for each.

import { readFileSync } from 'node:fs';

export const url = process.env.GEMBRIDGE_URL;
export const baseURL = `${url}/v1`;
export const apiKey = process.env.GEMBRIDGE_KEY;
export const model = process.env.GEMBRIDGE_AGENT;

const agents = JSON.parse(readFileSync(new URL('../agents.json', import.meta.url), 'utf8'));
export const agent = agents[model] ?? {};
export const redDot = `data:image/png;base64,${agents.red_dot}`;

/** Runs every check, also after one that failed. */
export async function run(checks) {
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check();
      console.log(`ok ${name}`);
    } catch (error) {
      process.exitCode = 1;
      console.log(`FAILED ${name}\n${error.stack}`);
    }
  }
}

/** The prompt of a case from `agents.json`. */
export function asking({ prompt, calls: whole, steps, cut }) {
  if (prompt) return prompt;
  const calls = whole ?? [steps ?? [...cut].map((text) => ({ text }))];
  return `please SCRIPT:${JSON.stringify({ calls })}:END`;
}

const asScript = (...calls) => `please SCRIPT:${JSON.stringify({ calls })}:END`;

/**
 * A prompt that makes the agent call tools, `[name, arguments]` each, round by round, and then tell the last result. The
 * model behind an agent that has one expects the tools to be declared so, and their results to come back to it.
 */
export function calling(rounds, { declared, returned = [] } = {}) {
  if (agent.tools === 'words') {
    const called = rounds.map((calls) => calls.map(([name, args]) => `${name} ${JSON.stringify(args)}`).join(' and '));
    return called.map((calls) => `call ${calls}`).join('\n');
  }
  const prefixed = (name) => agent.tools + name;
  const calls = rounds.map((calls) => calls.map(([name, args]) => ({ call: { name: prefixed(name), args } })));
  if (declared) {
    const named = Object.fromEntries(Object.entries(declared).map(([name, schema]) => [prefixed(name), schema]));
    calls[0].unshift({ expect: { declared: named } });
  }
  return asScript(...calls, [{ expect: { returned } }, { text: `It was told: ${returned.at(-1)}` }]);
}

/** A prompt that makes the agent deliver this as its answer in the form that was asked for. */
export function delivering(value, schema) {
  if (agent.tools === 'words') return `answer-with structured_output ${JSON.stringify(value)}`;
  const name = `${agent.tools}structured_output`;
  const expected = schema ? [{ expect: { declared: { [name]: schema } } }] : [];
  return asScript([...expected, { call: { name, args: value } }], [{ text: 'done' }]);
}

export const answerOf = ({ answer, cut }) => answer ?? cut;

/** A conversation: the user speaks first, and each in turn. */
export const said = (...texts) =>
  texts.map((content, place) => ({ role: place % 2 ? 'assistant' : 'user', content }));

export function holds(text, part) {
  if (!text.includes(part)) throw new Error(`${JSON.stringify(part)} is not in ${JSON.stringify(text)}`);
}

export const echoed = (text) => agent.echo.replace('{}', () => text);
