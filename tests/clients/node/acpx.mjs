// acpx, a client of agents that it starts itself: here `gembridge connect`.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { agent as expected, asking, holds, run } from './checks.mjs';

const cli = fileURLToPath(new URL('node_modules/acpx/dist/cli.js', import.meta.url));
const cwd = join(process.env.HOME, 'workspace');
const command = `${process.env.GEMBRIDGE_PROGRAM} connect ${process.env.GEMBRIDGE_URL.replace('http', 'ws')}/acp`;

/** Runs acpx to its end: its exit code, and every message of the protocol that it shows. */
async function acpx(args, heard = () => {}) {
  const options = ['--format', 'json', '--cwd', cwd, '--agent', command];
  const child = spawn(process.execPath, [cli, ...options, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let complaints = '';
  child.stderr.on('data', (data) => (complaints += data));
  const closed = new Promise((resolve) => child.on('close', resolve));
  const messages = [];
  for await (const line of createInterface({ input: child.stdout })) {
    messages.push(JSON.parse(line));
    heard(messages);
  }
  return { code: await closed, messages, complaints };
}

const updates = (messages) =>
  messages.filter(({ method }) => method === 'session/update').map(({ params }) => params.update);

const saidIn = (messages) =>
  updates(messages)
    .filter(({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk')
    .map(({ content }) => content.text)
    .join('');

const reasonIn = (messages) => messages.findLast(({ result }) => result?.stopReason)?.result.stopReason;

const toolsIn = (messages) => {
  const states = updates(messages).filter(({ toolCallId, status }) => toolCallId && status);
  return [...new Map(states.map(({ toolCallId, status }) => [toolCallId, status])).values()];
};

await run({
  async 'exec begins a session and shows the answer'() {
    const { code, messages, complaints } = await acpx(['exec', expected.plain.prompt]);
    assert.equal(code, 0, complaints);
    holds(saidIn(messages), expected.plain.holds);
    assert.equal(reasonIn(messages), 'end_turn');
  },

  async 'a tool that is allowed runs'() {
    const { code, messages, complaints } = await acpx(['--approve-all', 'exec', asking(expected.permission)]);
    assert.equal(code, 0, complaints);
    assert.deepEqual(toolsIn(messages), ['completed']);
  },

  async 'a tool that is rejected does not run'() {
    const { messages } = await acpx(['--deny-all', 'exec', asking(expected.permission)]);
    assert.deepEqual(toolsIn(messages), ['failed']);
    assert.equal(reasonIn(messages), 'end_turn');
  },

  async 'a session is taken up by another process, cancelled, and gone on with'() {
    assert.equal((await acpx(['sessions', 'new'])).code, 0);
    try {
      let cancelling;
      const { messages } = await acpx([asking(expected.words)], (messages) => {
        if (!cancelling && saidIn(messages).includes('word-1')) cancelling = acpx(['cancel']);
      });
      assert.equal((await cancelling).code, 0);
      assert.equal(reasonIn(messages), 'cancelled');
      assert.ok(messages.some(({ method }) => method === 'session/resume'));

      const next = await acpx([expected.plain.prompt]);
      assert.equal(next.code, 0, next.complaints);
      holds(saidIn(next.messages), expected.plain.holds);
    } finally {
      await acpx(['sessions', 'close']);
    }
  },
});
