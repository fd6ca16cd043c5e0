// The AI SDK with its provider for servers that speak OpenAI's dialect.

import assert from 'node:assert/strict';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, streamText } from 'ai';
import { agent, answerOf, apiKey, asking, baseURL, echoed, holds, model as name, run } from './checks.mjs';

const provider = createOpenAICompatible({ name: 'gembridge', baseURL, apiKey, includeUsage: true });
const model = provider(name);
const settings = { model, maxRetries: 0 };

await run({
  async 'a prompt gets a text'() {
    const { text, finishReason, usage } = await generateText({ ...settings, prompt: agent.plain.prompt });
    holds(text, agent.plain.holds);
    assert.equal(finishReason, 'stop');
    assert.ok(usage.totalTokens > 0);
  },

  async 'a stream brings thoughts, text and the usage'() {
    const answer = streamText({ ...settings, prompt: asking(agent.thought) });
    let text = '';
    for await (const piece of answer.textStream) text += piece;
    assert.equal(text, answerOf(agent.thought));
    holds(await answer.reasoningText, agent.thought.thought);
    assert.ok((await answer.usage).outputTokens > 0);
  },

  async 'a conversation stays in one session'() {
    const messages = [];
    const sessions = new Set();
    for (let turn = 1; turn <= 4; turn += 1) {
      const content = `Turn ${turn} of the AI SDK.`;
      messages.push({ role: 'user', content });
      const { text, response } = await generateText({ ...settings, messages });
      holds(text, echoed(content));
      sessions.add(response.headers['x-session-id']);
      messages.push({ role: 'assistant', content: text });
    }
    assert.equal(sessions.size, 1);
  },
});
