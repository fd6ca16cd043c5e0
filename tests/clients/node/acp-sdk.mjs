// What editors do, with the WebSocket client of the protocol's own library.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { client, methods } from '@agentclientprotocol/sdk';
import { createWebSocketStream } from '@agentclientprotocol/sdk/experimental/ws-client';
import { agent as expected, apiKey, asking, holds, run } from './checks.mjs';

const url = `${process.env.GEMBRIDGE_URL.replace('http', 'ws')}/acp`;
const cwd = join(process.env.HOME, 'workspace');
const text = (content) => [{ type: 'text', text: content }];

/** A client that keeps every update, and answers every question with an option of this kind. */
class Editor {
  updates = [];
  asked = [];
  #heard = () => {};

  constructor(answer = 'reject_once') {
    const app = client({ name: 'editor' })
      .onNotification(methods.client.session.update, ({ params }) => {
        this.updates.push(params.update);
        this.#heard();
      })
      .onRequest(methods.client.session.requestPermission, ({ params }) => {
        this.asked.push(params);
        const { optionId } = params.options.find(({ kind }) => kind === answer);
        return { outcome: { outcome: 'selected', optionId } };
      });
    this.connection = app.connect(createWebSocketStream(url, { protocols: ['acp.v1', `bearer.${apiKey}`] }));
  }

  request(method, params) {
    return this.connection.agent.request(method, params);
  }

  async known() {
    const clientCapabilities = { fs: { readTextFile: true, writeTextFile: true }, terminal: true };
    this.greeting = await this.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities });
    return this;
  }

  async inSession() {
    await this.known();
    this.session = (await this.request(methods.agent.session.new, { cwd, mcpServers: [] })).sessionId;
    return this;
  }

  prompt(content) {
    return this.request(methods.agent.session.prompt, { sessionId: this.session, prompt: text(content) });
  }

  /** Resolves when this has been said. */
  hears(part) {
    return new Promise((resolve) => {
      this.#heard = () => this.said.includes(part) && resolve();
      this.#heard();
    });
  }

  get said() {
    return this.texts('agent_message_chunk').join('');
  }

  texts(kind) {
    return this.updates.filter(({ sessionUpdate }) => sessionUpdate === kind).map(({ content }) => content.text);
  }

  /** The last state of every tool call. */
  get tools() {
    const states = this.updates.filter(({ toolCallId, status }) => toolCallId && status);
    return [...new Map(states.map(({ toolCallId, status }) => [toolCallId, status])).values()];
  }

  leave() {
    this.connection.close();
  }
}

async function asks(answer) {
  const editor = await new Editor(answer).inSession();
  const { stopReason } = await editor.prompt(asking(expected.permission));
  assert.equal(stopReason, 'end_turn');
  assert.equal(editor.asked.length, 1);
  assert.equal(editor.asked[0].sessionId, editor.session);
  editor.leave();
  return editor.tools;
}

await run({
  async 'initialize says what can be done'() {
    const editor = await new Editor().known();
    assert.equal(editor.greeting.protocolVersion, 1);
    assert.equal(editor.greeting.agentCapabilities.loadSession, true);
    editor.leave();
  },

  async 'a prompt streams its answer'() {
    const editor = await new Editor().inSession();
    const { stopReason } = await editor.prompt(expected.plain.prompt);
    assert.equal(stopReason, 'end_turn');
    holds(editor.said, expected.plain.holds);
    assert.deepEqual(editor.texts('user_message_chunk'), [], 'nobody hears an echo of itself');
    editor.leave();
  },

  async 'a tool that is allowed runs'() {
    assert.deepEqual(await asks('allow_once'), ['completed']);
  },

  async 'a tool that is rejected does not run'() {
    assert.deepEqual(await asks('reject_once'), ['failed']);
  },

  async 'cancel ends the turn, and the next one runs'() {
    const editor = await new Editor().inSession();
    const turn = editor.prompt(asking(expected.words));
    await editor.hears('word-1');
    await editor.connection.agent.notify(methods.agent.session.cancel, { sessionId: editor.session });
    assert.equal((await turn).stopReason, 'cancelled');
    await editor.prompt(expected.plain.prompt);
    holds(editor.said, expected.plain.holds);
    editor.leave();
  },

  async 'a session is loaded whole by another client, and goes on'() {
    const first = await new Editor().inSession();
    for (const prompt of ['The first.', 'The second.']) await first.prompt(prompt);
    first.leave();

    const second = await new Editor().known();
    await second.request(methods.agent.session.load, { sessionId: first.session, cwd, mcpServers: [] });
    assert.equal(second.said, first.said);
    assert.deepEqual(second.texts('user_message_chunk'), ['The first.', 'The second.']);
    second.session = first.session;
    assert.equal((await second.prompt('The third.')).stopReason, 'end_turn');

    const { sessions } = await second.request(methods.agent.session.list, {});
    assert.ok(sessions.some(({ sessionId }) => sessionId === first.session));
    second.leave();
  },

  async 'a session that is not there is named as such'() {
    const editor = await new Editor().known();
    const sessionId = '00000000-0000-7000-8000-000000000000';
    const loading = editor.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
    await assert.rejects(loading, ({ code }) => code === -32002);
    editor.leave();
  },

  async 'a key that is not known is not let in'() {
    const stream = createWebSocketStream(url, { protocols: ['acp.v1', 'bearer.unknown'] });
    const connection = client({ name: 'stranger' }).connect(stream);
    await assert.rejects(connection.agent.request(methods.agent.initialize, { protocolVersion: 1 }));
  },
});
