// The AI SDK with tools, steps and objects.

import assert from 'node:assert/strict';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateObject, generateText, Output, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { apiKey, baseURL, calling, delivering, holds, model as name, run } from './checks.mjs';

const provider = createOpenAICompatible({ name: 'gembridge', baseURL, apiKey, supportsStructuredOutputs: true });
const model = provider(name);

const weather = tool({
  description: 'Tells the weather of a city.',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `mild in ${city}`,
});
const add = tool({
  description: 'Adds two numbers.',
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => `the sum is ${a + b}`,
});
const settings = { model, maxRetries: 0, tools: { weather, add }, stopWhen: stepCountIs(5) };

const Person = z.object({ name: z.string(), age: z.number() });
const ada = { name: 'Ada', age: 36 };
const rounds = [[['weather', { city: 'Oslo' }]], [['add', { a: 2, b: 40 }]]];
const returned = ['mild in Oslo', 'the sum is 42'];

await run({
  async 'a text is made in steps'() {
    const declared = { weather: { properties: { city: { type: 'string' } } }, add: {} };
    const { text, steps } = await generateText({ ...settings, prompt: calling(rounds, { declared, returned }) });
    holds(text, '42');
    assert.equal(steps.length, 3);
    assert.deepEqual(steps.flatMap((step) => step.toolResults).map(({ output }) => output), returned);
    assert.deepEqual(steps.map(({ finishReason }) => finishReason), ['tool-calls', 'tool-calls', 'stop']);
    assert.equal(new Set(steps.map(({ response }) => response.headers['x-session-id'])).size, 1);
  },

  async 'a text is streamed in steps'() {
    const answer = streamText({ ...settings, prompt: calling(rounds, { returned }) });
    let text = '';
    for await (const piece of answer.textStream) text += piece;
    holds(text, '42');
    assert.equal((await answer.steps).length, 3);
  },

  async 'a tool that fails says so to the agent, and the turn goes on'() {
    const broken = tool({
      inputSchema: z.object({}),
      execute: async () => {
        throw new Error('the thermometer broke');
      },
    });
    const prompt = calling([[['broken', {}]]], { returned: ['the thermometer broke'] });
    const { text } = await generateText({ ...settings, tools: { broken }, prompt });
    holds(text, 'the thermometer broke');
  },

  async 'an object is made'() {
    const schema = { properties: { name: { type: 'string' }, age: { type: 'number' } } };
    const { object } = await generateObject({ model, maxRetries: 0, schema: Person, prompt: delivering(ada, schema) });
    assert.deepEqual(object, ada);
  },

  async 'an output beside tools is an object'() {
    const { output } = await generateText({
      model,
      maxRetries: 0,
      output: Output.object({ schema: Person }),
      prompt: delivering(ada),
    });
    assert.deepEqual(output, ada);
  },
});
