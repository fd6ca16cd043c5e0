"""Clients that leave before the answer is there. The agent behind this answers only until it is cancelled."""

import asyncio

import openai
from checks import BASE_URL, KEY, MODEL, check, run, said
from openai import AsyncOpenAI, OpenAI

fields = {"model": MODEL, "messages": said("say hello ;; wait-cancel")}


@check
def a_stream_is_left_in_the_middle():
    with OpenAI(base_url=BASE_URL, api_key=KEY, timeout=120) as client:
        with client.chat.completions.create(**fields, stream=True) as stream:
            for chunk in stream:
                if chunk.choices[0].delta.content == "hello":
                    break


@check
async def a_task_that_reads_a_stream_is_cancelled():
    heard = asyncio.Event()

    async def read():
        async with AsyncOpenAI(base_url=BASE_URL, api_key=KEY, timeout=120) as client:
            async for chunk in await client.chat.completions.create(**fields, stream=True):
                if chunk.choices[0].delta.content == "hello":
                    heard.set()

    reading = asyncio.create_task(read())
    await heard.wait()
    reading.cancel()
    try:
        await reading
        raise AssertionError("ended well")
    except asyncio.CancelledError:
        pass


@check
def a_client_loses_its_patience():
    client = OpenAI(base_url=BASE_URL, api_key=KEY, timeout=10, max_retries=0)
    try:
        client.chat.completions.create(**fields)
        raise AssertionError("answered")
    except openai.APITimeoutError:
        pass


run()
