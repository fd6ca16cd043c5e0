"""The checks of a script, run one after the other against the gateway that the environment names; a line for each."""

import asyncio
import inspect
import json
import os
import sys
import traceback
from pathlib import Path

BASE_URL = os.environ["GEMBRIDGE_URL"] + "/v1"
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
    steps = case.get("steps") or [{"text": letter} for letter in case["cut"]]
    return f"please SCRIPT:{json.dumps({'calls': [steps]})}:END"


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
