// The AI SDK with its providers for the Messages API, the Responses API and Ollama.

import assert from 'node:assert/strict';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { generateObject, generateText, stepCountIs, streamText, tool } from 'ai';
import { createOllama } from 'ollama-ai-provider-v2';
import { z } from 'zod';
import { agent, apiKey, calling, delivering, holds, model as name, run, url } from './checks.mjs';

const ada = { name: 'Ada', age: 36 };
const Person = z.object({ name: z.string(), age: z.number() });

// One makes an object by a tool that must be called, the others by a form.
const dialects = {
  messages: { model: createAnthropic({ baseURL: `${url}/v1`, apiKey })(name), object: calling([[['json', ada]]]) },
  responses: { model: createOpenAI({ baseURL: `${url}/v1`, apiKey }).responses(name), object: delivering(ada) },
  ollama: { model: createOllama({ baseURL: `${url}/k/${apiKey}/api` })(name), object: delivering(ada) },
};

const weather = tool({
  description: 'Tells the weather of a city.',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `mild in ${city}`,
});
const rounds = [[['weather', { city: 'Oslo' }]], [['weather', { city: 'Bergen' }]]];
const returned = ['mild in Oslo', 'mild in Bergen'];

const checks = Object.entries(dialects).map(([dialect, { model, object }]) => ({
  async [`${dialect}: a text is streamed`]() {
    const { textStream } = streamText({ model, maxRetries: 0, prompt: agent.plain.prompt });
    let text = '';
    for await (const piece of textStream) text += piece;
    holds(text, agent.plain.holds);
  },

  async [`${dialect}: a text is made in steps of one session`]() {
    const settings = { model, maxRetries: 0, tools: { weather }, stopWhen: stepCountIs(5) };
    const { text, steps } = await generateText({ ...settings, prompt: calling(rounds, { returned }) });
    holds(text, 'mild in Bergen');
    assert.deepEqual(steps.flatMap((step) => step.toolResults).map(({ output }) => output), returned);
    assert.equal(new Set(steps.map(({ response }) => response.headers['x-session-id'])).size, 1);
  },

  async [`${dialect}: an object is made`]() {
    assert.deepEqual((await generateObject({ model, maxRetries: 0, schema: Person, prompt: object })).object, ada);
  },
}));

await run(Object.assign({}, ...checks));
