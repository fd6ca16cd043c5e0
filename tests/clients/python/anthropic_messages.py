"""Messages, streams, tools, threads, forms and counts, as programs with anthropic-python and LangChain use them."""

import anthropic
from checks import AGENT, KEY, MODEL, RED_DOT, URL, asking, calling, check, delivering, equal, holds, run, said
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import ToolMessage
from pydantic import BaseModel

client = anthropic.Anthropic(base_url=URL, api_key=KEY, max_retries=0, timeout=120)
OSLO, BERGEN = {"city": "Oslo"}, {"city": "Bergen"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "get_weather", "description": "Tells the weather.", "input_schema": SCHEMA}


class Person(BaseModel):
    name: str
    age: int


def create(messages, **fields):
    return client.messages.create(model=MODEL, max_tokens=1000, messages=messages, **fields)


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


@check
def an_answer_comes_whole():
    message = create(said(AGENT["plain"]["prompt"]), system="Be brief.")
    holds(text_of(message), "river")
    equal((message.type, message.role, message.stop_reason), ("message", "assistant", "end_turn"))
    assert message.usage.input_tokens > 0 and message.usage.output_tokens > 0, message.usage
    assert message._request_id, "the request has a number"


@check
def both_headers_take_the_key():
    for fields in ({"api_key": KEY}, {"auth_token": KEY}):
        other = anthropic.Anthropic(base_url=URL, max_retries=0, **fields)
        holds(text_of(other.messages.create(model=MODEL, max_tokens=100, messages=said("Hi."))), "Hi.")


@check
def a_stream_with_thoughts():
    case = AGENT["thought"]
    with client.messages.stream(
        model=MODEL, max_tokens=1000, messages=said(asking(case)), thinking={"type": "adaptive"}
    ) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    equal(text, case["answer"])
    thoughts, answer = message.content
    holds(thoughts.thinking, case["thought"])
    assert thoughts.signature, thoughts
    equal((answer.text, message.stop_reason), (case["answer"], "end_turn"))
    assert message.usage.output_tokens > 0, message.usage


@check
def thoughts_are_left_out_unless_they_are_asked_for():
    case = AGENT["thought"]
    for fields in ({}, {"thinking": {"type": "adaptive", "display": "omitted"}}):
        equal([block.type for block in create(said(asking(case)), **fields).content], ["text"])


@check
def a_conversation_goes_on():
    messages = said("One.")
    messages.append({"role": "assistant", "content": create(messages).content})
    messages.extend(said("Two."))
    holds(text_of(create(messages)), AGENT["echo"].replace("{}", "Two."))


@check
def stop_sequences_and_limits_end_an_answer():
    case = AGENT["words"]
    stopped = create(said(asking(case)), stop_sequences=[case["stop"]])
    equal((text_of(stopped), stopped.stop_reason, stopped.stop_sequence), (case["answer"], "stop_sequence", case["stop"]))
    short = client.messages.create(model=MODEL, max_tokens=2, messages=said(asking(case)))
    equal((text_of(short), short.stop_reason), ("word-1 w", "max_tokens"))


@check
def tools_are_called_and_may_fail():
    messages = said(calling([("get_weather", OSLO), ("get_weather", BERGEN)], returned=["12 degrees", "it rains"]))
    called = []
    while (message := create(messages, tools=[WEATHER])).stop_reason == "tool_use":
        messages.append({"role": "assistant", "content": message.content})
        results = []
        for block in message.content:
            if block.type == "tool_use":
                called.append((block.name, block.input))
                content = "12 degrees" if block.input == OSLO else [{"type": "text", "text": "it rains"}]
                results.append({"type": "tool_result", "tool_use_id": block.id, "content": content})
        messages.append({"role": "user", "content": results})
    equal(sorted(called, key=str), [("get_weather", BERGEN), ("get_weather", OSLO)])
    holds(text_of(message), "it rains")


@check
def a_failed_tool_is_told_as_failed():
    messages = said(calling([("get_weather", OSLO)], returned=["no weather today"]))
    message = create(messages, tools=[WEATHER])
    (block,) = [block for block in message.content if block.type == "tool_use"]
    messages.append({"role": "assistant", "content": message.content})
    result = {"type": "tool_result", "tool_use_id": block.id, "is_error": True, "content": "no weather today"}
    messages.append({"role": "user", "content": [result]})
    holds(text_of(create(messages, tools=[WEATHER])), "no weather today")


@check
def a_tool_that_is_demanded_is_called():
    prompt = calling([("get_weather", OSLO)], returned=["x"])
    message = create(said(prompt), tools=[WEATHER], tool_choice={"type": "tool", "name": "get_weather"})
    equal([(block.name, block.input) for block in message.content if block.type == "tool_use"], [("get_weather", OSLO)])


@check
def the_tool_runner_sends_nothing_but_results():
    called = []

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """Tells the weather of a city.

        Args:
            city: The name of the city
        """
        called.append(city)
        return f"mild in {city}"

    prompt = calling([("get_weather", OSLO)], [("get_weather", BERGEN)], returned=["mild in Oslo", "mild in Bergen"])
    runner = client.beta.messages.tool_runner(
        model=MODEL, max_tokens=1000, tools=[get_weather], messages=said(prompt)
    )
    holds(text_of(runner.until_done()), "mild in Bergen")
    equal(called, ["Oslo", "Bergen"])


@check
def a_thread_that_nobody_keeps_is_refused_by_its_code():
    thread = {"type": "continue", "previous_message_id": "msg_nowhere"}
    try:
        client.beta.messages.create(model=MODEL, max_tokens=100, messages=said("more"), extra_body={"thread": thread})
    except anthropic.NotFoundError as error:
        equal(error.body["error"]["details"]["error_code"], "thread_not_found")
    else:
        raise AssertionError("there is no such thread")


@check
def an_answer_has_the_form_that_was_asked_for():
    ada = Person(name="Ada", age=36)
    message = client.messages.parse(
        model=MODEL, max_tokens=1000, messages=said(delivering(ada.model_dump())), output_format=Person
    )
    equal(message.parsed_output, ada)


@check
def images_and_documents_reach_the_agent():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": RED_DOT.split(",")[1]}}
    notes = {"type": "document", "title": "notes", "source": {"type": "text", "media_type": "text/plain", "data": "seen"}}
    messages = [{"role": "user", "content": [notes, image, {"type": "text", "text": "look"}]}]
    holds(text_of(create(messages)), AGENT["media"])


@check
def tokens_are_counted_without_an_answer():
    few = client.messages.count_tokens(model=MODEL, messages=said("hi")).input_tokens
    many = client.messages.count_tokens(model=MODEL, messages=said("hi"), system="s" * 400, tools=[WEATHER]).input_tokens
    assert 0 < few < 100 < many, (few, many)


@check
def models_are_listed():
    assert MODEL in [model.id for model in client.models.list()]


@check
def errors_are_the_librarys_own():
    def refused(kind, words, ask):
        try:
            ask()
        except kind as error:
            holds(error.body["error"]["message"], words)
            assert error.request_id, error
            return error
        raise AssertionError(f"no {kind.__name__}")

    stranger = anthropic.Anthropic(base_url=URL, api_key="nobody", max_retries=0)
    refused(anthropic.AuthenticationError, "invalid API key", lambda: stranger.messages.create(
        model=MODEL, max_tokens=1, messages=said("hi")))
    refused(anthropic.BadRequestError, "messages", lambda: create([]))
    result = {"type": "tool_result", "tool_use_id": "toolu_nobody", "content": "x"}
    refused(anthropic.BadRequestError, "toolu_nobody", lambda: create([{"role": "user", "content": [result]}]))
    failure = AGENT["failure"]
    error = refused(anthropic.InternalServerError, failure["says"], lambda: create(said(asking(failure))))
    equal(error.response.headers["x-should-retry"], "false")


@check
def langchain_calls_tools_and_reads_a_form():
    chat = ChatAnthropic(model=MODEL, base_url=URL, api_key=KEY, max_tokens=1000, max_retries=0)
    holds("".join(chunk.text for chunk in chat.stream(AGENT["plain"]["prompt"])), AGENT["plain"]["holds"])
    messages = [("user", calling([("get_weather", OSLO)], returned=["12 degrees"]))]
    bound = chat.bind_tools([WEATHER])
    answer = bound.invoke(messages)
    (call,) = answer.tool_calls
    messages += [answer, ToolMessage("12 degrees", tool_call_id=call["id"])]
    holds(bound.invoke(messages).text, "12 degrees")
    # A form is a tool that must be called, for models that it does not know.
    structured = chat.with_structured_output(Person)
    equal(structured.invoke(calling([("Person", {"name": "Ada", "age": 36})])), Person(name="Ada", age=36))


run()
