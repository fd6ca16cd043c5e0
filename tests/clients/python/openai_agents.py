"""Agents of openai-agents over the Responses API: tools, a second turn, a stream, an answer in a form."""

import openai
from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from checks import AGENT, BASE_URL, KEY, MODEL, calling, check, delivering, equal, holds, run
from pydantic import BaseModel

set_tracing_disabled(True)
client = openai.AsyncOpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0, timeout=120)
model = OpenAIResponsesModel(model=MODEL, openai_client=client)
OSLO = {"city": "Oslo"}
asked = []


class Person(BaseModel):
    name: str
    age: int


@function_tool
def get_weather(city: str) -> str:
    """Tells the weather of a city."""
    asked.append("weather")
    return f"mild in {city}"


@function_tool
def get_time(city: str) -> str:
    """Tells the time of a city."""
    asked.append("time")
    return f"noon in {city}"


helper = Agent(name="helper", model=model, tools=[get_weather, get_time])


def task():
    rounds = [("get_weather", OSLO)], [("get_time", OSLO)]
    return calling(*rounds, returned=["mild in Oslo", "noon in Oslo"])


@check
async def two_tools_are_run_and_a_second_turn_follows():
    asked.clear()
    first = await Runner.run(helper, task())
    equal(asked, ["weather", "time"])
    holds(first.final_output, "noon in Oslo")
    plain = AGENT["plain"]
    second = await Runner.run(helper, [*first.to_input_list(), {"role": "user", "content": plain["prompt"]}])
    holds(second.final_output, plain["holds"].strip())


@check
async def the_server_can_keep_the_history():
    first = await Runner.run(helper, task())
    plain = AGENT["plain"]
    second = await Runner.run(helper, plain["prompt"], previous_response_id=first.last_response_id)
    holds(second.final_output, plain["holds"].strip())


@check
async def a_run_is_streamed():
    running = Runner.run_streamed(helper, task())
    pieces = [
        event.data.delta
        async for event in running.stream_events()
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    ]
    holds("".join(pieces), "noon in Oslo")
    holds(running.final_output, "noon in Oslo")


@check
async def an_answer_has_the_form_that_was_asked_for():
    person = {"name": "Ada", "age": 36}
    formal = Agent(name="formal", model=model, output_type=Person)
    equal((await Runner.run(formal, delivering(person))).final_output, Person(**person))


run()
