"""openai-python without blocking: many answers at once."""

import asyncio

from checks import AGENT, BASE_URL, KEY, MODEL, answer_of, asking, check, equal, holds, run, said
from openai import AsyncOpenAI, InternalServerError, RateLimitError

client = AsyncOpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0, timeout=120)
complete = client.chat.completions.create


async def streamed(prompt):
    stream = await complete(
        model=MODEL, messages=said(prompt), stream=True, stream_options={"include_usage": True}
    )
    text, usage = "", None
    async for chunk in stream:
        usage = chunk.usage or usage
        text += "".join(choice.delta.content or "" for choice in chunk.choices)
    assert usage.total_tokens > 0, usage
    return text


@check
async def many_streams_at_once_keep_apart():
    prompts = [f"Number {number} of openai-python." for number in range(AGENT["at_once"])]
    answers = await asyncio.gather(*map(streamed, prompts))
    for prompt, answer in zip(prompts, answers):
        holds(answer, AGENT["echo"].format(prompt))


@check
async def many_whole_answers_at_once_keep_apart():
    async def ask(prompt):
        answer = await complete(model=MODEL, messages=said(prompt))
        holds(answer.choices[0].message.content, AGENT["echo"].format(prompt))

    await asyncio.gather(*(ask(f"Whole {number} of openai-python.") for number in range(AGENT["at_once"])))


@check
async def two_that_share_a_history_both_get_an_answer():
    begun = await complete(model=MODEL, messages=said("We begin."))
    history = said("We begin.", begun.choices[0].message.content)

    async def go_on(text):
        answer = await complete(model=MODEL, messages=[*history, *said(text)])
        holds(answer.choices[0].message.content, text)

    await asyncio.gather(go_on("To the left."), go_on("To the right."))


@check
async def thoughts_and_every_script_come_through():
    thought, unicode = AGENT["thought"], AGENT["unicode"]
    equal(await streamed(asking(thought)), answer_of(thought))
    equal(await streamed(asking(unicode)), answer_of(unicode))


@check
async def a_failing_agent_is_an_error_of_the_server():
    case = AGENT["failure"]
    for stream in (False, True):
        try:
            await complete(model=MODEL, messages=said(asking(case)), stream=stream)
            raise AssertionError("answered")
        except InternalServerError as error:
            equal((error.status_code, error.code, error.type), (502, "agent_error", "api_error"))
            holds(error.message, case["says"])


if "exhausted" in AGENT:

    @check
    async def a_provider_that_asks_to_slow_down_is_a_rate_limit_error():
        try:
            await complete(model=MODEL, messages=said(asking(AGENT["exhausted"])), stream=True)
            raise AssertionError("answered")
        except RateLimitError as error:
            equal((error.status_code, error.code), (429, "provider_rate_limit"))
            assert int(error.response.headers["retry-after"]) >= 1, error.response.headers


run()
