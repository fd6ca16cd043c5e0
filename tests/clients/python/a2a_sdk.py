"""Tasks as programs with a2a-sdk use them: it speaks 1.0, and 0.3 where the card knows no other."""

import uuid

import httpx
from a2a.client import ClientConfig, create_client
from a2a.helpers.proto_helpers import get_data_parts, get_text_parts, new_data_part, new_text_part
from a2a.types import (
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from checks import AGENT, KEY, URL, answer_of, asking, calling, check, equal, holds, run
from google.protobuf.json_format import MessageToDict, ParseDict

CARD = "/.well-known/agent-card.json"
TOOLS = [
    {
        "name": "get_weather",
        "description": "Tells the weather of a city.",
        "parameters": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}},
    }
]


async def connect(path=CARD, streaming=True, bindings=("JSONRPC",)):
    http = httpx.AsyncClient(headers={"authorization": f"Bearer {KEY}"}, timeout=60)
    config = ClientConfig(
        httpx_client=http, streaming=streaming, supported_protocol_bindings=list(bindings), use_client_preference=True
    )
    return await create_client(URL, client_config=config, relative_card_path=path)


def request(*parts, task=None, metadata=None, at_once=False):
    message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=parts)
    if task is not None:
        message.task_id, message.context_id = task.id, task.context_id
    if metadata is not None:
        ParseDict(metadata, message.metadata)
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=at_once))


def result(call, output):
    response = {"name": "get_weather", "response": {"output": output}}
    return new_data_part({"callId": call, "outcome": "inject_result", "functionResponse": response})


async def told(events):
    """The task as it was last told, the pieces of its updates by kind, and the state at the end."""
    task, kinds, state = None, {}, None
    async for event in events:
        if event.HasField("task"):
            task, state = event.task, event.task.status.state
        elif event.HasField("status_update"):
            status = event.status_update.status
            kind = MessageToDict(event.status_update.metadata)["coderAgent"]["kind"]
            kinds.setdefault(kind, []).extend(status.message.parts)
            state = status.state
    return task, kinds, state


async def a_conversation(path, bindings=("JSONRPC",)):
    client = await connect(path, streaming=False, bindings=bindings)
    task, _, state = await told(client.send_message(request(new_text_part(AGENT["plain"]["prompt"]))))
    equal(state, TaskState.TASK_STATE_INPUT_REQUIRED)
    holds("".join(get_text_parts(task.status.message.parts)), AGENT["plain"]["holds"])
    more, _, _ = await told(client.send_message(request(new_text_part("And on."), task=task)))
    equal((more.id, more.context_id), (task.id, task.context_id))
    equal((await client.get_task(GetTaskRequest(id=task.id))).id, task.id)
    await client.close()


async def a_stream(path, bindings=("JSONRPC",)):
    client = await connect(path, bindings=bindings)
    _, kinds, state = await told(client.send_message(request(new_text_part(asking(AGENT["thought"])))))
    holds("".join(get_text_parts(kinds["text-content"])), answer_of(AGENT["thought"]))
    thoughts = "".join(thought["description"] for thought in get_data_parts(kinds["thought"]))
    holds(thoughts, AGENT["thought"]["thought"])
    equal(state, TaskState.TASK_STATE_INPUT_REQUIRED)
    await client.close()


async def a_cancelled_task(path, bindings=("JSONRPC",)):
    client = await connect(path, streaming=False, bindings=bindings)
    begun, _, _ = await told(client.send_message(request(new_text_part(asking(AGENT["words"])), at_once=True)))
    # One that streams follows the task that the other began.
    following = await connect(path, bindings=bindings)
    state, cancelled = None, None
    async for event in following.subscribe(SubscribeToTaskRequest(id=begun.id)):
        if event.HasField("status_update"):
            state = event.status_update.status.state
        # The first event is the task, with all that was said before: nothing more may come before the cancel.
        if cancelled is None:
            cancelled = await client.cancel_task(CancelTaskRequest(id=begun.id))
    equal((state, cancelled.status.state), (TaskState.TASK_STATE_CANCELED, TaskState.TASK_STATE_CANCELED))
    await following.close()
    await client.close()


async def a_tool(path, bindings=("JSONRPC",)):
    client = await connect(path, bindings=bindings)
    prompt = calling([("get_weather", {"city": "Paris"})], returned=["sunny"])
    task, kinds, state = await told(client.send_message(request(new_text_part(prompt), metadata={"tools": TOOLS})))
    equal(state, TaskState.TASK_STATE_INPUT_REQUIRED)
    calls = [call["request"] for call in get_data_parts(kinds["tool-call-confirmation"])]
    equal([(call["name"], call["args"]) for call in calls], [("get_weather", {"city": "Paris"})])
    answer = client.send_message(request(result(calls[0]["callId"], "sunny"), task=task))
    task, kinds, state = await told(answer)
    text = get_text_parts(kinds.get("text-content", task.status.message.parts))
    holds("".join(text), "sunny")
    await client.close()


@check
async def tasks_are_listed_with_those_of_other_clients():
    client = await connect()
    task, _, _ = await told(client.send_message(request(new_text_part("hello"))))
    page = await client.list_tasks(ListTasksRequest(page_size=1))
    equal(page.tasks[0].id, task.id)
    card = await client.get_extended_agent_card(GetExtendedAgentCardRequest())
    assert any(skill.id.startswith("agent-") for skill in card.skills)
    await client.close()


@check
async def without_a_key_nothing_is_done():
    client = await create_client(URL)
    try:
        await told(client.send_message(request(new_text_part("hello"))))
    except Exception as refused:
        holds(str(refused), "401")
    else:
        raise AssertionError("it was done")


def every(name, *where):
    for run_it in (a_conversation, a_stream, a_cancelled_task, a_tool):

        async def one(run_it=run_it):
            await run_it(*where)

        one.__name__ = f"{name}_{run_it.__name__}"
        check(one)


every("in_1.0", CARD)
every("in_1.0_over_HTTP", CARD, ("HTTP+JSON",))
every("in_0.3", "/a2a/v0.3" + CARD)
run()
