"""LiteLLM before all four dialects: an answer, a stream, and a tool whose result is told in a second request."""

import json
import os

# What models cost is read from the package, and not from elsewhere.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
from checks import AGENT, BASE_URL, KEY, MODEL, URL, calling, check, equal, holds, run

litellm.suppress_debug_info = True
litellm.num_retries = 0
OSLO = {"city": "Oslo"}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "get_weather", "description": "Tells the weather.", "parameters": PARAMETERS}
DIALECTS = {
    "chat": {"model": f"openai/{MODEL}", "api_base": BASE_URL, "api_key": KEY},
    "messages": {"model": f"anthropic/{MODEL}", "api_base": URL, "api_key": KEY},
    "ollama": {"model": f"ollama_chat/{MODEL}", "api_base": f"{URL}/k/{KEY}"},
}


def checks_of(dialect, settings):
    def an_answer():
        plain = AGENT["plain"]
        messages = [{"role": "user", "content": plain["prompt"]}]
        answer = litellm.completion(messages=messages, **settings)
        holds(answer.choices[0].message.content, plain["holds"].strip())
        pieces = litellm.completion(messages=messages, stream=True, **settings)
        holds("".join(piece.choices[0].delta.content or "" for piece in pieces), plain["holds"].strip())

    def a_tool():
        tools = [{"type": "function", "function": WEATHER}]
        messages = [{"role": "user", "content": calling([("get_weather", OSLO)], returned=["mild in Oslo"])}]
        asked = litellm.completion(messages=messages, tools=tools, **settings).choices[0].message
        (call,) = asked.tool_calls
        equal((call.function.name, json.loads(call.function.arguments)), ("get_weather", OSLO))
        messages += [asked.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "mild in Oslo"}]
        told = litellm.completion(messages=messages, tools=tools, **settings)
        holds(told.choices[0].message.content, "mild in Oslo")

    for function in (an_answer, a_tool):
        function.__name__ = f"{dialect}_{function.__name__}"
        check(function)


for name, settings in DIALECTS.items():
    checks_of(name, settings)


@check
def responses_an_answer_and_a_tool():
    settings = DIALECTS["chat"]
    plain = AGENT["plain"]
    answer = litellm.responses(input=plain["prompt"], **settings)
    holds(answer.output[-1].content[0].text, plain["holds"].strip())
    tools = [{"type": "function", **WEATHER}]
    prompt = calling([("get_weather", OSLO)], returned=["mild in Oslo"])
    asked = litellm.responses(input=prompt, tools=tools, **settings)
    (call,) = [item for item in asked.output if item.type == "function_call"]
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "mild in Oslo"}
    history = [{"role": "user", "content": prompt}, call.model_dump(exclude_none=True), result]
    told = litellm.responses(input=history, tools=tools, **settings)
    holds(told.output[-1].content[0].text, "mild in Oslo")


run()
