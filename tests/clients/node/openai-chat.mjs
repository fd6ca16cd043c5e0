// What a program with openai-node does on an ordinary day.

import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { agent, answerOf, apiKey, asking, baseURL, echoed, holds, model, redDot, run, said } from './checks.mjs';

const client = new OpenAI({ baseURL, apiKey, maxRetries: 0, timeout: 120_000 });
const complete = (fields, options) => client.chat.completions.create({ model, ...fields }, options);

async function read(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

const textOf = (chunks) => chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('');

await run({
  async 'a question gets an answer'() {
    const answer = await complete({ messages: said(agent.plain.prompt) });
    const [{ message, finish_reason }] = answer.choices;
    holds(message.content, agent.plain.holds);
    assert.deepEqual([message.role, finish_reason, answer.object], ['assistant', 'stop', 'chat.completion']);
    assert.ok(answer.usage.prompt_tokens > 0 && answer.usage.completion_tokens > 0);
    assert.ok(answer._request_id);
  },

  async 'a stream brings pieces and then the usage'() {
    const messages = said(agent.plain.prompt);
    const chunks = await read(await complete({ messages, stream: true, stream_options: { include_usage: true } }));
    assert.equal(chunks[0].choices[0].delta.role, 'assistant');
    assert.ok(chunks.filter((chunk) => chunk.choices[0]?.delta.content).length >= 2);
    holds(textOf(chunks), agent.plain.holds);
    const last = chunks.pop();
    assert.deepEqual(last.choices, []);
    assert.ok(last.usage.total_tokens > 0);
    assert.equal(chunks.pop().choices[0].finish_reason, 'stop');
  },

  async 'the streaming helper of the library puts the answer together'() {
    const stream = client.chat.completions.stream({ model, messages: said(asking(agent.thought)) });
    let text = '';
    stream.on('content', (delta) => (text += delta));
    assert.equal((await stream.finalMessage()).content, answerOf(agent.thought));
    assert.equal(text, answerOf(agent.thought));
  },

  async 'thoughts come apart from the answer'() {
    const chunks = await read(await complete({ messages: said(asking(agent.thought)), stream: true }));
    holds(chunks.map((chunk) => chunk.choices[0].delta.reasoning_content ?? '').join(''), agent.thought.thought);
    assert.equal(textOf(chunks), answerOf(agent.thought));
  },

  async 'twenty turns stay in one session'() {
    const messages = [];
    const sessions = new Set();
    for (let turn = 1; turn <= 20; turn += 1) {
      const text = `Turn ${turn} of openai-node.`;
      messages.push({ role: 'user', content: text });
      const { data, response } = await complete({ messages, stream: turn % 2 === 0 }).withResponse();
      const answer = turn % 2 ? data.choices[0].message.content : textOf(await read(data));
      holds(answer, echoed(text));
      assert.ok(!answer.includes('[User]'), answer);
      sessions.add(response.headers.get('x-session-id'));
      messages.push({ role: 'assistant', content: answer });
    }
    assert.equal(sessions.size, 1);
  },

  async 'many streams at once keep apart'() {
    const prompts = Array.from({ length: agent.at_once }, (_, number) => `Number ${number} of openai-node.`);
    await Promise.all(
      prompts.map(async (prompt) => {
        holds(textOf(await read(await complete({ messages: said(prompt), stream: true }))), echoed(prompt));
      }),
    );
  },

  async 'an image reaches the agent'() {
    const content = [
      { type: 'text', text: 'look' },
      { type: 'image_url', image_url: { url: redDot } },
    ];
    const answer = await complete({ messages: [{ role: 'user', content }] });
    holds(answer.choices[0].message.content, agent.media);
  },

  async 'every script comes through unharmed'() {
    const expected = answerOf(agent.unicode);
    const messages = said(asking(agent.unicode));
    assert.equal(textOf(await read(await complete({ messages, stream: true }))), expected);
    assert.equal((await complete({ messages })).choices[0].message.content, expected);
    holds((await complete({ messages: said(`Say: ${expected}`) })).choices[0].message.content, expected);
  },

  async 'a long answer comes whole'() {
    const prompt = Array.from({ length: 3000 }, (_, number) => `Line ${number} of a long letter.`).join('\n');
    holds(textOf(await read(await complete({ messages: said(prompt), stream: true }))), echoed(prompt));
  },

  async 'an answer ends before a stop, and after so many tokens'() {
    const messages = said(asking(agent.words));
    const [stopped] = (await complete({ messages, stop: agent.words.stop })).choices;
    assert.deepEqual([stopped.message.content, stopped.finish_reason], [agent.words.answer, 'stop']);
    const [cut] = (await complete({ messages, max_completion_tokens: 3 })).choices;
    assert.deepEqual([cut.message.content, cut.finish_reason], [agent.words.answer.slice(0, 12), 'length']);
  },

  async 'two answers come side by side'() {
    const { choices } = await complete({ messages: said(agent.plain.prompt), n: 2 });
    assert.deepEqual(choices.map(({ index }) => index), [0, 1]);
    for (const { message } of choices) holds(message.content, agent.plain.holds);
  },

  async 'models are listed and found by name'() {
    const listed = (await read(await client.models.list())).map(({ id }) => id);
    for (const name of agent.models) {
      if (!name.includes('/')) assert.ok(listed.includes(name), `${listed}`);
      assert.equal((await client.models.retrieve(name)).id, name);
    }
    await assert.rejects(client.models.retrieve('no-such-model'), OpenAI.NotFoundError);
  },

  async 'a failing agent is an error of the server'() {
    for (const stream of [false, true]) {
      const asked = complete({ messages: said(asking(agent.failure)), stream });
      await assert.rejects(asked, (error) => {
        assert.ok(error instanceof OpenAI.InternalServerError);
        assert.deepEqual([error.status, error.code, error.type], [502, 'agent_error', 'api_error']);
        holds(error.message, agent.failure.says);
        return true;
      });
    }
  },
});
