// Agents of @openai/agents over the Responses API: tools, a second turn, a stream, an answer in a form.

import assert from 'node:assert/strict';
import { Agent, OpenAIResponsesModel, run as converse, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';
import { agent, apiKey, baseURL, calling, delivering, holds, model as name, run } from './checks.mjs';

setTracingDisabled(true);
const model = new OpenAIResponsesModel(new OpenAI({ baseURL, apiKey, maxRetries: 0 }), name);
const parameters = z.object({ city: z.string() });
let asked = [];
const telling = (kind, words) =>
  tool({
    name: `get_${kind}`,
    description: `Tells the ${kind} of a city.`,
    parameters,
    execute: async ({ city }) => {
      asked.push(kind);
      return `${words} in ${city}`;
    },
  });
const tools = [telling('weather', 'mild'), telling('time', 'noon')];
const helper = new Agent({ name: 'helper', model, tools });
const rounds = [[['get_weather', { city: 'Oslo' }]], [['get_time', { city: 'Oslo' }]]];
const task = () => calling(rounds, { returned: ['mild in Oslo', 'noon in Oslo'] });

await run({
  async 'two tools are run and a second turn follows'() {
    asked = [];
    const first = await converse(helper, task());
    assert.deepEqual(asked, ['weather', 'time']);
    holds(first.finalOutput, 'noon in Oslo');
    const second = await converse(helper, [...first.history, { role: 'user', content: agent.plain.prompt }]);
    holds(second.finalOutput, agent.plain.holds.trim());
  },

  async 'a run is streamed'() {
    const running = await converse(helper, task(), { stream: true });
    let text = '';
    for await (const piece of running.toTextStream()) text += piece;
    await running.completed;
    holds(text, 'noon in Oslo');
  },

  async 'an answer has the form that was asked for'() {
    const ada = { name: 'Ada', age: 36 };
    const outputType = z.object({ name: z.string(), age: z.number() });
    const formal = new Agent({ name: 'formal', model, outputType });
    assert.deepEqual((await converse(formal, delivering(ada))).finalOutput, ada);
  },
});
