"""What editors do, with the WebSocket client of the protocol's Python library."""

import asyncio
import contextlib
import os
from pathlib import Path

from acp import PROTOCOL_VERSION, RequestError, connect_to_agent, text_block
from acp.schema import AllowedOutcome, ClientCapabilities, FileSystemCapabilities, RequestPermissionResponse
from acp.ws.client import create_websocket_stream

from checks import AGENT, KEY, asking, check, equal, holds, run

URL = os.environ["GEMBRIDGE_URL"].replace("http", "ws") + "/acp"
CWD = str(Path(os.environ["HOME"], "workspace"))


class Editor:
    """Keeps every update, and answers every question with an option of this kind."""

    def __init__(self, answer):
        self.answer = answer
        self.updates = []
        self.asked = []
        self.news = asyncio.Event()

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)
        self.news.set()

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append(session_id)
        option = next(option for option in options if option.kind == self.answer)
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option.option_id))

    def texts(self, kind):
        return [update.content.text for update in self.updates if update.session_update == kind]

    @property
    def said(self):
        return "".join(self.texts("agent_message_chunk"))

    @property
    def tools(self):
        """The last state of every tool call."""
        calls = [update for update in self.updates if update.session_update in ("tool_call", "tool_call_update")]
        return list({call.tool_call_id: call.status for call in calls if call.status}.values())

    async def hears(self, part):
        while part not in self.said:
            self.news.clear()
            await self.news.wait()


@contextlib.asynccontextmanager
async def connected(answer="reject_once"):
    stream = await create_websocket_stream(URL, headers={"Authorization": f"Bearer {KEY}"})
    editor = Editor(answer)
    connection = connect_to_agent(editor, stream)
    capabilities = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True))
    greeting = await connection.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=capabilities)
    equal(greeting.protocol_version, 1)
    equal(greeting.agent_capabilities.load_session, True)
    try:
        yield editor, connection
    finally:
        await connection.close()


async def new_session(connection):
    return (await connection.new_session(cwd=CWD, mcp_servers=[])).session_id


async def prompt(connection, session, text):
    return (await connection.prompt(session_id=session, prompt=[text_block(text)])).stop_reason


async def asks(answer):
    async with connected(answer) as (editor, connection):
        session = await new_session(connection)
        equal(await prompt(connection, session, asking(AGENT["permission"])), "end_turn")
        equal(editor.asked, [session])
        return editor.tools


@check
async def a_prompt_streams_its_answer():
    async with connected() as (editor, connection):
        session = await new_session(connection)
        equal(await prompt(connection, session, AGENT["plain"]["prompt"]), "end_turn")
        holds(editor.said, AGENT["plain"]["holds"])
        equal(editor.texts("user_message_chunk"), [])


@check
async def a_tool_that_is_allowed_runs():
    equal(await asks("allow_once"), ["completed"])


@check
async def a_tool_that_is_rejected_does_not_run():
    equal(await asks("reject_once"), ["failed"])


@check
async def cancel_ends_the_turn_and_the_next_one_runs():
    async with connected() as (editor, connection):
        session = await new_session(connection)
        turn = asyncio.create_task(prompt(connection, session, asking(AGENT["words"])))
        await editor.hears("word-1")
        await connection.cancel(session_id=session)
        equal(await turn, "cancelled")
        equal(await prompt(connection, session, AGENT["plain"]["prompt"]), "end_turn")
        holds(editor.said, AGENT["plain"]["holds"])


@check
async def a_session_is_loaded_whole_by_another_client_and_goes_on():
    async with connected() as (first, connection):
        session = await new_session(connection)
        for text in ("The first.", "The second."):
            await prompt(connection, session, text)
    async with connected() as (second, connection):
        await connection.load_session(session_id=session, cwd=CWD, mcp_servers=[])
        await second.hears(first.said)
        equal(second.said, first.said)
        equal(second.texts("user_message_chunk"), ["The first.", "The second."])
        equal(await prompt(connection, session, "The third."), "end_turn")
        listed = await connection.list_sessions()
        holds([entry.session_id for entry in listed.sessions], session)


@check
async def a_session_that_is_not_there_is_named_as_such():
    async with connected() as (_, connection):
        unknown = "00000000-0000-7000-8000-000000000000"
        try:
            await connection.load_session(session_id=unknown, cwd=CWD, mcp_servers=[])
        except RequestError as error:
            equal(error.code, -32002)
            return
        raise AssertionError("it was loaded")


run()
