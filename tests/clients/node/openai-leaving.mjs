// Clients that leave before the answer is there. The agent behind this answers only until it is cancelled.

import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { apiKey, baseURL, model, run, said } from './checks.mjs';

const client = new OpenAI({ baseURL, apiKey, maxRetries: 0, timeout: 120_000 });
const fields = { model, messages: said('say hello ;; wait-cancel') };

await run({
  async 'a stream is left in the middle'() {
    for await (const chunk of await client.chat.completions.create({ ...fields, stream: true })) {
      if (chunk.choices[0].delta.content === 'hello') break;
    }
  },

  async 'a stream is aborted'() {
    const stream = await client.chat.completions.create({ ...fields, stream: true });
    for await (const chunk of stream) {
      if (chunk.choices[0].delta.content === 'hello') stream.controller.abort();
    }
  },

  async 'a client loses its patience'() {
    const asked = client.chat.completions.create(fields, { timeout: 10_000 });
    await assert.rejects(asked, OpenAI.APIConnectionTimeoutError);
  },
});
