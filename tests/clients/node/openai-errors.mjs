// What goes wrong arrives as the library's own errors. The gateway behind this is set up to refuse a lot.

import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { apiKey, baseURL, holds, model, run, said } from './checks.mjs';

const client = new OpenAI({ baseURL, apiKey, maxRetries: 0, timeout: 120_000 });
const ask = (fields, options) =>
  client.chat.completions.create({ model, messages: said('Hello.'), ...fields }, options);

/** The error that something ends with; it names the request. */
async function raises(kind, status, promise) {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof kind, `${error.stack}`);
    assert.equal(error.status, status);
    assert.equal(error.requestID, error.error.request_id);
    return error;
  }
  throw new Error(`no ${kind.name}`);
}

await run({
  async 'a wrong key is an authentication error'() {
    const stranger = client.withOptions({ apiKey: 'gb-wrong' });
    const error = await raises(OpenAI.AuthenticationError, 401, stranger.models.list());
    assert.equal(error.code, 'invalid_api_key');
  },

  async 'an origin that is not allowed is a permission error'() {
    const headers = { Origin: 'https://evil.example' };
    holds((await raises(OpenAI.PermissionDeniedError, 403, ask({}, { headers }))).message, headers.Origin);
  },

  async 'what cannot be honoured is a bad request that names the field'() {
    const tool = { type: 'function', function: { name: 'the weather', parameters: { type: 'object' } } };
    for (const [param, fields] of [
      ['tools[0].function.name', { tools: [tool] }],
      ['tool_choice', { tool_choice: 'required' }],
      ['response_format.type', { response_format: { type: 'yaml' } }],
      ['logprobs', { logprobs: true }],
      ['n', { n: 0 }],
      ['messages', { messages: [] }],
    ]) {
      const error = await raises(OpenAI.BadRequestError, 400, ask(fields));
      assert.deepEqual([error.param, error.type, error.code], [param, 'invalid_request_error', 'invalid_request']);
    }
  },

  async 'an unknown model or session is not found'() {
    assert.equal((await raises(OpenAI.NotFoundError, 404, ask({ model: 'no-such-model' }))).param, 'model');
    const headers = { 'x-session-id': '01a1de9d-c066-72d6-bb2d-61e15d011266' };
    holds((await raises(OpenAI.NotFoundError, 404, ask({}, { headers }))).message, headers['x-session-id']);
  },

  async 'too much at once is refused by its size'() {
    const error = await raises(OpenAI.APIError, 413, ask({ messages: said('x'.repeat(100_000)) }));
    assert.equal(error.code, 'request_too_large');
  },

  async 'an agent that fails, cannot start or says nothing is an error of the server'() {
    for (const [status, code, fields] of [
      [502, 'agent_error', { messages: said('crash 3') }],
      [502, 'agent_error', { model: 'broken' }],
      [504, 'timeout', { messages: said('wait'), stream: true }],
    ]) {
      assert.equal((await raises(OpenAI.InternalServerError, status, ask(fields))).code, code);
    }
  },

  async 'a failure in the middle of a stream is raised after what came'() {
    let text = '';
    await assert.rejects(
      async () => {
        const stream = await ask({ messages: said('story 3\ncrash 3'), stream: true });
        for await (const chunk of stream) text += chunk.choices[0].delta.content ?? '';
      },
      (error) => error instanceof OpenAI.APIError && error.code === 'agent_error',
    );
    assert.equal(text.split('\n').length, 4);
  },

  async 'too many requests are a rate limit error'() {
    // The last check: after it nothing gets through.
    const many = (async () => {
      for (let number = 0; number < 700; number += 1) await client.models.list();
    })();
    const error = await raises(OpenAI.RateLimitError, 429, many);
    assert.equal(error.code, 'rate_limit_exceeded');
    assert.ok(Number(error.headers.get('retry-after')) >= 1);
  },
});
