"""Responses, streams, tools, forms and what is kept, as programs with openai-python and LangChain use them."""

import json
import time

import openai
from checks import AGENT, BASE_URL, KEY, MODEL, RED_DOT, asking, calling, check, delivering, equal, holds, raises, run
from langchain_core.messages import ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

client = openai.OpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0, timeout=120)
responses = client.responses
OSLO, BERGEN = {"city": "Oslo"}, {"city": "Bergen"}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Tells the weather.",
    "parameters": SCHEMA,
    "strict": True,
}


class Person(BaseModel):
    name: str
    age: int


def create(prompt, **fields):
    return responses.create(model=MODEL, input=prompt, **fields)


def output_of(call, result):
    return {"type": "function_call_output", "call_id": call.call_id, "output": result}


def calls_of(response):
    return [item for item in response.output if item.type == "function_call"]


@check
def an_answer_comes_whole():
    response = create(AGENT["plain"]["prompt"], instructions="Be brief.")
    holds(response.output_text, "river")
    equal((response.object, response.status, response.error), ("response", "completed", None))
    assert response.usage.input_tokens > 0 and response.usage.output_tokens > 0, response.usage
    assert response._request_id, "the request has a number"


@check
def a_stream_with_thoughts():
    case = AGENT["thought"]
    with responses.stream(model=MODEL, input=asking(case), reasoning={"summary": "auto"}) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        response = stream.get_final_response()
    equal((text, response.output_text), (case["answer"], case["answer"]))
    thoughts, answer = response.output
    holds(thoughts.summary[0].text, case["thought"])
    equal(answer.content[0].text, case["answer"])


@check
def a_response_goes_on_and_an_older_one_is_a_branch():
    first = create("Remember the word slate.")
    second = create("And the word chalk.", previous_response_id=first.id)
    raw = responses.with_raw_response.create(model=MODEL, input="Go on.", previous_response_id=second.id)
    before = responses.with_raw_response.create(model=MODEL, input="Go back.", previous_response_id=first.id)
    equal((raw.parse().previous_response_id, before.parse().previous_response_id), (second.id, first.id))
    assert raw.headers["x-session-id"] != before.headers["x-session-id"], "the older one goes on elsewhere"


@check
def tools_are_run_with_nothing_but_their_results():
    prompt = calling([("get_weather", OSLO), ("get_weather", BERGEN)], returned=["mild in Oslo", "wet in Bergen"])
    weather = {"Oslo": "mild in Oslo", "Bergen": "wet in Bergen"}
    response, asked = create(prompt, tools=[WEATHER]), []
    # Some agents call one after the other what others call at once.
    while calls := calls_of(response):
        cities = [json.loads(call.arguments)["city"] for call in calls]
        asked += cities
        results = [output_of(call, weather[city]) for call, city in zip(calls, cities, strict=True)]
        response = create(results, previous_response_id=response.id, tools=[WEATHER])
    equal(sorted(asked), ["Bergen", "Oslo"])
    holds(response.output_text, "wet in Bergen")


@check
def tools_are_run_with_the_whole_history():
    history = [{"role": "user", "content": calling([("get_weather", OSLO)], returned=["mild in Oslo"])}]
    with responses.stream(model=MODEL, input=history, tools=[WEATHER], store=False) as stream:
        first = stream.get_final_response()
    history += [item.model_dump(exclude_none=True) for item in first.output]
    history.append(output_of(calls_of(first)[0], "mild in Oslo"))
    second = create(history, tools=[WEATHER], store=False)
    holds(second.output_text, "mild in Oslo")


@check
def a_custom_tool_gets_text():
    prompt = calling([("run_code", {"input": "print(1)\nprint(2)"})], returned=["1 2"])
    tools = [{"type": "custom", "name": "run_code", "description": "Runs code."}, {"type": "web_search"}]
    raw = responses.with_raw_response.create(model=MODEL, input=prompt, tools=tools)
    equal(raw.headers["x-gembridge-ignored"], "tools.web_search")
    first = raw.parse()
    call = next(item for item in first.output if item.type == "custom_tool_call")
    equal((call.name, call.input), ("run_code", "print(1)\nprint(2)"))
    result = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "1 2"}
    holds(create([result], previous_response_id=first.id, tools=tools).output_text, "1 2")


@check
def an_answer_is_parsed():
    person = {"name": "Ada", "age": 36}
    response = responses.parse(model=MODEL, input=delivering(person), text_format=Person)
    equal(response.output_parsed, Person(**person))


@check
def an_image_is_seen():
    content = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": RED_DOT, "detail": "auto"},
    ]
    equal(create([{"role": "user", "content": content}]).status, "completed")


@check
def a_limit_leaves_an_incomplete_response():
    words = AGENT["words"]
    response = create(asking(words), max_output_tokens=6)
    equal((response.status, response.incomplete_details.reason), ("incomplete", "max_output_tokens"))


@check
def a_response_is_kept_until_it_is_deleted():
    response = create("Keep this.", metadata={"a": "b"})
    kept = responses.retrieve(response.id)
    equal((kept.output_text, kept.metadata), (response.output_text, {"a": "b"}))
    again = create("Again.", previous_response_id=response.id)
    items = responses.input_items.list(again.id, order="asc").data
    equal([item.role for item in items], ["user", "assistant", "user"])
    responses.delete(response.id)
    raises(openai.NotFoundError, 404, lambda: responses.retrieve(response.id))
    unknown = raises(openai.BadRequestError, 400, lambda: create("On.", previous_response_id=response.id))
    equal((unknown.code, unknown.param), ("previous_response_not_found", "previous_response_id"))
    unkept = create("Do not keep this.", store=False)
    raises(openai.NotFoundError, 404, lambda: responses.retrieve(unkept.id))


@check
def a_background_response_is_polled_followed_and_cancelled():
    response = create("Work on your own.", background=True)
    while response.status in ("queued", "in_progress"):
        time.sleep(0.1)
        response = responses.retrieve(response.id)
    equal(response.status, "completed")
    events = list(responses.retrieve(response.id, stream=True, starting_after=1))
    equal((events[0].sequence_number, events[-1].type), (2, "response.completed"))
    endless = create(asking(AGENT["words"]), background=True)
    equal(responses.cancel(endless.id).status, "cancelled")
    equal(responses.cancel(endless.id).status, "cancelled")
    raises(openai.BadRequestError, 400, lambda: responses.cancel(create("Hi.").id))


@check
def a_conversation_holds_what_was_said():
    conversation = client.conversations.create(metadata={"a": "b"})
    create("One.", conversation=conversation.id)
    second = create("Two.", conversation=conversation.id)
    equal(second.conversation.id, conversation.id)
    items = client.conversations.items.list(conversation.id, order="asc").data
    equal([item.role for item in items], ["user", "assistant", "user", "assistant"])
    equal(client.conversations.delete(conversation.id).deleted, True)


@check
def tokens_are_counted_and_a_conversation_is_compacted():
    equal(responses.input_tokens.count(model=MODEL, input="four" * 4).input_tokens, 4)
    compacted = responses.compact(model=MODEL, input="The word is slate.")
    history = [item.model_dump(exclude_none=True) for item in compacted.output]
    equal(create([*history, {"role": "user", "content": "Go on."}]).status, "completed")


@check
def errors_name_the_field():
    wrong = raises(openai.BadRequestError, 400, lambda: create("Hi.", tools=[{**WEATHER, "name": "get weather"}]))
    equal(wrong.param, "tools[0].name")
    stray = {"type": "function_call_output", "call_id": "call_stray", "output": "x"}
    equal(raises(openai.BadRequestError, 400, lambda: create([stray])).param, "input[0].call_id")


@check
def langchain_speaks_responses():
    model = ChatOpenAI(
        model=MODEL, base_url=BASE_URL, api_key=KEY, max_retries=0, use_responses_api=True, stream_usage=True
    )

    def get_weather(city: str) -> str:
        """Tells the weather."""
        return f"mild in {city}"

    history = [("user", calling([("get_weather", OSLO)], returned=["mild in Oslo"]))]
    asked = model.bind_tools([get_weather]).invoke(history)
    equal([(call["name"], call["args"]) for call in asked.tool_calls], [("get_weather", OSLO)])
    history += [asked, ToolMessage("mild in Oslo", tool_call_id=asked.tool_calls[0]["id"])]
    text = "".join(piece.text for piece in model.bind_tools([get_weather]).stream(history))
    holds(text, "mild in Oslo")


run()
