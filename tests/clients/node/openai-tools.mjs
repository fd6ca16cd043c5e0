// Tools and answers in a given form, as programs with openai-node use them.

import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { apiKey, baseURL, calling, delivering, holds, model, run, said } from './checks.mjs';

const client = new OpenAI({ baseURL, apiKey, maxRetries: 0, timeout: 120_000 });

const City = z.object({ city: z.string().describe('The name of the city') });
const Person = z.object({ name: z.string(), age: z.number().int(), nicknames: z.array(z.string()) });
const ada = { name: 'Ada', age: 36, nicknames: ['the Countess'] };
const declared = { get_weather: { properties: { city: { type: 'string', description: 'The name of the city' } } } };

/** A tool that notes with what it was called. */
function weather(called) {
  return zodFunction({
    name: 'get_weather',
    description: 'Tells the weather of a city.',
    parameters: City,
    function: ({ city }) => {
      called.push(city);
      return `mild in ${city}`;
    },
  });
}

const oslo = [['get_weather', { city: 'Oslo' }]];
const bergen = [['get_weather', { city: 'Bergen' }]];

await run({
  async 'runTools runs the tools until there is an answer'() {
    const called = [];
    const prompt = calling([oslo, bergen], { declared, returned: ['mild in Oslo', 'mild in Bergen'] });
    const runner = client.chat.completions.runTools({ model, messages: said(prompt), tools: [weather(called)] });
    holds(await runner.finalContent(), 'mild in Bergen');
    assert.deepEqual(called, ['Oslo', 'Bergen']);
    assert.equal(runner.allChatCompletions().length, 3);
  },

  async 'runTools runs the tools of a stream'() {
    const called = [];
    const prompt = calling([oslo], { returned: ['mild in Oslo'] });
    const tools = [weather(called)];
    const runner = client.chat.completions.runTools({ model, messages: said(prompt), tools, stream: true });
    let text = '';
    runner.on('content', (delta) => (text += delta));
    holds(await runner.finalContent(), 'mild in Oslo');
    holds(text, 'mild in Oslo');
    assert.deepEqual(called, ['Oslo']);
  },

  async 'parse reads arguments by their schema'() {
    const tools = [zodFunction({ name: 'get_weather', parameters: City })];
    const messages = said(calling([oslo], { returned: ['sun'] }));
    const { choices } = await client.chat.completions.parse({ model, messages, tools });
    const [call] = choices[0].message.tool_calls;
    assert.deepEqual(call.function.parsed_arguments, { city: 'Oslo' });
    messages.push(choices[0].message, { role: 'tool', tool_call_id: call.id, content: 'sun' });
    const answer = await client.chat.completions.parse({ model, messages, tools });
    holds(answer.choices[0].message.content, 'sun');
  },

  async 'parse reads an answer by its schema'() {
    const messages = said(delivering(ada, { properties: { name: { type: 'string' } } }));
    const response_format = zodResponseFormat(Person, 'person');
    const { choices } = await client.chat.completions.parse({ model, messages, response_format });
    assert.deepEqual(choices[0].message.parsed, ada);
  },

  async 'a stream is read by its schema'() {
    const response_format = zodResponseFormat(Person, 'person');
    const stream = client.chat.completions.stream({ model, messages: said(delivering(ada)), response_format });
    const { choices } = await stream.finalChatCompletion();
    assert.deepEqual(choices[0].message.parsed, ada);
  },
});
