"""Tools and answers in a given form, as programs with openai-python use them."""

import json

import openai
from checks import BASE_URL, KEY, MODEL, calling, check, delivering, equal, holds, run, said, writing
from pydantic import BaseModel, Field

client = openai.OpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0, timeout=120)


class GetWeather(BaseModel):
    """Tells the weather of a city."""

    city: str = Field(description="The name of the city")


class Person(BaseModel):
    name: str
    age: int
    nicknames: list[str]


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "The name of the city"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "Tells the weather.", "parameters": SCHEMA}}
TIME = {"type": "function", "function": {"name": "get_time", "parameters": SCHEMA}}


def complete(messages, **fields):
    return client.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER], **fields)


def result(call, content):
    return {"role": "tool", "tool_call_id": call.id, "content": content}


@check
def a_call_comes_back_and_its_result_goes_in():
    oslo = {"city": "Oslo"}
    prompt = calling([("get_weather", oslo)], declared={"get_weather": SCHEMA}, returned=["12 degrees"])
    messages = said(prompt)
    first = complete(messages)
    (choice,) = first.choices
    equal(choice.finish_reason, "tool_calls")
    (call,) = choice.message.tool_calls
    equal((call.type, call.function.name, json.loads(call.function.arguments)), ("function", "get_weather", oslo))
    messages += [choice.message, result(call, "12 degrees")]
    (answer,) = complete(messages).choices
    equal(answer.finish_reason, "stop")
    holds(answer.message.content, "12 degrees")
    equal(answer.message.tool_calls, None)


@check
def a_stream_brings_calls_in_pieces():
    prompt = calling([("get_weather", {"city": "Bergen"})], returned=["rain"])
    messages = said(prompt)
    with client.chat.completions.stream(model=MODEL, messages=messages, tools=[WEATHER]) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    assert any(event.type == "tool_calls.function.arguments.done" for event in events), events
    (call,) = final.choices[0].message.tool_calls
    equal(json.loads(call.function.arguments), {"city": "Bergen"})
    messages += [final.choices[0].message, result(call, "rain")]
    text, reason = "", None
    for chunk in complete(messages, stream=True):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reason = choice.finish_reason or reason
    holds(text, "rain")
    equal(reason, "stop")


@check
def rounds_follow_each_other_and_the_conversation_goes_on_in_one_session():
    sessions, messages = set(), []
    for turn in range(3):
        cities = [f"City {turn}-{place}" for place in range(2)]
        results = [f"weather of {city}" for city in cities]
        prompt = calling(*([("get_weather", {"city": city})] for city in cities), returned=results)
        messages += said(prompt)
        told = []
        while True:
            answer = client.chat.completions.with_raw_response.create(model=MODEL, messages=messages, tools=[WEATHER])
            sessions.add(answer.headers["x-session-id"])
            (choice,) = answer.parse().choices
            messages.append(choice.message)
            if choice.finish_reason != "tool_calls":
                break
            for call in choice.message.tool_calls:
                city = json.loads(call.function.arguments)["city"]
                told.append(city)
                messages.append(result(call, f"weather of {city}"))
        equal(told, cities)
        holds(choice.message.content, results[-1])
    equal(len(sessions), 1)


@check
def several_calls_are_told_apart_by_their_ids():
    calls = [("get_weather", {"city": "Oslo"}), ("get_time", {"city": "Oslo"})]
    messages = said(calling(calls, returned=["get_weather here", "get_time here"]))
    told = []
    while True:
        answer = client.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER, TIME])
        (choice,) = answer.choices
        messages.append(choice.message)
        if choice.finish_reason != "tool_calls":
            break
        names = [call.function.name for call in choice.message.tool_calls]
        told += names
        # The last one first: results may come in any order.
        messages += [result(call, f"{call.function.name} here") for call in reversed(choice.message.tool_calls)]
    equal(sorted(told), ["get_time", "get_weather"])
    holds(choice.message.content, "get_time here")


@check
def parse_reads_arguments_into_a_model():
    prompt = calling([("GetWeather", {"city": "Tromsø"})], returned=["snow"])
    messages = said(prompt)
    tools = [openai.pydantic_function_tool(GetWeather)]
    (choice,) = client.chat.completions.parse(model=MODEL, messages=messages, tools=tools).choices
    (call,) = choice.message.tool_calls
    equal(call.function.parsed_arguments, GetWeather(city="Tromsø"))
    messages += [choice.message, result(call, "snow")]
    (choice,) = client.chat.completions.parse(model=MODEL, messages=messages, tools=tools).choices
    holds(choice.message.content, "snow")


@check
def parse_reads_an_answer_into_a_model():
    ada = {"name": "Ada", "age": 36, "nicknames": ["the Countess"]}
    schema = {"properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
    messages = said(delivering(ada, schema))
    (choice,) = client.chat.completions.parse(model=MODEL, messages=messages, response_format=Person).choices
    equal(choice.message.parsed, Person(**ada))
    equal((choice.finish_reason, choice.message.refusal), ("stop", None))


@check
def parse_reads_a_stream_into_a_model():
    ada = {"name": "Ada", "age": 36, "nicknames": []}
    with client.chat.completions.stream(model=MODEL, messages=said(delivering(ada)), response_format=Person) as stream:
        stream.until_done()
        equal(stream.get_final_completion().choices[0].message.parsed, Person(**ada))


@check
def an_answer_in_text_is_read_as_well():
    ada = {"name": "Ada", "age": 36, "nicknames": []}
    messages = said(writing(json.dumps(ada)))
    (choice,) = client.chat.completions.parse(model=MODEL, messages=messages, response_format=Person).choices
    equal(choice.message.parsed, Person(**ada))


@check
def json_mode_gives_an_object():
    prompt = delivering({"anything": [1, 2]})
    form = {"type": "json_object"}
    answer = client.chat.completions.create(model=MODEL, messages=said(prompt), response_format=form)
    equal(json.loads(answer.choices[0].message.content), {"anything": [1, 2]})


@check
def no_tools_are_offered_where_none_are_wanted():
    answer = complete(said("Tell me of the river."), tool_choice="none")
    equal(answer.choices[0].finish_reason, "stop")


@check
def a_tool_that_must_be_called_is():
    for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
        prompt = calling([("get_weather", {"city": "Oslo"})], declared={"get_weather": SCHEMA}, returned=["sun"])
        messages = said(prompt)
        answer = client.chat.completions.create(
            model=MODEL, messages=messages, tools=[WEATHER] if choice == "required" else [TIME, WEATHER], tool_choice=choice
        )
        (call,) = answer.choices[0].message.tool_calls
        equal(call.function.name, "get_weather")


run()
