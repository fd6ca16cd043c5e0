// Responses, streams, tools, forms and sockets, as programs with openai-node use them.

import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { agent, apiKey, asking, baseURL, calling, delivering, holds, model, run } from './checks.mjs';

const client = new OpenAI({ baseURL, apiKey, maxRetries: 0, timeout: 120_000 });
const { responses } = client;

const weather = {
  type: 'function',
  name: 'get_weather',
  description: 'Tells the weather.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
  strict: true,
};
const oslo = { city: 'Oslo' };
const callOf = ({ output }) => output.find(({ type }) => type === 'function_call');
const outputOf = ({ call_id }, output) => ({ type: 'function_call_output', call_id, output });

await run({
  async 'an answer comes whole'() {
    const response = await responses.create({ model, input: agent.plain.prompt, instructions: 'Be brief.' });
    holds(response.output_text, 'river');
    assert.deepEqual([response.status, response.error], ['completed', null]);
    assert.ok(response.usage.output_tokens > 0);
  },

  async 'a stream with thoughts'() {
    const stream = responses.stream({ model, input: asking(agent.thought) });
    let text = '';
    stream.on('response.output_text.delta', ({ delta }) => (text += delta));
    const response = await stream.finalResponse();
    assert.deepEqual([text, response.output_text], [agent.thought.answer, agent.thought.answer]);
    holds(response.output[0].summary[0].text, agent.thought.thought);
  },

  async 'tools are run with nothing but their results'() {
    const input = calling([[['get_weather', oslo]]], { returned: ['mild in Oslo'] });
    const first = await responses.stream({ model, input, tools: [weather] }).finalResponse();
    assert.deepEqual(JSON.parse(callOf(first).arguments), oslo);
    const second = await responses.create({
      model,
      input: [outputOf(callOf(first), 'mild in Oslo')],
      previous_response_id: first.id,
      tools: [weather],
    });
    holds(second.output_text, 'mild in Oslo');
  },

  async 'tools are run with the whole history'() {
    const input = [{ role: 'user', content: calling([[['get_weather', oslo]]], { returned: ['mild in Oslo'] }) }];
    const first = await responses.create({ model, input, tools: [weather], store: false });
    input.push(...first.output, outputOf(callOf(first), 'mild in Oslo'));
    const second = await responses.create({ model, input, tools: [weather], store: false });
    holds(second.output_text, 'mild in Oslo');
  },

  async 'an answer is parsed'() {
    const Person = z.object({ name: z.string(), age: z.number() });
    const ada = { name: 'Ada', age: 36 };
    const format = zodTextFormat(Person, 'person');
    const response = await responses.parse({ model, input: delivering(ada), text: { format } });
    assert.deepEqual(response.output_parsed, ada);
  },

  async 'a response is kept, goes on, and is deleted'() {
    const first = await responses.create({ model, input: 'One.' });
    const second = await responses.create({ model, input: 'Two.', previous_response_id: first.id });
    assert.equal((await responses.retrieve(second.id)).output_text, second.output_text);
    await responses.delete(second.id);
    await assert.rejects(responses.retrieve(second.id), ({ status }) => status === 404);
    await assert.rejects(
      responses.create({ model, input: 'Three.', previous_response_id: second.id }),
      ({ status, code }) => status === 400 && code === 'previous_response_not_found',
    );
  },

  async 'a background response is followed from any event on'() {
    const begun = await responses.create({ model, input: 'Work on your own.', background: true, stream: true });
    const events = [];
    for await (const event of begun) events.push(event);
    const { response } = events.at(-1);
    assert.equal(response.status, 'completed');
    const later = await responses.retrieve(response.id, { stream: true, starting_after: 3 });
    const rest = [];
    for await (const event of later) rest.push(event);
    assert.deepEqual(rest, events.slice(4));
  },
});
