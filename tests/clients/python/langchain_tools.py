"""LangChain's chat model with tools and with answers in a given form."""

import json

from checks import BASE_URL, KEY, MODEL, calling, check, delivering, equal, holds, run
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

chat = ChatOpenAI(base_url=BASE_URL, api_key=KEY, model=MODEL, max_retries=0, include_response_headers=True)


@tool
def get_weather(city: str) -> str:
    """Tells the weather of a city."""
    return f"mild in {city}"


@tool
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return f"the sum is {a + b}"


TOOLS = {"get_weather": get_weather, "add": add}


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int


ADA = {"name": "Ada", "age": 36}


def answered(model, prompt):
    """Runs the tools that are asked for until there is an answer; what was called, and all that was said."""
    messages, called = [HumanMessage(prompt)], []
    while True:
        message = model.invoke(messages)
        messages.append(message)
        if not message.tool_calls:
            return called, messages
        for call in message.tool_calls:
            called.append(call["name"])
            messages.append(TOOLS[call["name"]].invoke(call))


@check
def bound_tools_are_called_until_there_is_an_answer():
    prompt = calling([("get_weather", {"city": "Oslo"})], [("add", {"a": 2, "b": 40})], returned=["mild in Oslo", "the sum is 42"])
    called, messages = answered(chat.bind_tools([get_weather, add]), prompt)
    equal(called, ["get_weather", "add"])
    holds(messages[-1].text, "42")
    sessions = {message.response_metadata["headers"]["x-session-id"] for message in messages if message.type == "ai"}
    equal(len(sessions), 1)


@check
def a_stream_adds_up_to_the_calls():
    whole = None
    prompt = calling([("get_weather", {"city": "Bergen"})], returned=["mild in Bergen"])
    for chunk in chat.bind_tools([get_weather]).stream(prompt):
        whole = chunk if whole is None else whole + chunk
    (call,) = whole.tool_calls
    equal((call["name"], call["args"]), ("get_weather", {"city": "Bergen"}))
    messages = [HumanMessage(prompt), whole, ToolMessage("mild in Bergen", tool_call_id=call["id"])]
    holds(chat.bind_tools([get_weather]).invoke(messages).text, "mild in Bergen")


@check
def a_structured_output_is_a_model():
    structured = chat.with_structured_output(Person)
    equal(structured.invoke(delivering(ADA, {"properties": {"name": {"type": "string"}}})), Person(**ADA))


@check
def a_structured_output_comes_by_a_function_too():
    structured = chat.with_structured_output(Person, method="function_calling")
    equal(structured.invoke(calling([("Person", ADA)])), Person(**ADA))


@check
def a_structured_output_comes_in_json_mode_too():
    structured = chat.with_structured_output(Person, method="json_mode")
    equal(structured.invoke(delivering(ADA)), Person(**ADA))


@check
async def a_structured_output_comes_without_blocking():
    structured = chat.with_structured_output(Person, include_raw=True)
    answer = await structured.ainvoke(delivering(ADA))
    equal((answer["parsed"], answer["parsing_error"]), (Person(**ADA), None))
    equal(json.loads(answer["raw"].text), ADA)


run()
