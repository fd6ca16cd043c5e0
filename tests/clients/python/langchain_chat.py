"""LangChain's chat model on top of openai-python."""

from checks import AGENT, BASE_URL, KEY, MODEL, check, equal, holds, run
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI

chat = ChatOpenAI(
    base_url=BASE_URL, api_key=KEY, model=MODEL, stream_usage=True, max_retries=0, include_response_headers=True
)


@check
def a_message_gets_an_answer():
    answer = chat.invoke([SystemMessage("You are terse."), HumanMessage("Plum?")])
    assert isinstance(answer, AIMessage)
    holds(answer.text, "Plum?")
    assert answer.usage_metadata["total_tokens"] > 0, answer.usage_metadata
    equal(answer.response_metadata["finish_reason"], "stop")


@check
def a_stream_adds_up():
    case = AGENT["plain"]
    whole = None
    for chunk in chat.stream(case["prompt"]):
        whole = chunk if whole is None else whole + chunk
    holds(whole.text, case["holds"])
    assert whole.usage_metadata["output_tokens"] > 0, whole.usage_metadata


@check
async def an_answer_comes_without_blocking():
    holds((await chat.ainvoke(AGENT["plain"]["prompt"])).text, AGENT["plain"]["holds"])


@check
def a_conversation_stays_in_one_session():
    messages, sessions = [], set()
    for turn in range(1, 5):
        messages.append(HumanMessage(f"Turn {turn} of LangChain."))
        answer = chat.invoke(messages)
        sessions.add(answer.response_metadata["headers"]["x-session-id"])
        messages.append(answer)
    equal(len(sessions), 1)


run()
