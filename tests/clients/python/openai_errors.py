"""What goes wrong arrives as the library's own exceptions. The gateway behind this is set up to refuse a lot."""

import asyncio

import openai
from checks import BASE_URL, KEY, MODEL, check, checked, equal, holds, raises, raises_later, run, said
from openai import AsyncOpenAI, OpenAI

client = OpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0, timeout=120)


def ask(**fields):
    return lambda: client.chat.completions.create(**{"model": MODEL, "messages": said("Hello."), **fields})


@check
def a_wrong_key_is_an_authentication_error():
    stranger = client.with_options(api_key="gb-wrong")
    error = raises(openai.AuthenticationError, 401, lambda: stranger.models.list())
    equal((error.code, error.type), ("invalid_api_key", "authentication_error"))


@check
def a_host_or_an_origin_that_is_not_allowed_is_a_permission_error():
    raises(openai.PermissionDeniedError, 403, ask(extra_headers={"Host": "rebound.example"}))
    error = raises(openai.PermissionDeniedError, 403, ask(extra_headers={"Origin": "https://evil.example"}))
    holds(error.message, "https://evil.example")


@check
def what_cannot_be_honoured_is_a_bad_request_that_names_the_field():
    tool = {"type": "function", "function": {"name": "the weather", "parameters": {"type": "object"}}}
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    for param, fields in [
        ("tools[0].function.name", {"tools": [tool]}),
        ("tool_choice", {"tool_choice": "required"}),
        ("response_format.type", {"response_format": {"type": "yaml"}}),
        ("logprobs", {"logprobs": True}),
        ("top_logprobs", {"top_logprobs": 3}),
        ("n", {"n": 0}),
        ("max_tokens", {"max_tokens": 0}),
        ("stop", {"stop": [""]}),
        ("modalities", {"modalities": ["text", "audio"]}),
        ("stream_options", {"stream_options": {"include_usage": True}}),
        ("messages", {"messages": []}),
        ("messages[0].role", {"messages": [{"role": "narrator", "content": "Once"}]}),
        ("messages[0].content[0].image_url", {"messages": [{"role": "user", "content": [image]}]}),
        ("model", {"model": "--help"}),
    ]:
        error = raises(openai.BadRequestError, 400, ask(**fields))
        equal((error.param, error.type, error.code), (param, "invalid_request_error", "invalid_request"))


@check
def an_unknown_model_or_session_is_not_found():
    error = raises(openai.NotFoundError, 404, ask(model="no-such-model"))
    equal((error.param, error.code), ("model", "not_found"))
    pin = {"x-session-id": "01a1de9d-c066-72d6-bb2d-61e15d011266"}
    holds(raises(openai.NotFoundError, 404, ask(extra_headers=pin)).message, pin["x-session-id"])


@check
def too_much_at_once_is_refused_by_its_size():
    error = raises(openai.APIStatusError, 413, ask(messages=said("x" * 100_000)))
    equal(error.code, "request_too_large")


@check
def a_failing_agent_is_an_error_of_the_server():
    for prompt, stream in [("error 7 boom", False), ("error 7 boom", True), ("crash 3", False)]:
        error = raises(openai.InternalServerError, 502, ask(messages=said(prompt), stream=stream))
        equal(error.code, "agent_error")


@check
def an_agent_that_cannot_start_fails_and_is_soon_not_tried_any_more():
    equal(raises(openai.InternalServerError, 502, ask(model="broken")).code, "agent_error")
    for _ in range(10):
        try:
            ask(model="broken")()
        except openai.InternalServerError as error:
            if error.status_code == 503:
                equal(checked(error, 503).code, "unavailable")
                assert int(error.response.headers["retry-after"]) >= 1, error.response.headers
                return
    raise AssertionError("tried again and again")


@check
def an_agent_that_says_nothing_is_a_timeout():
    for stream in (False, True):
        error = raises(openai.InternalServerError, 504, ask(messages=said("wait"), stream=stream))
        equal(error.code, "timeout")


@check
def a_failure_in_the_middle_of_a_stream_is_raised_after_what_came():
    text = ""
    try:
        for chunk in ask(messages=said("story 3\ncrash 3"), stream=True)():
            text += chunk.choices[0].delta.content or ""
        raise AssertionError("ended well")
    except openai.APIError as error:
        equal(error.code, "agent_error")
    equal(text.count("\n"), 3)


@check
async def a_full_line_is_a_rate_limit_error_and_whoever_waits_gets_an_answer():
    client = AsyncOpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0, timeout=120)
    create = client.chat.completions.create
    running = await create(model=MODEL, messages=said("slow 10000 100"), stream=True)
    waiting = {asyncio.create_task(create(model=MODEL, messages=said("Hello."))) for _ in range(3)}
    refused = 0
    while refused < 2:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            error = await raises_later(openai.RateLimitError, 429, task)
            equal(error.code, "queue_full")
            assert int(error.response.headers["retry-after"]) >= 1, error.response.headers
            refused += 1
    await running.close()
    holds((await waiting.pop()).choices[0].message.content, "You wrote:\n\nHello.")


@check
def too_many_requests_are_a_rate_limit_error():
    # The last check: after it nothing gets through.
    for _ in range(700):
        try:
            client.models.list()
        except openai.RateLimitError as error:
            headers = checked(error, 429).response.headers
            equal((error.code, headers["x-ratelimit-remaining"]), ("rate_limit_exceeded", "0"))
            assert int(headers["retry-after"]) >= 1, headers
            return
    raise AssertionError("nobody counts")


run()
