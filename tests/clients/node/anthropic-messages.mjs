// Messages, streams, tools, threads, forms and counts, as programs with the Anthropic SDK use them.

import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
import { z } from 'zod';
import { agent, answerOf, apiKey, asking, calling, delivering, echoed, holds, model, run, said, url } from './checks.mjs';

const client = new Anthropic({ baseURL: url, apiKey, maxRetries: 0, timeout: 120_000 });
const create = (messages, fields = {}) => client.messages.create({ model, max_tokens: 1000, messages, ...fields });
const textOf = ({ content }) => content.filter(({ type }) => type === 'text').map(({ text }) => text).join('');

const oslo = [['get_weather', { city: 'Oslo' }]];
const bergen = [['get_weather', { city: 'Bergen' }]];

function weather(called) {
  return betaZodTool({
    name: 'get_weather',
    description: 'Tells the weather of a city.',
    inputSchema: z.object({ city: z.string() }),
    run: ({ city }) => {
      called.push(city);
      return `mild in ${city}`;
    },
  });
}

await run({
  async 'a stream with thoughts'() {
    const stream = client.messages.stream({
      model,
      max_tokens: 1000,
      messages: said(asking(agent.thought)),
      thinking: { type: 'adaptive' },
    });
    const message = await stream.finalMessage();
    const [thoughts, answer] = message.content;
    holds(thoughts.thinking, agent.thought.thought);
    assert.deepEqual([answer.text, message.stop_reason], [answerOf(agent.thought), 'end_turn']);
    assert(message.usage.output_tokens > 0);
  },

  async 'a conversation goes on'() {
    const messages = said('One.');
    messages.push({ role: 'assistant', content: (await create(messages)).content }, ...said('Two.'));
    holds(textOf(await create(messages)), echoed('Two.'));
  },

  async 'the tool runner sends nothing but results, whole and streamed'() {
    for (const stream of [false, true]) {
      const called = [];
      const messages = said(calling([oslo, bergen], { returned: ['mild in Oslo', 'mild in Bergen'] }));
      const runner = client.beta.messages.toolRunner({ model, max_tokens: 1000, messages, tools: [weather(called)], stream });
      holds(textOf(await runner.runUntilDone()), 'mild in Bergen');
      assert.deepEqual(called, ['Oslo', 'Bergen']);
    }
  },

  async 'parse reads an answer by its schema'() {
    const ada = { name: 'Ada', age: 36 };
    const format = zodOutputFormat(z.object({ name: z.string(), age: z.number() }));
    const message = await client.messages.parse({
      model,
      max_tokens: 1000,
      messages: said(delivering(ada)),
      output_config: { format },
    });
    assert.deepEqual(message.parsed_output, ada);
  },

  async 'tokens are counted without an answer'() {
    assert((await client.messages.countTokens({ model, messages: said('hi') })).input_tokens > 0);
  },

  async 'errors are the library\'s own'() {
    await assert.rejects(create([]), Anthropic.BadRequestError);
    const stranger = new Anthropic({ baseURL: url, apiKey: 'nobody', maxRetries: 0 });
    await assert.rejects(stranger.models.list(), Anthropic.AuthenticationError);
  },
});
