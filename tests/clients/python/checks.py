"""The checks of a script, run one after the other against the gateway that the environment names; a line for each."""

import asyncio
import inspect
import json
import os
import sys
import traceback
from pathlib import Path

URL = os.environ["GEMBRIDGE_URL"]
BASE_URL = URL + "/v1"
KEY = os.environ["GEMBRIDGE_KEY"]
MODEL = os.environ["GEMBRIDGE_AGENT"]

_agents = json.loads((Path(__file__).parent.parent / "agents.json").read_text(encoding="utf-8"))
AGENT = _agents.get(MODEL, {})
RED_DOT = "data:image/png;base64," + _agents["red_dot"]

_checks = []


def check(function):
    _checks.append(function)
    return function


def run():
    """Runs every check, also after one that failed."""
    outcome = asyncio.run(_run())
    sys.exit(outcome)


async def _run():
    failed = 0
    for function in _checks:
        name = function.__name__.replace("_", " ")
        try:
            result = function()
            if inspect.isawaitable(result):
                await result
            print("ok", name, flush=True)
        except Exception:
            failed += 1
            print("FAILED", name, traceback.format_exc(), sep="\n", flush=True)
    return 1 if failed else 0


def asking(case):
    """The prompt of a case from `agents.json`."""
    if "prompt" in case:
        return case["prompt"]
    steps = case.get("steps") or [{"text": letter} for letter in case.get("cut", "")]
    return _as_script(*case.get("calls", [steps]))


def _as_script(*calls):
    return f"please SCRIPT:{json.dumps({'calls': list(calls)})}:END"


def calling(*rounds, declared=None, returned=()):
    """A prompt that makes the agent call tools, `(name, arguments)` each, round by round, and then tell the last result.

    The model behind an agent that has one expects the tools to be declared so, and their results to come back to it.
    """
    if AGENT["tools"] == "words":
        called = [" and ".join(f"{name} {json.dumps(args)}" for name, args in calls) for calls in rounds]
        return "\n".join(f"call {calls}" for calls in called)
    prefix = AGENT["tools"]
    calls = [[{"call": {"name": prefix + name, "args": args}} for name, args in calls] for calls in rounds]
    if declared is not None:
        calls[0].insert(0, {"expect": {"declared": {prefix + name: schema for name, schema in declared.items()}}})
    told = returned[-1] if returned else "nothing"
    return _as_script(*calls, [{"expect": {"returned": list(returned)}}, {"text": f"It was told: {told}"}])


def delivering(value, schema=None):
    """A prompt that makes the agent deliver this as its answer in the form that was asked for."""
    if AGENT["tools"] == "words":
        return f"answer-with structured_output {json.dumps(value)}"
    name = AGENT["tools"] + "structured_output"
    expected = [] if schema is None else [{"expect": {"declared": {name: schema}}}]
    return _as_script([*expected, {"call": {"name": name, "args": value}}], [{"text": "done"}])


def writing(text, later=None):
    """A prompt that makes the agent answer with this text, and with another one when it is asked again."""
    if AGENT["tools"] == "words":
        return f"json {text}" + ("" if later is None else f"\nnext json {later}")
    assert later is None, "the model behind this agent is not told how often it was asked"
    return _as_script([{"text": text}])


def answer_of(case):
    return case.get("answer") or case["cut"]


def said(*texts):
    """A conversation: the user speaks first, and each in turn."""
    roles = ("user", "assistant")
    return [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]


def equal(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"


def holds(text, part):
    assert part in text, f"{part!r} is not in {text!r}"


def raises(kind, status, action):
    """The error that an action ends with; it names the request."""
    try:
        action()
    except kind as error:
        return checked(error, status)
    raise AssertionError(f"no {kind.__name__}")


async def raises_later(kind, status, awaitable):
    try:
        await awaitable
    except kind as error:
        return checked(error, status)
    raise AssertionError(f"no {kind.__name__}")


def checked(error, status):
    equal(error.status_code, status)
    equal(error.request_id, error.response.json()["error"]["request_id"])
    return error
