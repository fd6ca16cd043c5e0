// Tasks as programs with @a2a-js/sdk use them: its newer line speaks 1.0, by JSON-RPC and by plain HTTP, and 0.3 where it is
// told to; its older line speaks 0.3.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { Message, Role, TaskState } from '@a2a-js/sdk';
import { A2AClient } from 'a2a-js-sdk-03/client';
import { agent, answerOf, apiKey, asking, calling, echoed, holds, run, url } from './checks.mjs';

const keyed = (input, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set('authorization', `Bearer ${apiKey}`);
  return fetch(input, { ...init, headers });
};

const tools = [
  {
    name: 'get_weather',
    description: 'Tells the weather of a city.',
    parameters: { type: 'object', required: ['city'], properties: { city: { type: 'string' } } },
  },
];
const result = (callId, output) => ({
  callId,
  outcome: 'inject_result',
  functionResponse: { name: 'get_weather', response: { output } },
});

/** A client of the newer line, with its results in plain words. */
async function newer(transport, path) {
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [transport],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl: keyed, legacyCompat: { enabled: true } }),
    preferredTransports: [transport.protocolName],
  });
  const client = await new ClientFactory(options).createFromUrl(url, path);
  const params = (parts, { taskId = '', contextId = '', metadata, wait = true } = {}) => ({
    tenant: '',
    message: Message.fromJSON({ messageId: randomUUID(), role: 'ROLE_USER', parts, taskId, contextId, metadata }),
    configuration: { acceptedOutputModes: [], returnImmediately: !wait },
  });
  const state = (status) => TaskState[status.state].replace('TASK_STATE_', '').toLowerCase().replace('_', '-');
  const partsOf = (status) => (status?.message?.parts ?? []).map(({ content }) => ({ [content.$case]: content.value }));
  const told = (task) => ({ id: task.id, contextId: task.contextId, state: state(task.status), parts: partsOf(task.status) });
  async function* stream(events) {
    for await (const { payload } of events) {
      if (payload.$case === 'task') yield { task: told(payload.value) };
      if (payload.$case === 'statusUpdate') {
        const { status, metadata } = payload.value;
        yield { kind: metadata.coderAgent.kind, state: state(status), parts: partsOf(status) };
      }
    }
  }
  return {
    text: (text) => [{ text }],
    data: (data) => [{ data }],
    send: async (parts, more) => told(await client.sendMessage(params(parts, more))),
    stream: (parts, more) => stream(client.sendMessageStream(params(parts, more))),
    get: async (id) => told(await client.getTask({ tenant: '', id })),
    cancel: async (id) => told(await client.cancelTask({ tenant: '', id })),
    resubscribe: (id) => stream(client.resubscribeTask({ tenant: '', id })),
  };
}

/** The same of the older line. */
async function older() {
  const client = await A2AClient.fromCardUrl(`${url}/.well-known/agent-card.json`, { fetchImpl: keyed });
  const params = (parts, { wait = true, ...more } = {}) => ({
    message: { kind: 'message', messageId: randomUUID(), role: 'user', parts, ...more },
    configuration: { blocking: wait },
  });
  const partsOf = (status) => (status.message?.parts ?? []).map(({ text, data }) => (data ? { data } : { text }));
  const told = (task) => ({ id: task.id, contextId: task.contextId, state: task.status.state, parts: partsOf(task.status) });
  const whole = (answer) => {
    if (answer.error) throw new Error(`${answer.error.code}: ${answer.error.message}`);
    return told(answer.result);
  };
  async function* stream(events) {
    for await (const event of events) {
      if (event.kind === 'task') yield { task: told(event) };
      if (event.kind === 'status-update') {
        yield { kind: event.metadata.coderAgent.kind, state: event.status.state, parts: partsOf(event.status) };
      }
    }
  }
  return {
    text: (text) => [{ kind: 'text', text }],
    data: (data) => [{ kind: 'data', data }],
    send: async (parts, more) => whole(await client.sendMessage(params(parts, more))),
    stream: (parts, more) => stream(client.sendMessageStream(params(parts, more))),
    get: async (id) => whole(await client.getTask({ id })),
    cancel: async (id) => whole(await client.cancelTask({ id })),
    resubscribe: (id) => stream(client.resubscribeTask({ id })),
  };
}

const textOf = (parts) => parts.map((part) => part.text ?? '').join('');

/** What every client does, whatever it speaks. */
const checks = (name, connect) => ({
  async [`${name}: a message is answered, and its task goes on`]() {
    const client = await connect();
    const first = await client.send(client.text(agent.plain.prompt));
    assert.equal(first.state, 'input-required');
    holds(textOf(first.parts), agent.plain.holds);
    const { id: taskId, contextId } = first;
    const second = await client.send(client.text('And on.'), { taskId, contextId });
    assert.deepEqual([second.id, second.contextId], [first.id, first.contextId]);
    holds(textOf(second.parts), echoed('And on.').trim());
    assert.equal((await client.get(first.id)).state, 'input-required');
  },

  async [`${name}: a stream has the thoughts apart from the text`]() {
    const client = await connect();
    const seen = { thought: '', text: '', states: [] };
    for await (const event of client.stream(client.text(asking(agent.thought)))) {
      if (event.kind === 'thought') seen.thought += event.parts[0].data.description;
      if (event.kind === 'text-content') seen.text += textOf(event.parts);
      seen.states.push(event.state ?? event.task.state);
    }
    holds(seen.thought, agent.thought.thought);
    holds(seen.text, answerOf(agent.thought));
    assert.equal(seen.states.at(-1), 'input-required');
  },

  async [`${name}: a task that runs is followed again and cancelled`]() {
    const client = await connect();
    const begun = await client.send(client.text(asking(agent.words)), { wait: false });
    let cancelled;
    let last;
    for await (const event of client.resubscribe(begun.id)) {
      // The first event is the task, with all that was said before: nothing more may come before the cancel.
      cancelled ??= client.cancel(begun.id);
      last = event.state ?? event.task.state;
    }
    assert.deepEqual([last, (await cancelled).state], ['canceled', 'canceled']);
    await assert.rejects(client.send(client.text('more'), { taskId: begun.id, contextId: begun.contextId }), /over/);
  },

  async [`${name}: a tool of the client is called and its result goes in`]() {
    const client = await connect();
    const prompt = calling([[['get_weather', { city: 'Paris' }]]], { returned: ['sunny'] });
    let waiting = await client.send(client.text(prompt), { metadata: { tools } });
    assert.equal(waiting.state, 'input-required');
    const { request } = waiting.parts[0].data;
    assert.deepEqual([request.name, request.args], ['get_weather', { city: 'Paris' }]);
    const { id: taskId, contextId } = waiting;
    await assert.rejects(client.send(client.data(result('call_unknown', 'x')), { taskId, contextId }), /nothing waits/);
    let text = '';
    for await (const event of client.stream(client.data(result(request.callId, 'sunny')), { taskId, contextId })) {
      if (event.kind === 'text-content') text += textOf(event.parts);
      if (event.task) waiting = event.task;
    }
    if (!text) text = textOf(waiting.parts);
    holds(text, 'sunny');
  },
});

const card = '/.well-known/agent-card.json';
await run({
  async 'a client without a key is refused'() {
    const open = await A2AClient.fromCardUrl(url + card);
    const message = { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'hi' }] };
    holds((await open.sendMessage({ message })).error.message, 'missing API key');
  },
  ...checks('1.0', () => newer(new JsonRpcTransportFactory({ fetchImpl: keyed }), card)),
  ...checks('1.0 over HTTP', () => newer(new RestTransportFactory({ fetchImpl: keyed }), card)),
  ...checks('0.3 by the newer line', () =>
    newer(new JsonRpcTransportFactory({ fetchImpl: keyed, legacyCompat: { enabled: true } }), `/a2a/v0.3${card}`),
  ),
  ...checks('0.3', older),
});
