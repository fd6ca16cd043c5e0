"""What a program with openai-python does on an ordinary day."""

from checks import AGENT, BASE_URL, KEY, MODEL, RED_DOT, answer_of, asking, check, equal, holds, run, said
from openai import NotFoundError, OpenAI

client = OpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0, timeout=120)
complete = client.chat.completions.create


@check
def a_question_gets_an_answer():
    case = AGENT["plain"]
    answer = complete(model=MODEL, messages=said(case["prompt"]))
    choice = answer.choices[0]
    holds(choice.message.content, case["holds"])
    equal((choice.message.role, choice.finish_reason, answer.object), ("assistant", "stop", "chat.completion"))
    assert answer.id.startswith("chatcmpl-") and answer.created > 1_700_000_000 and answer.system_fingerprint, answer
    usage = answer.usage
    assert usage.prompt_tokens > 0 and usage.completion_tokens > 0, usage
    equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)


@check
def a_stream_brings_pieces_and_then_the_usage():
    case = AGENT["plain"]
    stream = complete(
        model=MODEL, messages=said(case["prompt"]), stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    equal(chunks[0].choices[0].delta.role, "assistant")
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert sum(1 for piece in pieces if piece) >= 2, pieces
    holds("".join(pieces), case["holds"])
    equal([chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1], "stop")
    equal(len({chunk.id for chunk in chunks}), 1)
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens > 0, chunks[-1]


@check
def a_stream_without_that_wish_has_no_usage():
    chunks = list(complete(model=MODEL, messages=said(AGENT["plain"]["prompt"]), stream=True))
    assert all(chunk.usage is None and chunk.choices for chunk in chunks), chunks


@check
def the_streaming_helper_of_the_library_puts_the_answer_together():
    case = AGENT["thought"]
    with client.chat.completions.stream(model=MODEL, messages=said(asking(case))) as stream:
        deltas = [event.delta for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion()
    equal("".join(deltas), answer_of(case))
    equal(final.choices[0].message.content, answer_of(case))


@check
def thoughts_come_apart_from_the_answer():
    case = AGENT["thought"]
    stream = complete(model=MODEL, messages=said(asking(case)), stream=True)
    deltas = [chunk.choices[0].delta for chunk in stream]
    holds("".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas), case["thought"])
    equal("".join(delta.content or "" for delta in deltas), answer_of(case))

    whole = complete(model=MODEL, messages=said(asking(case)))
    equal(whole.choices[0].message.content, answer_of(case))
    holds(whole.choices[0].message.reasoning_content, case["thought"])
    equal(whole.usage.completion_tokens_details.reasoning_tokens, case["tokens"])


@check
def twenty_turns_stay_in_one_session():
    messages, sessions = [], set()
    for turn in range(1, 21):
        text = f"Turn {turn} of openai-python."
        messages.append({"role": "user", "content": text})
        if turn % 2:
            raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=messages)
            answer = raw.parse().choices[0].message.content
        else:
            raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=messages, stream=True)
            answer = "".join(chunk.choices[0].delta.content or "" for chunk in raw.parse())
        holds(answer, AGENT["echo"].format(text))
        assert "[User]" not in answer, answer
        sessions.add(raw.headers["x-session-id"])
        messages.append({"role": "assistant", "content": answer})
    equal(len(sessions), 1)
    # Named, the session goes on without its history.
    headers = {"x-session-id": sessions.pop()}
    pinned = complete(model=MODEL, messages=said("Once more."), extra_headers=headers)
    holds(pinned.choices[0].message.content, AGENT["echo"].format("Once more."))


@check
def a_system_message_and_an_edited_history_are_heard():
    messages = [{"role": "system", "content": "You are terse."}, *said("Plum?", "Plum!", "And now?")]
    first = complete(model=MODEL, messages=messages).choices[0].message.content
    for heard in ("You are terse.", "Plum?", "Plum!", "And now?"):
        holds(first, heard)


@check
def an_image_reaches_the_agent():
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": RED_DOT}}]
    answer = complete(model=MODEL, messages=[{"role": "user", "content": parts}])
    holds(answer.choices[0].message.content, AGENT["media"])


@check
def a_sound_and_a_file_reach_the_agent():
    # One at a time: the Gemini CLI drops every other part beside a file.
    sound = {"type": "input_audio", "input_audio": {"data": "UklGRiQAAABXQVZF", "format": "wav"}}
    file = {"type": "file", "file": {"filename": "notes.txt", "file_data": "data:text/plain;base64,aGVsbG8="}}
    for part, seen in zip((sound, file), AGENT["attached"]):
        parts = [{"type": "text", "text": "look"}, part]
        answer = complete(model=MODEL, messages=[{"role": "user", "content": parts}])
        holds(answer.choices[0].message.content, seen)


@check
def every_script_comes_through_unharmed():
    case = AGENT["unicode"]
    expected = answer_of(case)
    stream = complete(model=MODEL, messages=said(asking(case)), stream=True)
    equal("".join(chunk.choices[0].delta.content or "" for chunk in stream), expected)
    equal(complete(model=MODEL, messages=said(asking(case))).choices[0].message.content, expected)
    echoed = complete(model=MODEL, messages=said("Say: " + expected)).choices[0].message.content
    holds(echoed, expected)


@check
def a_long_answer_comes_whole():
    prompt = "\n".join(f"Line {number} of a long letter." for number in range(3000))
    stream = complete(model=MODEL, messages=said(prompt), stream=True)
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    holds(streamed, AGENT["echo"].format(prompt))
    equal(complete(model=MODEL, messages=said(prompt)).choices[0].message.content, streamed)


@check
def an_answer_ends_before_a_stop():
    case = AGENT["words"]
    answer = complete(model=MODEL, messages=said(asking(case)), stop=case["stop"])
    equal((answer.choices[0].message.content, answer.choices[0].finish_reason), (case["answer"], "stop"))
    stream = complete(model=MODEL, messages=said(asking(case)), stop=["never", case["stop"]], stream=True)
    equal("".join(chunk.choices[0].delta.content or "" for chunk in stream), case["answer"])


@check
def an_answer_ends_when_it_has_as_many_tokens_as_were_asked_for():
    case = AGENT["words"]
    for limit in ({"max_tokens": 3}, {"max_completion_tokens": 3}):
        answer = complete(model=MODEL, messages=said(asking(case)), **limit)
        equal((answer.choices[0].message.content, answer.choices[0].finish_reason), (case["answer"][:12], "length"))


@check
def two_answers_come_side_by_side():
    case = AGENT["plain"]
    answer = complete(model=MODEL, messages=said(case["prompt"]), n=2)
    equal([choice.index for choice in answer.choices], [0, 1])
    for choice in answer.choices:
        holds(choice.message.content, case["holds"])
    texts = {0: "", 1: ""}
    for chunk in complete(model=MODEL, messages=said(case["prompt"]), n=2, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    for text in texts.values():
        holds(text, case["holds"])


@check
def settings_without_effect_are_named():
    raw = client.chat.completions.with_raw_response.create(
        model=MODEL, messages=said("Hello."), temperature=0.5, top_p=0.9, seed=7, user="me", store=False
    )
    equal(raw.headers["x-gembridge-ignored"], "temperature, top_p, seed")


@check
def models_are_listed_and_found_by_name():
    listed = [model.id for model in client.models.list()]
    for name in AGENT["models"]:
        if "/" not in name:
            assert name in listed, listed
        model = client.models.retrieve(name)
        equal((model.id, model.object), (name, "model"))
    try:
        client.models.retrieve("no-such-model")
        raise AssertionError("found")
    except NotFoundError as error:
        equal(error.param, "model")


@check
def a_model_is_chosen_by_its_name():
    case = AGENT["chosen"]
    answer = complete(model=case["model"], messages=said(case["prompt"]))
    holds(answer.choices[0].message.content, case["holds"])


run()
