"""Chat, generate, tools, forms, images and models, as programs with ollama-python and LangChain use them."""

import json

import ollama
from checks import AGENT, KEY, MODEL, RED_DOT, URL, asking, calling, check, delivering, equal, holds, run, said
from langchain_core.messages import ToolMessage
from langchain_ollama import ChatOllama

# The key stands in the path: most programs that talk to Ollama cannot send one otherwise.
HOST = f"{URL}/k/{KEY}"
client = ollama.Client(host=HOST, timeout=120)


def get_weather(city: str) -> str:
    """Tells the weather of a city.

    Args:
      city: The name of the city
    """
    return f"mild in {city}"


@check
def a_key_in_a_header_is_as_good():
    with_header = ollama.Client(host=URL, headers={"authorization": f"Bearer {KEY}"})
    holds(with_header.chat(MODEL, said(AGENT["plain"]["prompt"])).message.content, AGENT["plain"]["holds"])
    try:
        ollama.Client(host=URL).list()
    except ollama.ResponseError as error:
        equal(error.status_code, 401)
        holds(error.error, "missing API key")
    else:
        raise AssertionError("there was no key")


@check
def an_answer_comes_whole_and_in_pieces():
    answer = client.chat(f"{MODEL}:latest", said(AGENT["plain"]["prompt"]))
    holds(answer.message.content, AGENT["plain"]["holds"])
    equal((answer.model, answer.done, answer.done_reason), (f"{MODEL}:latest", True, "stop"))
    assert answer.prompt_eval_count > 0 and answer.eval_count > 0 and answer.total_duration > 0, answer
    pieces = list(client.chat(MODEL, said(AGENT["plain"]["prompt"]), stream=True))
    holds("".join(piece.message.content for piece in pieces), AGENT["plain"]["holds"])
    equal([piece.done for piece in pieces], [False] * (len(pieces) - 1) + [True])


@check
def thoughts_are_apart_and_can_be_left_out():
    case = AGENT["thought"]
    thinking = client.chat(MODEL, said(asking(case)), think=True)
    holds(thinking.message.thinking, case["thought"])
    equal(thinking.message.content, case["answer"])
    plain = client.chat(MODEL, said(asking(case)), think=False)
    equal((plain.message.thinking, plain.message.content), (None, case["answer"]))


@check
def a_conversation_goes_on():
    messages = said("One.")
    messages.append(client.chat(MODEL, messages).message)
    messages.extend(said("Two."))
    holds(client.chat(MODEL, messages).message.content, AGENT["echo"].replace("{}", "Two."))


@check
def tools_are_called_and_their_results_go_in_without_an_id():
    oslo, bergen = ("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Bergen"})
    messages = said(calling([oslo, bergen], returned=["mild in Oslo", "mild in Bergen"]))
    called = []
    # Some agents make both calls at once, others one after the other.
    while calls := (answer := client.chat(MODEL, messages, tools=[get_weather])).message.tool_calls:
        messages.append(answer.message)
        for call in calls:
            called.append((call.function.name, call.function.arguments))
            content = get_weather(**call.function.arguments)
            messages.append({"role": "tool", "tool_name": call.function.name, "content": content})
    equal(sorted(called, key=str), [bergen, oslo])
    holds(answer.message.content, "mild in Bergen")


@check
def an_answer_has_the_form_that_was_asked_for():
    ada = {"name": "Ada", "age": 36}
    fields = {"name": {"type": "string"}, "age": {"type": "integer"}}
    schema = {"type": "object", "properties": fields, "required": ["name", "age"]}
    equal(json.loads(client.chat(MODEL, said(delivering(ada)), format=schema).message.content), ada)
    equal(json.loads(client.generate(MODEL, delivering(ada), format=schema).response), ada)
    equal(json.loads(client.chat(MODEL, said(delivering(ada)), format="json").message.content), ada)


@check
def an_image_reaches_the_agent():
    messages = [{"role": "user", "content": "look", "images": [RED_DOT.split(",")[1]]}]
    holds(client.chat(MODEL, messages).message.content, AGENT["media"])


@check
def a_prompt_is_answered_and_an_empty_one_loads():
    holds(client.generate(MODEL, AGENT["plain"]["prompt"], system="Be brief.").response, "river")
    pieces = [piece.response for piece in client.generate(MODEL, "Hello.", stream=True)]
    holds("".join(pieces), AGENT["echo"].replace("{}", "Hello.").strip())
    equal(client.generate(MODEL, "").done_reason, "load")
    equal(client.generate(MODEL, keep_alive=0).done_reason, "unload")
    equal(client.chat(MODEL, []).done_reason, "load")


@check
def options_end_an_answer():
    case = AGENT["words"]
    cut = client.chat(MODEL, said(asking(case)), options={"stop": [case["stop"]], "num_ctx": 8192, "temperature": None})
    equal((cut.message.content, cut.done_reason), (case["answer"], "stop"))
    short = client.chat(MODEL, said(asking(case)), options={"num_predict": 2})
    equal((short.message.content, short.done_reason), ("word-1 w", "length"))


@check
def what_there_is_can_be_listed_shown_and_pulled():
    models = client.list().models
    names = [model.model for model in models]
    assert f"{MODEL}:latest" in names, names
    equal(len({model.digest for model in models}), len(models))
    shown = client.show(MODEL)
    assert "tools" in shown.capabilities and shown.modelinfo["general.architecture"] == MODEL, shown
    equal(client.pull(MODEL).status, "success")
    equal([progress.status for progress in client.pull(f"{MODEL}:latest", stream=True)], ["success"])
    assert f"{MODEL}:latest" in [model.model for model in client.ps().models]


@check
def what_cannot_be_done_is_said():
    def refused(status, words, ask):
        try:
            ask()
        except ollama.ResponseError as error:
            equal(error.status_code, status)
            holds(error.error, words)
        else:
            raise AssertionError("it was done")

    refused(404, "not found", lambda: client.show("no such model".replace(" ", "-")))
    refused(404, "not found", lambda: client.pull("nosuch"))
    refused(501, "embeddings", lambda: client.embed(MODEL, "x"))
    refused(501, "deleted", lambda: client.delete(MODEL))
    refused(501, "copied", lambda: client.copy("a", "b"))
    refused(400, "suffix", lambda: client.generate(MODEL, "a", suffix="b"))
    failure = AGENT["failure"]
    refused(502, failure["says"], lambda: client.chat(MODEL, said(asking(failure))))


@check
def langchain_streams_and_calls_tools_by_order_alone():
    chat = ChatOllama(model=MODEL, base_url=HOST)
    pieces = [chunk.content for chunk in chat.stream(AGENT["plain"]["prompt"])]
    holds("".join(pieces), AGENT["plain"]["holds"])
    oslo, bergen = ("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Bergen"})
    messages = [("user", calling([oslo, bergen], returned=["mild in Oslo", "mild in Bergen"]))]
    bound = chat.bind_tools([get_weather])
    called = []
    while calls := (answer := bound.invoke(messages)).tool_calls:
        messages.append(answer)
        for call in calls:
            called.append((call["name"], call["args"]))
            messages.append(ToolMessage(get_weather(**call["args"]), tool_call_id=call["id"]))
    equal(sorted(called, key=str), [bergen, oslo])
    holds(answer.content, "mild in Bergen")


run()
