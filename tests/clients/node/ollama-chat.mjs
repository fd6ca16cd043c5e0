// Chat, tools, forms and models, as programs with ollama-js use them.

import assert from 'node:assert/strict';
import { Ollama } from 'ollama';
import { agent, answerOf, apiKey, asking, calling, delivering, echoed, holds, model, run, said, url } from './checks.mjs';

// The key stands in the path: most programs that talk to Ollama cannot send one otherwise.
const client = new Ollama({ host: `${url}/k/${apiKey}` });

const tools = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'Tells the weather of a city.',
      parameters: { type: 'object', required: ['city'], properties: { city: { type: 'string' } } },
    },
  },
];

await run({
  async 'a key in a header is as good'() {
    const withHeader = new Ollama({ host: url, headers: { authorization: `Bearer ${apiKey}` } });
    holds((await withHeader.chat({ model, messages: said(agent.plain.prompt) })).message.content, agent.plain.holds);
    await assert.rejects(new Ollama({ host: url }).list(), /missing API key/);
  },

  async 'an answer comes in pieces'() {
    let text = '';
    let last;
    for await (const piece of await client.chat({ model, messages: said(agent.plain.prompt), stream: true })) {
      text += piece.message.content;
      last = piece;
    }
    holds(text, agent.plain.holds);
    assert.deepEqual([last.done, last.done_reason], [true, 'stop']);
  },

  async 'thoughts are apart'() {
    const { message } = await client.chat({ model, messages: said(asking(agent.thought)), think: 'low' });
    holds(message.thinking, agent.thought.thought);
    assert.equal(message.content, answerOf(agent.thought));
  },

  async 'a conversation goes on'() {
    const messages = said('One.');
    messages.push((await client.chat({ model, messages })).message, ...said('Two.'));
    holds((await client.chat({ model, messages })).message.content, echoed('Two.'));
  },

  async 'tools are called, and their results go in by the name of the tool'() {
    const calls = [['get_weather', { city: 'Oslo' }], ['get_weather', { city: 'Bergen' }]];
    const messages = said(calling([calls], { returned: ['mild in Oslo', 'mild in Bergen'] }));
    const called = [];
    let { message } = await client.chat({ model, messages, tools });
    // Some agents make both calls at once, others one after the other.
    while (message.tool_calls) {
      messages.push(message);
      for (const { function: { name, arguments: args } } of message.tool_calls) {
        called.push([name, args]);
        messages.push({ role: 'tool', tool_name: name, content: `mild in ${args.city}` });
      }
      ({ message } = await client.chat({ model, messages, tools }));
    }
    assert.deepEqual(new Set(called.map((call) => JSON.stringify(call))), new Set(calls.map((call) => JSON.stringify(call))));
    holds(message.content, 'mild in Bergen');
  },

  async 'an answer has the form that was asked for'() {
    const format = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    const { message } = await client.chat({ model, messages: said(delivering({ name: 'Ada' })), format });
    assert.deepEqual(JSON.parse(message.content), { name: 'Ada' });
  },

  async 'what there is can be listed and shown'() {
    const { models } = await client.list();
    assert(models.some(({ name }) => name === `${model}:latest`));
    assert((await client.show({ model })).capabilities.includes('tools'));
    assert.match((await client.version()).version, /^\d+\.\d+\.\d+$/);
    assert.equal((await client.pull({ model })).status, 'success');
  },

  async 'what cannot be done is said'() {
    await assert.rejects(client.show({ model: 'nosuch' }), { status_code: 404 });
    await assert.rejects(client.embed({ model, input: 'x' }), { status_code: 501 });
  },
});
